"""Charts of a run as Vega-Lite specifications.

Colours are CSS variables (`var(--baseline)` …) that the page defines for light, dark and print:
the browser resolves them in the SVG, so one specification serves all three.

Bars start at zero and are never logarithmic. Lines and points are drawn on a logarithmic axis
where the arms lie so far apart that the slower one would be a flat line; the axis says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import altair as alt

from hotset.reports import answer, words
from hotset.reports.answer import ArmFigures
from hotset.reports.document import RunDocument, Second

POINTS_PER_LINE = 200  # more would not be seen, and would swell the page
TABLE_ROWS = 24
LOG_FROM_RATIO = 5  # between the arms' means
BIN_WIDTHS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600)
ROW_PX = 54
LABEL_ROOM = 1.22  # of the longest bar, so that its figure fits beside it on a phone
SHORT = "format(datum.value, '~s')"  # 2k; an axis's own format rounds 500 to "1k" beside 10k
COLOURS = {
    "baseline": "var(--baseline)",
    "accelerated": "var(--accelerated)",
    "all-flash": "var(--all-flash)",
}
DASHES = {"baseline": [6, 3], "accelerated": [1, 0], "all-flash": [2, 2]}

Row = dict[str, Any]
Spec = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing and what it says in words."""

    key: str
    spec: Spec
    alt: str
    heading: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """A heading, its panels (they share a time axis if there are several), and their table."""

    key: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    table: Table
    legend: tuple[str, ...] = field(default=())


def figures(document: RunDocument) -> list[Figure]:
    """Every chart that the document has figures for, in the order of the page."""
    makers = (throughput, over_time, latencies, warmup)
    made = [maker(document) for maker in makers]
    return [figure for figure in made if figure is not None]


def throughput(document: RunDocument) -> Figure | None:
    arms = answer.arms(document)
    if not arms:
        return None
    bars = [{"arm": arm.name, "value": arm.nopm, "label": words.count(arm.nopm)} for arm in arms]
    points = [
        {"arm": arm.name, "value": repeat.nopm, "what": f"repeat {repeat.repeat}"}
        for arm in arms
        for repeat in arm.repeats
    ]
    said = [f"{arm.name} {words.count(arm.nopm)} NOPM" for arm in arms]
    rows = [
        (arm.name, str(repeat.repeat), words.count(repeat.nopm), words.count(repeat.tpm))
        for arm in arms
        for repeat in arm.repeats
    ]
    return Figure(
        key="throughput",
        title="New orders per minute",
        caption="Bars: mean of the repeats. Circles: the individual repeats. "
        "The axis is linear and starts at zero.",
        panels=(
            Panel(
                "throughput",
                _bars(bars, points, "NOPM", [arm.name for arm in arms]),
                f"Bar chart of mean new orders per minute: {words.listed(said)}.",
            ),
        ),
        table=Table("Throughput of every repeat", ("arm", "repeat", "NOPM", "TPM"), tuple(rows)),
    )


def over_time(document: RunDocument) -> Figure | None:
    arms = [arm for arm in answer.arms(document) if any(repeat.series for repeat in arm.repeats)]
    if not arms:
        return None
    end = 1 + max(second.second for arm in arms for each in arm.repeats for second in each.series)
    bin_s = _bin_width(end, POINTS_PER_LINE)
    log = _far_apart([arm.tpm for arm in arms])
    measures: tuple[tuple[str, str, Callable[[Second], float | None]], ...] = (
        ("tpm", "Transactions per minute", lambda second: second.tpm),
        ("hit_ratio", "Hit ratio of the cache", lambda second: second.hit_ratio),
        ("server_cpu", "Server CPU busy", lambda second: second.server_cpu),
    )
    drawn = {key: _line_rows(arms, measure, bin_s) for key, _, measure in measures}
    drawn = {key: rows for key, rows in drawn.items() if rows}
    headings = {key: heading for key, heading, _ in measures}
    panels = []
    for key, rows in drawn.items():
        heading = headings[key]
        spread = [f"{arm} {low} to {high}" for arm, low, high in _spread(key, rows)]
        panels.append(
            Panel(
                key,
                _lines(
                    rows,
                    end,
                    share=key != "tpm",
                    log=log and key == "tpm",
                    last=key == list(drawn)[-1],
                ),
                f"Line chart over {end} seconds. {heading}, means of {bin_s} s: "
                f"{words.listed(spread)}.",
                heading + (" (logarithmic axis)" if log and key == "tpm" else ""),
            )
        )
    points = "one point per second" if bin_s == 1 else f"each point the mean of {bin_s} s"
    return Figure(
        key="over-time",
        title="Second by second",
        caption=f"Strong lines: mean of the repeats; faint lines: each repeat; {points}. "
        f"Hit ratio is {answer.HIT_RATIO_DENOMINATOR}, second by second.",
        panels=tuple(panels),
        table=_time_table(arms, end),
        legend=tuple(arm.name for arm in arms),
    )


