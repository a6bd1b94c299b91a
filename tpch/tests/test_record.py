"""The figures of clause 5.4, by hand."""

import math
from dataclasses import replace

import pytest

from hotset.reports.model.windows import Query
from hotset.tpch.record import PowerResult, StreamResult, ThroughputResult, composite

QUERIES = tuple(Query(number=number, seconds=2.0, rows=1, checksum="x") for number in range(1, 23))
POWER = PowerResult(10, None, 0.0, 60.0, QUERIES, (2.0, 2.0))
STREAMS = tuple(StreamResult(number, 0.0, 90.0, QUERIES) for number in (1, 2, 3))
THROUGHPUT = ThroughputResult(10, None, 0.0, 99.0, STREAMS, ((1.0, 1.0),) * 3)


def test_power() -> None:
    assert POWER.complete
    assert POWER.total_s == 44
    assert POWER.geometric_mean_s == pytest.approx(2)
    assert POWER.power == pytest.approx(3600 / 2 * 10)


def test_a_query_counts_as_a_thousandth_of_the_longest_at_least() -> None:
    quick = QUERIES[0].model_copy(update={"seconds": 1e-6})
    long = QUERIES[1].model_copy(update={"seconds": 2000.0})
    run = replace(POWER, queries=(quick, long, *QUERIES[2:]))
    mean = math.exp((math.log(2000) + 23 * math.log(2)) / 24)
    assert run.power == pytest.approx(36000 / mean)


@pytest.mark.parametrize("outcome", ["timed out", "failed"])
def test_an_incomplete_run_has_a_total_and_no_mean(outcome: str) -> None:
    first = QUERIES[0].model_copy(update={"outcome": outcome})
    run = replace(POWER, queries=(first, *QUERIES[1:]))
    assert (run.complete, run.total_s) == (False, 44)
    assert run.geometric_mean_s is None
    assert run.power is None
    assert composite(run, THROUGHPUT) is None


def test_a_query_run_twice_does_not_make_up_for_another() -> None:
    assert not replace(POWER, queries=(QUERIES[1], *QUERIES[1:])).complete


def test_without_refresh_there_is_a_mean_but_no_power() -> None:
    run = replace(POWER, refresh_s=None)
    assert run.geometric_mean_s == pytest.approx(2)
    assert run.power is None
    assert replace(THROUGHPUT, refresh_s=None).throughput is None


def test_throughput_and_composite() -> None:
    assert THROUGHPUT.throughput == pytest.approx(3 * 22 * 3600 / 99 * 10)
    assert composite(POWER, THROUGHPUT) == pytest.approx(math.sqrt(18000 * 24000))
    assert replace(THROUGHPUT, refresh_s=((1.0, 1.0),) * 2).throughput is None
    with pytest.raises(ValueError, match="no composite"):
        composite(replace(POWER, scale=1), THROUGHPUT)
