"""Percentiles over the repeats of an arm are those of all their transactions."""

from __future__ import annotations

import pytest
from hdrh.histogram import HdrHistogram

from hotset.reports.analysis.answer import mean_latency
from hotset.reports.model.windows import Latency

MS = 1000


def latency(values_ms: list[float], *, told: bool = True) -> Latency:
    """Of one repeat. :param told: its driver tells the histogram."""
    histogram = HdrHistogram(1, 60_000 * MS, 3)
    for one in values_ms:
        histogram.record_value(round(one * MS))

    def at(percentile: float) -> float:
        return float(histogram.get_value_at_percentile(percentile)) / MS

    text = histogram.encode().decode("ascii") if told else None
    return Latency(p50=at(50), p95=at(95), p99=at(99), histogram=text)


def test_they_are_of_the_transactions_and_not_means_of_percentiles() -> None:
    """A slow repeat of few transactions does not move the median of many fast ones."""
    many, few = latency([10.0] * 9_900), latency([400.0] * 100)
    found = mean_latency([many, None, few])
    assert found is not None
    assert found.p50 == pytest.approx(10, rel=0.01)
    assert found.p99 == pytest.approx(10, rel=0.01)
    assert found.p99_9 == pytest.approx(400, rel=0.01)
    assert found.histogram is not None
    assert HdrHistogram.decode(found.histogram).get_total_count() == 10_000


def test_without_all_histograms_they_are_means() -> None:
    found = mean_latency([latency([10.0] * 50), latency([30.0] * 50, told=False)])
    assert found is not None
    assert found.p95 == pytest.approx(20, rel=0.01)
    assert (found.histogram, mean_latency([None])) == (None, None)
