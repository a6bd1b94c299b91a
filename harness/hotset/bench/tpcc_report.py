"""A TPC-C run, a curve over users and the twelve conditions as records and as text: table, CSV."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotset.core.record import Versioned, columns_of, extended
from hotset.core.words import csv_text, percent, plural
from hotset.load.record import Second
from hotset.tpcc.data.consistency import ConditionResult
from hotset.tpcc.plans import Flip
from hotset.tpcc.record import RunResult

from . import tpcc_metrics, window_report
from .thresholds import Verdict
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
    """A run, or the runs of a curve; of a curve the values beside it are its last run's.
    ``run``: what they are in the archive; None: not kept."""

    curve: TpccCurve | None
    run: str | None

    @property
    def runs(self) -> tuple[TpccPoint, ...]:
        """All of a curve, or the one."""
        return self.curve.points if self.curve else (self,)


def recorded(points: Sequence[Outcome], run: str | None = None) -> TpccRun:
    """
    :param points: a run, or the runs of a curve.
    :param run: what they are in the archive.
    """
    last = _point(points[-1])
    if len(points) == 1:
        return extended(TpccRun, last, curve=None, run=run)
    whole = WindowCurve.of(points, _nopm)
    drawn = extended(TpccCurve, whole, points=tuple(map(_point, points)))
    without = replace(last, result=None, time=None, sampled=None)
    return extended(TpccRun, without, curve=drawn, run=run)


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


def csv(found: TpccRun) -> str:
    """The window second by second, or of a curve a row for each number of users.

    ``cpu_share`` is of the users' time.
    """
    if found.curve is None:
        return _run_csv(found)
    measured = (point for point in found.curve.points if point.result is not None)
    return csv_text(_CURVE_COLUMNS, map(_curve_row, measured))


def _curve_row(point: TpccPoint) -> tuple[object, ...]:
    result = point.result
    assert result is not None
    return result.options.users, result.nopm, result.tpm, *window_report.curve_row(point)


def _run_csv(point: TpccPoint) -> str:
    names = columns_of(Second)
    rows = point.result.series if point.result else []
    return csv_text(names, ([getattr(row, name) for name in names] for row in rows))


def table(found: TpccRun) -> RenderableType:
    """A run or a curve, and what was judged."""
    return Group(*measured(found), *judged(found))


def measured(found: TpccRun) -> list[RenderableType]:
    """The values of a run or a curve, and what makes them doubtful."""
    if found.curve is None:
        return run_parts(found)
    points = found.curve.points
    return [
        window_report.curve_table(points, _nopm, "NOPM"),
        *window_report.curve_warnings(points),
    ]


def judged(found: TpccRun) -> list[Text]:
    """What the thresholds came to, and whether the database is consistent."""
    conditions = [] if found.conditions is None else [consistency(found.conditions)]
    return [*window_report.verdicts(found.runs), *conditions]


def figures(found: TpccRun) -> dict[str, str]:
    """The values that one asks for first; of a curve, each number of users'."""
    if found.curve is not None:
        return window_report.curve_figures(found.curve.points, _nopm, "NOPM")
    run = found.result
    return {} if run is None else {"NOPM": f"{run.nopm:,.0f}", **window_report.figures(run)}


def _nopm(result: RunResult) -> float:
    return result.nopm


def _shown(kind: str) -> str:
    return kind.replace("_", "-")


def run_parts(run: TpccPoint) -> list[RenderableType]:
    """One run: figures by transaction type, failures by cause."""
    parts: list[RenderableType] = []
    if run.find_rate is not None:
        parts += window_report.search(run.find_rate)
    if run.result is not None:
        parts += [
            _headline(run.result, partial=window_report.is_partial(run)),
            *window_report.describe_arrivals(run.result),
            window_report.by_kind(run.result, _shown),
            window_report.latencies(run.result, _shown),
            _response_times(run.result),
            *window_report.causes(run.result),
            *_age(run.result),
            _workload(run.result),
        ]
    return [*parts, *window_report.surroundings(run)]


def _warnings(outcome: Outcome) -> list[Warned]:
    """Also of plans that changed."""
    changed = [Warned("PLAN_CHANGED", _flip(flip)) for flip in outcome.flips]
    return [*window_report.warnings(outcome), *changed]


def _response_times(result: RunResult) -> Text:
    """Whether TPC-C's own limits on them were kept; of what was not measured it is not known."""
    values = tpcc_metrics.values(result)
    verdicts = [Verdict(one, values.get(one.metric)) for one in tpcc_metrics.limits(["tpc-c"])]
    missed = [str(one) for one in verdicts if one.value is not None and not one.met]
    unknown = [str(one) for one in verdicts if one.value is None]
    said = "; ".join(missed + unknown)
    if not said:
        said = "kept, 90 % of each kind within 5 s, of stock-level within 20 s"
    style = window_report.DOUBT if missed else ""
    return Text(f"TPC-C's limits on response times: {said}", style=style)


def consistency(conditions: Sequence[TpccCondition]) -> Text:
    """How many of them hold."""
    held, count = sum(one.holds for one in conditions), len(conditions)
    style = "" if held == count else window_report.DOUBT
    return Text(f"consistency: {held} of {count} conditions hold", style=style)


def conditions_table(found: TpccConditions) -> Table:
    """One line per condition."""
    table = Table(box=None, header_style="bold")
    table.add_column("condition (clause 3.3.2)")
    table.add_column("violations", justify="right")
    table.add_column("such as")
    for condition in found.conditions:
        example = ", ".join(map(str, condition.examples[0])) if condition.examples else ""
        table.add_row(
            Text(f"{condition.number:2} {condition.title}"),
            f"{condition.violations:,}",
            Text(example),
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
