"""Vega-Lite specifications: bars, ranges and lines.

Colours are CSS variables (`var(--baseline)` …) that the page defines for light, dark and print:
the browser resolves them in the SVG, so one specification serves all three.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
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
QUERY_BAR_PX, QUERY_GAP_PX = 8, 8
SHARE_PX = 26
SHARE_ROOM = 1.4  # of 100 %, for a figure beside the bar on a phone
QUARTERS = [0, 0.25, 0.5, 0.75, 1]
_TOOLTIP_FORMAT = {"share": ".1%", "ms": ",.1f", "MiB": ",.1f"}
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


def shares(rows: list[Row], order: list[str]) -> Spec:
    """A bar from 0 to 100 % for each row, its figure beside it."""
    y = alt.Y("arm:N", sort=order, title=None, axis=alt.Axis(labelLimit=140))
    x = alt.X(
        "value:Q",
        title=None,
        scale=alt.Scale(domain=[0, SHARE_ROOM], nice=False),
        axis=alt.Axis(values=QUARTERS, format=".0%"),
    )
    base = alt.Chart(alt.InlineData(values=rows))
    tooltip = [alt.Tooltip("arm:N", title="table"), alt.Tooltip("label:N", title="hit ratio")]
    layers = alt.layer(
        base.mark_bar(height={"band": 0.62}, fill="var(--accelerated)").encode(
            x=x, y=y, tooltip=tooltip
        ),
        base.mark_text(align="left", dx=6, fontSize=12, fill="var(--ink)").encode(
            x=x, y=y, text="label:N"
        ),
    )
    return _finished(layers.properties(width="container", height=SHARE_PX * len(order)))


def log_start(values: Iterable[float]) -> float:
    """Where a logarithmic axis of bars begins: the decade below the smallest.

    >>> log_start([0.2, 0.03, 5])
    0.01
    """
    return float(10.0 ** math.floor(math.log10(min([v for v in values if v > 0] or [1]) / 1.05)))


def queries(rows: list[Row], order: Sequence[str]) -> Spec:
    """A group of bars per query, a bar per arm, on a logarithmic axis."""
    positive = [row for row in rows if row["value"] > 0]
    values = [row["value"] for row in positive] or [1]
    domain = [log_start(values), max(values) * 1.4]
    x = alt.X(
        "value:Q",
        title="seconds (logarithmic)",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(values=_log_ticks(*domain), format=",~g"),
    )
    names = list(dict.fromkeys(row["query"] for row in rows))
    colours = alt.Scale(domain=list(order), range=[COLOURS[name] for name in order])
    # The bars begin where the axis does: a logarithmic one has no zero.
    bars = (
        alt.Chart(alt.InlineData(values=[{**row, "start": domain[0]} for row in positive]))
        .mark_bar(height={"band": 0.92})
        .encode(
            x=x,
            x2="start:Q",
            y=alt.Y("query:N", sort=names, title=None, scale=alt.Scale(paddingInner=0.28)),
            yOffset=alt.YOffset("arm:N", sort=list(order)),
            color=alt.Color("arm:N", legend=None, scale=colours),
            tooltip=[
                alt.Tooltip("query:N"),
                alt.Tooltip("arm:N"),
                alt.Tooltip("label:N", title="mean, s"),
            ],
        )
    )
    height = (QUERY_BAR_PX * len(order) + QUERY_GAP_PX) * len(names)
    return _finished(alt.layer(bars).properties(width="container", height=height))


def lines(rows: list[Row], end: int, *, unit: str, log: bool, last: bool) -> Spec:
    """:param unit: of the values: ``share``, or anything else that is counted."""
    share = unit == "share"
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
        scale = alt.Scale(domain=[0, 1.03], nice=False)  # a line at 100 % in its full width
        y = alt.Y("value:Q", scale=scale, axis=alt.Axis(format=".0%", values=QUARTERS, **axis))
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
                alt.Tooltip("value:Q", format=_TOOLTIP_FORMAT.get(unit, ",.0f")),
            ],
        ),
    )
    return _finished(layers.properties(width="container", height=220 if unit == "count" else 130))


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
    steps = (1, 2, 5) if high / low < 150 else (1,)
    return [decade * step for decade in decades for step in steps if low <= decade * step <= high]
