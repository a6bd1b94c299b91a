"""The charts of a run: what each shows, what it says in words, and its table.

Bars start at zero, but for the queries', which differ by orders of magnitude: theirs is a
logarithmic axis, which says so. Lines and points are drawn on a logarithmic axis where the arms
lie so far apart that the slower one would be a flat line; that axis says so, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean

from hotset.core import words

from ..analysis import answer, power, prices, units
from ..analysis.answer import ArmFigures
from ..analysis.breakdown import device_use, parts, server_io, time_use
from ..analysis.comparison import curve, highest
from ..model.base import ArmName
from ..model.document import RunDocument, WarmUp
from ..model.windows import Latency, Repeat
from . import series, vega
from .series import MEASURES, Measure
from .vega import Row, Spec

POINTS_PER_LINE = 200  # more would not be seen, and would swell the page
TABLE_ROWS = 24
PARTS_DRAWN = 12
LOG_FROM_RATIO = 5  # between the arms' means
LOG_UNITS = ("count", "ms")


@dataclass(frozen=True, slots=True)
class Panel:
    """One drawing and what it says in words."""

    key: str
    spec: Spec
    alt: str
    heading: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """``said``: the column whose cells are sentences."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    said: str = ""


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
    makers = (
        throughput,
        highest_rates,
        over_users,
        time_use_by_arm,
        devices,
        server_io_by_arm,
        over_time,
        latencies,
        queries,
        hits,
        warmup,
        price,
    )
    made = [maker(document) for maker in makers]
    return [figure for figure in made if figure is not None]


def throughput(document: RunDocument) -> Figure | None:
    arms = answer.arms(document)
    if not arms:
        return None
    unit = units.find_unit(document)
    bars = [{"arm": arm.name, "value": arm.rate, "label": words.count(arm.rate)} for arm in arms]
    points = [
        {"arm": arm.name, "value": repeat.rate, "what": f"repeat {repeat.repeat}"}
        for arm in arms
        for repeat in arm.repeats
    ]
    said = [f"{arm.name} {words.count(arm.rate)} {unit.short}" for arm in arms]
    rows = [
        (arm.name, str(repeat.repeat), *units.cells(document, repeat))
        for arm in arms
        for repeat in arm.repeats
    ]
    return Figure(
        key="throughput",
        title=unit.long,
        caption="Bars: mean of the repeats. Circles: the individual repeats. "
        "The axis is linear and starts at zero.",
        panels=(
            Panel(
                "throughput",
                vega.bars(bars, points, unit.short, [arm.name for arm in arms]),
                f"Bar chart of mean {unit.long.lower()}: {words.enumerate_words(said)}.",
            ),
        ),
        table=Table(
            "Throughput of every repeat",
            ("arm", "repeat", *units.columns(document)),
            tuple(rows),
        ),
    )


def highest_rates(document: RunDocument) -> Figure | None:
    """The rates that meet the limits, where they were sought."""
    found = {
        name: rate
        for name in answer.ARM_ORDER
        if (rate := highest.mean_rate(document, name)) is not None
    }
    if not found:
        return None
    bars = [
        {"arm": name, "value": rate, "label": words.count(rate)} for name, rate in found.items()
    ]
    points = [
        {"arm": name, "value": one.rate_per_s or 0.0, "what": f"repeat {one.repeat}"}
        for name in found
        for one in highest.find_highest(document, name)
    ]
    limits = highest.limits(document)
    said = [f"{bar['arm']} {bar['label']}" for bar in bars]
    return Figure(
        key="highest-rates",
        title=f"{highest.TITLE}: {limits}",
        caption="Transactions a second that arrive at random times. Bars: mean of the repeats."
        " Circles: the individual repeats. The axis is linear and starts at zero.",
        panels=(
            Panel(
                "highest-rates",
                vega.bars(bars, points, "transactions/s", list(found)),
                f"Bar chart of the highest rate with {limits}: {words.enumerate_words(said)}.",
            ),
        ),
        table=Table("Every search", highest.COLUMNS, tuple(highest.rows(document))),
    )


