"""Arithmetic of spans, held against sets of numbers."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from hotset.block.extents import Span, join_spans, subtract_spans

SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)))


def single(some: list[Span]) -> set[int]:
    return {number for start, end in some for number in range(start, end)}


@given(SPANS, SPANS)
def test_spans_are_sets_of_numbers(some: list[Span], others: list[Span]) -> None:
    mine, theirs = join_spans(some), join_spans(others)
    assert single(mine) == single(some)
    assert all(before[1] < after[0] for before, after in itertools.pairwise(mine))
    assert single(subtract_spans(mine, theirs)) == single(some) - single(others)