def latencies(document: RunDocument) -> Figure | None:
    arms = [arm for arm in answer.arms(document) if arm.latency_ms is not None]
    if not arms:
        return None
    means: list[Row] = []
    points: list[Row] = []
    said: list[str] = []
    rows: list[tuple[str, ...]] = []
    for arm in arms:
        assert arm.latency_ms is not None
        for name in ("p50", "p95", "p99"):
            value = getattr(arm.latency_ms, name)
            label = words.milliseconds(value)
            means.append({"arm": arm.name, "percentile": name, "value": value, "label": label})
        shown = zip(("p50", "p95", "p99"), words.latencies(arm.latency_ms), strict=True)
        said.append(f"{arm.name} {', '.join(f'{name} {value}' for name, value in shown)}")
        for repeat in arm.repeats:
            if repeat.latency_ms is None:
                continue
            figures = repeat.latency_ms.model_dump()
            points += [
                {"arm": arm.name, "value": value, "what": f"{name}, repeat {repeat.repeat}"}
                for name, value in figures.items()
            ]
            cells = (words.milliseconds(value) for value in figures.values())
            rows.append((arm.name, str(repeat.repeat), *cells))
    return Figure(
        key="latencies",
        title="Latency of a transaction",
        caption="All transactions together: means of the repeats, each repeat as a small tick. "
        "The axis is logarithmic.",
        panels=(
            Panel(
                "latencies",
                _ranges(means, points, [arm.name for arm in arms]),
                f"Latency in milliseconds: {'; '.join(said)}.",
            ),
        ),
        table=Table(
            "Latency of every repeat, ms", ("arm", "repeat", "p50", "p95", "p99"), tuple(rows)
        ),
        legend=("p50", "p95", "p99"),
    )


def warmup(document: RunDocument) -> Figure | None:
    record = document.warmup
    if record is None:
        return None
    rates = {"origin, sequential": record.origin_mb_per_s, "warm-up": record.mb_per_s}
    bars = [
        {"arm": name, "value": value, "label": words.rate(value)} for name, value in rates.items()
    ]
    points = [
        {"arm": name, "value": value, "what": f"repeat {each.repeat}"}
        for each in record.repeats
        for name, value in zip(rates, (each.origin_mb_per_s, each.mb_per_s), strict=True)
    ]
    rows = [
        (
            str(each.repeat),
            words.size(each.bytes),
            words.duration(each.seconds),
            words.rate(each.mb_per_s),
            words.rate(each.origin_mb_per_s),
            f"{each.differing_blocks:,} of {each.sampled_blocks:,}",
            words.percent(each.probe_hit_ratio),
        )
        for each in record.repeats
    ]
    share = words.percent(record.mb_per_s / record.origin_mb_per_s, 0)
    return Figure(
        key="warmup",
        title="Warm-up",
        caption="How fast the cache was filled, beside the rate at which the slow storage (the "
        "origin) can be read from end to end. The axis starts at zero.",
        panels=(
            Panel(
                "warmup",
                _bars(bars, points, "MB/s", list(rates), colours=("--baseline", "--accelerated")),
                f"Bar chart: the warm-up ran at {words.rate(record.mb_per_s)}, {share} of the "
                f"origin's sequential {words.rate(record.origin_mb_per_s)}.",
            ),
        ),
        table=Table(
            "Every warm-up",
            ("repeat", "filled", "took", "rate", "origin", "differing blocks", "probe hit ratio"),
            tuple(rows),
        ),
    )


