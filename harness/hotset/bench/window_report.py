"""Windows of any workload as text: tables, CSV, JUnit XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotset.core.words import percent, plural
from hotset.load.record import KindResult, Latency, WindowResult
from hotset.reports.analysis.breakdown import device_use, server_io, time_use
from hotset.reports.analysis.caveats import unsteadiness
from hotset.reports.analysis.comparison import curve
from hotset.reports.model.windows import Steadiness

from .thresholds import Case, ThresholdVerdict, junit
from .window import Outcome, Result, Warned, was_partial
from .window_record import (
    Point,
    Points,
    Rate,
    RateSearch,
    Sampled,
    UsersTime,
    points_of,
)

_DIGITS = 2
DOUBT = "yellow"
"""The style of what does not hold or makes values doubtful."""
_OF_STEADINESS = ("NOT_STEADY", "STEADINESS_UNKNOWN")
COUNTS = ("committed", "rolled back", "retries", "failed")
_LATENCIES = ("mean", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max")


def empty_table(columns: Sequence[str], numbers: Sequence[str]) -> Table:
    """:param numbers: the columns that hold some; the others are text, the first in one line."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    for name in columns:
        if name in numbers:
            table.add_column(name, justify="right", overflow="fold")
        else:
            table.add_column(name, no_wrap=name == columns[0])
    return table


def curve_figures(points: Points[Result], rate: Rate[Result], unit: str) -> dict[str, str]:
    """The values that one asks for first, and each number of users'."""
    drawn = points_of(points, rate)
    if not drawn:
        return {}
    peak, knee, doubt = curve.peak(drawn), curve.knee(drawn), curve.caveat(drawn)
    return {
        "peak": f"{peak.rate:,.0f} {unit}, {plural(peak.users, 'user')}",
        "knee": plural(knee.users, "user") if knee else "none",
        **({"caveat": doubt} if doubt else {}),
        **{plural(one.users, "user"): f"{one.rate:,.0f} {unit}" for one in drawn},
    }


def curve_table(points: Sequence[Point[Result]], rate: Rate[Result], unit: str) -> RenderableType:
    """A line for each number of users with a bar of its throughput; peak and knee."""
    drawn = points_of(points, rate)
    if not drawn:
        return Text("no run of the curve has a result")
    numbers = ("users", unit, "p50 ms", "p95 ms", "p99 ms", "failed")
    found = empty_table((*numbers, "throughput", "most time"), numbers)
    measured = [(point, point.result) for point in points if point.result is not None]
    for (point, result), bar in zip(measured, curve.text_bars(drawn), strict=True):
        latency = result.latency_ms
        milliseconds = [millisecond(one) for one in (latency.p50, latency.p95, latency.p99)]
        failed = f"{result.failed:,}"
        users, shown = f"{result.options.users}", f"{rate(result):,.0f}"
        found.add_row(users, shown, *milliseconds, failed, bar, _most_time(point))
    return Group(found, Text(curve.sentence(drawn, unit), style="bold"))


def curve_warnings(points: Sequence[Point[Result]]) -> list[Text]:
    """Each number of users', but for steadiness, which the JSON has: a curve's windows are mostly
    too short to tell."""
    return [
        Text(
            f"{warning.code} with {plural(point.result.options.users, 'user')}: {warning.text}",
            style=DOUBT,
        )
        for point in points
        if point.result is not None
        for warning in point.warnings
        if warning.code not in _OF_STEADINESS
    ]


def verdicts(points: Sequence[Point[Result]]) -> list[Text]:
    """What the thresholds came to; of a curve each number of users'."""
    return [
        Text(f"{_who(point.result) if len(points) > 1 else ''}{verdict}", style=_judged(verdict))
        for point in points
        if point.result is not None
        for verdict in point.thresholds
    ]


def _who(result: WindowResult) -> str:
    return f"{plural(result.options.users, 'user')}: "


def _judged(verdict: ThresholdVerdict) -> str:
    return "" if verdict.met else DOUBT


def _most_time(point: Point[Result]) -> str:
    use = point.time.window if point.time else None
    return "" if use is None else time_use.most(use)


def junit_xml(points: Sequence[Outcome[Result]], suite: str) -> str:
    """The thresholds as JUnit XML, by number of users."""
    results = [point.result for point in points if point.result is not None]
    seconds = sum(result.window_end - result.window_start for result in results)
    cases = [
        Case.from_verdict(f"{suite}.{outcome.result.options.users}-users", verdict)
        for outcome in points
        if outcome.result is not None
        for verdict in outcome.verdicts
    ]
    return junit(suite, cases, seconds)


CURVE_COLUMNS = ("p50_ms", "p95_ms", "p99_ms", "cpu_share", "failed")


def curve_row(point: Point[Result]) -> tuple[object, ...]:
    """Of `CURVE_COLUMNS`."""
    result, use = point.result, point.time and point.time.window
    assert result is not None
    latency = result.latency_ms
    return latency.p50, latency.p95, latency.p99, use.cpu if use else None, result.failed


def figures(result: WindowResult) -> dict[str, str]:
    """The values that one asks for first."""
    p95 = result.latency_ms.p95
    return {
        "TPM": f"{result.tpm:,.0f}",
        "p95": "no commit" if p95 is None else f"{p95:.1f} ms",
        "failed": f"{result.failed:,}",
    }


def describe_arrivals(result: WindowResult) -> list[Text]:
    """What a run with a rate did with it."""
    arrived, rate = result.arrived, result.options.rate_per_s
    if arrived is None or rate is None:
        return []
    return [
        Text(
            f"{rate:,.1f}/s requested: {arrived.due:,} transactions due, {arrived.late:,} late,"
            f" {arrived.skipped:,} skipped"
        )
    ]


