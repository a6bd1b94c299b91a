"""TPC-C on a database of yours."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from hotset.core import fields
from hotset.core.errors import Remedy, RequestError
from hotset.core.extras import Extra
from hotset.core.operation import Cli, Context, Kind, Lines, operation
from hotset.core.rights import Needs, Right
from hotset.tpcc.data import consistency
from hotset.tpcc.data.consistency import TpccConditions

from . import keeping, kits
from .kits import Drop
from .windows import Request as WindowRequest
from .windows import Windows, measure

if TYPE_CHECKING:
    from ..kept.found import FoundDatabase
    from ..kept.measurement import Subject
    from ..window import Outcome

Warehouses = Annotated[
    int, Field(ge=1, le=1_000_000, description="Warehouses, about 105 MB each."), Cli(short="-w")
]
Seed = Annotated[fields.Seed, Field(description="Seed of all random choices.")]


class Build(kits.OneDatabase):
    warehouses: Warehouses = 10
    seed: Seed = 1
    replace: Annotated[
        bool,
        Field(description="Drop the TPC-C tables that hotset made here first; asks."),
        Needs(Right.ADMIN),
    ] = False
    yes: fields.Yes = False
    driver: fields.DriverField = "hotset"


def _question(request: Build | Drop) -> str | None:
    from .. import ownership

    return kits.question(request, ownership.TPCC)


@operation(
    "tpcc build",
    Kind.JOB,
    Right.OPERATE,
    ("New", "HotsetTpccDatabase"),
    destroys=True,
    asked=lambda request: request.replace,
    question=_question,
    progress=True,
    lock=kits.lock,
    extras=(Extra.BENCH,),
)
def build(request: Build, context: Context) -> Lines:
    """Load warehouses, then check the twelve consistency conditions (clause 3.3.2).

    They are in a schema of their own, hotset_tpcc. Refuses if there is one already. Drops what it
    made when it fails. Exit code 4 if a condition does not hold.
    """
    from .. import alone, ownership
    from .. import tpcc as workload

    if request.driver == "hammerdb" and request.replace:
        raise RequestError(
            "HammerDB builds in an empty database",
            Remedy("empty it", "tpcc drop", {"dsn": request.dsn}),
            field="replace",
        )
    database, report = kits.database(request), context.report
    with alone.on(database, ownership.TPCC, report, removes=request.replace):
        if request.driver == "hammerdb":
            results = workload.build_by_hammerdb(database, request.warehouses, report)
        else:
            _, results = workload.build(
                database, request.warehouses, request.seed, request.replace, report
            )
    consistency.require(results)
    report.say(f"all {len(results)} conditions hold")
    return Lines()


class Run(WindowRequest):
    warehouses: Warehouses = 10
    rampup: Annotated[
        float | None,
        Field(
            ge=0,
            le=fields.DAYS_S,
            description="Seconds to run before measuring starts; default: 10, with HammerDB 60.",
        ),
    ] = None
    seed: Annotated[
        fields.Seed | None,
        Field(
            description="Seed of all random choices; equal seeds access the same rows. By default"
            " each run has another, and the same rows are popular in all."
        ),
    ] = None
    items: Annotated[
        Literal["nurand", "uniform"],
        Field(
            description="How items and customers are drawn: nurand as TPC-C says, where the hottest"
            " 20 % of stock's blocks get 62 % of its accesses, or uniform as HammerDB does, with"
            " its mix of transactions."
        ),
    ] = "nurand"
    think_time: Annotated[bool, Field(description="Use keying and think times (clause 5.2.5).")] = (
        False
    )
    home_warehouses: Annotated[
        bool,
        Field(
            description="Keep each user at one warehouse, so that the working set is only as large"
            " as the number of users. Otherwise each transaction picks its warehouse."
        ),
    ] = False
    rate: Annotated[
        fields.Expression | None,
        Field(
            description="Start transactions at this rate, such as 500/s, at random times. Latency"
            " then counts from when each was due. Without a rate, users never pause."
        ),
    ] = None
    find_rate: Annotated[
        fields.Expressions | None,
        Field(
            description="Search for the highest rate that meets this limit, such as 'p95<50ms', or"
            " tpc-c for TPC-C's own limits. Each rate takes a ramp-up and a window. Repeatable."
        ),
    ] = None
    threshold: Annotated[
        fields.Expressions | None, fields.thresholds("'nopm>=50000' or 'p95(new_order)<20ms'")
    ] = None
    check: Annotated[
        bool,
        Field(description="Check the twelve conditions afterwards."),
        Cli(off="--no-check"),
    ] = True
    driver: fields.DriverField = "hotset"


@dataclass(frozen=True, slots=True)
class RunOutcome(Windows):
    def require(self, outcome: Outcome) -> None:
        from .. import tpcc

        tpcc.require(outcome)


@operation(
    "tpcc run",
    Kind.JOB,
    Right.OPERATE,
    ("Invoke", "HotsetTpcc"),
    progress=True,
    lock=kits.lock,
    extras=(Extra.BENCH,),
)
def run(request: Run, context: Context) -> RunOutcome:
    """Run the five transactions and measure a window. CSV has a line per second.

    A list of numbers of users measures a curve; its CSV has a line per number.

    If the run fails or leaves the database inconsistent, the exit code is 4, and what it measured
    is still printed. Exit code 5: a threshold was missed, or no rate meets the limits.
    """
    from .. import ownership
    from .. import tpcc as workload

    options = workload.options(
        users=fields.each_users(request.users)[0],
        warehouses=request.warehouses,
        rampup_s=(60 if request.driver == "hammerdb" else 10)
        if request.rampup is None
        else request.rampup,
        duration_s=request.duration,
        seed=secrets.randbelow(2**32) if request.seed is None else request.seed,
        popular=fields.POPULAR if request.seed is None else None,
        items=request.items,
        all_warehouses=not request.home_warehouses,
        think_time=request.think_time,
        rate=request.rate,
    )
    by = workload.HammerdbRuns if request.driver == "hammerdb" else workload.Runs
    runs, database = by(context.report, check=request.check), kits.database(request)

    def subject(database: FoundDatabase) -> Subject:
        return keeping.of_tpcc(request, options, database)

    return RunOutcome(*measure(request, runs, database, options, context, subject, ownership.TPCC))


@operation(
    "tpcc check",
    Kind.JOB,
    Right.OPERATE,
    ("Test", "HotsetTpccDatabase"),
    progress=True,
    lock=kits.lock,
    extras=(Extra.BENCH,),
)
def check_conditions(request: kits.OneDatabase, context: Context) -> TpccConditions:
    """Check the twelve consistency conditions on all warehouses.

    Exit code 4 if one does not hold.
    """
    from .. import tpcc as workload

    results = workload.check(kits.database(request), context.report)
    return TpccConditions(tuple(results))


@operation(
    "tpcc drop",
    Kind.JOB,
    Right.ADMIN,
    ("Remove", "HotsetTpccDatabase"),
    destroys=True,
    question=_question,
    lock=kits.lock,
)
def drop(request: Drop, context: Context) -> Lines:
    """Remove the TPC-C tables and procedures that hotset made.

    Refuses if something of somebody else's is in their schema, or needs them.
    """
    from .. import ownership

    return kits.drop(request, ownership.TPCC, context)