def over_users(document: RunDocument) -> Figure | None:
    """The curve over users: throughput, and below it the latency."""
    found = curve.read_curves(document)
    if not found:
        return None
    panels = (
        _curve_panel(found, "users-throughput", units.find_unit(document).long, "count"),
        _curve_panel(found, "users-p95", "Latency, 95th percentile, ms", "ms"),
    )
    return Figure(
        key="over-users",
        title="By number of users",
        caption=" ".join(curve.sentences(document))
        + " Lines: means of the repeats; circles: the individual repeats. The peak is the fewest"
        f" users within {words.percent(curve.FLAT, 0)} of the highest throughput; from the knee on"
        " more users gain little.",
        panels=tuple(panel for panel in panels if panel is not None),
        table=Table(
            "Means of the repeats by arm and number of users; ratios of"
            f" {units.find_unit(document).short} with their 95 % intervals",
            curve.columns(document),
            tuple(curve.rows(document)),
        ),
        legend=tuple(found),
    )


def _curve_panel(
    found: Mapping[ArmName, Sequence[curve.ArmPoint]], key: str, heading: str, unit: str
) -> Panel | None:
    """A line per arm; None where nothing was measured."""
    drawn = _curve_rows(found, unit)
    means = _mean_lines(drawn)
    if not means:
        return None
    each_users = sorted({point.users for points in found.values() for point in points})
    log = _far_apart([fmean(line) for line in means.values()])
    said = [f"{arm} {', '.join(map(words.count, line))}" for arm, line in means.items()]
    return Panel(
        key,
        vega.over_users(drawn, each_users, [*found], log=log, last=unit == "ms"),
        f"Line chart over {words.enumerate_words([str(user) for user in each_users])} users."
        f" {heading}: {'; '.join(said)}.",
        heading + (" (logarithmic axis)" if log else ""),
    )


def _curve_rows(found: Mapping[ArmName, Sequence[curve.ArmPoint]], unit: str) -> list[Row]:
    """Points of the lines; `repeat` 0 is the mean, which may be an arm's peak or knee."""
    rows: list[Row] = []
    for name, points in found.items():
        bare = [point.point for point in points]
        peak, knee = curve.peak(bare).users, curve.knee(bare)
        marks = {peak: "peak"}
        if knee is not None:
            marks[knee.users] = "peak and knee" if knee.users == peak else "knee"
        for point in points:
            values = [(each.repeat, _curve_value(each, unit)) for each in point.arm.repeats]
            values.append((0, _curve_value(point.figures, unit)))
            rows += [
                {
                    "arm": name,
                    "users": point.users,
                    "repeat": repeat,
                    "value": value,
                    "mark": marks.get(point.users, "") if unit == "count" and not repeat else "",
                }
                for repeat, value in values
                if value is not None
            ]
    return rows


def _curve_value(of: Repeat | ArmFigures, unit: str) -> float | None:
    if unit == "count":
        return of.rate
    return of.latency_ms.p95 if of.latency_ms else None


def time_use_by_arm(document: RunDocument) -> Figure | None:
    arms = [arm.name for arm in answer.arms(document)]
    uses = {arm: use for arm in arms if (use := time_use.summarize_time(document, arm)) is not None}
    if not uses:
        return None
    bars: list[Row] = [
        {
            "arm": arm,
            "class": time_use.NAMES[name],
            "rank": rank,
            "value": getattr(use, name),
            "label": words.percent(getattr(use, name), 0),
        }
        for arm, use in uses.items()
        for rank, name in enumerate(time_use.CLASSES)
    ]
    said = [
        f"{arm}: "
        + ", ".join(f"{row['class']} {row['label']}" for row in bars if row["arm"] == arm)
        for arm in uses
    ]
    caption = (
        "Shares of the users' time, means of the repeats, from samples of their sessions. CPU:"
        " running, or waiting for a CPU."
    )
    notes = (time_use.sentence(document), caption, *time_use.missing(document))
    return Figure(
        key="time-use",
        title="Where the users' time goes",
        caption=" ".join(note for note in notes if note),
        panels=(Panel("time-use", vega.stack_bars(bars, list(uses)), f"{'; '.join(said)}."),),
        table=Table(
            "Where the users' time went, every repeat",
            time_use.COLUMNS,
            tuple(time_use.rows(document)),
        ),
    )


