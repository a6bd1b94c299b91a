"""The raffle: files are read as often as they are drawn; which layer served them?

A hundred tickets name ten files, some more often than others; they are drawn without putting back,
and the named file is read and timed. A cache makes the often read ones fast on the mean. Which
cache it was, the times alone do not tell: the page cache shows the same curve over any disk. So
each read tells the share of its bytes that were in memory before (mincore), the major page
faults while it was read, and, of a modelled hybrid disk, how much its flash served.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import resource
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hotset.core.errors import RequestError
from hotset.core.record import Versioned
from hotset.core.units import Bytes
from hotset.core.words import csv_text, print_table
from hotset.lab.served_model import Reads
from hotset.reports.model.disks import Layer, RaffleDraw, RafflePass

if TYPE_CHECKING:
    from rich.console import Console

Counted = Callable[[], Reads | None]
"""Reads served so far by a device's flash and by the disk behind it; None for other devices."""
# The tickets of the published test, as far as it names them (a 4, d 10, f 24, j 2); the others
# fill up to a hundred.
WEIGHTS = {
    "a": 4,
    "b": 8,
    "c": 12,
    "d": 10,
    "e": 14,
    "f": 24,
    "g": 6,
    "h": 9,
    "i": 11,
    "j": 2,
}
FOLDER = "hotset-raffle"
_PIECE = 1024**2


def nothing_counted() -> None:
    """Count nothing, for a device that does not report where it serves reads from."""


class RaffleError(RequestError):
    """The raffle cannot be held as asked; the message says what would do."""


@dataclass(frozen=True, slots=True)
class FileResult:
    """All reads of one file: mean MB/s, as the published test has it, and by which layer:
    ``from_page_cache`` in reads, ``from_flash`` as the mean share of what the device served."""

    name: str
    reads: int
    mb_per_s_mean: float
    first_mb_per_s: float
    from_page_cache: int
    from_flash: float | None
    major_faults: int


@dataclass(frozen=True)
class DiskRaffle(Versioned):
    """All passes."""

    csv_rows = "passes"

    passes: tuple[RafflePass, ...]

    def show(self, console: Console) -> None:
        for pass_ in self.passes:
            state = "cold" if pass_.dropped else "warm"
            faults = sum(draw.major_faults for draw in pass_.draws)
            title = (
                f"pass {pass_.number + 1}, page cache {state}: served by {pass_.served_by},"
                f" {faults} major page faults"
            )
            print_table(console, title, *_pass_table(pass_))

    def csv(self) -> str:
        return "\n".join(csv_text(*_pass_table(pass_)) for pass_ in self.passes)


def _pass_table(pass_: RafflePass) -> tuple[Sequence[str], list[tuple[object, ...]]]:
    columns = (
        "file",
        "reads",
        "mean MB/s",
        "first MB/s",
        "from page cache",
        "share from flash",
        "major faults",
    )
    return columns, [astuple(file) for file in list_files(pass_)]


def list_files(held: RafflePass) -> list[FileResult]:
    """All reads of a pass, a result a file."""
    names = sorted({draw.name for draw in held.draws})
    return [_result(name, [draw for draw in held.draws if draw.name == name]) for name in names]


def _result(name: str, draws: Sequence[RaffleDraw]) -> FileResult:
    shares = [draw.from_flash for draw in draws if draw.from_flash is not None]
    return FileResult(
        name,
        len(draws),
        sum(draw.mb_per_s for draw in draws) / len(draws),
        draws[0].mb_per_s,
        sum(draw.layer == "page cache" for draw in draws),
        sum(shares) / len(shares) if shares else None,
        sum(draw.major_faults for draw in draws),
    )


def tickets(weights: dict[str, int], seed: int) -> list[str]:
    """All tickets in the order of the draw.

    >>> sorted(tickets({"a": 2, "b": 1}, seed=1))
    ['a', 'a', 'b']
    """
    if not weights or min(weights.values()) < 1:
        raise RaffleError(f"weights {weights}: give each file one ticket at least")
    drawn = [name for name, count in sorted(weights.items()) for _ in range(count)]
    random.Random(seed).shuffle(drawn)
    return drawn


