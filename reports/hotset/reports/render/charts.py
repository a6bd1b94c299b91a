"""The charts of a run: what each shows, what it says in words, and its table.

Bars start at zero, but for the queries', which differ by orders of magnitude: theirs is a
logarithmic axis, which says so. Lines and points are drawn on a logarithmic axis where the arms
lie so far apart that the slower one would be a flat line; that axis says so, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import fmean

from hotset.core import words

from ..analysis import answer, kinds, power, prices, units
from ..analysis.answer import ArmFigures
from ..analysis.breakdown import device_use, parts, server_io, time_use
from ..analysis.comparison import curve, highest
from ..model.base import ArmName
from ..model.document import PowerArm, RunDocument, WarmUp
from ..model.windows import Latency, Repeat
from . import series, vega
from .page import Panel, Section, Table
from .series import MEASURES, Measure
from .vega import Row

POINTS_PER_LINE = 200  # more would not be seen, and would swell the page
TABLE_ROWS = 24
PARTS_DRAWN = 12
LOG_FROM_RATIO = 5  # between the arms' means
LOG_UNITS = ("count", "ms")


def throughput(document: RunDocument) -> Section | None:
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
    parts = [f"{arm.name} {words.count(arm.rate)} {unit.short}" for arm in arms]
    has_ratio = any(arm.hit_ratio is not None for arm in arms)
    return Section(
        key="throughput",
        title=unit.long,
        notes=(f"Hit ratio: {answer.HIT_RATIO_DENOMINATOR}.",) if has_ratio else (),
        reading="Bars: mean of the repeats. Circles: the individual repeats. "
        "The axis is linear and starts at zero.",
        panels=(
            Panel(
                "throughput",
                partial(vega.bars, bars, points, unit.short, [arm.name for arm in arms]),
                f"Bar chart of mean {unit.long.lower()}: {words.enumerate_words(parts)}.",
            ),
        ),
        tables=(_arms_table(document, arms),),
    )


_ARM_COLUMNS = (
    "CPU ms each",
    "hit ratio",
    "reads",
    "writes",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "CPU",
    "I/O wait",
    "failed",
    "retries",
)


def _arms_table(document: RunDocument, arms: Sequence[ArmFigures]) -> Table:
    """Every repeat; below several their means."""
    rows, sums = list[tuple[str, ...]](), set[int]()
    for arm in arms:
        for repeat in arm.repeats:
            shown = _arm_cells(document, repeat, words.count)
            rows.append((arm.name, str(repeat.repeat), *shown))
        if len(arm.repeats) > 1:
            sums.add(len(rows))
            rows.append((arm.name, "mean", *_arm_cells(document, arm, words.total)))
    return Table(
        f"{units.find_unit(document).title} by arm and repeat",
        ("arm", "repeat", *units.columns(document), *_ARM_COLUMNS),
        tuple(rows),
        sums=frozenset(sums),
        wide=("retries", "I/O wait", "writes", "reads"),
    )


def _arm_cells(
    document: RunDocument, of: Repeat | ArmFigures, number: Callable[[int], str]
) -> tuple[str, ...]:
    each = answer.cpu_ms(document, of)
    return (
        *units.cells(document, of),
        words.ABSENT if each is None else f"{each:.2f}",
        *map(words.percent, (of.hit_ratio, of.read_hit_ratio, of.write_hit_ratio)),
        *words.latencies(of.latency_ms),
        words.percent(of.server_cpu, 0),
        words.percent(of.server_iowait, 0),
        number(of.failed),
        number(of.retries),
    )


def highest_rates(document: RunDocument) -> Section | None:
    """The rates that meet the limits, where they were sought."""
    rates = {
        name: rate
        for name in answer.ARM_ORDER
        if (rate := highest.mean_rate(document, name)) is not None
    }
    if not rates:
        return None
    bars = [
        {"arm": name, "value": rate, "label": words.count(rate)} for name, rate in rates.items()
    ]
    points = [
        {"arm": name, "value": rate.rate_per_s or 0.0, "what": f"repeat {rate.repeat}"}
        for name in rates
        for rate in highest.find_highest(document, name)
    ]
    limits = highest.limits(document)
    parts = [f"{bar['arm']} {bar['label']}" for bar in bars]
    return Section(
        key="highest-rates",
        title=f"{highest.TITLE}: {limits}",
        notes=("Transactions a second that arrive at random times.",),
        reading="Bars: mean of the repeats. Circles: the individual repeats. The axis is linear and"
        " starts at zero.",
        panels=(
            Panel(
                "highest-rates",
                partial(vega.bars, bars, points, "transactions/s", list(rates)),
                f"Bar chart of the highest rate with {limits}: {words.enumerate_words(parts)}.",
            ),
        ),
        tables=(
            Table(
                f"{highest.TITLE}, every search",
                highest.COLUMNS,
                tuple(highest.rows(document)),
                sentences="because",
            ),
        ),
    )


def over_users(document: RunDocument) -> Section | None:
    """The curve over users: throughput, and below it the latency."""
    curves = curve.read_curves(document)
    if not curves:
        return None
    panels = (
        _curve_panel(curves, "users-throughput", units.find_unit(document).long, "count"),
        _curve_panel(curves, "users-p95", "Latency, 95th percentile, ms", "ms"),
    )
    return Section(
        key="over-users",
        title="By number of users",
        notes=tuple(curve.sentences(document)),
        reading="Lines: means of the repeats; circles: the individual repeats. The peak is the"
        f" fewest users within {words.percent(curve.FLAT, 0)} of the highest throughput; from the"
        " knee on more users gain little.",
        panels=tuple(panel for panel in panels if panel is not None),
        tables=(
            Table(
                "Means of the repeats by arm and number of users; ratios of"
                f" {units.find_unit(document).short} with their 95 % intervals",
                curve.columns(document),
                tuple(curve.rows(document)),
                wide=("p99 ms", "p50 ms", "failed", "of baseline", "most time"),
                bars=tuple(point.figures.rate for points in curves.values() for point in points),
            ),
        ),
        legend=tuple(curves),
    )


def _curve_panel(
    curves: Mapping[ArmName, Sequence[curve.ArmPoint]], key: str, heading: str, unit: str
) -> Panel | None:
    """A line per arm; None where nothing was measured."""
    drawn = _curve_rows(curves, unit)
    means = _mean_lines(drawn)
    if not means:
        return None
    each_users = sorted({point.users for points in curves.values() for point in points})
    log = _far_apart([fmean(line) for line in means.values()])
    parts = [f"{arm} {', '.join(map(words.count, line))}" for arm, line in means.items()]
    return Panel(
        key,
        partial(vega.over_users, drawn, each_users, [*curves], log=log, last=unit == "ms"),
        f"Line chart over {words.enumerate_words([str(user) for user in each_users])} users."
        f" {heading}: {'; '.join(parts)}.",
        heading + (" (logarithmic axis)" if log else ""),
    )


def _curve_rows(curves: Mapping[ArmName, Sequence[curve.ArmPoint]], unit: str) -> list[Row]:
    """Points of the lines; `repeat` 0 is the mean, which may be an arm's peak or knee."""
    rows: list[Row] = []
    for name, points in curves.items():
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