def devices(document: RunDocument) -> Figure | None:
    found = device_use.by_arm(document)
    if not found:
        return None
    bars: list[Row] = [
        {
            "arm": f"{arm}, {device.name}",
            "value": device.utilisation,
            "label": words.percent(device.utilisation, 0),
        }
        for arm, each in found.items()
        for device in each
    ]
    notes = (
        device_use.sentence(document),
        "Bars: the share of the time with at least one request under way, means of the repeats.",
        device_use.NOTE,
        device_use.cpu_line(document),
    )
    said = [f"{bar['arm']} {bar['label']}" for bar in bars]
    return Figure(
        key="devices",
        title="Each device",
        caption=" ".join(note for note in notes if note),
        panels=(
            Panel(
                "devices",
                vega.shares(bars, [bar["arm"] for bar in bars], "device", "busy"),
                f"Bar chart of how busy each device was: {words.enumerate_words(said)}.",
            ),
        ),
        table=Table(
            "What went through each device, means of the repeats",
            device_use.COLUMNS,
            tuple(device_use.rows(document)),
        ),
    )


def server_io_by_arm(document: RunDocument) -> Figure | None:
    rows = server_io.rows(document)
    if not rows:
        return None
    return Figure(
        key="server-io",
        title="What the database server counted",
        caption=" ".join((server_io.NOTE, *server_io.missing(document))),
        panels=(),
        table=Table("Means of the repeats", server_io.COLUMNS, tuple(rows)),
    )


def over_time(document: RunDocument) -> Figure | None:
    arms = [arm for arm in answer.arms(document) if any(repeat.series for repeat in arm.repeats)]
    if not arms:
        return None
    end = 1 + max(second.second for arm in arms for each in arm.repeats for second in each.series)
    bin_s = series.bin_width(end, POINTS_PER_LINE)
    drawn = [(measure, series.line_rows(arms, measure.of, bin_s)) for measure in MEASURES]
    drawn = [(one, rows) for one, rows in drawn if rows]
    panels = [_over_time(one, rows, end, bin_s, one is drawn[-1][0]) for one, rows in drawn]
    points = "one point per second" if bin_s == 1 else f"each point the mean of {bin_s} s"
    return Figure(
        key="over-time",
        title="Second by second",
        caption=f"Strong lines: mean of the repeats; faint lines: each repeat; {points}; all on"
        f" one axis of time. Hit ratio is {answer.HIT_RATIO_DENOMINATOR}, second by second.",
        panels=tuple(panels),
        table=_time_table(arms, end),
        legend=tuple(arm.name for arm in arms),
    )


def _over_time(measure: Measure, rows: list[Row], end: int, bin_s: int, last: bool) -> Panel:
    lines = _mean_lines(rows)
    log = measure.unit in LOG_UNITS and _far_apart([fmean(line) for line in lines.values()])
    spread = [
        f"{arm} {measure.show(min(line))} to {measure.show(max(line))}"
        for arm, line in lines.items()
    ]
    return Panel(
        measure.key,
        vega.lines(rows, end, unit=measure.unit, log=log, last=last),
        f"Line chart over {end} seconds. {measure.heading}, means of {bin_s} s:"
        f" {words.enumerate_words(spread)}.",
        measure.heading + (" (logarithmic axis)" if log else ""),
    )


