"""Files to extents to cache blocks: where a database lies on its disk.

Extents come from FIEMAP through ``filefrag -v`` (ext4, xfs).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from pathlib import PurePosixPath

from hotset.core.machines.base import Machine
from hotset.core.units import Blocks, Bytes

Span = tuple[int, int]
"""Half-open (start, end) of whole numbers, whatever they count."""
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
    return union(
        _run(extent.start // block, min(-(-(extent.start + extent.length) // block), limit))
        for extent in extents
    )


def union(*lists: Iterable[Run]) -> list[Run]:
    """Every block that is in one of the lists, which may be in any order: runs in origin order.

    >>> union([Run(Blocks(8), Blocks(2))], [Run(Blocks(3), Blocks(2)), Run(Blocks(5), Blocks(4))])
    [Run(start=Blocks(3), count=Blocks(7))]
    """
    return _runs(join_spans(map(_span, chain.from_iterable(lists))))


def difference(runs: Sequence[Run], without: Sequence[Run]) -> list[Run]:
    """The blocks of the runs that are not in the others; both in origin order and apart.

    >>> difference([Run(Blocks(0), Blocks(9))], [Run(Blocks(3), Blocks(2))])
    [Run(start=Blocks(0), count=Blocks(3)), Run(start=Blocks(5), count=Blocks(4))]
    """
    return _runs(subtract_spans(map(_span, runs), [*map(_span, without)]))


def intersection(runs: Sequence[Run], others: Sequence[Run]) -> list[Run]:
    """The blocks that are in both; each in origin order and apart."""
    return difference(runs, difference(runs, others))


def first(runs: Iterable[Run], blocks: int) -> list[Run]:
    """The first so many blocks, in the order of the runs."""
    taken: list[Run] = []
    for run in runs:
        if blocks <= 0:
            break
        taken.append(run if run.count <= blocks else Run(run.start, Blocks(blocks)))
        blocks -= run.count
    return taken


def join_within(runs: Sequence[Run], more: Iterable[Run], capacity: Blocks) -> list[Run]:
    """The runs, and of the others as many blocks, the first on the disk, as the cache has room for.

    :param capacity: when the runs have that many blocks already, they stay as they are.

    >>> join_within([Run(Blocks(8), Blocks(2))], [Run(Blocks(3), Blocks(7))], Blocks(4))
    [Run(start=Blocks(3), count=Blocks(2)), Run(start=Blocks(8), count=Blocks(2))]
    """
    return union(runs, first(difference(union(more), union(runs)), capacity - count(runs)))


def with_room(
    runs: Sequence[Run], free: Iterable[Extent], block: Bytes, capacity: Blocks
) -> list[Run]:
    """Call :func:`join_within`, the others being the blocks that are wholly free."""
    return join_within(runs, whole_runs(free, block), capacity)


def whole_runs(extents: Iterable[Extent], block: Bytes) -> list[Run]:
    """The blocks that have nothing but the extents in them, in origin order.

    >>> whole_runs([Extent(Bytes(1), Bytes(8)), Extent(Bytes(9), Bytes(3))], Bytes(4))
    [Run(start=Blocks(1), count=Blocks(2))]
    """
    whole = ((-(-start // block), end // block) for start, end in join_spans(_bytes(extents)))
    return _runs(span for span in whole if span[0] < span[1])


def count(runs: Iterable[Run]) -> Blocks:
    return Blocks(sum(run.count for run in runs))


def runs_of(blocks: Iterable[int]) -> list[Run]:
    """Runs in origin order out of single blocks."""
    return _runs(join_spans((block, block + 1) for block in blocks))


def nth_blocks(runs: Sequence[Run], places: Iterable[int]) -> list[int]:
    """The origin's blocks at some places in the order of the runs, without counting them all out.

    >>> nth_blocks([Run(Blocks(10), Blocks(2)), Run(Blocks(20), Blocks(5))], [0, 3])
    [10, 21]
    """
    befores = list(accumulate((run.count for run in runs), initial=0))
    pairs = ((place, bisect_right(befores, place) - 1) for place in places)
    return [runs[at].start + place - befores[at] for place, at in pairs]


def merge(extents: Iterable[Extent]) -> list[Extent]:
    """The same bytes, sorted, none twice.

    >>> merge([Extent(Bytes(4), Bytes(4)), Extent(Bytes(0), Bytes(5))])
    [Extent(start=Bytes(0), length=Bytes(8))]
    """
    return _extents(join_spans(_bytes(extents)))


def common(some: Iterable[Extent], others: Iterable[Extent]) -> list[Extent]:
    """Intersect two lists; both as :func:`merge` gives them.

    >>> common([Extent(Bytes(0), Bytes(8))], [Extent(Bytes(6), Bytes(9))])
    [Extent(start=Bytes(6), length=Bytes(2))]
    """
    mine = [*_bytes(some)]
    return _extents(subtract_spans(mine, subtract_spans(mine, [*_bytes(others)])))


def of_runs(runs: Iterable[Run], block: Bytes) -> list[Extent]:
    """Runs of blocks as bytes."""
    return [Extent(run.start.bytes(block), run.count.bytes(block)) for run in runs]


def length(extents: Iterable[Extent]) -> Bytes:
    return Bytes(sum(extent.length for extent in extents))


def join_spans(spans: Iterable[Span]) -> list[Span]:
    """All that one of the spans covers: sorted, apart, none empty.

    >>> join_spans([(8, 10), (3, 5), (5, 9), (7, 7)])
    [(3, 10)]
    """
    merged: list[Span] = []
    for start, end in sorted(spans):
        if start >= end:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], end)
        else:
            merged.append((start, end))
    return merged


def subtract_spans(spans: Iterable[Span], without: Sequence[Span]) -> list[Span]:
    """Subtract the others from the spans; both sorted and apart.

    >>> subtract_spans([(0, 9), (9, 12)], [(3, 5), (8, 10)])
    [(0, 3), (5, 8), (10, 12)]
    """
    left: list[Span] = []
    at = 0
    for first, end in spans:
        start = first
        while at < len(without) and without[at][0] < end:
            hole_start, hole_end = without[at]
            if hole_start > start:
                left.append((start, hole_start))
            start = max(start, hole_end)
            if start > end:
                break  # the hole reaches into the next span
            at += 1
        if start < end:
            left.append((start, end))
    return left


def _run(start: int, end: int) -> Run:
    """From the first block to the one before ``end``; empty when that lies before the first."""
    return Run(Blocks(start), Blocks(max(0, end - start)))


def _runs(spans: Iterable[Span]) -> list[Run]:
    return [_run(start, end) for start, end in spans]


def _span(run: Run) -> Span:
    return int(run.start), run.start + run.count


def _bytes(extents: Iterable[Extent]) -> Iterator[Span]:
    return ((int(extent.start), extent.start + extent.length) for extent in extents)


def _extents(spans: Iterable[Span]) -> list[Extent]:
    return [Extent(Bytes(start), Bytes(end - start)) for start, end in spans]