# Drawing


def _bars(
    bars: list[Row],
    points: list[Row],
    unit: str,
    order: list[str],
    colours: tuple[str, ...] = (),
) -> Spec:
    y = alt.Y("arm:N", sort=order, title=None, axis=alt.Axis(labelLimit=150))
    top = max([row["value"] for row in [*bars, *points]] or [0]) or 1
    x = alt.X(
        "value:Q",
        title=unit,
        scale=alt.Scale(domain=[0, top * LABEL_ROOM], nice=False),
        axis=alt.Axis(tickCount=5),
    )
    range_ = [f"var({name})" for name in colours] or [COLOURS[name] for name in order]
    colour = alt.Color("arm:N", legend=None, scale=alt.Scale(domain=order, range=range_))
    base = alt.Chart(alt.InlineData(values=bars))
    # The figure stands right of everything drawn in its row, so that no circle covers it.
    ends = {row["arm"]: row["value"] for row in bars}
    for row in points:
        ends[row["arm"]] = max(ends[row["arm"]], row["value"])
    labels = [{**row, "value": ends[row["arm"]]} for row in bars]
    layers = alt.layer(
        base.mark_bar(height={"band": 0.62}).encode(
            x=x,
            y=y,
            color=colour,
            tooltip=[alt.Tooltip("arm:N"), alt.Tooltip("label:N", title=f"mean {unit}")],
        ),
        alt.Chart(alt.InlineData(values=points))
        .mark_point(
            size=42,
            filled=True,
            fill="var(--surface)",
            stroke="var(--ink)",
            opacity=1,
            shape="circle",
        )
        .encode(x=x, y=y, tooltip=_point_tooltip(unit)),
        alt.Chart(alt.InlineData(values=labels))
        .mark_text(align="left", dx=9, fontSize=13, fontWeight=600, fill="var(--ink)")
        .encode(x=x, y=y, text="label:N"),
    )
    return _finished(layers.properties(width="container", height=ROW_PX * len(order)))


def _ranges(means: list[Row], points: list[Row], order: list[str]) -> Spec:
    y = alt.Y("arm:N", sort=order, title=None)
    values = [row["value"] for row in [*means, *points] if row["value"] > 0] or [1]
    domain = [min(values) / 1.5, max(values) * 1.5]
    ticks = _log_ticks(*domain)
    x = alt.X(
        "value:Q",
        title="ms (logarithmic)",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(values=ticks, format=",~g"),
    )
    colour = alt.Color(
        "arm:N",
        legend=None,
        scale=alt.Scale(domain=order, range=[COLOURS[name] for name in order]),
    )
    shape = alt.Shape(
        "percentile:N",
        legend=None,
        scale=alt.Scale(domain=["p50", "p95", "p99"], range=["circle", "square", "diamond"]),
    )
    positive = [row for row in means if row["value"] > 0]
    base = alt.Chart(alt.InlineData(values=positive))
    layers = alt.layer(
        base.mark_line(strokeWidth=3, opacity=0.45).encode(x=x, y=y, color=colour, detail="arm:N"),
        alt.Chart(alt.InlineData(values=[row for row in points if row["value"] > 0]))
        .mark_tick(thickness=1.5, height=14, color="var(--ink-2)", opacity=0.7)
        .encode(x=x, y=y, tooltip=_point_tooltip("ms")),
        base.mark_point(size=130, filled=True, opacity=1).encode(
            x=x,
            y=y,
            color=colour,
            shape=shape,
            tooltip=[
                alt.Tooltip("arm:N"),
                alt.Tooltip("percentile:N"),
                alt.Tooltip("label:N", title="mean, ms"),
            ],
        ),
        base.mark_text(dy=-15, fontSize=11, fill="var(--ink-2)").encode(x=x, y=y, text="label:N"),
    )
    return _finished(layers.properties(width="container", height=ROW_PX * len(order) + 10))


