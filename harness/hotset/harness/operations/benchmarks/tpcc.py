"""TPC-C on a database of yours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from hotset.cachelayer.common.errors import Remedy, RequestError
from hotset.tpcc.data import consistency
from hotset.tpcc.data.consistency import ConditionResult, Violated

from ...jobs.lock import Lock
from ..base import fields, places, records
from ..base.context import Context
from ..base.registry import Cli, Kind, Request, operation
from ..base.result import Lines, Result
from ..base.rights import Needs, Right

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pydantic import BaseModel
    from rich.console import Console

    from hotset.tpcc.window.record import RunOptions

    from ...benchmarks.tpcc import Outcome
    from ...databases.connect import SqlDatabase
    from ...terminal.progress import Reporter

Warehouses = Annotated[
    int, Field(ge=1, le=1_000_000, description="Warehouses, about 105 MB each."), Cli(short="-w")
]
Seed = Annotated[fields.Seed, Field(description="Seed of all random choices.")]


class Build(Request):
    dsn: fields.Dsn
    warehouses: Warehouses = 10
    engine: fields.Product = "postgres"
    password: fields.Password = None
    seed: Seed = 1
    replace: Annotated[
        bool, Field(description="Drop existing TPC-C tables first."), Needs(Right.ADMIN)
    ] = False
    driver: fields.DriverField = "hotset"


@operation(
    "tpcc build",
    Kind.JOB,
    Right.OPERATE,
    ("New", "HotsetTpccDatabase"),
    destroys=True,
    progress=True,
    lock=lambda request: Lock("database", request.dsn),
)
def build(request: Build, context: Context) -> Lines:
    """Load warehouses, then check the twelve consistency conditions (clause 3.3.2).

    Refuses if there are TPC-C tables already. Exit code 4 when a condition does not hold.
    """
    from ...benchmarks import tpcc as workload

    if request.driver == "hammerdb" and request.replace:
        raise RequestError(
            "HammerDB builds in an empty database",
            Remedy("empty it", "tpcc drop", {"dsn": request.dsn}),
            field="replace",
        )
    database, report = _database(request), context.report
    if request.driver == "hammerdb":
        results = workload.build_by_hammerdb(database, request.warehouses, report)
    else:
        _, results = workload.build(
            database, request.warehouses, request.seed, request.replace, report
        )
    consistency.require(results)
    report.say(f"all {len(results)} conditions hold")
    return Lines()


class Run(Request):
    dsn: fields.Dsn
    users: Annotated[
        fields.Users,
        Field(
            description="Virtual users; several numbers that rise, such as 1,2,4,8, give a curve:"
            " a ramp-up and a window for each."
        ),
        Cli(short="-u"),
    ] = "8"
    warehouses: Warehouses = 10
    rampup: fields.Rampup = 10
    duration: fields.Duration = 60
    engine: fields.Product = "postgres"
    password: fields.Password = None
    seed: Seed = 1
    think_time: Annotated[bool, Field(description="Use keying and think times (clause 5.2.5).")] = (
        False
    )
    home_warehouses: Annotated[
        bool,
        Field(
            description="Keep each user at one warehouse: a working set as small as the number of"
            " users. Otherwise each transaction picks its warehouse."
        ),
    ] = False
    rate: Annotated[
        fields.Expression | None,
        Field(
            description="Start transactions at this rate, such as 500/s, at random times. Latency"
            " counts from when each was due. Otherwise users never pause."
        ),
    ] = None
    find_rate: Annotated[
        fields.Expressions | None,
        Field(
            description="Search for the highest rate that meets this limit, such as 'p95<50ms';"
            " tpc-c: TPC-C's own limits. Each rate takes a ramp-up and a window."
            " Repeatable."
        ),
    ] = None
    until_steady: fields.UntilSteady = None
    fresh: Annotated[
        bool,
        Field(
            description="Run on a copy of the database, dropped afterwards: the database stays as"
            " loaded, and runs in a row begin alike. PostgreSQL only; needs as much room again."
        ),
    ] = False
    threshold: Annotated[
        fields.Expressions | None,
        Field(
            description="Exit with code 5 unless this holds, such as 'nopm>=50000' or"
            " 'p95(new_order)<20ms'. Repeatable."
        ),
    ] = None
    junit: fields.Junit = None
    sample: fields.SampledServer = None
    check: Annotated[
        bool,
        Field(description="Check the twelve conditions afterwards."),
        Cli(off="--no-check"),
    ] = True
    output: fields.Output = None
    driver: fields.DriverField = "hotset"


@dataclass(frozen=True, slots=True)
class RunOutcome(Result):
    """A run, or a curve: a run for each number of users."""

    points: tuple[Outcome, ...]

    @classmethod
    def record(cls) -> type[BaseModel]:
        from hotset.tpcc.window.plans import Flip
        from hotset.tpcc.window.record import RunResult

        return records.of(
            "TpccRun",
            state=Literal["complete", "failed"],
            cause=str | None,
            result=RunResult | None,
            conditions=_conditions() | None,
            thresholds=records.thresholds(),
            find_rate=dict[str, Any] | None,
            time=dict[str, Any] | None,
            sampled=dict[str, Any] | None,
            plan_changes=records.several("PlanChange", Flip),
            curve=dict[str, Any] | None,
        )

    def document(self) -> dict[str, Any]:
        from ...benchmarks import tpcc_report

        return tpcc_report.document(self.points)

    def show(self, console: Console) -> None:
        from ...benchmarks import tpcc_report

        console.print(tpcc_report.table(self.points))

    def csv(self) -> str:
        from ...benchmarks import tpcc_report

        return tpcc_report.csv(self.points)

    def failure(self) -> Exception | None:
        from ...benchmarks import tpcc, window

        return window.failure(self.points, tpcc.require)

    def figures(self) -> Mapping[str, str]:
        from ...benchmarks import tpcc_report, window_report

        if len(self.points) > 1:
            return tpcc_report.curve_figures(self.points)
        run = self.points[0].result
        if run is None:
            return {}
        return {"NOPM": f"{run.nopm:,.0f}", **window_report.figures(run)}


@operation(
    "tpcc run",
    Kind.JOB,
    Right.OPERATE,
    ("Invoke", "HotsetTpcc"),
    progress=True,
    lock=lambda request: Lock("database", request.dsn),
)
def run(request: Run, context: Context) -> RunOutcome:
    """Run the five transactions and measure a window. CSV has a line per second.

    Several numbers of users give a curve, whose CSV has a line per number.

    A run that fails, or leaves the database inconsistent, ends with exit code 4 and still prints
    what it measured. Exit code 5: a threshold was missed, or no rate meets the limits.
    """
    from ...benchmarks import server, tpcc_metrics, window
    from ...benchmarks import tpcc as workload
    from .report import check_output

    each_users = fields.each_users(request.users)
    options = workload.options(
        users=each_users[0],
        warehouses=request.warehouses,
        rampup_s=request.rampup,
        duration_s=request.duration,
        seed=request.seed,
        all_warehouses=not request.home_warehouses,
        think_time=request.think_time,
        rate=request.rate,
    )
    thresholds = tpcc_metrics.limits(request.threshold or [])
    database, report = _database(request), context.report
    check_output(request.output)
    check_output(request.junit, "junit")
    points: list[Outcome] = []
    with (
        places.maybe_machine(request.sample) as there,
        server.watched(there, context.report.say) as watch,
    ):
        for outcome in _measured(request, options, each_users, database, report):
            points.append(workload.judged(window.seen(outcome, watch), thresholds))
            _write(points, request)
    if not request.fresh:
        points[-1] = _checked(points[-1], request, database, report)
        _write(points, request)
    return RunOutcome(tuple(points))


def _checked(outcome: Outcome, request: Run, database: SqlDatabase, report: Reporter) -> Outcome:
    """With the conditions that its database has to keep, where they are wanted."""
    from ...benchmarks import tpcc as workload

    if not request.check or outcome.cause is not None:
        return outcome
    hammerdb = request.driver == "hammerdb"
    numbers = workload.HAMMERDB_KEEPS if hammerdb else consistency.ALL
    return workload.checked(outcome, database, report, numbers)


def _measured(
    request: Run,
    options: RunOptions,
    each_users: list[int],
    database: SqlDatabase,
    report: Reporter,
) -> Iterator[Outcome]:
    """The run, or the runs of a curve, each as it ends."""
    from ...benchmarks import tpcc as workload
    from ...benchmarks import tpcc_metrics, window

    limits = tpcc_metrics.limits(request.find_rate or [])
    steady = request.until_steady
    limit_s = window.seconds(steady, "until_steady") if steady else None
    if limits:
        window.require_one_number(each_users)

    def drive(options: RunOptions) -> Outcome:
        if not request.fresh:
            return drive_on(database, options)
        with window.copy_of(database, report) as copy:
            return _checked(drive_on(copy, options), request, copy, report)

    def drive_on(where: SqlDatabase, options: RunOptions) -> Outcome:
        if limits:
            return workload.find_rate(where, options, limits, report, request.driver)
        if limit_s is not None:
            return workload.run_until_steady(where, options, limit_s, report, request.driver)
        if request.driver == "hammerdb":
            return workload.run_by_hammerdb(where, options, report)
        return workload.run(where, options, report)

    if len(each_users) == 1:
        yield drive(options)
        return
    yield from workload.run_curve(each_users, options, drive, report.say)


class Check(Request):
    dsn: fields.Dsn
    engine: fields.Product = "postgres"
    password: fields.Password = None


@dataclass(frozen=True, slots=True)
class Conditions(Result):
    results: list[ConditionResult]

    @classmethod
    def record(cls) -> type[BaseModel]:
        return records.of("TpccConditions", conditions=_conditions())

    def document(self) -> dict[str, Any]:
        from ...benchmarks import tpcc_report

        return tpcc_report.conditions_document(self.results)

    def show(self, console: Console) -> None:
        from ...benchmarks import tpcc_report

        console.print(tpcc_report.conditions_table(self.results))

    def csv(self) -> str:
        from ...benchmarks import tpcc_report

        return tpcc_report.conditions_csv(self.results)

    def failure(self) -> Exception | None:
        broken = [one for one in self.results if not one.holds]
        return Violated(broken) if broken else None


@operation(
    "tpcc check",
    Kind.JOB,
    Right.OPERATE,
    ("Test", "HotsetTpccDatabase"),
    progress=True,
    lock=lambda request: Lock("database", request.dsn),
)
def check_conditions(request: Check, context: Context) -> Conditions:
    """Check the twelve consistency conditions on all warehouses.

    Exit code 4 when one does not hold.
    """
    from ...benchmarks import tpcc as workload

    return Conditions(workload.check(_database(request), context.report))


class Drop(Request):
    dsn: fields.Dsn
    engine: fields.Product = "postgres"
    password: fields.Password = None
    yes: fields.Yes = False


def _question(request: Drop) -> str:
    _database(request)
    return "Drop the TPC-C tables and all they hold?"


@operation(
    "tpcc drop",
    Kind.JOB,
    Right.ADMIN,
    ("Remove", "HotsetTpccDatabase"),
    destroys=True,
    question=_question,
    lock=lambda request: Lock("database", request.dsn),
)
def drop(request: Drop, context: Context) -> Lines:
    """Remove the TPC-C tables and procedures."""
    from ...benchmarks import tpcc as workload

    dropped = workload.drop(_database(request))
    context.message(f"dropped {', '.join(dropped) or 'nothing: there was none'}")
    return Lines()


def _database(request: Build | Run | Check | Drop) -> SqlDatabase:
    from ...databases import connect

    return connect.database(request.engine, request.dsn, fields.secret(request.password))


def _write(points: list[Outcome], request: Run) -> None:
    """What was measured until now; a later failure loses none of it."""
    import json

    from ...benchmarks import tpcc_report

    if request.output is not None:
        text = json.dumps(tpcc_report.document(points), indent=1)
        request.output.write_text(text + "\n", encoding="utf-8")
    if request.junit is not None:
        request.junit.write_text(tpcc_report.junit_xml(points), encoding="utf-8")


def _conditions() -> Any:  # noqa: ANN401 - a type
    return records.several(
        "TpccCondition",
        number=int,
        title=str,
        holds=bool,
        violations=int,
        examples=list[list[Any]],
    )
