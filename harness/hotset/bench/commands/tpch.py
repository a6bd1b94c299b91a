"""TPC-H in a database of yours."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.errors import Interrupted, Remedy, RequestError
from hotset.core.extras import Extra
from hotset.core.operation import (
    Cli,
    Context,
    Kind,
    Lines,
    check_output,
    operation,
)
from hotset.core.paths import cache_dir
from hotset.core.record import Result
from hotset.core.rights import Needs, Right

from .. import thresholds
from ..thresholds import Case, junit
from . import keeping, kits
from .kits import Drop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rich.console import Console

    from hotset.core.progress import Reporter
    from hotset.databases.product import SqlDatabase
    from hotset.reports.model.document import RunDocument
    from hotset.reports.model.windows import PowerRun, ThroughputRun, Verdict
    from hotset.tpch.check import TpchCheck
    from hotset.tpch.database import Database

Queries = Annotated[
    fields.Expression,
    Field(description="Which of the 22 queries; default: all."),
    Cli(metavar="N,N…"),
]
Timeout = Annotated[
    float | None,
    Field(ge=0.001, le=fields.DAYS_S, description="Seconds after which a query is cancelled."),
]
LoadedScale = Annotated[
    float | None,
    Field(
        gt=0,
        le=100_000,
        description="The scale factor you expect; it is an error if another one is loaded.",
    ),
]


class Build(kits.OneDatabase):
    scale: Annotated[
        float, Field(gt=0, le=100_000, description="Scale factor; 1 is about 1 GB of data.")
    ] = 1.0
    replace: Annotated[
        bool,
        Field(description="Drop the TPC-H tables that hotset made here first; asks."),
        Needs(Right.ADMIN),
    ] = False
    yes: fields.Yes = False
    processes: Annotated[
        int | None,
        Field(ge=1, le=1024, description="How many processes load at once; default: one per CPU."),
    ] = None
    driver: fields.DriverField = "hotset"


def _question(request: Build | Drop) -> str | None:
    from .. import ownership

    return kits.question(request, ownership.TPCH)


@operation(
    "tpch build",
    Kind.JOB,
    Right.OPERATE,
    ("New", "HotsetTpchDatabase"),
    destroys=True,
    asked=lambda request: request.replace,
    question=_question,
    progress=True,
    lock=kits.lock,
)
def build(request: Build, context: Context) -> Lines:
    """Load the eight tables, with keys, indexes and statistics.

    They are in a schema of their own, hotset_tpch. Refuses if there is one already. Drops what it
    made when it fails. The generated data stays in the cache folder for the next build.
    """
    from hotset.tpch import data, load

    from .. import alone, ownership

    scale, report = request.scale, context.report
    fields.parse_field("scale", lambda: load.require_scale(scale))
    if request.driver != "hammerdb":
        context.require_room(data.missing_bytes(_folder(), scale), "scale")
    if request.driver == "hammerdb" and request.replace:
        raise _not_hammerdb("replace")
    where, kit = kits.database(request), ownership.TPCH
    with alone.on(where, kit, report, removes=request.replace):
        holdings, by_hammerdb = ownership.holdings(where, kit), request.driver == "hammerdb"
        ownership.require_free(holdings, replacing=request.replace, by_hammerdb=by_hammerdb)
        with ownership.saying_what_stays(where, kit, report.say):
            if by_hammerdb:
                with ownership.marking_hammerdbs(where, kit):
                    _build_by_hammerdb(where, scale, context)
            else:
                _load(request, where, holdings.is_loaded, report)
    return Lines()


def _load(request: Build, where: SqlDatabase, replacing: bool, report: Reporter) -> None:
    from hotset.tpch import data, load, schema

    from .. import ownership

    scale = request.scale
    where.require_room(schema.estimate_bytes(scale), "scale")
    size = schema.estimate_bytes(scale) / 1e9
    with report.task(f"building TPC-H at scale {scale:g}, about {size:.2g} GB in the database"):
        if replacing:
            # Before the old tables go: it may fail.
            data.prepare(_folder(), scale, report.on_step)
            ownership.drop(where, ownership.TPCH)
        made = load.load(
            _database(request),
            scale,
            _folder(),
            report.on_step,
            processes=request.processes,
        )
    report.say(
        f"loaded {sum(made.rows.values()):,} rows in {made.seconds:.1f} s"
        f" (rows {made.rows_s:.1f} s, then keys and statistics); data ready in {made.data_s:.1f} s"
    )


class Run(kits.OneDatabase):
    streams: Annotated[
        fields.Expression | None,
        Field(
            description="After the power run, a throughput run with this many query streams; min:"
            " the fewest that clause 5.3.4 allows."
        ),
        Cli(metavar="N|min"),
    ] = None
    seed: Annotated[
        fields.Seed | None,
        Field(description="Seed of the queries' parameters; default: the validation parameters."),
    ] = None
    queries: Queries = ""
    timeout: Timeout = None
    refresh: Annotated[
        bool | None,
        Field(
            description="Insert and delete 0.1 % of the orders around the queries; by default only"
            " with all 22."
        ),
        Cli(off="--no-refresh"),
    ] = None
    scale: LoadedScale = None
    threshold: Annotated[
        fields.Expressions | None,
        fields.thresholds("'queries<60s', 'power>=500' or 'query(18)<5s'"),
    ] = None
    junit: fields.Junit = None
    sample: fields.SampledServer = None
    label: fields.RunLabel = None
    keep: fields.Keep = True
    driver: fields.DriverField = "hotset"


@dataclass(frozen=True, slots=True)
class RunOutcome(Result):
    """:ivar numbers: the queries that were asked for.

    :ivar error: what ended the throughput run.
    :ivar verdicts: of its thresholds.
    :ivar run: what it is as a run of the archive, kept there or not; None: it has just ended.
    """

    described_by = "reports.model.document:RunDocument"
    numbers: tuple[int, ...]
    power: PowerRun
    throughput: ThroughputRun | None
    error: Exception | None = None
    verdicts: tuple[Verdict, ...] = ()
    run: RunDocument | None = None

    def to_record(self) -> RunDocument:
        assert self.run is not None
        return self.run

    def show(self, console: Console) -> None:
        from hotset.reports.render import terminal

        terminal.summary(self.to_record(), console)

    def csv(self) -> str:
        from hotset.reports.render import tables

        return tables.queries_csv(self.to_record())

    def failure(self) -> Exception | None:
        from hotset.tpch.record import RunFailed

        if self.error is not None:
            return self.error
        for part in (self.power, self.throughput):
            if part is not None and part.cause:
                return RunFailed(f"the run ended early: {part.cause}")
        streams = {0: self.power.queries} | {
            stream.number: stream.queries
            for stream in (self.throughput.streams if self.throughput else ())
        }
        missing = [
            f"query {number}" + (f" of stream {stream}" if stream else "")
            for stream, results in streams.items()
            for number in self.numbers
            if number not in {result.number for result in results if result.outcome == "ok"}
        ]
        if missing:
            return RunFailed(f"the run is incomplete: {', '.join(missing)} did not finish")
        return thresholds.collect_missed(self.verdicts)

    def figures(self) -> Mapping[str, str]:
        from hotset.reports.analysis import measured

        return measured.figures(self.to_record())


@operation(
    "tpch run",
    Kind.JOB,
    Right.OPERATE,
    ("Invoke", "HotsetTpch"),
    progress=True,
    lock=kits.lock,
    extras=(Extra.BENCH,),
)
def run(request: Run, context: Context) -> RunOutcome:
    """Run the 22 queries one after another; with --streams, also several streams at once.

    Exit code 4 if a query failed or timed out; what did finish is printed. Exit code 5: a threshold
    was missed.
    """

    from .. import alone, ownership, tpch_metrics
    from ..kept.found import find_database

    limits = tpch_metrics.limits(request.threshold or [])
    check_output(request.junit, "junit")
    numbers, count = _queries_of(request)
    database = kits.database(request)
    database.require_direct()
    kept = keeping.begin(
        request.keep, keeping.of_tpch(request, numbers, find_database(database)), context
    )
    with (
        keeping.failing(kept),
        alone.on(database, ownership.TPCH, context.report),
        keeping.watching(kept, request.sample, database, context) as watch,
    ):
        measured = _measure(request, numbers, count, context)
        use = watch(*measured.power.span, around=True)
    results = measured.power, measured.throughput
    verdicts = tuple(tpch_metrics.judge_queries(limits, *results))
    keeping.keep_queries(kept, *results, use, measured.failure(), verdicts, context)
    if request.junit is not None:
        cases = [Case.from_verdict("hotset.tpch.run", verdict) for verdict in verdicts]
        context.write(request.junit, junit("hotset.tpch.run", cases, measured.power.duration_s))
    return replace(measured, verdicts=verdicts, run=kept.document)


def _queries_of(request: Run) -> tuple[tuple[int, ...], int | None]:
    """The queries and the number of streams, before anything connects; see `_streams`.

    :raises RequestError: there is no such run.
    """
    numbers, count = _queries(request.queries), _streams(request.streams)
    if count is not None and len(numbers) < 22:
        raise RequestError("a throughput run takes all 22 queries", field="queries")
    if request.driver == "hammerdb":
        for field in ("streams", "seed", "timeout", "queries"):
            if getattr(request, field):
                raise _not_hammerdb(field)
        _hammerdbs_scale(request)
    return numbers, count


def _measure(
    request: Run, numbers: tuple[int, ...], count: int | None, context: Context
) -> RunOutcome:
    from hotset.tpch import schema
    from hotset.tpch.record import RunInterrupted
    from hotset.tpch.run import power, throughput

    report, seed = context.report, request.seed
    refreshing = len(numbers) == 22 if request.refresh is None else request.refresh
    if request.driver == "hammerdb":
        return RunOutcome(numbers, _run_by_hammerdb(request, refreshing, context), None)
    database = _database(request)
    # A locked table is told before anything is measured.
    with closing(_database(request, looks=True).session()) as session:
        schema.require_scale(session, request.scale)
    try:
        with report.task(f"power run, {len(numbers)} queries"):
            first = power.run(
                database,
                request.scale,
                seed=seed,
                queries=numbers,
                timeout_s=request.timeout,
                refresh=refreshing,
                observe=report.on_step,
            )
    except RunInterrupted as ended:
        return _cut_short(numbers, ended.partial, ended)
    if count is None or first.cause:
        return RunOutcome(numbers, first, None)
    measure = partial(
        throughput.run,
        database,
        first.scale,
        streams=count or None,
        seed=seed,
        timeout_s=request.timeout,
        refresh=refreshing,
        observe=report.on_step,
    )
    return _add_streams(RunOutcome(numbers, first, None), measure, report)


def _add_streams(
    outcome: RunOutcome, measure: Callable[[], ThroughputRun], report: Reporter
) -> RunOutcome:
    """Measure the throughput, too; if that fails, the power run's results are kept."""
    from hotset.tpch.record import with_composite

    try:
        with report.task("throughput run"):
            return replace(outcome, throughput=with_composite(outcome.power, measure()))
    except KeyboardInterrupt as ended:
        return _cut_short(outcome.numbers, outcome.power, ended)
    except Exception as error:
        return replace(outcome, error=error)


