"""HDR histograms: as good as they promise, and the same in the package, in numpy and as text."""

import numpy as np
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from hotset.load.latency import HIGHEST_US, Latencies

seconds = st.lists(st.floats(min_value=1e-6, max_value=3600), min_size=1, max_size=300)


def recorded(values: list[float]) -> Latencies:
    found = Latencies()
    for value in values:
        found.record(value)
    return found


@given(seconds, st.floats(min_value=0, max_value=100))
def test_percentiles_are_those_of_the_values(values: list[float], percentile: float) -> None:
    (found,) = recorded(values).percentiles_ms([percentile])
    exact_ms = np.percentile(values, percentile, method="inverted_cdf") * 1e3
    assert found == pytest.approx(exact_ms, rel=0.001, abs=0.001)


@given(seconds)
def test_mean_and_maximum_are_those_of_the_values(values: list[float]) -> None:
    latency = recorded(values).latency()
    assert latency is not None
    assert latency.mean == pytest.approx(np.mean(values) * 1e3, rel=0.001, abs=0.001)
    assert latency.max == pytest.approx(max(values) * 1e3, rel=0.001, abs=0.001)


@given(seconds)
def test_the_package_holds_the_same_values_and_counts(values: list[float]) -> None:
    ours = recorded(values)
    values_us, counts = ours._counts()
    # The iterator gives one object again and again, and names a step by its upper end.
    theirs = [
        (one.value_iterated_to, one.count_at_value_iterated_to)
        for one in HdrHistogram.decode(ours.encode()).get_recorded_iterator()
    ]
    assert [count for _, count in theirs] == counts.tolist()
    assert [value for value, _ in theirs] == pytest.approx(values_us.tolist(), rel=0.0005, abs=0.5)


@given(st.lists(seconds, min_size=1, max_size=4))
def test_a_sum_is_the_histogram_of_all(parts: list[list[float]]) -> None:
    whole = Latencies.total(Latencies(recorded(part).encode()) for part in parts)
    every = [one for part in parts for one in part]
    assert whole.latency() == recorded(every).latency()


def test_what_lies_beyond_the_range_counts_at_its_end() -> None:
    extremes = recorded([0.0, 1e6])
    assert extremes.percentiles_ms([0])[0] == pytest.approx(0.001)
    assert extremes.percentiles_ms([100])[0] == pytest.approx(HIGHEST_US / 1e3, rel=0.001)


def test_nothing_has_no_latency() -> None:
    assert Latencies().latency() is None
