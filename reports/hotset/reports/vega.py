"""Vega-Lite specifications: bars, ranges and lines.

Colours are CSS variables (`var(--baseline)` …) that the page defines for light, dark and print:
the browser resolves them in the SVG, so one specification serves all three.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

ROW_PX = 54
LABEL_ROOM = 1.22  # of the longest bar, so that its figure fits beside it on a phone
SHORT = "format(datum.value, '~s')"  # 2k; an axis's own format rounds 500 to "1k" beside 10k
COLOURS = {
    "baseline": "var(--baseline)",
    "accelerated": "var(--accelerated)",
    "all-flash": "var(--all-flash)",
    "split-disks": "var(--split-disks)",
    "in-memory": "var(--in-memory)",
    "flash-volume": "var(--flash-volume)",
}
DASHES = {
    "baseline": [6, 3],
    "accelerated": [1, 0],
    "all-flash": [2, 2],
    "split-disks": [10, 4],
    "in-memory": [8, 2, 2, 2],
    "flash-volume": [4, 2, 1, 2],
}
SHAPES = {
    "baseline": "circle",
    "accelerated": "diamond",
    "all-flash": "square",
    "split-disks": "triangle-down",
    "in-memory": "triangle-up",
    "flash-volume": "cross",
}
QUERY_PX = 19
Row = dict[str, Any]
Spec = dict[str, Any]


def bars(
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


def ranges(means: list[Row], points: list[Row], order: list[str]) -> Spec:
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


def queries(rows: list[Row], order: Sequence[str]) -> Spec:
    """A row per query, a point per arm on a logarithmic axis, joined by a line."""
    values = [row["value"] for row in rows if row["value"] > 0] or [1]
    domain = [min(values) / 1.4, max(values) * 1.4]
    x = alt.X(
        "value:Q",
        title="seconds (logarithmic)",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(values=_log_ticks(*domain), format=",~g"),
    )
    names = list(dict.fromkeys(row["query"] for row in rows))
    y = alt.Y("query:N", sort=names, title=None)
    colours = alt.Scale(domain=list(order), range=[COLOURS[name] for name in order])
    shapes = alt.Scale(domain=list(order), range=[SHAPES[name] for name in order])
    base = alt.Chart(alt.InlineData(values=[row for row in rows if row["value"] > 0]))
    layers = alt.layer(
        base.mark_line(strokeWidth=2, opacity=0.35, color="var(--line-2)").encode(
            x=x, y=y, detail="query:N"
        ),
        base.mark_point(size=70, filled=True, opacity=1).encode(
            x=x,
            y=y,
            color=alt.Color("arm:N", legend=None, scale=colours),
            shape=alt.Shape("arm:N", legend=None, scale=shapes),
            tooltip=[
                alt.Tooltip("query:N"),
                alt.Tooltip("arm:N"),
                alt.Tooltip("label:N", title="mean, s"),
            ],
        ),
    )
    return _finished(layers.properties(width="container", height=QUERY_PX * len(names) + 10))


def lines(rows: list[Row], end: int, *, share: bool, log: bool, last: bool) -> Spec:
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