def by_kind(
    result: WindowResult, shown: Callable[[str], str] = str, counts: Sequence[str] = COUNTS
) -> Table:
    """What became of each kind's transactions."""
    table = empty_table(("transactions", *counts), counts)
    for name, kind in result.kinds.items():
        table.add_row(shown(name), *_counts([kind], counts))
    if len(result.kinds) > 1:
        table.add_row("all", *_counts(result.kinds.values(), counts))
    return table


def latencies(result: WindowResult, shown: Callable[[str], str] = str) -> Table:
    """Of each kind and all, in milliseconds."""
    names = [name.replace("_", ".") for name in _LATENCIES]
    table = empty_table(("latency, ms", *names), names)
    for name, kind in result.kinds.items():
        table.add_row(shown(name), *_milliseconds(kind.latency_ms))
    if len(result.kinds) > 1:
        table.add_row("all", *_milliseconds(result.latency_ms))
    return table


def warnings(outcome: Outcome[Result]) -> list[Warned]:
    """What makes its values doubtful: what was not steady or cannot be told to be, and what its
    database is to be warned of."""
    named = []
    if (result := outcome.result) is not None:
        named += [("NOT_STEADY", one) for one in result.not_steady]
        named += [("STEADINESS_UNKNOWN", one) for one in result.not_known]
    steady = [Warned(code, unsteadiness(Steadiness(**asdict(one)))) for code, one in named]
    return [*steady, *outcome.warned]


def warning_lines(warnings: Iterable[Warned]) -> list[Text]:
    """As people read them."""
    return [Text(f"{warning.code}: {warning.text}", style=DOUBT) for warning in warnings]


def surroundings(point: Point[Result]) -> list[RenderableType]:
    """What makes a run doubtful, where its users' time went, and what the server did."""
    lines: list[RenderableType] = [*warning_lines(point.warnings)]
    if point.time is not None and point.result is not None:
        lines += time_text(point.time, point.result.tpm)
    if point.sampled is not None:
        lines += server_text(point.sampled)
    return lines


def is_partial(point: Point[Result]) -> bool:
    """The window ended before its time."""
    return was_partial(point.result, point.cause)


def time_text(time: UsersTime, tpm: float) -> list[Text]:
    """Where the users' time went, the most first, what the server counted, and what could not be
    seen."""
    lines = [Text(server_io.sentence(time.server_io, tpm))] if time.server_io else []
    lines += [Text(f"not seen: {one}") for one in (time.missing, time.server_io_missing) if one]
    if time.window is None:
        return lines
    shares = {time_use.NAMES[name]: getattr(time.window, name) for name in time_use.CLASSES}
    most_first = sorted(shares.items(), key=lambda one: -one[1])
    said = ", ".join(f"{name} {percent(share)}" for name, share in most_first if share >= 0.0005)
    return [Text(f"the users' time: {said}"), *lines]


def server_text(use: Sampled) -> list[RenderableType]:
    """CPU and devices of the database's server."""
    window = use.window
    cpu = Text(
        f"the server's CPU: {percent(window.user)} user, {percent(window.system)} system,"
        f" {percent(window.iowait)} waiting for I/O, {percent(window.steal)} stolen"
    )
    if not window.devices:
        return [cpu]
    numbers = [name for name in device_use.LINE_COLUMNS if name]
    table = empty_table(("device", *device_use.LINE_COLUMNS), numbers)
    for device in window.devices:
        reads, writes = device_use.two_lines(device_use.cells(device))
        table.add_row(device.name, *reads)
        table.add_row("", *writes)
    return [cpu, table]


def search(found: RateSearch) -> list[RenderableType]:
    """The rates that were tried, and the highest that held."""
    table = empty_table(("rate", "done", ""), ("rate", "done"))
    for trial in sorted(found.trials, key=lambda trial: trial.rate_per_s):
        rates = (f"{trial.rate_per_s:,.1f}/s", f"{trial.reached_per_s:,.1f}/s")
        table.add_row(*rates, Text(trial.missed or "holds"))
    highest = f"users without pause get {found.highest_per_s:,.1f}/s done"
    if found.rate_per_s is None:
        return [table, Text(f"no rate holds; {highest}", style="bold")]
    text = f"highest rate that holds: {found.rate_per_s:,.1f}/s; {highest}"
    return [table, Text(text, style="bold")]


def _counts(kinds: Iterable[KindResult], counts: Sequence[str]) -> list[str]:
    totals: Counter[str] = Counter()
    for kind in kinds:
        totals["committed"] += kind.committed
        totals["rolled back"] += kind.rolled_back
        totals["retries"] += sum(kind.retries.values())
        totals["failed"] += sum(kind.failed.values())
    return [f"{totals[name]:,}" for name in counts]


def _milliseconds(latency: Latency) -> list[str]:
    found = [getattr(latency, name) for name in _LATENCIES]
    return [millisecond(value) for value in found]


def millisecond(value: float | None) -> str:
    """With its digits; a dash for None."""
    return "-" if value is None else f"{value:.{_DIGITS}f}"


def causes(result: WindowResult) -> list[Text]:
    """Why transactions were repeated or given up, and what never ended."""
    lines = []
    if (stuck := result.unfinished) is not None:
        lines.append(
            Text(
                f"not ended long after the window: {plural(stuck.count, 'transaction')}, the oldest"
                f" under way for {stuck.oldest_s:.1f} s when the window closed"
            )
        )
    for what in ("retries", "failed"):
        causes: Counter[str] = Counter()
        for kind in result.kinds.values():
            causes.update(getattr(kind, what))
        if causes:
            listed = ", ".join(f"{cause} {count:,}" for cause, count in causes.most_common())
            lines.append(Text(f"{what} by cause: {listed}"))
    return lines
