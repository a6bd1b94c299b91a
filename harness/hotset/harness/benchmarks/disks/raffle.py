"""The raffle: files are read as often as they are drawn; which layer served them?

A hundred tickets name ten files, some more often than others; they are drawn without putting back,
and the named file is read and timed. A cache makes the often read ones fast on the mean. Which
cache it was, the times alone do not tell: the page cache shows the same curve over any disk. So
each read tells the share of its bytes that were in memory before (mincore) and the major page
faults while it was read.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import resource
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hotset.cachelayer.common.errors import RequestError
from hotset.cachelayer.common.units import Bytes

Layer = Literal["page cache", "device", "both"]
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
_ALL, _NONE = 0.99, 0.01


class RaffleError(RequestError):
    """The raffle cannot be held as asked; the message says what would do."""


@dataclass(frozen=True, slots=True)
class Draw:
    """One ticket: ``in_memory`` is the share of the file that the page cache held before."""

    name: str
    seconds: float
    bytes: int
    in_memory: float
    major_faults: int

    @property
    def mb_per_s(self) -> float:
        return self.bytes / 1e6 / self.seconds

    @property
    def layer(self) -> Layer:
        if self.in_memory >= _ALL:
            return "page cache"
        return "device" if self.in_memory <= _NONE else "both"


@dataclass(frozen=True, slots=True)
class FileResult:
    """All reads of one file: mean MB/s, as the published test has it, and by which layer."""

    name: str
    reads: int
    mb_per_s_mean: float
    first_mb_per_s: float
    from_page_cache: int
    major_faults: int


@dataclass(frozen=True, slots=True)
class Pass:
    """One raffle. ``dropped``: the page cache was emptied before it."""

    number: int
    dropped: bool
    draws: tuple[Draw, ...]

    @property
    def files(self) -> tuple[FileResult, ...]:
        names = sorted({one.name for one in self.draws})
        return tuple(_result(name, [d for d in self.draws if d.name == name]) for name in names)

    @property
    def major_faults(self) -> int:
        return sum(one.major_faults for one in self.draws)

    @property
    def served_by(self) -> Layer:
        layers = {one.layer for one in self.draws}
        return layers.pop() if len(layers) == 1 else "both"


def _result(name: str, draws: Sequence[Draw]) -> FileResult:
    return FileResult(
        name,
        len(draws),
        sum(one.mb_per_s for one in draws) / len(draws),
        draws[0].mb_per_s,
        sum(one.layer == "page cache" for one in draws),
        sum(one.major_faults for one in draws),
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
        return sum(one & 1 for one in vector) / pages


def hold(folder: Path, weights: dict[str, int], seed: int, number: int, cold: bool) -> Pass:
    """Draw all tickets once.

    :param cold: the files are taken out of the page cache first, and after each read: what is
        read again then comes from the device. Else the page cache does its work.
    """
    order = tickets(weights, seed + number)
    if cold:
        for name in weights:
            drop(folder / name)
    return Pass(number, cold, tuple(_draws(folder, order, cold)))


def _draws(folder: Path, order: Sequence[str], cold: bool) -> Iterator[Draw]:
    for name in order:
        file = folder / name
        yield _read(file)
        if cold:
            drop(file)


def _read(file: Path) -> Draw:
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
    return Draw(file.name, seconds, size, held, faults)
