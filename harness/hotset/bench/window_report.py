"""Windows of TPC-C or of SQL of one's own as text: tables, CSV, JUnit XML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotset.core.words import bars, csv_text, percent, plural
from hotset.reports.analysis import caveats, measured, units
from hotset.reports.analysis.breakdown import device_use, server_io, time_use
from hotset.reports.analysis.comparison import curve
from hotset.reports.model.document import RunDocument
from hotset.reports.model.windows import (
    Caveat,
    Condition,
    HighestRate,
    Latency,
    Repeat,
    Second,
    Transaction,
    Verdict,
)

from . import tpcc_report
from .thresholds import Case, junit
from .window import Outcome

_DIGITS = 2
DOUBT = "yellow"
"""The style of what does not hold or makes values doubtful."""
_OF_STEADINESS = ("NOT_STEADY", "STEADINESS_UNKNOWN")
_LATENCIES = ("mean", "p50", "p90", "p95", "p99", "p99_9", "p99_99", "max")
_SHORT = ("p50", "p95", "p99")


def find_windows(document: RunDocument) -> tuple[Repeat, ...]:
    """The window of a run, or those of a curve with the most users last."""
    return tuple(window for arm in document.arms for window in (*arm.curve, *arm.repeats))


def table(document: RunDocument) -> RenderableType:
    """A run or a curve, and what was judged."""
    return Group(*show_results(document), *show_verdicts(document))


def show_results(document: RunDocument) -> list[RenderableType]:
    """The values of a run or a curve, what makes them doubtful, and the tier below it all."""
    windows = find_windows(document)
    if len(windows) > 1:
        parts = [_curve_table(windows, _unit(document)), *_curve_warnings(windows)]
    else:
        parts = show_window(document, windows[0] if windows else None)
    return [*parts, *_tier(document)]


def show_verdicts(document: RunDocument) -> list[Text]:
    """What the thresholds came to, and whether the database is consistent."""
    conditions = find_conditions(document)
    return [
        *(
            Text(_verdict_text(verdict), "" if verdict.met else DOUBT)
            for verdict in document.thresholds
        ),
        *([tpcc_report.consistency(conditions)] if conditions else []),
    ]


def find_conditions(document: RunDocument) -> tuple[Condition, ...] | None:
    """TPC-C's, after the last window."""
    windows = find_windows(document)
    return windows[-1].conditions if windows else None


def _verdict_text(verdict: Verdict) -> str:
    who = f"{plural(verdict.users, 'user')}: " if verdict.users else ""
    return who + verdict.said


def show_window(document: RunDocument, window: Repeat | None) -> list[RenderableType]:
    """One window: figures by kind of transaction, failures by cause, and its surroundings."""
    rates = (rate for arm in document.arms for rate in arm.rates)
    parts = [part for rate in rates for part in _search(rate)]
    if window is None:
        return [*parts, Text("nothing was measured")]
    is_tpcc = document.timed == "tpcc"
    headline = tpcc_report.headline(document, window) if is_tpcc else _headline(window)
    return [
        *parts,
        Text(f"{'partial: ' if window.partial else ''}{headline}", style="bold"),
        *_arrivals(window),
        _by_kind(window, tpcc_report.COUNTS if is_tpcc else ("committed", "failed")),
        _latency_table(window),
        *([tpcc_report.response_times(window)] if is_tpcc else []),
        *_causes(window),
        *(tpcc_report.workload(document, window) if is_tpcc else []),
        *(_warning(one) for one in caveats.describe_window(window)),
        *_time(window),
        *_server(window),
    ]


def _headline(window: Repeat) -> str:
    users = plural(window.users or 0, "user")
    return f"{window.rate:,.1f} TPS; {users}, {window.duration_s:.1f} s, seed {window.seed}"


def figures(document: RunDocument) -> dict[str, str]:
    """The values that one asks for first; of a curve, each number of users'."""
    windows, unit = find_windows(document), _unit(document)
    if not windows:
        return {}
    if len(windows) > 1:
        return _curve_figures(_points(windows), unit)
    (window,) = windows
    p95 = window.latency_ms.p95 if window.latency_ms else None
    return {
        unit: f"{window.rate:,.1f}" if document.timed == "sql" else f"{window.rate:,.0f}",
        "TPM": f"{window.tpm:,.0f}",
        "p95": "no commit" if p95 is None else f"{p95:.1f} ms",
        "failed": f"{window.failed:,}",
    }


def _unit(document: RunDocument) -> str:
    return units.find_unit(document).short


