"""Files to extents to cache blocks: where a database lies on its disk.

Extents come from FIEMAP through ``filefrag -v`` (ext4, xfs).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePosixPath

from hotset.cachelayer.machine import Machine
from hotset.cachelayer.units import Blocks, Bytes

_FILES_PER_CALL = 200
_BLOCK_SIZE = re.compile(r"\((\d+) blocks? of (\d+) bytes\)")
_EXTENT = re.compile(
    r"^\s*\d+:\s+\d+\.\.\s*\d+:\s+(\d+)\.\.\s*(\d+):\s+\d+:\s*(?:\d+:)?\s*([a-z_,]*)\s*$"
)
# An extent with one of these flags has no data on the disk yet, or none that stays there.
_NOT_ON_DISK = frozenset(("unwritten", "delalloc", "inline", "unknown_loc", "not_aligned"))


@dataclass(frozen=True, slots=True, order=True)
class Extent:
    """A run of bytes on the disk."""

    start: Bytes
    length: Bytes


@dataclass(frozen=True, slots=True, order=True)
class Run:
    """A run of cache-block-sized blocks of the origin."""

    start: Blocks
    count: Blocks


def parse_filefrag(text: str) -> list[Extent]:
    """Extents with data out of ``filefrag -v`` output for any number of files.

    :raises ValueError: a line that is not understood; names it.
    """
    extents: list[Extent] = []
    block = 0
    for line in text.splitlines():
        size = _BLOCK_SIZE.search(line)
        if size is not None:
            block = int(size[2])
            continue
        if not re.match(r"^\s*\d+:", line):
            continue
        match = _EXTENT.match(line)
        if match is None or block == 0:
            raise ValueError(f"filefrag: not an extent: {line!r}")
        if _NOT_ON_DISK.isdisjoint(match[3].split(",")):
            first, last = int(match[1]), int(match[2])
            extents.append(Extent(Bytes(first * block), Bytes((last - first + 1) * block)))
    return extents


def of_files(machine: Machine, files: Sequence[str]) -> list[Extent]:
    """Extents of files, which must lie on one file system."""
    extents: list[Extent] = []
    for start in range(0, len(files), _FILES_PER_CALL):
        some = files[start : start + _FILES_PER_CALL]
        extents += parse_filefrag(machine.run(["filefrag", "-v", "-s", *some]).stdout)
    return extents


def files_under(machine: Machine, folder: PurePosixPath) -> list[str]:
    """Regular, non-empty files below a folder, on its own file system only."""
    argv = ["find", str(folder), "-xdev", "-type", "f", "-size", "+0", "-print0"]
    return [name for name in machine.run(argv).stdout.split("\0") if name]


def to_runs(extents: Iterable[Extent], block: Bytes, origin_size: Bytes) -> list[Run]:
    """The blocks that hold the extents, merged into runs in origin order.

    Blocks that reach past the origin's last whole block are left out: dm-cache does not cache them.
    """
    limit = origin_size // block
    runs: list[Run] = []
    for extent in sorted(extents):
        first = extent.start // block
        last = min((extent.start + extent.length - 1) // block, limit - 1)
        if runs and first <= runs[-1].start + runs[-1].count:
            start = runs[-1].start
            end = max(start + runs[-1].count, last + 1)
            runs[-1] = Run(start, Blocks(end - start))
        elif last >= first:
            runs.append(Run(Blocks(first), Blocks(last - first + 1)))
    return runs


def joined(runs: Sequence[Run], more: Sequence[Run], capacity: Blocks) -> list[Run]:
    """The runs, and of the others as many blocks, the first ones, as the cache has room for.

    >>> joined([Run(Blocks(8), Blocks(2))], [Run(Blocks(3), Blocks(7))], Blocks(4))
    [Run(start=3, count=2), Run(start=8, count=2)]
    """
    taken = set(origin_blocks(runs))
    others = (at for at in origin_blocks(more) if at not in taken)
    return runs_of({*taken, *islice(others, max(0, int(capacity) - len(taken)))})


def with_room(
    runs: Sequence[Run], free: Iterable[Extent], block: Bytes, capacity: Blocks
) -> list[Run]:
    """The runs, and as many wholly free blocks, the first on the disk, as the cache has room for.

    :param capacity: when the runs have that many blocks already, they stay as they are.
    """
    taken = set(origin_blocks(runs))
    growth = (
        at
        for extent in free
        for at in range(-(-extent.start // block), (extent.start + extent.length) // block)
        if at not in taken
    )
    return runs_of({*taken, *islice(growth, max(0, int(capacity) - len(taken)))})


def count(runs: Iterable[Run]) -> Blocks:
    return Blocks(sum(run.count for run in runs))


def origin_blocks(runs: Iterable[Run]) -> Iterator[int]:
    """The origin's blocks one by one, in the order of the runs."""
    for run in runs:
        yield from range(run.start, run.start + run.count)


def runs_of(blocks: Iterable[int]) -> list[Run]:
    """Runs in origin order out of single blocks."""
    runs: list[Run] = []
    for block in sorted(blocks):
        if runs and block == runs[-1].start + runs[-1].count:
            runs[-1] = Run(runs[-1].start, Blocks(runs[-1].count + 1))
        else:
            runs.append(Run(Blocks(block), Blocks(1)))
    return runs
