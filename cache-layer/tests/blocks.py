"""Runs of blocks, taken apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hotset.block.extents import Run


def origin_blocks(runs: Iterable[Run]) -> Iterator[int]:
    """The origin's blocks one by one, in the order of the runs."""
    for run in runs:
        yield from range(run.start, run.start + run.count)