def _cut_short(numbers: tuple[int, ...], first: PowerRun, ended: KeyboardInterrupt) -> RunOutcome:
    """With what ended it, which is the cause of a power run that is not complete."""
    from ..window import cause_of

    cause = cause_of(ended) or first.cause
    first = first.model_copy(update={"cause": cause}) if first.cause else first
    failure = Interrupted(f"{cause}; what had been measured is in the result")
    return RunOutcome(numbers, first, None, failure)


class Check(kits.OneDatabase):
    queries: Queries = ""
    timeout: Timeout = None
    scale: LoadedScale = None


@operation(
    "tpch check",
    Kind.JOB,
    Right.OPERATE,
    ("Test", "HotsetTpchDatabase"),
    progress=True,
    lock=kits.lock,
    extras=(Extra.BENCH,),
    result="tpch.check:TpchCheck",
)
def check(request: Check, context: Context) -> TpchCheck:
    """Check row counts and foreign keys, and compare the answers with DuckDB's.

    DuckDB works on the same generated data. Exit code 5 if something is wrong.
    """
    from hotset.tpch import check as checks
    from hotset.tpch import data, schema

    numbers, report = _queries(request.queries), context.report
    database = _database(request, looks=True)
    with closing(database.session()) as session:
        scale = schema.require_scale(session, request.scale)
    context.require_room(data.missing_bytes(_folder(), scale), "scale")
    with report.task("checking rows, references and answers"):
        return checks.check(
            database,
            request.scale,
            _folder(),
            numbers=numbers,
            timeout_s=request.timeout,
            on_data=report.on_step,
            observe=lambda part: report.figure(f"checked {part.title}"),
        )