def latencies(document: RunDocument) -> Figure | None:
    arms = [arm for arm in answer.arms(document) if arm.latency_ms is not None]
    if not arms:
        return None
    lines: list[Row] = []
    said: list[str] = []
    rows: list[tuple[str, ...]] = []
    for arm in arms:
        assert arm.latency_ms is not None
        lines += _percentiles(arm.name, 0, arm.latency_ms)
        shown = zip(("p50", "p95", "p99"), words.latencies(arm.latency_ms), strict=True)
        said.append(f"{arm.name} {', '.join(f'{name} {value}' for name, value in shown)}")
        for repeat in arm.repeats:
            if repeat.latency_ms is None or repeat.latency_ms.p95 is None:
                continue
            lines += _percentiles(arm.name, repeat.repeat, repeat.latency_ms)
            values = (getattr(repeat.latency_ms, field) for field in words.PERCENTILES)
            rows.append((arm.name, str(repeat.repeat), *map(words.milliseconds, values)))
    drawn = {row["percentile"] for row in lines}
    order = tuple(arm.name for arm in arms)
    return Figure(
        key="latencies",
        title="Latency of a transaction",
        caption="All transactions together, by percentile: 99 % of them took no longer than p99."
        " Strong lines: means of the repeats; faint lines: each repeat. The axis is logarithmic.",
        panels=(
            Panel(
                "latencies",
                vega.percentiles(
                    lines, [step for step in words.PERCENTILES.values() if step in drawn], order
                ),
                f"Latency in milliseconds: {'; '.join(said)}.",
            ),
        ),
        table=Table(
            "Latency of every repeat, ms",
            ("arm", "repeat", *words.PERCENTILES.values()),
            tuple(rows),
        ),
        legend=order,
    )


def _percentiles(arm: str, repeat: int, latency_ms: Latency) -> list[Row]:
    """A line's points; `repeat` 0 is the mean."""
    return [
        {
            "arm": arm,
            "repeat": repeat,
            "percentile": name,
            "value": value,
            "label": words.milliseconds(value),
        }
        for field, name in words.PERCENTILES.items()
        if (value := getattr(latency_ms, field)) is not None and value > 0
    ]


def queries(document: RunDocument) -> Figure | None:
    arms = power.arms(document)
    rows: list[Row] = [
        {"arm": arm.name, "query": f"Q{number}", "value": value, "label": power.seconds(value)}
        for number in power.QUERIES
        for arm in arms
        if (value := arm.seconds.get(number)) is not None
    ]
    if not rows:
        return None
    order = [arm.name for arm in arms]
    totals = [
        f"{arm.name} {words.duration(arm.total_s)}{'' if arm.complete else ' and more'}"
        for arm in arms
    ]
    return Figure(
        key="queries",
        title="The 22 TPC-H queries",
        caption="Seconds of each query, means of the repeats. The axis is logarithmic and begins"
        f" at {vega.log_start(row['value'] for row in rows):g} s, not at zero: compare where bars"
        " end; equal distances are equal factors.",
        panels=(
            Panel(
                "queries",
                vega.queries(rows, order),
                f"Seconds of the TPC-H queries by arm; in all: {words.enumerate_words(totals)}.",
            ),
        ),
        table=Table("Seconds of every query", power.columns(document), tuple(power.rows(document))),
        legend=tuple(order),
    )


def warmup(document: RunDocument) -> Figure | None:
    record = document.warmup
    if record is None:
        return None
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
    return Figure(
        key="warmup",
        title="Warm-up",
        caption="How fast the cache was filled, beside the rate at which the slow storage (the "
        "origin) can be read from end to end. The axis starts at zero.",
        panels=(_warmup_panel(record),),
        table=Table(
            "Every warm-up",
            ("repeat", "filled", "took", "rate", "origin", "differing blocks", "probe hit ratio"),
            tuple(rows),
        ),
    )