def time_use_by_arm(document: RunDocument) -> Section | None:
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
    parts = [
        f"{arm}: "
        + ", ".join(f"{row['class']} {row['label']}" for row in bars if row["arm"] == arm)
        for arm in uses
    ]
    caption = (
        "Shares of the users' time, means of the repeats, from samples of their sessions. CPU:"
        " running, or waiting for a CPU."
    )
    title = "Where the users' time went, every repeat"
    draw = partial(vega.stack_bars, bars, list(uses))
    notes = (time_use.sentence(document), *time_use.missing(document))
    return Section(
        key="time-use",
        title="Where the users' time goes",
        notes=tuple(note for note in notes if note),
        reading=caption,
        panels=(Panel("time-use", draw, f"{'; '.join(parts)}."),),
        tables=(Table(title, time_use.COLUMNS, tuple(time_use.rows(document))),),
        terminal="notes",
    )


def devices(document: RunDocument) -> Section | None:
    by_arm = device_use.by_arm(document)
    if not by_arm:
        return None
    bars: list[Row] = [
        {
            "arm": f"{arm}, {device.name}",
            "value": device.utilisation,
            "label": words.percent(device.utilisation, 0),
        }
        for arm, each in by_arm.items()
        for device in each
    ]
    notes = (device_use.sentence(document), device_use.NOTE, device_use.cpu_line(document))
    parts = [f"{bar['arm']} {bar['label']}" for bar in bars]
    return Section(
        key="devices",
        title="Each device",
        notes=tuple(note for note in notes if note),
        reading="Bars: the share of the time with at least one request under way, means of the"
        " repeats.",
        panels=(
            Panel(
                "devices",
                partial(vega.shares, bars, [bar["arm"] for bar in bars], "device", "busy"),
                f"Bar chart of how busy each device was: {words.enumerate_words(parts)}.",
            ),
        ),
        tables=(
            Table(
                "Each device, means of the repeats",
                device_use.COLUMNS,
                tuple(device_use.rows(document)),
                names=2,
            ),
        ),
    )