@operation(
    "tpch drop",
    Kind.JOB,
    Right.ADMIN,
    ("Remove", "HotsetTpchDatabase"),
    destroys=True,
    question=_question,
    lock=kits.lock,
)
def drop(request: Drop, context: Context) -> Lines:
    """Remove the TPC-H tables that hotset made.

    Refuses if something of somebody else's is in their schema, or needs them.
    """
    from .. import ownership

    return kits.drop(request, ownership.TPCH, context)


def _database(request: Build | Run | Check | Drop, *, looks: bool = False) -> Database:
    named = kits.database(request)
    return (named.looking() if looks else named).tpch()


def _not_hammerdb(field: str) -> RequestError:
    return RequestError("HammerDB has no such option", field=field)


def _build_by_hammerdb(connection: SqlDatabase, scale: float, context: Context) -> None:
    from hotset.hammerdb import tpch as hammerdb
    from hotset.hammerdb.process import progress

    report = context.report
    with progress.task(report, "tpch-build", f"HammerDB builds TPC-H at scale {scale:g}") as folder:
        done = hammerdb.build(connection, scale, folder, observe=progress.observer(report))
    report.say(f"loaded {sum(done.rows.values()):,} rows in {done.seconds:.1f} s")


def _run_by_hammerdb(request: Run, refresh: bool, context: Context) -> PowerRun:
    from hotset.hammerdb import tpch as hammerdb
    from hotset.hammerdb.process import progress

    from .. import ownership

    scale, connection, report = _hammerdbs_scale(request), kits.database(request), context.report
    held = ownership.holdings(connection, ownership.TPCH)
    if not held.beside:
        raise RequestError(
            f"{held.place} has no TPC-H where HammerDB would look for it",
            Remedy("have HammerDB build it", "tpch build", {"driver": "hammerdb", "scale": scale}),
            field="driver",
        )
    with progress.task(report, "tpch-run", "HammerDB, 22 queries") as folder:
        return hammerdb.run(
            connection, scale, folder, refresh=refresh, observe=progress.observer(report)
        )