def csv(document: RunDocument) -> str:
    """The window second by second, or of a curve a row for each number of users.

    ``cpu_share`` is of the users' time.
    """
    windows, is_tpcc = find_windows(document), document.timed == "tpcc"
    if len(windows) > 1:
        rate = ("nopm", "tpm") if is_tpcc else ("tps",)
        names = ("users", *rate, *(f"{name}_ms" for name in _SHORT), "cpu_share", "failed")
        return csv_text(names, map(_curve_row, windows))
    rows = (_second(one) for window in windows for one in window.series)
    names = tpcc_report.SECOND if is_tpcc else _SECOND
    return csv_text(names, ([row[name] for name in names] for row in rows))


_SECOND = (
    "second",
    "transactions",
    "failed",
    "latency_ms_mean",
    "latency_ms_p95",
    "late",
    "skipped",
)


def _second(second: Second) -> dict[str, object]:
    """With counts in place of rates."""
    new_orders = None if second.nopm is None else round(second.nopm / 60)
    counts = {"new_orders": new_orders, "transactions": round(second.tpm / 60)}
    return {**dict(second), **counts}


def _curve_row(window: Repeat) -> tuple[object, ...]:
    rate = (window.rate,) if window.nopm is None else (window.nopm, window.tpm)
    cpu = window.time.cpu if window.time else None
    return window.users, *rate, *_percentiles(window.latency_ms, _SHORT), cpu, window.failed


def _points(windows: Iterable[Repeat]) -> list[curve.Point]:
    return [curve.Point(window.users or 0, window.rate) for window in windows]


def _curve_figures(points: list[curve.Point], unit: str) -> dict[str, str]:
    peak, knee, doubt = curve.peak(points), curve.knee(points), curve.caveat(points)
    return {
        "peak": f"{peak.rate:,.0f} {unit}, {plural(peak.users, 'user')}",
        "knee": plural(knee.users, "user") if knee else "none",
        **({"caveat": doubt} if doubt else {}),
        **{plural(one.users, "user"): f"{one.rate:,.0f} {unit}" for one in points},
    }


def _curve_table(windows: Sequence[Repeat], unit: str) -> RenderableType:
    """A line for each number of users with a bar of its throughput; peak and knee."""
    points = _points(windows)
    numbers = ("users", unit, "p50 ms", "p95 ms", "p99 ms", "failed")
    lines = _empty_table((*numbers, "throughput", "most time"), numbers)
    for window, bar in zip(windows, bars([point.rate for point in points]), strict=True):
        latencies = map(millisecond, _percentiles(window.latency_ms, _SHORT))
        most = time_use.most(window.time) if window.time else ""
        rate, failed = f"{window.rate:,.0f}", f"{window.failed:,}"
        lines.add_row(f"{window.users}", rate, *latencies, failed, bar, most)
    return Group(lines, Text(curve.sentence(points, unit), style="bold"))


def _curve_warnings(windows: Sequence[Repeat]) -> Iterator[Text]:
    """Each number of users', but for steadiness, which the JSON has: a curve's windows are mostly
    too short to tell."""
    for window in windows:
        for one in caveats.describe_window(window):
            if one.code not in _OF_STEADINESS:
                yield _warning(one, f" with {plural(window.users or 0, 'user')}")


def _warning(caveat: Caveat, who: str = "") -> Text:
    return Text(f"{caveat.code}{who}: {caveat.text} {caveat.advice}".rstrip(), style=DOUBT)


def junit_xml(points: Sequence[Outcome], suite: str) -> str:
    """The thresholds as JUnit XML, by number of users."""
    seconds = sum(point.result.duration_s for point in points if point.result is not None)
    cases = [
        Case.from_verdict(f"{suite}.{outcome.result.users}-users", verdict)
        for outcome in points
        if outcome.result is not None
        for verdict in outcome.verdicts
    ]
    return junit(suite, cases, seconds)


def _empty_table(columns: Sequence[str], numbers: Sequence[str]) -> Table:
    """:param numbers: the columns that hold some; the others are text, the first in one line."""
    lines = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    for name in columns:
        if name in numbers:
            lines.add_column(name, justify="right", overflow="fold")
        else:
            lines.add_column(name, no_wrap=name == columns[0])
    return lines


def _arrivals(window: Repeat) -> list[Text]:
    """What a run with a rate did with it."""
    if (arrived := window.arrived) is None:
        return []
    return [
        Text(
            f"{arrived.rate_per_s:,.1f}/s requested: {arrived.due:,} transactions due,"
            f" {arrived.late:,} late, {arrived.skipped:,} skipped"
        )
    ]


def _shown(kind: str, window: Repeat) -> str:
    """TPC-C's kinds as its specification writes them; a script as its file is called."""
    return kind if window.nopm is None else kind.replace("_", "-")


def _by_kind(window: Repeat, counts: Sequence[str]) -> Table:
    """What became of each kind's transactions."""
    lines = _empty_table(("transactions", *counts), counts)
    for name, kind in window.transactions.items():
        lines.add_row(_shown(name, window), *_counts([kind], counts))
    if len(window.transactions) > 1:
        lines.add_row("all", *_counts(window.transactions.values(), counts))
    return lines


