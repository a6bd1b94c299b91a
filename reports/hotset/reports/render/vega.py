"""Vega-Lite specifications: bars, percentiles and lines.

Colours are CSS variables (`var(--baseline)` …) that the page defines for light, dark and print:
the browser resolves them in the SVG, so one specification serves all three.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..model.document import POLICY_ARMS

if TYPE_CHECKING:  # a page on a terminal has no drawings, and waits for no library that makes them
    import altair as alt

ROW_PX = 54
LABEL_ROOM = 1.22  # of the longest bar, so that its figure fits beside it on a phone
SHORT = "format(datum.value, '~s')"  # 2k; an axis's own format rounds 500 to "1k" beside 10k
COLOURS: dict[str, str] = {
    "baseline": "var(--baseline)",
    "accelerated": "var(--accelerated)",
    "all-flash": "var(--all-flash)",
    "split-disks": "var(--split-disks)",
    "in-memory": "var(--in-memory)",
    "flash-volume": "var(--flash-volume)",
    "measured": "var(--accelerated)",
    **{name: f"var(--{name})" for name in POLICY_ARMS},
}
DASHES: dict[str, list[int]] = {
    "baseline": [6, 3],
    "accelerated": [1, 0],
    "all-flash": [2, 2],
    "split-disks": [10, 4],
    "in-memory": [8, 2, 2, 2],
    "flash-volume": [4, 2, 1, 2],
    "measured": [1, 0],
    **{name: [1, 0] for name in POLICY_ARMS},
}
QUERY_BAR_PX, QUERY_GAP_PX = 8, 8
SHARE_PX = 26
LABELLED_SHARE = 0.06  # of the width; less has no room for its figure
SHARE_ROOM = 1.4  # of 100 %, for a figure beside the bar on a phone
QUARTERS = [0, 0.25, 0.5, 0.75, 1]
_TOOLTIP_FORMAT = {"share": ".1%", "ms": ",.1f", "MiB": ",.1f"}
Row = dict[str, Any]
Spec = dict[str, Any]


def bars(
    bars: list[Row],
    points: list[Row],
    unit: str,
    order: Sequence[str],
    colours: tuple[str, ...] = (),
) -> Spec:
    import altair as alt

    y = alt.Y("arm:N", sort=order, title=None, axis=alt.Axis(labelLimit=250))
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
    # The figure is right of everything drawn in its row, so that no circle covers it.
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
    return _finish(layers.properties(width="container", height=ROW_PX * len(order)))


def stack_bars(rows: list[Row], order: Sequence[str]) -> Spec:
    """A bar of shares per arm; a share's figure is in it where there is room."""
    import altair as alt

    names = list(dict.fromkeys(row["class"] for row in rows))
    y = alt.Y("arm:N", sort=order, title=None, axis=alt.Axis(labelLimit=150))
    # Neighbours are added up here, so that bars and figures agree.
    placed: list[Row] = []
    for arm in order:
        start = 0.0
        for row in (row for row in rows if row["arm"] == arm):
            end = start + row["value"]
            placed.append({**row, "start": start, "end": end, "middle": (start + end) / 2})
            start = end
    scale = alt.Scale(domain=[0, 1], nice=False, clamp=True)
    x = alt.X("start:Q", title=None, scale=scale, axis=alt.Axis(values=QUARTERS, format=".0%"))
    colour = alt.Color(
        "class:N",
        scale=alt.Scale(domain=names, range=[f"var(--time-{n})" for n in range(len(names))]),
        legend=alt.Legend(
            title=None,
            orient="top",
            columns=4,
            labelFontSize=13,
            labelColor="var(--ink)",
            symbolType="square",
        ),
    )
    tooltip = [alt.Tooltip("arm:N"), alt.Tooltip("class:N"), alt.Tooltip("value:Q", format=".1%")]
    layers = alt.layer(
        alt.Chart(alt.InlineData(values=placed))
        .mark_bar(height={"band": 0.62}, stroke="var(--surface)", strokeWidth=1)
        .encode(x=x, x2="end:Q", y=y, color=colour, tooltip=tooltip),
        alt.Chart(alt.InlineData(values=[row for row in placed if row["value"] >= LABELLED_SHARE]))
        .mark_text(fontSize=12, fontWeight=600, fill="var(--on-colour)")
        .encode(x=alt.X("middle:Q", scale=scale), y=y, text="label:N"),
    )
    return _finish(layers.properties(width="container", height=ROW_PX * len(order)))


