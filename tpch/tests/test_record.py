"""The figures of clause 5.4, by hand."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from hotset.reports.model.windows import PowerRun, Query, QueryStream, ThroughputRun
from hotset.tpch.record import power_run, throughput_run, with_composite

QUERIES = tuple(Query(number=number, seconds=2.0, rows=1, checksum="x") for number in range(1, 23))
BEGAN = datetime.fromtimestamp(0, UTC)
STREAMS = [
    QueryStream(number=number, opened_at=BEGAN, duration_s=90, queries=QUERIES)
    for number in (1, 2, 3)
]


def power(
    queries: Sequence[Query] = QUERIES, refresh_s: tuple[float, float] | None = (2.0, 2.0)
) -> PowerRun:
    return power_run(10, None, 0.0, 60.0, queries, refresh_s)


def throughput(refresh_s: tuple[tuple[float, float], ...] | None) -> ThroughputRun:
    return throughput_run(10, 0.0, 99.0, STREAMS, refresh_s)


THROUGHPUT = throughput(((1.0, 1.0),) * 3)


def test_power() -> None:
    run = power()
    assert run.complete
    assert run.span == (0, 60)
    assert run.total_s == 44
    assert run.geometric_mean_s == pytest.approx(2)
    assert run.tproc_h_power == pytest.approx(3600 / 2 * 10)


def test_a_query_counts_as_a_thousandth_of_the_longest_at_least() -> None:
    quick = QUERIES[0].model_copy(update={"seconds": 1e-6})
    long = QUERIES[1].model_copy(update={"seconds": 2000.0})
    mean = math.exp((math.log(2000) + 23 * math.log(2)) / 24)
    run = power((quick, long, *QUERIES[2:]))
    assert run.tproc_h_power == pytest.approx(36000 / mean)


@pytest.mark.parametrize("outcome", ["timed out", "failed"])
def test_an_incomplete_run_has_a_total_and_no_mean(outcome: str) -> None:
    first = QUERIES[0].model_copy(update={"outcome": outcome})
    run = power((first, *QUERIES[1:]))
    assert (run.complete, run.total_s) == (False, 44)
    assert run.geometric_mean_s is None
    assert run.tproc_h_power is None
    assert with_composite(run, THROUGHPUT).tproc_h_composite is None


def test_a_query_run_twice_does_not_make_up_for_another() -> None:
    assert power((QUERIES[1], *QUERIES[1:])).tproc_h_power is None


def test_without_refresh_there_is_a_mean_but_no_power() -> None:
    run = power(refresh_s=None)
    assert run.geometric_mean_s == pytest.approx(2)
    assert run.tproc_h_power is None
    assert throughput(None).tproc_h_throughput is None


def test_throughput_and_composite() -> None:
    assert THROUGHPUT.tproc_h_throughput == pytest.approx(3 * 22 * 3600 / 99 * 10)
    composite = with_composite(power(), THROUGHPUT).tproc_h_composite
    assert composite == pytest.approx(math.sqrt(18000 * 24000))
    assert throughput(((1.0, 1.0),) * 2).tproc_h_throughput is None