def _lines(rows: list[Row], end: int, *, share: bool, log: bool, last: bool) -> Spec:
    arms = list(dict.fromkeys(row["arm"] for row in rows))
    x = alt.X(
        "second:Q",
        title="seconds since the window began" if last else None,
        scale=alt.Scale(domain=[0, end], nice=False),
        axis=alt.Axis(tickCount=8),
    )
    # Equal widths of the value axes keep the panels' time axes under each other.
    axis: dict[str, Any] = {"minExtent": 52, "maxExtent": 52, "title": None}
    if share:
        scale = alt.Scale(domain=[0, 1])
        y = alt.Y("value:Q", scale=scale, axis=alt.Axis(format=".0%", tickCount=5, **axis))
    elif log:
        # Zeros must stay on the page: symmetric-logarithmic, linear only below the lowest decade.
        positive = [row["value"] for row in rows if row["value"] > 0] or [1]
        top = max(positive) * 1.2
        ticks = [0, *_log_ticks(max(10, min(positive)), top)]
        scale = alt.Scale(type="symlog", constant=max(1, min(positive)), domain=[0, top])
        y = alt.Y("value:Q", scale=scale, axis=alt.Axis(values=ticks, labelExpr=SHORT, **axis))
    else:
        scale = alt.Scale(zero=True)
        y = alt.Y("value:Q", scale=scale, axis=alt.Axis(labelExpr=SHORT, tickCount=5, **axis))
    colour = alt.Color(
        "arm:N", legend=None, scale=alt.Scale(domain=arms, range=[COLOURS[arm] for arm in arms])
    )
    dash = alt.StrokeDash(
        "arm:N", legend=None, scale=alt.Scale(domain=arms, range=[DASHES[arm] for arm in arms])
    )
    each = [row for row in rows if row["repeat"]]
    mean = [row for row in rows if not row["repeat"]]
    # Thin, transparent lines for the repeats; the mean on top, and wide enough to point at.
    layers = alt.layer(
        alt.Chart(alt.InlineData(values=each))
        .mark_line(strokeWidth=1, opacity=0.3, clip=True)
        .encode(x=x, y=y, color=colour, detail="repeat:N"),
        alt.Chart(alt.InlineData(values=mean))
        .mark_line(strokeWidth=2.2, clip=True)
        .encode(x=x, y=y, color=colour, strokeDash=dash),
        alt.Chart(alt.InlineData(values=mean))
        .mark_point(size=60, opacity=0)
        .encode(
            x=x,
            y=y,
            tooltip=[
                alt.Tooltip("arm:N"),
                alt.Tooltip("second:Q"),
                alt.Tooltip("value:Q", format=".1%" if share else ",.0f"),
            ],
        ),
    )
    return _finished(layers.properties(width="container", height=130 if share else 230))


def _finished(chart: alt.LayerChart | alt.FacetChart) -> Spec:
    spec: Spec = chart.to_dict()
    spec.pop("$schema", None)  # the page's own Vega draws it; no address belongs in the page
    spec["autosize"] = {"type": "fit-x", "contains": "padding"}
    spec["config"] = {
        "aria": False,  # the page describes the drawing as one image, and has the table
        "background": "transparent",
        "font": "system-ui, sans-serif",
        "view": {"stroke": None},
        "axis": {
            "labelColor": "var(--ink-2)",
            "titleColor": "var(--ink-2)",
            "gridColor": "var(--line)",
            "domainColor": "var(--line-2)",
            "tickColor": "var(--line-2)",
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": 400,
        },
        "axisX": {"labelFlush": True},
        "axisY": {"domain": False, "ticks": False, "labelPadding": 8},
        "axisYBand": {"grid": False, "labelFontSize": 13, "labelColor": "var(--ink)"},
    }
    return spec