def server_io_by_arm(document: RunDocument) -> Section | None:
    rows, missing = server_io.rows(document), server_io.missing(document)
    if not rows and not missing:
        return None
    return Section(
        key="server-io",
        title="What the database server counted",
        notes=(*([server_io.NOTE] if rows else []), *missing),
        tables=(
            (
                Table(
                    "What the database server counted, means of the repeats",
                    server_io.COLUMNS,
                    tuple(rows),
                ),
            )
            if rows
            else ()
        ),
    )


def over_time(document: RunDocument) -> Section | None:
    arms = [arm for arm in answer.arms(document) if any(repeat.series for repeat in arm.repeats)]
    if not arms:
        return None
    end = 1 + max(second.second for arm in arms for each in arm.repeats for second in each.series)
    bin_s = series.bin_width(end, POINTS_PER_LINE)
    drawn = [(measure, series.line_rows(arms, measure.of, bin_s)) for measure in MEASURES]
    drawn = [(measure, rows) for measure, rows in drawn if rows]
    panels = [
        _over_time(measure, rows, end, bin_s, measure is drawn[-1][0]) for measure, rows in drawn
    ]
    points = "one point per second" if bin_s == 1 else f"each point the mean of {bin_s} s"
    return Section(
        key="over-time",
        title="Second by second",
        notes=(f"Hit ratio is {answer.HIT_RATIO_DENOMINATOR}, second by second.",),
        reading=f"Strong lines: mean of the repeats; faint lines: each repeat; {points}; all on one"
        " axis of time.",
        panels=tuple(panels),
        tables=(_time_table(arms, end),),
        legend=tuple(arm.name for arm in arms),
        terminal="nothing",
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
        partial(vega.lines, rows, end, unit=measure.unit, log=log, last=last),
        f"Line chart over {end} seconds. {measure.heading}, means of {bin_s} s:"
        f" {words.enumerate_words(spread)}.",
        measure.heading + (" (logarithmic axis)" if log else ""),
    )


def latencies(document: RunDocument) -> Section | None:
    arms = [arm for arm in answer.arms(document) if arm.latency_ms is not None]
    if not arms:
        return None
    repeats = [
        (arm.name, repeat.repeat, repeat.latency_ms)
        for arm in arms
        for repeat in arm.repeats
        if repeat.latency_ms is not None and repeat.latency_ms.p95 is not None
    ]
    rows = kinds.latency_rows(document)
    return Section(
        key="latencies",
        title="Latency of a transaction",
        notes=("All transactions together, by percentile: 99 % of them took no longer than p99.",),
        reading="Strong lines: means of the repeats; faint lines: each repeat. The axis is"
        " logarithmic.",
        panels=(_latency_panel(arms, repeats),),
        tables=(
            kinds_table(document, "Latency by kind, ms", kinds.latency_columns(document), rows),
        )
        if rows
        else (),
        legend=tuple(arm.name for arm in arms),
        terminal="nothing",
    )


def kinds_table(
    document: RunDocument,
    title: str,
    columns: tuple[str, ...],
    rows: Sequence[tuple[tuple[str, ...], bool]],
) -> Table:
    """By window and kind; True: a row of all kinds. Nobody needs a column that is empty."""
    ends = None if any(row[-1] for row, _ in rows) else -1
    return Table(
        title,
        columns[:ends],
        tuple(row[:ends] for row, _ in rows),
        sentences="causes" if "causes" in columns[:ends] else "",
        names=len(answer.window_columns(document)) + 1,
        sums=frozenset(at for at, (_, is_all) in enumerate(rows) if is_all),
    )


def _latency_panel(
    arms: Sequence[ArmFigures], repeats: Sequence[tuple[ArmName, int, Latency]]
) -> Panel:
    means = [(arm.name, 0, arm.latency_ms) for arm in arms if arm.latency_ms is not None]
    lines = [row for measured in (*means, *repeats) for row in _percentiles(*measured)]
    parts = [
        f"{name} "
        + ", ".join(
            f"{step} {value}"
            for step, value in zip(("p50", "p95", "p99"), words.latencies(latency), strict=True)
        )
        for name, _, latency in means
    ]
    drawn = {row["percentile"] for row in lines}
    steps = [step for step in words.PERCENTILES.values() if step in drawn]
    draw = partial(vega.percentiles, lines, steps, tuple(arm.name for arm in arms))
    return Panel("latencies", draw, f"Latency in milliseconds: {'; '.join(parts)}.")


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


