"""The charts of a run: what each shows, what it says in words, and its table.

Bars start at zero, but for the queries', which differ by orders of magnitude: theirs is a
logarithmic axis, which says so. Lines and points are drawn on a logarithmic axis where the arms
lie so far apart that the slower one would be a flat line; that axis says so, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean

from hotset.reports import answer, parts, power, prices, series, vega, words
from hotset.reports.answer import ArmFigures
from hotset.reports.document import RunDocument
from hotset.reports.series import MEASURES, Measure
from hotset.reports.vega import Row, Spec

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
    makers = (throughput, over_time, latencies, queries, hits, warmup, price)
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
                vega.bars(bars, points, "NOPM", [arm.name for arm in arms]),
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
    bin_s = series.bin_width(end, POINTS_PER_LINE)
    drawn = [(one, series.line_rows(arms, one.of, bin_s)) for one in MEASURES]
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
        f" {words.listed(spread)}.",
        measure.heading + (" (logarithmic axis)" if log else ""),
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
                vega.ranges(means, points, [arm.name for arm in arms]),
                f"Latency in milliseconds: {'; '.join(said)}.",
            ),
        ),
        table=Table(
            "Latency of every repeat, ms", ("arm", "repeat", "p50", "p95", "p99"), tuple(rows)
        ),
        legend=("p50", "p95", "p99"),
    )


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
                f"Seconds of the TPC-H queries by arm; in all: {words.listed(totals)}.",
            ),
        ),
        table=Table("Seconds of every query", power.columns(document), tuple(power.rows(document))),
        legend=tuple(order),
    )


def warmup(document: RunDocument) -> Figure | None:
    record = document.warmup
    if record is None:
        return None
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
                vega.bars(
                    bars, points, "MB/s", list(rates), colours=("--baseline", "--accelerated")
                ),
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


def hits(document: RunDocument) -> Figure | None:
    rows = parts.rows(document)
    if not rows:
        return None
    shown = [part for part in parts.of(document) if part.hit_ratio is not None][:PARTS_DRAWN]
    bars = [
        {"arm": part.name, "value": part.hit_ratio, "label": words.percent(part.hit_ratio)}
        for part in shown
    ]
    said = [f"{bar['arm']} {bar['label']}" for bar in bars]
    return Figure(
        key="hits",
        title="Hit ratio by table",
        caption=f"The tables and indexes that were asked most, busiest first. {parts.NOTE}",
        panels=(
            Panel(
                "hits",
                vega.shares(bars, [part.name for part in shown]),
                f"Bar chart of hit ratios in the accelerated arm: {words.listed(said)}.",
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
    return Figure(
        key="price",
        title="Price per NOPM",
        caption=prices.assumptions(document),
        panels=(
            Panel(
                "price",
                vega.bars(bars, [], f"{document.prices.currency} per NOPM", list(order)),
                f"Bar chart of the price per new order per minute: {words.listed(said)}.",
            ),
        ),
        table=Table(
            f"Prices in {document.prices.currency}", prices.COLUMNS, tuple(prices.rows(document))
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
            binned = series.binned(every, measure.of, bin_s)
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