def percentiles(rows: list[Row], names: list[str], order: Sequence[str]) -> Spec:
    """A line per arm over the percentiles; rows of repeat 0 are its mean."""
    import altair as alt

    values = [row["value"] for row in rows] or [1]
    domain = [min(values) / 1.5, max(values) * 1.5]
    x = alt.X("percentile:N", sort=names, title=None, axis=alt.Axis(labelAngle=0, grid=False))
    y = alt.Y(
        "value:Q",
        title="ms (logarithmic)",
        scale=alt.Scale(type="log", domain=domain, nice=False),
        axis=alt.Axis(values=_log_ticks(*domain), format=",~g", grid=True),
    )
    colour, dash = _arm_colour(order), _arm_dash(order)
    each = alt.Chart(alt.InlineData(values=[row for row in rows if row["repeat"]]))
    mean = alt.Chart(alt.InlineData(values=[row for row in rows if not row["repeat"]]))
    tooltip = [
        alt.Tooltip("arm:N"),
        alt.Tooltip("percentile:N"),
        alt.Tooltip("label:N", title="mean, ms"),
    ]
    layers = alt.layer(
        each.mark_line(strokeWidth=1, opacity=0.3).encode(
            x=x, y=y, color=colour, detail="repeat:N"
        ),
        mean.mark_line(strokeWidth=2.2).encode(x=x, y=y, color=colour, strokeDash=dash),
        mean.mark_point(size=60, filled=True, opacity=1).encode(
            x=x, y=y, color=colour, tooltip=tooltip
        ),
        # Accelerated and all-flash lie close together: the one's figures above, the other's below.
        *(
            mean.transform_filter(test)
            .mark_text(dy=dy, fontSize=11, fill="var(--ink-2)")
            .encode(x=x, y=y, text="label:N")
            for test, dy in (
                ("datum.arm === 'baseline' || datum.arm === 'accelerated'", -12),
                ("datum.arm === 'all-flash'", 14),
            )
        ),
    )
    return _finish(layers.properties(width="container", height=260))


def _arm_colour(order: Sequence[str]) -> alt.Color:
    import altair as alt

    colours = [COLOURS[name] for name in order]
    return alt.Color("arm:N", legend=None, scale=alt.Scale(domain=order, range=colours))


def _arm_dash(order: Sequence[str]) -> alt.StrokeDash:
    import altair as alt

    dashes = [DASHES[name] for name in order]
    return alt.StrokeDash("arm:N", legend=None, scale=alt.Scale(domain=order, range=dashes))


def shares(rows: list[Row], order: Sequence[str], what: str, value: str) -> Spec:
    """A bar from 0 to 100 % for each row, its figure beside it.

    :param what: it is of: a table.
    :param value: its name: the hit ratio.
    """
    import altair as alt

    y = alt.Y("arm:N", sort=order, title=None, axis=alt.Axis(labelLimit=220))
    x = alt.X(
        "value:Q",
        title=None,
        scale=alt.Scale(domain=[0, SHARE_ROOM], nice=False),
        axis=alt.Axis(values=QUARTERS, format=".0%"),
    )
    base = alt.Chart(alt.InlineData(values=rows))
    tooltip = [alt.Tooltip("arm:N", title=what), alt.Tooltip("label:N", title=value)]
    layers = alt.layer(
        base.mark_bar(height={"band": 0.62}, fill="var(--accelerated)").encode(
            x=x, y=y, tooltip=tooltip
        ),
        base.mark_text(align="left", dx=6, fontSize=12, fill="var(--ink)").encode(
            x=x, y=y, text="label:N"
        ),
    )
    return _finish(layers.properties(width="container", height=SHARE_PX * len(order)))


def by_weight(
    rows: list[Row], order: Sequence[str], colours: tuple[str, ...], x_title: str
) -> Spec:
    """A line per arm over a count, a point each; both axes start at zero."""
    import altair as alt

    x = alt.X("reads:Q", title=x_title, scale=alt.Scale(zero=True), axis=alt.Axis(grid=False))
    y = alt.Y("value:Q", title=None, axis=alt.Axis(labelExpr=SHORT, tickCount=5, minExtent=52))
    colour = alt.Color(
        "arm:N",
        scale=alt.Scale(domain=order, range=[f"var({name})" for name in colours]),
        legend=alt.Legend(title=None, orient="top", labelFontSize=13, labelColor="var(--ink)"),
    )
    tooltip = [alt.Tooltip("arm:N"), alt.Tooltip("what:N"), alt.Tooltip("value:Q", format=",.1f")]
    base = alt.Chart(alt.InlineData(values=rows))
    layers = alt.layer(
        base.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour),
        base.mark_point(size=50, filled=True, opacity=1).encode(
            x=x, y=y, color=colour, tooltip=tooltip
        ),
    )
    return _finish(layers.properties(width="container", height=240))


def strips(rows: list[Row], order: Sequence[str]) -> Spec:
    """A row of boxes per arm, the darker the more of its requests went there."""
    import altair as alt

    x = alt.X("strip:O", title="place, from the start", axis=alt.Axis(labels=False, ticks=False))
    y = alt.Y("arm:N", sort=order, title=None, axis=alt.Axis(labelLimit=150))
    # Few places have most of the requests: the square root lets the others be seen.
    shade = alt.Opacity(
        "share:Q", legend=None, scale=alt.Scale(type="sqrt", domainMin=0, range=[0.03, 1])
    )
    layers = alt.layer(
        alt.Chart(alt.InlineData(values=rows))
        .mark_rect(fill="var(--accelerated)")
        .encode(
            x=x,
            y=y,
            opacity=shade,
            tooltip=[alt.Tooltip("arm:N"), alt.Tooltip("share:Q", format=".1%")],
        )
    )
    return _finish(layers.properties(width="container", height=SHARE_PX * len(order)))