def _counts(kinds: Iterable[Transaction], counts: Sequence[str]) -> list[str]:
    totals: Counter[str] = Counter()
    for kind in kinds:
        totals["committed"] += kind.committed
        totals["rolled back"] += kind.rolled_back
        totals["retries"] += kind.retries
        totals["failed"] += sum(kind.failed.values())
    return [f"{totals[name]:,}" for name in counts]


def _latency_table(window: Repeat) -> Table:
    """Of each kind and all, in milliseconds."""
    names = [name.replace("_", ".") for name in _LATENCIES]
    lines = _empty_table(("latency, ms", *names), names)
    each = {_shown(name, window): kind.latency_ms for name, kind in window.transactions.items()}
    for name, latency in (each | ({"all": window.latency_ms} if len(each) > 1 else {})).items():
        lines.add_row(name, *map(millisecond, _percentiles(latency, _LATENCIES)))
    return lines


def _percentiles(latency_ms: Latency | None, names: Sequence[str]) -> list[float | None]:
    return [getattr(latency_ms, name, None) for name in names]


def millisecond(value: float | None) -> str:
    """With its digits; a dash for None."""
    return "-" if value is None else f"{value:.{_DIGITS}f}"


def _time(window: Repeat) -> list[Text]:
    """Where the users' time went, the most first, what the server counted, and what could not be
    seen."""
    lines = []
    if window.time is not None:
        shares = {time_use.NAMES[name]: getattr(window.time, name) for name in time_use.CLASSES}
        most_first = sorted(shares.items(), key=lambda one: -one[1])
        parts = (f"{name} {percent(share)}" for name, share in most_first if share >= 0.0005)
        lines.append(f"the users' time: {', '.join(parts)}")
    if window.server_io is not None:
        lines.append(server_io.sentence(window.server_io, window.tpm))
    unseen = (window.time_missing, window.server_io_missing)
    return [Text(line) for line in (*lines, *(f"not seen: {one}" for one in unseen if one))]


def _server(window: Repeat) -> Iterator[RenderableType]:
    """Hit ratio, CPU and devices of the database's server, where it was sampled."""
    if window.hit_ratio is not None:
        yield Text(f"hit ratio of the cache: {percent(window.hit_ratio)}")
    if window.server_cpu is None:
        return
    yield Text(
        f"the server's CPU: {percent(window.server_user)} user,"
        f" {percent(window.server_system)} system, {percent(window.server_iowait)} waiting for"
        f" I/O, {percent(window.server_steal)} stolen"
    )
    if window.devices:
        numbers = [name for name in device_use.LINE_COLUMNS if name]
        lines = _empty_table(("device", *device_use.LINE_COLUMNS), numbers)
        for device in window.devices:
            reads, writes = device_use.lines(device)
            lines.add_row(device.name, *reads)
            lines.add_row("", *writes)
        yield lines


def _tier(document: RunDocument) -> Iterator[RenderableType]:
    """The disk below the database, and how much of its tables is in the cache."""
    if document.measurement is None or document.measurement.tier is None:
        return
    for what, value in measured.facts(document):
        yield Text(f"{what}: {value}")
    if residents := measured.residents(document):
        lines = _empty_table(measured.RESIDENT_COLUMNS, measured.RESIDENT_COLUMNS[1:])
        for row in residents:
            lines.add_row(*row)
        yield lines


def _search(search: HighestRate) -> list[RenderableType]:
    """The rates that were tried, and the highest that held."""
    lines = _empty_table(("rate", "done", ""), ("rate", "done"))
    for trial in sorted(search.trials, key=lambda trial: trial.rate_per_s):
        rates = (f"{trial.rate_per_s:,.1f}/s", f"{trial.reached_per_s:,.1f}/s")
        lines.add_row(*rates, Text(trial.missed or "holds"))
    unpaced = f"users without pause get {search.unpaced_per_s:,.1f}/s done"
    if search.rate_per_s is None:
        return [lines, Text(f"no rate holds; {unpaced}", style="bold")]
    text = f"highest rate that holds: {search.rate_per_s:,.1f}/s; {unpaced}"
    return [lines, Text(text, style="bold")]


def _causes(window: Repeat) -> Iterator[Text]:
    """Why transactions were repeated or given up, and what never ended."""
    if (stuck := window.unfinished) is not None:
        yield Text(
            f"not ended long after the window: {plural(stuck.count, 'transaction')}, the oldest"
            f" under way for {stuck.oldest_s:.1f} s when the window closed"
        )
    for what, field in (("retries", "retry_causes"), ("failed", "failed")):
        causes: Counter[str] = Counter()
        for kind in window.transactions.values():
            causes.update(getattr(kind, field))
        if causes:
            listed = ", ".join(f"{cause} {count:,}" for cause, count in causes.most_common())
            yield Text(f"{what} by cause: {listed}")
