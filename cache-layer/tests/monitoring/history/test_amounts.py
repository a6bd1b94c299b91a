"""Counts of a span, added up: not one request is lost or invented."""

from __future__ import annotations

import pytest

from hotset.monitoring.history import amounts
from hotset.monitoring.history.amounts import Amounts


def test_a_ratio_of_two_spans_is_of_their_counts_not_the_mean_of_their_ratios() -> None:
    busy, idle = Amounts(1000, 990, 10, 0, 0, 0), Amounts(1000, 0, 1, 0, 0, 0)
    assert amounts.total([busy, idle]).ratio == 990 / 1001


def test_what_a_kind_does_not_count_is_no_zero() -> None:
    bcache = Amounts(1000, 3, 1, None, None, 2)
    assert (bcache.writes, bcache.read_ms, bcache.reads) == (None, None, 6)
    assert amounts.total([bcache, Amounts(1000, 1, 1, 1, 1, 1)]).write_hits is None


def test_transactions_a_minute_are_of_the_time_in_which_it_ran() -> None:
    assert Amounts(60_000, 0, 0, transactions=600, running_ms=30_000).tpm == 1200
    assert Amounts(60_000, 0, 0, transactions=0, running_ms=0).tpm is None, "none ran"


def test_nothing_is_no_sum() -> None:
    with pytest.raises(ValueError, match="nothing"):
        amounts.total([])
