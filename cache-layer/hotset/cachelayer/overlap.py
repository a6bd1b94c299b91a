"""How much of some extents is covered by others: sums over sorted runs, never single blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hotset.cachelayer.extents import Extent, Run
from hotset.cachelayer.units import Bytes


def merged(extents: Iterable[Extent]) -> list[Extent]:
    """The same bytes, sorted, none twice.

    >>> merged([Extent(Bytes(4), Bytes(4)), Extent(Bytes(0), Bytes(5))])
    [Extent(start=Bytes(0), length=Bytes(8))]
    """
    found: list[Extent] = []
    for extent in sorted(extents):
        if extent.length <= 0:
            continue
        if found and extent.start <= found[-1].start + found[-1].length:
            last = found[-1]
            end = max(last.start + last.length, extent.start + extent.length)
            found[-1] = Extent(last.start, Bytes(end - last.start))
        else:
            found.append(extent)
    return found


def of_runs(runs: Iterable[Run], block: Bytes) -> list[Extent]:
    """Runs of blocks as bytes."""
    return [Extent(run.start.bytes(block), run.count.bytes(block)) for run in runs]


def length(extents: Iterable[Extent]) -> Bytes:
    return Bytes(sum(extent.length for extent in extents))


def common(some: Sequence[Extent], others: Sequence[Extent]) -> list[Extent]:
    """What two lists have in common; both as :func:`merged` gives them.

    >>> common([Extent(Bytes(0), Bytes(8))], [Extent(Bytes(6), Bytes(9))])
    [Extent(start=Bytes(6), length=Bytes(2))]
    """
    found: list[Extent] = []
    left = right = 0
    while left < len(some) and right < len(others):
        mine, theirs = some[left], others[right]
        start = max(mine.start, theirs.start)
        end = min(mine.start + mine.length, theirs.start + theirs.length)
        if end > start:
            found.append(Extent(Bytes(start), Bytes(end - start)))
        if mine.start + mine.length <= theirs.start + theirs.length:
            left += 1
        else:
            right += 1
    return found