def prepare(disk: Path, names: Sequence[str], size: Bytes) -> Path:
    """Write the files with data that nothing compresses, in a folder of their own, which is
    returned: no file of the user's is touched. Those that are there in their size stay.

    :raises RaffleError: the folder does not exist or has no room.
    """
    if not disk.is_dir():
        raise RaffleError(f"{disk}: no such folder: name one on the disk to be tested")
    folder = disk / FOLDER
    folder.mkdir(exist_ok=True)
    for name in names:
        file = folder / name
        if file.exists() and file.stat().st_size == size:
            continue
        try:
            with file.open("wb") as out:
                left = int(size)
                while left:
                    left -= out.write(os.urandom(min(_PIECE, left)))
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            file.unlink(missing_ok=True)
            raise RaffleError(f"{file}: cannot be written: {error.strerror}") from None
    return folder


def remove(disk: Path) -> None:
    """Remove what `prepare` made, as far as it came."""
    shutil.rmtree(disk / FOLDER, ignore_errors=True)


def drop(file: Path) -> None:
    """Take a file out of the page cache; it is all on the disk before.

    ``POSIX_FADV_DONTNEED`` on the files alone: no root, and nobody else's cache is lost.
    """
    with file.open("rb") as opened:
        os.fsync(opened.fileno())
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def in_memory(file: Path) -> float:
    """The share of a file that is in the page cache (mincore(2))."""
    size = file.stat().st_size
    if size == 0:
        return 0.0
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), size, mmap.MAP_PRIVATE) as mapped:
        pages = -(-size // mmap.PAGESIZE)
        vector = (ctypes.c_ubyte * pages)()
        start = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        libc = ctypes.CDLL(None, use_errno=True)
        code = libc.mincore(ctypes.c_void_p(start), ctypes.c_size_t(size), vector)
        if code != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(file))
        return sum(byte & 1 for byte in vector) / pages


def hold(
    folder: Path,
    weights: dict[str, int],
    seed: int,
    number: int,
    cold: bool,
    counted: Counted = nothing_counted,
) -> RafflePass:
    """Draw all tickets once.

    :param cold: the files are taken out of the page cache first, and after each read: what is
        read again then comes from the device. Else the page cache does its work.
    :param counted: asked between the reads.
    """
    order = tickets(weights, seed + number)
    if cold:
        for name in weights:
            drop(folder / name)
    return summarize(number, cold, tuple(_draws(folder, order, cold, counted)))


def summarize(number: int, dropped: bool, draws: tuple[RaffleDraw, ...]) -> RafflePass:
    """A pass, with the layer that served it."""
    layers: set[Layer] = {draw.layer for draw in draws}
    served_by: Layer = "flash and platters"
    if len(layers) == 1:
        (served_by,) = layers
    elif layers & {"page cache", "both"}:
        served_by = "both"
    return RafflePass(number=number, dropped=dropped, draws=draws, served_by=served_by)


def _draws(
    folder: Path, order: Sequence[str], cold: bool, counted: Counted
) -> Iterator[RaffleDraw]:
    before = counted()
    for name in order:
        file = folder / name
        draw, after = _read(file), counted()
        yield draw.model_copy(update={"from_flash": _share(before, after)})
        before = after
        if cold:
            drop(file)


def _share(before: Reads | None, after: Reads | None) -> float | None:
    if before is None or after is None:
        return None
    flash, disk = after.flash - before.flash, after.disk - before.disk
    return flash / (flash + disk) if flash + disk else None


def _read(file: Path) -> RaffleDraw:
    """Read a file through a mapping: what is not in memory comes with a major page fault."""
    held = in_memory(file)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_majflt
    size = file.stat().st_size
    begun = time.perf_counter()
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), size, prot=mmap.PROT_READ) as mapped:
        mapped.madvise(mmap.MADV_SEQUENTIAL)
        for place in range(0, size, mmap.PAGESIZE):
            mapped[place]
    seconds = time.perf_counter() - begun
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_majflt - before
    return RaffleDraw(
        name=file.name, seconds=seconds, bytes=size, in_memory=held, major_faults=faults
    )