def _hammerdbs_scale(request: Run) -> int:
    """:raises RequestError: it is not told, or HammerDB knows no such scale factor."""
    from hotset.hammerdb import tpch as hammerdb

    if request.scale is None:
        raise RequestError("HammerDB needs to know what is loaded", field="scale")
    return hammerdb.whole(request.scale)


def _folder() -> Path:
    return cache_dir() / "tpch"


def _queries(text: str) -> tuple[int, ...]:
    from hotset.tpch.queries import ALL

    if not text:
        return ALL
    numbers = []
    for part in text.split(","):
        if not part.strip().isdecimal() or int(part) not in ALL:
            raise RequestError(
                f"{part.strip()!r} is not a query: give numbers from 1 to 22, as in 1,6,14",
                field="queries",
            )
        numbers.append(int(part))
    return tuple(dict.fromkeys(numbers))


def _streams(text: str | None) -> int | None:
    """How many streams; 0 for the fewest allowed, None for no throughput run."""
    from hotset.tpch.run.streams import MAX_STREAMS

    if text is None:
        return None
    if text == "min":
        return 0
    if not text.isdecimal() or not 1 <= int(text) <= MAX_STREAMS:
        raise RequestError(
            f"{text!r}: give a number from 1 to {MAX_STREAMS}, or min", field="streams"
        )
    return int(text)
