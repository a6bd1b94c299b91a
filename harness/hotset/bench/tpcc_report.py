"""A TPC-C run, a curve over users and the twelve conditions as records and as text: table, CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotset.core.record import columns_of, extended
from hotset.load.record import Second
from hotset.reports.model.schema import Versioned
from hotset.reports.model.words import percent, plural
from hotset.reports.render.plain import csv_text
from hotset.tpcc.data.consistency import ConditionResult
from hotset.tpcc.plans import Flip
from hotset.tpcc.record import RunResult

from . import window_report
from .tpcc import Outcome
from .window import Warned
from .window_record import WindowCurve, WindowRun


@dataclass(frozen=True, slots=True)
class TpccCondition:
    """One of the twelve, with its first violations."""

    number: int
    title: str
    holds: bool
    violations: int
    examples: tuple[tuple[int | float | str | None, ...], ...]

    @classmethod
    def of(cls, found: ConditionResult) -> TpccCondition:
        examples = tuple(tuple(map(_scalar, row)) for row in found.examples)
        return cls(found.number, found.title, found.holds, found.violations, examples)


@dataclass(frozen=True)
class TpccConditions(Versioned):
    """The twelve conditions."""

    conditions: tuple[TpccCondition, ...]

    @classmethod
    def of(cls, results: Iterable[ConditionResult]) -> TpccConditions:
        return cls(tuple(map(TpccCondition.of, results)))


@dataclass(frozen=True)
class TpccPoint(WindowRun):
    """A run, second by second. Times are in seconds, latencies in milliseconds."""

    result: RunResult | None
    conditions: tuple[TpccCondition, ...] | None
    plan_changes: tuple[Flip, ...]


@dataclass(frozen=True)
class TpccCurve(WindowCurve):
    """The runs of a curve."""

    points: tuple[TpccPoint, ...]


@dataclass(frozen=True)
class TpccRun(TpccPoint, Versioned):
    """A run, or the runs of a curve; of a curve the values beside it are its last run's."""

    curve: TpccCurve | None


def recorded(points: Sequence[Outcome]) -> TpccRun:
    """:param points: a run, or the runs of a curve."""
    last = _point(points[-1])
    if len(points) == 1:
        return extended(TpccRun, last, curve=None)
    whole = WindowCurve.of(points, _nopm)
    drawn = extended(TpccCurve, whole, points=tuple(map(_point, points)))
    without = replace(last, result=None, time=None, sampled=None)
    return extended(TpccRun, without, curve=drawn)


def _point(outcome: Outcome) -> TpccPoint:
    conditions = outcome.conditions
    return extended(
        TpccPoint,
        WindowRun.of(outcome, _warnings(outcome)),
        result=outcome.result,
        conditions=None if conditions is None else tuple(map(TpccCondition.of, conditions)),
        plan_changes=outcome.flips,
    )


_DRAWN = {"nurand": "NURand", "uniform": "uniform"}
_CURVE_COLUMNS = ("users", "nopm", "tpm", *window_report.CURVE_COLUMNS)


def csv(points: Sequence[Outcome]) -> str:
    """The window second by second, or of a curve a row for each number of users.

    ``cpu_share`` is of the users' time.
    """
    if len(points) == 1:
        return _run_csv(points[0])
    return csv_text(
        _CURVE_COLUMNS, (_curve_row(point) for point in points if point.result is not None)
    )


def _curve_row(outcome: Outcome) -> tuple[object, ...]:
    result = outcome.result
    assert result is not None
    return result.options.users, result.nopm, result.tpm, *window_report.curve_row(outcome)


def _run_csv(outcome: Outcome) -> str:
    names = columns_of(Second)
    rows = outcome.result.series if outcome.result else []
    return csv_text(names, ([getattr(row, name) for name in names] for row in rows))


def table(points: Sequence[Outcome]) -> RenderableType:
    """A run or a curve, what was judged, and what was violated."""
    if len(points) == 1:
        return Group(_run_table(points[0]), *_conditions(points[0]))
    verdicts = window_report.curve_verdicts(points)
    warned = window_report.curve_warnings(points, _warnings)
    return Group(
        window_report.curve_table(points, _nopm, "NOPM"),
        *warned,
        *verdicts,
        *_conditions(points[-1]),
    )