def log_start(values: Iterable[float]) -> float:
    """Where a logarithmic axis of bars begins: the decade below the smallest.

    >>> log_start([0.2, 0.03, 5])
    0.01
    """
    return float(10.0 ** math.floor(math.log10(min([v for v in values if v > 0] or [1]) / 1.05)))


def queries(rows: list[Row], order: Sequence[str]) -> Spec:
    """A group of bars per query, a bar per arm, on a logarithmic axis."""
    import altair as alt

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
    return _finish(alt.layer(bars).properties(width="container", height=height))


def lines(rows: list[Row], end: int, *, unit: str, log: bool, last: bool) -> Spec:
    """:param unit: of the values: ``share``, or anything else that is counted."""
    import altair as alt

    arms = list(dict.fromkeys(row["arm"] for row in rows))
    x = alt.X(
        "second:Q",
        title="seconds since the window began" if last else None,
        scale=alt.Scale(domain=[0, end], nice=False),
        axis=alt.Axis(tickCount=8),
    )
    y = _value_axis(rows, unit, log)
    colour, dash = _arm_colour(arms), _arm_dash(arms)
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
    return _finish(layers.properties(width="container", height=220 if unit == "count" else 130))


def _value_axis(rows: list[Row], unit: str, log: bool) -> alt.Y:
    # Equal widths of the value axes keep the panels' time axes under each other.
    import altair as alt

    axis: dict[str, Any] = {"minExtent": 52, "maxExtent": 52, "title": None}
    if unit == "share":
        scale = alt.Scale(domain=[0, 1.03], nice=False)  # a line at 100 % in its full width
        axis |= {"format": ".0%", "values": QUARTERS}
    elif log:
        # Zeros must stay on the page: symmetric-logarithmic, linear only below the lowest decade.
        positive = [row["value"] for row in rows if row["value"] > 0] or [1]
        top = max(positive) * 1.2
        scale = alt.Scale(type="symlog", constant=max(1, min(positive)), domain=[0, top])
        ticks = [0, *_log_ticks(max(10, min(positive)), top)]
        axis |= {"values": ticks, "labelExpr": SHORT}
    else:
        scale = alt.Scale(zero=True)
        axis |= {"labelExpr": SHORT, "tickCount": 5}
    return alt.Y("value:Q", scale=scale, axis=alt.Axis(**axis))


def over_users(
    rows: list[Row], each_users: list[int], order: Sequence[str], *, log: bool, last: bool
) -> Spec:
    """A line per arm over the numbers of users, by powers of two; rows of repeat 0 are its mean,
    named where it is the peak or the knee."""
    import altair as alt

    x = alt.X(
        "users:Q",
        title="users (logarithmic)" if last else None,
        scale=alt.Scale(type="log", base=2, domain=[each_users[0] / 1.2, each_users[-1] * 1.2]),
        axis=alt.Axis(values=each_users, format=",d", grid=False),
    )
    axis: dict[str, Any] = {"minExtent": 52, "maxExtent": 52}
    positive = [row for row in rows if row["value"] > 0]
    values = [row["value"] for row in positive] or [1]
    if log:
        domain = [min(values) / 1.5, max(values) * 2]
        scale = alt.Scale(type="log", domain=domain, nice=False)
        ticks = alt.Axis(values=_log_ticks(*domain), labelExpr=SHORT, **axis)
    else:
        scale = alt.Scale(domain=[0, max(values) * LABEL_ROOM], nice=False)
        ticks = alt.Axis(labelExpr=SHORT, tickCount=5, **axis)
    y = alt.Y("value:Q", title=None, scale=scale, axis=ticks)
    colour, dash = _arm_colour(order), _arm_dash(order)
    each = alt.Chart(alt.InlineData(values=[row for row in positive if row["repeat"]]))
    mean = alt.Chart(alt.InlineData(values=[row for row in positive if not row["repeat"]]))
    tooltip = [
        alt.Tooltip("arm:N"),
        alt.Tooltip("users:Q"),
        alt.Tooltip("value:Q", title="mean", format=",.1f"),
    ]
    layers = alt.layer(
        each.mark_point(size=30, opacity=0.5).encode(x=x, y=y, color=colour),
        mean.mark_line(strokeWidth=2.2).encode(x=x, y=y, color=colour, strokeDash=dash),
        mean.mark_point(size=60, filled=True, opacity=1).encode(
            x=x, y=y, color=colour, tooltip=tooltip
        ),
        mean.transform_filter("datum.mark !== ''")
        .mark_text(dy=-13, fontSize=12, fontWeight=600, fill="var(--ink)")
        .encode(x=x, y=y, text="mark:N"),
    )
    return _finish(layers.properties(width="container", height=240 if not last else 160))


def _finish(chart: alt.LayerChart | alt.FacetChart) -> Spec:
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
    import altair as alt

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