def _point_tooltip(unit: str) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("arm:N"),
        alt.Tooltip("what:N", title="figure"),
        alt.Tooltip("value:Q", title=unit, format=",.1f"),
    ]


def _log_ticks(low: float, high: float) -> list[float]:
    """1, 2, 5 of each decade while that gives few, else the decades alone.

    >>> _log_ticks(7, 1200)
    [10.0, 100.0, 1000.0]
    >>> _log_ticks(7, 120)
    [10.0, 20.0, 50.0, 100.0]
    """
    decades = [10.0**power for power in range(-3, 10)]
    steps = (1, 2, 5) if high / low < 50 else (1,)
    return [decade * step for decade in decades for step in steps if low <= decade * step <= high]


def _far_apart(means: list[float]) -> bool:
    positive = [mean for mean in means if mean > 0]
    return len(positive) > 1 and max(positive) / min(positive) >= LOG_FROM_RATIO


# Series


def _bin_width(end: int, bins: int) -> int:
    for width in BIN_WIDTHS_S:
        if end / width <= bins:
            return width
    return -(-end // bins)


def _line_rows(
    arms: list[ArmFigures], measure: Callable[[Second], float | None], bin_s: int
) -> list[Row]:
    """Binned rows of every repeat (repeat ≥ 1) and of the repeats' mean (repeat 0)."""
    rows = []
    for arm in arms:
        every: list[tuple[int, float]] = []
        for repeat in arm.repeats:
            binned = _binned(repeat.series, measure, bin_s)
            every += binned
            if len(arm.repeats) > 1:
                rows += [_line_row(arm, repeat.repeat, *point) for point in binned]
        rows += [_line_row(arm, 0, *point) for point in _means(every)]
    return rows


def _line_row(arm: ArmFigures, repeat: int, second: int, value: float) -> Row:
    return {"arm": arm.name, "repeat": repeat, "second": second, "value": float(f"{value:.5g}")}


def _binned(
    series: Iterable[Second], measure: Callable[[Second], float | None], bin_s: int
) -> list[tuple[int, float]]:
    known = [(second.second // bin_s * bin_s, measure(second)) for second in series]
    return _means((start, value) for start, value in known if value is not None)


def _means(points: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    groups: dict[int, list[float]] = {}
    for start, value in points:
        groups.setdefault(start, []).append(value)
    return [(start, sum(values) / len(values)) for start, values in sorted(groups.items())]


def _spread(key: str, rows: list[Row]) -> list[tuple[str, str, str]]:
    """(arm, lowest, highest) of the mean lines, as text."""
    show = words.count if key == "tpm" else lambda value: words.percent(value, 0)
    groups: dict[str, list[float]] = {}
    for row in rows:
        if not row["repeat"]:
            groups.setdefault(row["arm"], []).append(row["value"])
    return [(arm, show(min(values)), show(max(values))) for arm, values in groups.items()]


def _time_table(arms: list[ArmFigures], end: int) -> Table:
    """One row per bin, one column per measure and arm that has it: arms side by side."""
    bin_s = _bin_width(end, TABLE_ROWS)
    columns: dict[str, dict[int, str]] = {}
    for name, measure, show in (
        ("TPM", lambda second: second.tpm, words.count),
        ("hit ratio", lambda second: second.hit_ratio, words.percent),
        ("CPU", lambda second: second.server_cpu, words.percent),
    ):
        for arm in arms:
            every = [second for repeat in arm.repeats for second in repeat.series]
            binned = _binned(every, measure, bin_s)
            if binned:
                columns[f"{name} {arm.name}"] = {start: show(value) for start, value in binned}
    rows = [
        (
            f"{start}–{min(start + bin_s, end)}",
            *(column.get(start, words.ABSENT) for column in columns.values()),
        )
        for start in range(0, end, bin_s)
    ]
    return Table(f"Means of the repeats over {bin_s} s", ("seconds", *columns), tuple(rows))