def figures(points: Sequence[Outcome]) -> dict[str, str]:
    """The values that one asks for first; of a curve, each number of users'."""
    if len(points) > 1:
        return window_report.curve_figures(points, _nopm, "NOPM")
    run = points[0].result
    return {} if run is None else {"NOPM": f"{run.nopm:,.0f}", **window_report.figures(run)}


def _nopm(result: RunResult) -> float:
    return result.nopm


def _shown(kind: str) -> str:
    return kind.replace("_", "-")


def _run_table(outcome: Outcome) -> RenderableType:
    """Figures by transaction type, failures by cause."""
    parts: list[RenderableType] = []
    if outcome.found is not None:
        parts += window_report.search(outcome.found)
    if outcome.result is not None:
        parts += [
            _headline(outcome.result, partial=outcome.is_partial),
            *window_report.describe_arrivals(outcome.result),
            window_report.by_kind(outcome.result, _shown),
            window_report.latencies(outcome.result, _shown),
            *window_report.causes(outcome.result),
            *_age(outcome.result),
            _workload(outcome.result),
        ]
    parts += window_report.warning_lines(_warnings(outcome))
    if outcome.time_use is not None and outcome.result is not None:
        parts += window_report.time_text(outcome.time_use, outcome.result.tpm)
    if outcome.server is not None:
        parts += window_report.server_text(outcome.server)
    parts += [Text(str(verdict)) for verdict in outcome.verdicts]
    return Group(*parts)


def _warnings(outcome: Outcome) -> list[Warned]:
    """Also of plans that changed."""
    changed = [Warned("PLAN_CHANGED", _flip(flip)) for flip in outcome.flips]
    return [*window_report.warnings(outcome), *changed]


def _conditions(outcome: Outcome) -> list[Text]:
    if outcome.conditions is None:
        return []
    held = len(outcome.conditions) - len(outcome.broken)
    return [Text(f"consistency: {held} of {len(outcome.conditions)} conditions hold")]


def conditions_table(found: TpccConditions) -> Table:
    """One line per condition."""
    table = Table(box=None, header_style="bold")
    table.add_column("", justify="right")
    for name in ("condition (clause 3.3.2)", "violations", "such as"):
        table.add_column(name)
    for condition in found.conditions:
        example = ", ".join(map(str, condition.examples[0])) if condition.examples else ""
        table.add_row(
            str(condition.number), Text(condition.title), f"{condition.violations:,}", Text(example)
        )
    return table


def _headline(result: RunResult, partial: bool) -> Text:
    seconds = result.window_end - result.window_start
    by_district = result.nopm_by_district
    counted = f", {by_district:,.0f} by the server's count" if by_district is not None else ""
    options = result.options
    return Text(
        f"{'partial: ' if partial else ''}{result.nopm:,.0f} NOPM{counted}; {result.tpm:,.0f} TPM;"
        f" {plural(options.users, 'user')}, {plural(options.warehouses, 'warehouse')},"
        f" {seconds:.1f} s",
        style="bold",
    )


def _workload(result: RunResult) -> Text:
    """What it may be compared with."""
    said = [f"driver {result.driver}", f"items {_DRAWN[result.options.items]}"]
    if result.hottest_fifth is not None:
        said.append(f"{percent(result.hottest_fifth, 0)} of stock's accesses on 20 % of its blocks")
    said.append(f"isolation {result.isolation or 'not known'}")
    if result.driver == "hotset":
        said.append(f"seed {result.options.seed}")
    return Text(f"workload: {', '.join(said)}")


def _age(result: RunResult) -> list[Text]:
    before = result.orders_before
    return (
        []
        if before is None
        else [Text(f"age: {before:,} orders since the load, with those of this run's ramp-up")]
    )


def _flip(one: Flip) -> str:
    """What changed, both times, and what to do."""
    kind = one.kind.replace("_", "-")
    times = ""
    if one.latency_ms is not None:
        first, last = map(window_report.millisecond, one.latency_ms)
        times = f"; its mean latency was {first} ms in the first fifth, {last} ms in the last"
    return (
        f"{kind}, {one.what}: {one.before} became {one.after}{times}. Run ANALYZE and measure"
        " again, or measure on a fresh copy"
    )


def _scalar(value: object) -> int | float | str | None:
    return value if value is None or isinstance(value, int | float) else str(value)
