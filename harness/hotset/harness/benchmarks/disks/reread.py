"""The raffle on modelled disks: what does a disk gain when it is read again, and who gains it?

The same ten files on each disk. First without the page cache's help, so that the disk serves every
read: what is faster then is faster thanks to the disk. Then with it: the curve that every disk
shows, and that a published test of hybrid disks warns of.
"""

from __future__ import annotations

import os
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hotset.cachelayer.block import filesystem, loop
from hotset.cachelayer.block.flashdev import Model
from hotset.cachelayer.common.units import Bytes
from hotset.cachelayer.hosts.cleanup import Cleanup
from hotset.cachelayer.hosts.local import Local
from hotset.cachelayer.testbed import served_model

from ...terminal.progress import Reporter
from . import raffle
from .raffle import Draw, Pass, RaffleError

DISKS = ("wd3200bekt", "hybrid-disk-2014", "sata-ssd-2014")
"""The plain disk, the hybrid and the SSD of the published test."""
_FILE_SYSTEM_BYTES = 64 * 1024**2
_GAIN = 1.2
"""A disk serves repeats faster by itself from here on: less comes from the order of the reads."""


@dataclass(frozen=True, slots=True)
class Reread:
    """One disk. ``cold``: passes without the page cache; ``warm``: one with it."""

    disk: str
    cold: tuple[Pass, ...]
    warm: Pass

    @property
    def first_mb_per_s(self) -> float:
        """Each file's first read, which no cache can help."""
        return statistics.mean(file.first_mb_per_s for file in self.cold[0].files)

    @property
    def again_mb_per_s(self) -> float:
        """All other reads without the page cache."""
        return _mean(_again(self.cold))

    @property
    def page_cache_mb_per_s(self) -> float:
        """The same where the page cache helps."""
        return _mean(_again((self.warm,)))

    @property
    def gain(self) -> float:
        """How many times as fast the disk itself is with what it has read before."""
        return self.again_mb_per_s / self.first_mb_per_s

    @property
    def seeming_gain(self) -> float:
        """The same as somebody finds who leaves the page cache on."""
        return self.page_cache_mb_per_s / self.first_mb_per_s

    @property
    def keeps(self) -> bool:
        """The disk itself is faster with what it has read before."""
        return self.gain >= _GAIN


def _again(passes: Sequence[Pass]) -> Iterator[Draw]:
    """What was read before, in these passes."""
    seen: set[str] = set()
    for one in (draw for single in passes for draw in single.draws):
        if one.name in seen:
            yield one
        seen.add(one.name)


def _mean(draws: Iterator[Draw]) -> float:
    return statistics.mean(one.mb_per_s for one in draws)


def hold(
    local: Local, disks: Sequence[Model], size: Bytes, passes: int, seed: int, report: Reporter
) -> Iterator[Reread]:
    """Read ten files of ``size`` on each of the modelled disks.

    :param passes: raffles without the page cache.
    :raises RaffleError: not root, whom loop devices and mounts take.
    """
    if os.geteuid():
        raise RaffleError("takes root, as it mounts the modelled disks: call it with sudo")
    loop.require(local)
    with tempfile.TemporaryDirectory(prefix="hotset-reread-") as name:
        folder = Path(name)
        content = folder / "content"
        with report.task(f"writing ten files of {size}"):
            _write(local, folder, content, size)
        for disk in disks:
            yield _on(local, folder, content, disk, passes, seed, report)


def _write(local: Local, folder: Path, content: Path, size: Bytes) -> None:
    """The files, in a file system that no disk has written: one that had would have some of them
    in its cache. It is not mounted either: whoever copies the table of mounts meanwhile, as a
    container does when it starts, would keep it from being unmounted."""
    source = folder / "source"
    source.mkdir()
    raffle.prepare(source, tuple(raffle.WEIGHTS), size)
    total = len(raffle.WEIGHTS) * size
    with content.open("wb") as file:
        file.truncate(total + total // 16 + _FILE_SYSTEM_BYTES)
    filesystem.make_of(local, PurePosixPath(content), PurePosixPath(source))
    shutil.rmtree(source)


@contextmanager
def _mounted(local: Local, device: PurePosixPath, at: Path) -> Iterator[None]:
    at.mkdir(exist_ok=True)
    local.run(["mount", "-o", "ro", str(device), str(at)])
    try:
        yield
    finally:
        local.run(["umount", str(at)], timeout_s=600)


def _on(
    local: Local,
    folder: Path,
    content: Path,
    disk: Model,
    passes: int,
    seed: int,
    report: Reporter,
) -> Reread:
    size = Bytes(content.stat().st_size)
    cleanup = Cleanup(folder, local)
    with served_model.served(local, disk, size, backing=content) as served, cleanup.part():
        device = loop.attach(local, served.file, cleanup, readonly=True)
        with _mounted(local, device, folder / "files"):
            place = folder / "files" / raffle.FOLDER
            found = []
            for number in range(passes + 1):
                warm = number == passes
                report.say(f"{disk}: pass {number + 1} of {passes + 1}")
                # The last one begins without anything in memory, too.
                for name in raffle.WEIGHTS:
                    raffle.drop(place / name)
                found.append(raffle.hold(place, raffle.WEIGHTS, seed, number, cold=not warm))
    return Reread(str(disk), tuple(found[:-1]), found[-1])
