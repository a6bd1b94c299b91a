"""The raffle on modelled disks: what does a disk gain when it is read again, and who gains it?

The same ten files on each disk. First without the page cache's help, so that the disk serves every
read: what is faster then is faster thanks to the disk. Then with it: the curve that every disk
shows, and that a published test of hybrid disks warns of.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hotset.block.flashdev import Model
from hotset.core.machines.local import Local
from hotset.core.progress import Reporter
from hotset.core.record import Versioned
from hotset.core.units import Bytes
from hotset.core.words import print_table
from hotset.lab import served_model
from hotset.reports.model.disks import DiskReread, RaffleDraw, RafflePass, ServingPath, Way

from . import mounted_model, raffle, serving_path
from .mounted_model import MountedModel
from .raffle import Counted
from .serving_path import print_paths

if TYPE_CHECKING:
    from rich.console import Console

DISKS = ("wd3200bekt", "hybrid-disk-2014", "sata-ssd-2014")
"""The plain disk, the hybrid and the SSD of the published test."""
WAYS: tuple[Way, ...] = ("loop",)
"""How the disks are reached."""


@dataclass(frozen=True)
class DiskRereads(Versioned):
    """Each disk. ``paths``: what serving takes of a small request's time here, as measured before
    the first."""

    csv_rows = "disks"

    disks: tuple[DiskReread, ...]
    paths: tuple[ServingPath, ...] = ()

    def show(self, console: Console) -> None:
        from hotset.reports.render import disk_tables

        print_table(console, "ten files read again, MB/s", *disk_tables.rereads(self.document()))
        print_paths(console, self.paths)
        for disk in self.disks:
            verdict = "keeps what it has read" if disk.keeps else "gains nothing by itself"
            console.print(
                f"{disk.disk} {verdict}: {disk.gain:.1f}× the first read without the page cache."
                f" With it every disk seems fast: {disk.seeming_gain:.1f}×.",
                markup=False,
            )

    def csv(self) -> str:
        from hotset.reports.render import disk_tables

        return disk_tables.csv(self.document())


@dataclass(frozen=True, slots=True)
class TenFiles:
    """Where they are, and what tells who serves them."""

    folder: Path
    count: Counted


def summarize(disk: str, cold: tuple[RafflePass, ...], warm: RafflePass) -> DiskReread:
    """One disk: what it gains by itself, and what it seems to gain with the page cache's help.

    Each file's first read, which no cache can help, is held against all that come after it.
    """
    first = statistics.mean(file.first_mb_per_s for file in raffle.list_files(cold[0]))
    again, page_cache = _mean(_again(cold)), _mean(_again((warm,)))
    return DiskReread(
        disk=disk,
        cold=cold,
        warm=warm,
        first_mb_per_s=first,
        again_mb_per_s=again,
        gain=again / first,
        page_cache_mb_per_s=page_cache,
        seeming_gain=page_cache / first,
    )


def _again(passes: Sequence[RafflePass]) -> Iterator[RaffleDraw]:
    """Yield the draws in these passes of posts that were read before."""
    seen: set[str] = set()
    for draw in (draw for single in passes for draw in single.draws):
        if draw.name in seen:
            yield draw
        seen.add(draw.name)


def _mean(draws: Iterator[RaffleDraw]) -> float:
    return statistics.mean(draw.mb_per_s for draw in draws)


def name_of(model: Model) -> str:
    """
    >>> name_of("hdd-7200"), name_of({"name": "mine", "device": {}})
    ('hdd-7200', 'mine')
    """
    return model if isinstance(model, str) else str(model["name"])


def hold(
    local: Local,
    disks: Sequence[Model],
    size: Bytes,
    passes: int,
    seed: int,
    paths: Sequence[ServingPath],
    report: Reporter,
) -> Generator[DiskReread]:
    """Read ten files of ``size`` on each of the modelled disks.

    :param passes: raffles without the page cache.
    :param paths: the serving times here, from :func:`serving_path.measure` for `WAYS`.
    :raises RootError: not root, whom loop devices and mounts take.
    """
    mounted_model.require(local)
    path_us = serving_path.find_us(paths, "loop")
    with _content(local, size, report) as (folder, content):
        for disk in disks:
            yield _on(local, folder, content, disk, passes, seed, path_us, report)


@contextmanager
def on_model(local: Local, model: Model, size: Bytes, report: Reporter) -> Iterator[TenFiles]:
    """The ten files on one model that has not read any of them.

    :raises RootError: not root, whom loop devices and mounts take.
    """
    mounted_model.require(local)
    path_us = serving_path.find_us(serving_path.measure(local, WAYS, report), "loop")
    with (
        _content(local, size, report) as (folder, content),
        mounted_model.mount_model(local, folder, content, model, path_us=path_us) as mounted,
    ):
        yield _ten_files(local, mounted)


def _ten_files(local: Local, mounted: MountedModel) -> TenFiles:
    def count() -> served_model.Reads | None:
        return served_model.status(local, mounted.device.socket).reads

    # A device that has nothing to tell is not asked before each read.
    tells = count() is not None
    return TenFiles(mounted.files / raffle.FOLDER, count if tells else raffle.nothing_counted)


@contextmanager
def _content(local: Local, size: Bytes, report: Reporter) -> Iterator[tuple[Path, Path]]:
    """A folder for models, and the content of each in it: the ten files."""
    with tempfile.TemporaryDirectory(prefix="hotset-reread-") as name:
        folder = Path(name)
        content, source = folder / "content", folder / "source"
        with report.task(f"writing ten files of {size}"):
            source.mkdir()
            raffle.prepare(source, tuple(raffle.WEIGHTS), size)
            mounted_model.make_content(local, content, source, Bytes(len(raffle.WEIGHTS) * size))
            shutil.rmtree(source)
        yield folder, content


def _on(
    local: Local,
    folder: Path,
    content: Path,
    disk: Model,
    passes: int,
    seed: int,
    path_us: int | None,
    report: Reporter,
) -> DiskReread:
    with mounted_model.mount_model(local, folder, content, disk, path_us=path_us) as mounted:
        files, reads = _ten_files(local, mounted), []
        for number in range(passes + 1):
            warm = number == passes
            report.say(f"{name_of(disk)}: pass {number + 1} of {passes + 1}")
            # The last one begins without anything in memory, too.
            for name in raffle.WEIGHTS:
                raffle.drop(files.folder / name)
            reads.append(
                raffle.hold(files.folder, raffle.WEIGHTS, seed, number, not warm, files.count)
            )
    return summarize(name_of(disk), tuple(reads[:-1]), reads[-1])