def queries(document: RunDocument) -> Section | None:
    arms = power.arms(document)
    rows: list[Row] = [
        {"arm": arm.name, "query": f"Q{number}", "value": value, "label": power.seconds(value)}
        for number in power.QUERIES
        for arm in arms
        if (value := arm.seconds.get(number)) is not None
    ]
    alone = document.power_arm("measured")
    if not rows and alone is None:
        return None
    order = [arm.name for arm in arms]
    totals = [
        f"{arm.name} {words.duration(arm.total_s)}{'' if arm.complete else ' and more'}"
        for arm in arms
    ]
    return Section(
        key="queries",
        title="The 22 TPC-H queries",
        reading="The axis is logarithmic and begins at"
        f" {vega.log_start(row['value'] for row in rows):g} s, not at zero: compare where bars end;"
        " equal distances are equal factors.",
        notes=tuple(power.run_notes(alone)) if alone else (),
        panels=(
            Panel(
                "queries",
                partial(vega.queries, rows, order),
                f"Seconds of the TPC-H queries by arm; in all: {words.enumerate_words(totals)}.",
            ),
        ),
        tables=(_queries_table(document, alone),),
        legend=tuple(order),
    )


def _queries_table(document: RunDocument, alone: PowerArm | None) -> Table:
    """:param alone: of a measurement, whose single run is told query by query."""
    if alone and len(alone.repeats) == 1:
        run = alone.repeats[0]
        return Table(power.run_title(run), power.RUN_COLUMNS, tuple(power.run_rows(run)), names=0)
    lines = tuple(power.rows(document))
    sums = frozenset((len(lines) - 2, len(lines) - 1))
    return Table("TPROC-H, mean seconds", power.columns(document), lines, sums=sums)


def warmup(document: RunDocument) -> Section | None:
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
    return Section(
        key="warmup",
        title="Warm-up",
        notes=tuple(filter(None, (answer.warmup_line(document),))),
        reading="The axis starts at zero.",
        panels=(_warmup_panel(record),),
        tables=(
            Table(
                "Every warm-up",
                (
                    "repeat",
                    "filled",
                    "took",
                    "rate",
                    "origin",
                    "differing blocks",
                    "probe hit ratio",
                ),
                tuple(rows),
            ),
        ),
        terminal="notes",
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
        partial(
            vega.bars, bars, points, "MB/s", list(rates), colours=("--baseline", "--accelerated")
        ),
        f"Bar chart: the warm-up ran at {words.rate(record.mb_per_s)}, {share} of the "
        f"origin's sequential {words.rate(record.origin_mb_per_s)}.",
    )


def hits(document: RunDocument) -> Section | None:
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
    texts = [f"{bar['arm']} {bar['label']}" for bar in bars]
    return Section(
        key="hits",
        title="Hit ratio by table",
        notes=(parts.NOTE,),
        reading="The most accessed tables and indexes, busiest first.",
        panels=(
            Panel(
                "hits",
                partial(vega.shares, bars, [part.name for part in shown], "table", "hit ratio"),
                f"Bar chart of hit ratios in the accelerated arm: {words.enumerate_words(texts)}.",
            ),
        ),
        tables=(Table("Requests and hit ratios by table", parts.COLUMNS, tuple(rows)),),
        terminal="nothing",
    )


def price(document: RunDocument) -> Section | None:
    if not document.arms or document.measurement is not None:
        return None
    lines = tuple(prices.rows(document))
    currency = document.prices.currency if document.prices else ""
    columns = prices.columns(document)
    return Section(
        key="price",
        title="Price",
        notes=(prices.assumptions(document),),
        tables=(Table(f"Prices in {currency}", columns, lines),) if lines else (),
        panels=_price_panels(document, currency),
        terminal="all" if lines else "nothing",
    )


def _price_panels(document: RunDocument, currency: str) -> tuple[Panel, ...]:
    known = [cost for cost in document.costs if cost.price_per_nopm is not None]
    if not known:
        return ()
    bars = [
        {"arm": cost.arm, "value": cost.price_per_nopm, "label": words.money(cost.price_per_nopm)}
        for cost in known
    ]
    parts = [f"{bar['arm']} {bar['label']}" for bar in bars]
    unit = units.find_unit(document).short
    draw = partial(vega.bars, bars, [], f"{currency} per {unit}", [cost.arm for cost in known])
    alt = f"Bar chart of the price per {unit}: {words.enumerate_words(parts)}."
    return (Panel("price", draw, alt, f"{currency} per {unit}"),)


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
