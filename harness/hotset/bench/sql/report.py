"""A run of SQL scripts, or a curve, as a record and as text: table, CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rich.console import Group, RenderableType
from rich.text import Text

from hotset.core.record import Versioned, extended
from hotset.core.words import csv_text, plural
from hotset.databases.statements import Protocols
from hotset.load.record import WindowResult

from .. import window_report
from ..window_record import WindowCurve, WindowRun
from .run import Outcome
from .users import SqlWorkload

_SECOND = (
    "second",
    "transactions",
    "failed",
    "latency_ms_mean",
    "latency_ms_p95",
    "late",
    "skipped",
)


@dataclass(frozen=True, slots=True)
class SqlScript:
    """A script that was run."""

    name: str
    file: str
    weight: int


@dataclass(frozen=True)
class SqlPoint(WindowRun):
    """A run. Times are in seconds, latencies in milliseconds."""

    tps: float | None
    result: WindowResult | None


@dataclass(frozen=True)
class SqlCurve(WindowCurve):
    """The runs of a curve."""

    points: tuple[SqlPoint, ...]


@dataclass(frozen=True)
class SqlRun(SqlPoint, Versioned):
    """A run, or the runs of a curve; of a curve the values beside it are its last run's.
    ``run``: what they are in the archive; None: not kept."""

    scripts: tuple[SqlScript, ...]
    protocol: Protocols
    curve: SqlCurve | None
    run: str | None

    @property
    def runs(self) -> tuple[SqlPoint, ...]:
        """All of a curve, or the one."""
        return self.curve.points if self.curve else (self,)


def recorded(points: Sequence[Outcome], workload: SqlWorkload, run: str | None = None) -> SqlRun:
    """
    :param points: a run, or the runs of a curve.
    :param run: what they are in the archive.
    """
    scripts = tuple(
        SqlScript(source.name, source.file, source.weight) for source in workload.sources
    )
    last, drawn = _point(points[-1]), None
    if len(points) > 1:
        whole = WindowCurve.of(points, _tps)
        drawn = extended(SqlCurve, whole, points=tuple(map(_point, points)))
        last = replace(last, result=None, time=None, sampled=None)
    return extended(SqlRun, last, scripts=scripts, protocol=workload.protocol, curve=drawn, run=run)


def _point(outcome: Outcome) -> SqlPoint:
    result = outcome.result
    return extended(
        SqlPoint,
        WindowRun.of(outcome, window_report.warnings(outcome)),
        tps=_tps(result) if result else None,
        result=result,
    )


def csv(found: SqlRun) -> str:
    """The window second by second, or of a curve a row for each number of users."""
    if found.curve is not None:
        columns = ("users", "tps", *window_report.CURVE_COLUMNS)
        measured = (point for point in found.curve.points if point.result is not None)
        return csv_text(columns, map(_curve_row, measured))
    rows = found.result.series if found.result else []
    return csv_text(_SECOND, ([getattr(row, name) for name in _SECOND] for row in rows))


def _curve_row(point: SqlPoint) -> tuple[object, ...]:
    assert point.result is not None
    users, tps = point.result.options.users, _tps(point.result)
    return users, tps, *window_report.curve_row(point)


def table(found: SqlRun) -> RenderableType:
    """A run or a curve, and what was judged."""
    return Group(*measured(found), *judged(found))


def measured(found: SqlRun) -> list[RenderableType]:
    """The values of a run or a curve, and what makes them doubtful."""
    if found.curve is None:
        return run_parts(found)
    points = found.curve.points
    drawn = window_report.curve_table(points, _tps, "TPS")
    return [drawn, *window_report.curve_warnings(points)]


def judged(found: SqlRun) -> list[Text]:
    """What the thresholds came to."""
    return window_report.verdicts(found.runs)


def run_parts(run: SqlPoint) -> list[RenderableType]:
    """One run: figures by script, failures by cause."""
    parts: list[RenderableType] = []
    if run.find_rate is not None:
        parts += window_report.search(run.find_rate)
    result = run.result
    if result is not None:
        parts += [
            _headline(result, partial=window_report.is_partial(run)),
            *window_report.describe_arrivals(result),
            window_report.by_kind(result, counts=("committed", "failed")),
            window_report.latencies(result),
            *window_report.causes(result),
        ]
    return [*parts, *window_report.surroundings(run)]


def _headline(result: WindowResult, partial: bool) -> Text:
    seconds = result.window_end - result.window_start
    users = plural(result.options.users, "user")
    before = "partial: " if partial else ""
    seed = f"seed {result.options.seed}"
    return Text(f"{before}{_tps(result):,.1f} TPS; {users}, {seconds:.1f} s, {seed}", style="bold")


def figures(found: SqlRun) -> dict[str, str]:
    """The values that one asks for first."""
    if found.curve is not None:
        return window_report.curve_figures(found.curve.points, _tps, "TPS")
    result = found.result
    if result is None:
        return {}
    return {"TPS": f"{_tps(result):,.1f}", **window_report.figures(result)}


def _tps(result: WindowResult) -> float:
    return result.tpm / 60
