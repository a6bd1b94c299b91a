"""Counts of a span: split and added up, not one request is lost or invented."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.monitoring.history import amounts
from hotset.monitoring.history.amounts import Amounts, Load
from hotset.tier.base import Counting
from tests.observations import counters, device

counts = st.integers(0, 2**40)
maybe = st.none() | counts
spans = st.builds(
    Amounts, st.integers(1, 40_000), counts, counts, maybe, maybe, maybe, *[maybe] * 6
)


@given(spans, st.integers(10**12, 2 * 10**12), st.sampled_from((1000, 10_000, 60_000)))
def test_the_parts_of_a_span_add_up_to_the_whole(whole: Amounts, end: int, step: int) -> None:
    parts = list(amounts.split(whole, end, step))
    assert amounts.total([part for _, part in parts]) == whole
    starts = [start for start, _ in parts]
    assert starts == sorted(set(starts))
    for start, part in parts:
        assert start % step == 0
        assert 0 < part.known_ms <= step
        assert all((getattr(part, name) or 0) >= 0 for name in amounts.NAMES), "nothing negative"
    assert starts[0] <= end - whole.known_ms
    assert starts[-1] < end <= starts[-1] + step


def test_a_ratio_of_two_spans_is_of_their_counts_not_the_mean_of_their_ratios() -> None:
    busy, idle = Amounts(1000, 990, 10, 0, 0, 0), Amounts(1000, 0, 1, 0, 0, 0)
    assert amounts.total([busy, idle]).ratio == 990 / 1001


def test_what_a_kind_does_not_count_is_no_zero() -> None:
    bcache = Amounts(1000, 3, 1, None, None, 2)
    assert (bcache.writes, bcache.read_ms, bcache.reads) == (None, None, 6)
    assert amounts.total([bcache, Amounts(1000, 1, 1, 1, 1, 1)]).write_hits is None


def test_what_lies_between_two_readings() -> None:
    found = amounts.between(
        (counters(90, 10, 8), device(100)), (counters(190, 10, 12), device(150)), 2.0, Counting(32)
    )
    assert found == Amounts(2000, 100, 0, 2, 2, 0, 50 * 8192, 50, 100, 50 * 8192, 50, 100)
    assert (found.reads, found.writes, found.read_ms) == (50, 2, 2.0)


def test_a_device_that_is_not_shown_has_no_throughput() -> None:
    found = amounts.between((counters(1), None), (counters(2), device(5)), 1.0, Counting(32))
    assert (found.read_bytes, found.read_ios, found.read_hits) == (None, None, 1)


def test_transactions_a_minute_are_of_the_time_in_which_it_ran() -> None:
    assert Load(600.0, 30_000).tpm == 1200
    assert Load(0.0, 0).tpm is None, "none ran"


def test_nothing_is_no_sum() -> None:
    with pytest.raises(ValueError, match="nothing"):
        amounts.total([])
