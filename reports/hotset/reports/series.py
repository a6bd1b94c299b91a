"""Per-second series in bins: what a line can show, and what a table can hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hotset.reports.answer import ArmFigures
from hotset.reports.document import Second
from hotset.reports.vega import Row

BIN_WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600)


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
            points = binned(repeat.series, measure, bin_s)
            every += points
            if len(arm.repeats) > 1:
                rows += [_line_row(arm, repeat.repeat, *point) for point in points]
        rows += [_line_row(arm, 0, *point) for point in _means(every)]
    return rows


def _line_row(arm: ArmFigures, repeat: int, second: int, value: float) -> Row:
    return {"arm": arm.name, "repeat": repeat, "second": second, "value": float(f"{value:.5g}")}


def binned(
    series: Iterable[Second], measure: Callable[[Second], float | None], bin_s: int
) -> list[tuple[int, float]]:
    known = [(second.second // bin_s * bin_s, measure(second)) for second in series]
    return _means((start, value) for start, value in known if value is not None)


def _means(points: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    groups: dict[int, list[float]] = {}
    for start, value in points:
        groups.setdefault(start, []).append(value)
    return [(start, sum(values) / len(values)) for start, values in sorted(groups.items())]
