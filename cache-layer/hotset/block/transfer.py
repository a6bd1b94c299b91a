"""Reading and copying runs of blocks at the machine, with progress and a rate limit.

All of it is ``hotset-engine copy``, which keeps several requests under way and reads past the page
cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.core.machines import locks
from hotset.core.machines.base import Machine, put_lines
from hotset.core.progress import Measured, Reporter
from hotset.core.units import Bytes, mb_per_s

from . import programs
from .devicemapper import device_size
from .extents import Run

READ_MAX = Bytes(1024**2)
"""The largest read that every tier keeps: bcache keeps no miss that comes as one request of more
(it asks for one bio of as many pages, ``cached_dev_cache_miss`` in drivers/md/bcache/request.c),
which the kernel's large pages make of larger reads."""
_RATE_PROBE = Bytes(48 * 1024**2)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a transfer is."""

    done: Bytes
    total: Bytes
    seconds: float

    def show(self, report: Reporter) -> None:
        """Implement :class:`~hotset.core.progress.Step`."""
        rate = mb_per_s(self.done, self.seconds)
        left = (self.total - self.done) / 1e6 / rate if rate else 0
        report.figure(
            f"{self.seconds:.1f} s, {self.done} of {Bytes(self.total)},"
            f" {rate:.1f} MB/s, ETA {left:.0f} s",
            Measured.by_rate(int(self.done), int(self.total), "bytes", self.seconds),
        )


def progress_of(total: Bytes, on_progress: Callable[[Progress], None]) -> Callable[[Bytes], None]:
    """Turns bytes done into progress, with the seconds since now."""
    begun = time.monotonic()
    return lambda done: on_progress(Progress(done, total, time.monotonic() - begun))


def read_runs(
    machine: Machine,
    runs: Iterable[Run],
    block: Bytes,
    device: PurePosixPath,
    on_bytes: Callable[[Bytes], None],
    rate: Bytes | None = None,
    piece: Bytes = READ_MAX,
) -> float:
    """Read the runs of a device once, at most so many bytes a second; returns the seconds.

    :param piece: no read larger than this.
    """
    lines = (f"{run.start * block} {run.count * block}\n" for run in runs)
    argv = ["--from", str(device), "--piece", str(int(piece))]
    return _transfer(machine, argv, lines, on_bytes, rate)


def copy_exclusively(
    machine: Machine,
    source: PurePosixPath,
    target: PurePosixPath,
    pieces: Iterable[tuple[Bytes, Bytes, Bytes]],
    on_bytes: Callable[[Bytes], None],
    rate: Bytes | None = None,
) -> float:
    """Copy pieces (offset in the source, length, offset in the target); returns the seconds.

    Both devices are claimed: nobody can mount them or build a device on them meanwhile.
    """
    lines = (f"{int(start)} {int(length)} {int(place)}\n" for start, length, place in pieces)
    argv = ["--from", str(source), "--to", str(target), "--exclusive"]
    return _transfer(machine, argv, lines, on_bytes, rate)


def sequential_rate(machine: Machine, device: PurePosixPath) -> float:
    """The sequential read rate in MB/s, measured on a device's first megabytes."""
    size = min(_RATE_PROBE, device_size(machine, device))
    read = programs.copy(machine, ["--from", str(device), "--bytes", str(int(size))])
    return mb_per_s(Bytes(size), read)


def _transfer(
    machine: Machine,
    argv: list[str],
    lines: Iterable[str],
    on_bytes: Callable[[Bytes], None],
    rate: Bytes | None,
) -> float:
    limit = [] if rate is None else ["--rate", str(int(rate))]
    with locks.scratch_folder(machine, None) as folder:
        put_lines(machine, lines, folder / "runs")
        return programs.copy(machine, [*argv, "--runs", str(folder / "runs"), *limit], on_bytes)
