"""Per-second series in bins: what a line can show, and what a table can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from hotset.core import words

from ..analysis.answer import ArmFigures
from ..analysis.breakdown.device_use import ORIGIN
from ..model.windows import Second
from .vega import Row

BIN_WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600)

Unit = Literal["count", "ms", "share", "MiB"]


@dataclass(frozen=True, slots=True)
class Measure:
    """Quantity that a line shows: ``name`` heads a table's column, ``heading`` a panel."""

    key: str
    name: str
    heading: str
    unit: Unit
    of: Callable[[Second], float | None]

    def show(self, value: float) -> str:
        """A figure of it as text.

        >>> MEASURES[1].show(41.26), MEASURES[2].show(0.5), MEASURES[3].show(12.0)
        ('41.3', '50.0 %', '12')
        """
        if self.unit == "share":
            return words.percent(value)
        return words.milliseconds(value) if self.unit == "ms" else words.count(value)


def _reads(second: Second, name: str) -> float | None:
    return next((device.read.iops for device in second.devices if device.name == name), None)


MEASURES = (
    Measure("tpm", "TPM", "Transactions per minute", "count", lambda second: second.tpm),
    Measure(
        "latency",
        "p95 ms",
        "Latency, 95th percentile of each second, ms",
        "ms",
        lambda second: second.latency_ms_p95,
    ),
    Measure(
        "hit_ratio", "hit ratio", "Hit ratio of the cache", "share", lambda second: second.hit_ratio
    ),
    Measure(
        "dirty",
        "dirty MiB",
        "Dirty data in the cache, MiB",
        "MiB",
        lambda second: None if second.dirty_bytes is None else second.dirty_bytes / 2**20,
    ),
    Measure("server_cpu", "CPU", "Server CPU busy", "share", lambda second: second.server_cpu),
    Measure(
        "origin_reads",
        "origin reads/s",
        "Reads from the origin, a second",
        "count",
        lambda second: _reads(second, ORIGIN),
    ),
)
"""In the order of the panels, which share one axis of time."""


def bin_width(end: int, bins: int) -> int:
    for width in BIN_WIDTHS_S:
        if end / width <= bins:
            return width
    return -(-end // bins)


def line_rows(
    arms: list[ArmFigures], measure: Callable[[Second], float | None], bin_s: int
) -> list[Row]:
    """Binned rows of every repeat (repeat ≥ 1) and of the repeats' mean (repeat 0)."""
    rows = []
    for arm in arms:
        every: list[tuple[int, float]] = []
        for repeat in arm.repeats:
            points = bin_series(repeat.series, measure, bin_s)
            every += points
            if len(arm.repeats) > 1:
                rows += [_line_row(arm, repeat.repeat, *point) for point in points]
        rows += [_line_row(arm, 0, *point) for point in _means(every)]
    return rows


def _line_row(arm: ArmFigures, repeat: int, second: int, value: float) -> Row:
    return {"arm": arm.name, "repeat": repeat, "second": second, "value": float(f"{value:.5g}")}


def bin_series(
    series: Iterable[Second], measure: Callable[[Second], float | None], bin_s: int
) -> list[tuple[int, float]]:
    known = [(second.second // bin_s * bin_s, measure(second)) for second in series]
    return _means((start, value) for start, value in known if value is not None)


def _means(points: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    groups: dict[int, list[float]] = {}
    for start, value in points:
        groups.setdefault(start, []).append(value)
    return [(start, fmean(values)) for start, values in sorted(groups.items())]
