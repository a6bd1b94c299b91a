"""Time that serving a model adds to a small request on this computer: the path through FUSE, a loop
device where there is one, and threads that have to wake up. It is measured, since it differs
twofold between computers, and with their load: a modelled device is so much faster that both
together take the model's time."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from hotset.block import loop
from hotset.block.flashdev import Model
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.core.progress import Reporter
from hotset.core.units import Bytes
from hotset.lab import served_model
from hotset.reports.model.disks import BenchRun, ServingPath, Way

from . import disk_bench
from .disk_bench import PROFILES, Direction, Profile

if TYPE_CHECKING:
    from rich.console import Console

SECONDS = 2
"""Length of a run."""
_RUNS = 3
_LATENCY_US = 500.0
"""Latency of the device it is measured with: long enough that a thread has to wait for it."""
_SIZE = Bytes(64 * 1024**2)
_SMALL = PROFILES[3]


def plain(latency_us: float) -> Model:
    """A device that does nothing but wait."""
    sides = {
        f"{side}_{field}": value
        for side in ("read", "write")
        for field, value in (
            ("latency_us", latency_us),
            ("iops", 100_000_000),
            ("mb_per_s", 100_000.0),
        )
    }
    return {"name": "plain", "device": {"ssd": sides}}


def measure(
    local: Local,
    ways: Sequence[Way],
    report: Reporter,
    cleanup_at: Callable[[Path, Local], Cleanup] = Cleanup,
) -> tuple[ServingPath, ...]:
    """Measure each of these ways, one 4 KiB read at a time.

    :param cleanup_at: makes the journal of a folder; a plan's ends no process.
    """
    paths = []
    for way in ways:
        runs = []
        for _ in range(_RUNS):
            with _served(local, way, cleanup_at) as file:
                sample = disk_bench.measure(
                    local, file, _SIZE, SECONDS, _SMALL, "read", refill=False
                )
            runs.append(sample.latency_us - _LATENCY_US)
        path_us = max(0, round(statistics.median(runs)))
        path = ServingPath(way=way, path_us=path_us, runs_us=tuple(runs))
        report.say(sentence(path))
        paths.append(path)
    return tuple(paths)


def sentence(path: ServingPath) -> str:
    """
    >>> sentence(ServingPath(way="file", path_us=62, runs_us=(60.1, 62.2, 71.0)))
    "serving a file takes 62 us of a small request's time here"
    """
    what = "a file" if path.way == "file" else "a disk through a loop device"
    return f"serving {what} takes {path.path_us} us of a small request's time here"


def find_us(paths: Sequence[ServingPath], way: Way) -> int | None:
    """Return the latest measurement of a way; None if there is none."""
    return next((path.path_us for path in reversed(paths) if path.way == way), None)


def ceiling(local: Local, profile: Profile, direction: Direction) -> BenchRun:
    """Measure what this computer serves of such a load, through a file, without any model."""
    with served_model.serve_model(local, plain(0.0), _SIZE, path_us=0) as served:
        return disk_bench.measure(
            local, served.file, _SIZE, SECONDS, profile, direction, refill=False
        )


@contextmanager
def _served(local: Local, way: Way, cleanup_at: Callable[[Path, Local], Cleanup]) -> Iterator[Path]:
    with served_model.serve_model(
        local, plain(_LATENCY_US), _SIZE, path_us=0, cleanup_at=cleanup_at
    ) as served:
        if way == "file":
            yield served.file
            return
        with tempfile.TemporaryDirectory(prefix="hotset-path-") as name:
            cleanup = cleanup_at(Path(name), local)
            with cleanup.part():
                yield Path(loop.attach(local, served.file, cleanup, readonly=True))


def print_paths(console: Console, paths: Sequence[ServingPath]) -> None:
    """Print the time that serving the models took here."""
    for path in paths:
        console.print(f"{sentence(path)}, which is taken off", markup=False)
