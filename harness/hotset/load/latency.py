"""Latencies as HDR histograms: three significant figures from a microsecond to an hour.

The driver keeps one per second and kind; adding them up loses nothing, so that percentiles of a
window, of a kind or of several repeats are as good as those of a second. Their text is the format
of HdrHistogram (V2, deflated, base64), which other tools read.
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
from hdrh.histogram import HdrHistogram

from hotset.reports.model.windows import Latency

LOWEST_US = 1
HIGHEST_US = 3_600_000_000
SIGNIFICANT_FIGURES = 3
PERCENTILES = (50.0, 90.0, 95.0, 99.0, 99.9, 99.99)
"""The percentiles of `Latency`, in its order."""
_HALF = 1024
"""Counts of one power of two (HdrHistogram's sub_bucket_half_count at three figures)."""

Floats: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.float64]]"


class Latencies:
    """Latencies of some transactions.

    >>> some = Latencies()
    >>> for milliseconds in (1, 2, 3):
    ...     some.record(milliseconds / 1000)
    >>> len(some), round(some.percentiles_ms([50])[0], 2)
    (3, 2.0)
    """

    __slots__ = ("_histogram",)

    def __init__(self, text: str | None = None) -> None:
        """Empty, or what `encoded` gave."""
        if text is None:
            self._histogram = HdrHistogram(LOWEST_US, HIGHEST_US, SIGNIFICANT_FIGURES)
        else:
            self._histogram = HdrHistogram.decode(text)

    @classmethod
    def total(cls, several: Iterable["Latencies"]) -> "Latencies":
        """The sum of several."""
        merged = cls()
        for latencies in several:
            merged.add(latencies)
        return merged

    def __len__(self) -> int:
        return int(self._histogram.get_total_count())

    def record(self, latency_s: float) -> None:
        """Add one; what lies beyond the range counts at its end."""
        self._histogram.record_value(min(max(round(latency_s * 1e6), LOWEST_US), HIGHEST_US))

    def add(self, other: "Latencies") -> None:
        """Add all of another."""
        self._histogram.add(other._histogram)

    def encode(self) -> str:
        """Encode as text."""
        return str(self._histogram.encode().decode("ascii"))

    def percentiles_ms(self, percentiles: Sequence[float]) -> list[float]:
        """The latencies below or at which these shares (0 to 100) of all lie; needs some."""
        values_us, counts = self._counts()
        cumulated = np.cumsum(counts)
        ranks = np.maximum(1, np.ceil(np.asarray(percentiles) / 100 * cumulated[-1] - 1e-9))
        return [float(value_us) / 1e3 for value_us in values_us[np.searchsorted(cumulated, ranks)]]

    def latency(self) -> Latency | None:
        """Mean and percentiles; None where there is nothing."""
        if not len(self):
            return None
        values_us, counts = self._counts()
        mean_us = (values_us * counts).sum() / counts.sum()
        p50, p90, p95, p99, p99_9, p99_99 = self.percentiles_ms(PERCENTILES)
        return Latency(
            mean=float(mean_us) / 1e3,
            p50=p50,
            p90=p90,
            p95=p95,
            p99=p99,
            p99_9=p99_9,
            p99_99=p99_99,
            max=float(values_us[-1]) / 1e3,
            histogram=self.encode(),
        )

    def mean_ms(self) -> tuple[float, float]:
        """The mean and its standard error; needs some."""
        values_us, counts = self._counts()
        total = counts.sum()
        mean = (values_us * counts).sum() / total
        variance = ((values_us - mean) ** 2 * counts).sum() / total
        return float(mean) / 1e3, float(np.sqrt(variance / total)) / 1e3

    def sum_ms(self) -> tuple[float, float]:
        """The sum of all, and how many they are."""
        if not len(self):
            return 0.0, 0.0
        values_us, counts = self._counts()
        return float((values_us * counts).sum()) / 1e3, float(counts.sum())

    def _counts(self) -> tuple[Floats, Floats]:
        """The middles of the steps that hold some, in microseconds, and how many they hold."""
        counts = np.ctypeslib.as_array(self._histogram.counts)
        (used,) = np.nonzero(counts)
        # Below 2 * _HALF each step is a microsecond; then it doubles with each power of two.
        power = np.maximum(used // _HALF - 1, 0)
        low = (used - power * _HALF) << power
        middles = low + ((1 << power) - 1) / 2
        return middles.astype(np.float64), counts[used].astype(np.float64)