def _warmup_panel(record: WarmUp) -> Panel:
    rates = {"origin, sequential": record.origin_mb_per_s, "warm-up": record.mb_per_s}
    bars = [
        {"arm": name, "value": value, "label": words.rate(value).removesuffix(" MB/s")}
        for name, value in rates.items()
    ]
    points = [
        {"arm": name, "value": value, "what": f"repeat {each.repeat}"}
        for each in record.repeats
        for name, value in zip(rates, (each.origin_mb_per_s, each.mb_per_s), strict=True)
    ]
    share = words.percent(record.mb_per_s / record.origin_mb_per_s, 0)
    return Panel(
        "warmup",
        vega.bars(bars, points, "MB/s", list(rates), colours=("--baseline", "--accelerated")),
        f"Bar chart: the warm-up ran at {words.rate(record.mb_per_s)}, {share} of the "
        f"origin's sequential {words.rate(record.origin_mb_per_s)}.",
    )


def hits(document: RunDocument) -> Figure | None:
    rows = parts.rows(document)
    if not rows:
        return None
    shown = [part for part in parts.summarize_parts(document) if part.hit_ratio is not None][
        :PARTS_DRAWN
    ]
    bars = [
        {"arm": part.name, "value": part.hit_ratio, "label": words.percent(part.hit_ratio)}
        for part in shown
    ]
    said = [f"{bar['arm']} {bar['label']}" for bar in bars]
    return Figure(
        key="hits",
        title="Hit ratio by table",
        caption=f"The most accessed tables and indexes, busiest first. {parts.NOTE}",
        panels=(
            Panel(
                "hits",
                vega.shares(bars, [part.name for part in shown], "table", "hit ratio"),
                f"Bar chart of hit ratios in the accelerated arm: {words.enumerate_words(said)}.",
            ),
        ),
        table=Table("Requests and hit ratios by table", parts.COLUMNS, tuple(rows)),
    )


def price(document: RunDocument) -> Figure | None:
    known = [cost for cost in document.costs if cost.price_per_nopm is not None]
    if document.prices is None or not known:
        return None
    bars = [
        {"arm": cost.arm, "value": cost.price_per_nopm, "label": words.money(cost.price_per_nopm)}
        for cost in known
    ]
    order = [cost.arm for cost in known]
    said = [f"{bar['arm']} {bar['label']}" for bar in bars]
    unit = units.find_unit(document).short
    return Figure(
        key="price",
        title=f"Price per {unit}",
        caption=prices.assumptions(document),
        panels=(
            Panel(
                "price",
                vega.bars(bars, [], f"{document.prices.currency} per {unit}", list(order)),
                f"Bar chart of the price per {unit}: {words.enumerate_words(said)}.",
            ),
        ),
        table=Table(
            f"Prices in {document.prices.currency}",
            prices.columns(document),
            tuple(prices.rows(document)),
        ),
    )


def _far_apart(means: list[float]) -> bool:
    positive = [mean for mean in means if mean > 0]
    return len(positive) > 1 and max(positive) / min(positive) >= LOG_FROM_RATIO


def _mean_lines(rows: list[Row]) -> dict[str, list[float]]:
    """The values of the mean line of each arm."""
    lines: dict[str, list[float]] = {}
    for row in rows:
        if not row["repeat"]:
            lines.setdefault(row["arm"], []).append(row["value"])
    return lines


def _time_table(arms: list[ArmFigures], end: int) -> Table:
    """One row per bin, one column per measure and arm that has it: arms side by side."""
    bin_s = series.bin_width(end, TABLE_ROWS)
    columns: dict[str, dict[int, str]] = {}
    for measure in MEASURES:
        for arm in arms:
            every = [second for repeat in arm.repeats for second in repeat.series]
            binned = series.bin_series(every, measure.of, bin_s)
            if binned:
                shown = {start: measure.show(value) for start, value in binned}
                columns[f"{measure.name} {arm.name}"] = shown
    rows = [
        (
            f"{start}–{min(start + bin_s, end)}",
            *(column.get(start, words.ABSENT) for column in columns.values()),
        )
        for start in range(0, end, bin_s)
    ]
    return Table(f"Means of the repeats over {bin_s} s", ("seconds", *columns), tuple(rows))
