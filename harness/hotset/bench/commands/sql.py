"""SQL scripts of your own as a benchmark."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from hotset.core import fields
from hotset.core.extras import Extra
from hotset.core.operation import Cli, Context, Kind, operation
from hotset.core.rights import Names, Right

from . import keeping, kits
from .windows import Request as WindowRequest
from .windows import Windows, measure

if TYPE_CHECKING:
    from ..kept.found import FoundDatabase
    from ..kept.measurement import Subject


class Run(WindowRequest):
    script: Annotated[
        list[fields.Text],
        Names.SCRIPT,
        Field(
            min_length=1,
            max_length=fields.LIST_MAX,
            description="A SQL file: a script of pgbench, or for SQL Server T-SQL; each run of it"
            " is one transaction in the results. With checkout.sql@70 and search.sql@30, checkout"
            " runs 70 times for every 30 of search. Repeatable.",
        ),
        Cli(short="-s", metavar="FILE[@WEIGHT]"),
    ]
    rampup: fields.Rampup = 10
    define: Annotated[
        fields.Expressions,
        Field(description="A variable for all scripts, such as scale=10. Repeatable."),
        Cli(short="-D", metavar="NAME=VALUE"),
    ] = []
    protocol: Annotated[
        Literal["prepared", "simple"],
        Field(
            description="How statements are sent: prepared once per connection, with the variables"
            " as parameters, as applications do; or as text with the values in it."
        ),
    ] = "prepared"
    seed: Annotated[
        fields.Seed | None,
        Field(
            description="Seed of all random choices; equal seeds draw the same values. By default"
            " each run has another, and pgbench's default_seed, by which hash and permute choose"
            " the popular values, is 1."
        ),
    ] = None
    rate: Annotated[
        fields.Expression | None,
        Field(
            description="Start transactions at this rate, such as 500/s, at random times. Latency"
            " then counts from when each was due. Without a rate, users pause only where a script"
            " sleeps."
        ),
    ] = None
    max_errors: Annotated[
        int,
        Field(
            ge=0,
            le=2**53,
            description="Fail the run if more transactions than this fail, ramp-up included. On"
            " PostgreSQL these are deadlocks and serialization failures; any other error of a"
            " statement ends the run.",
        ),
    ] = 100
    threshold: Annotated[
        fields.Expressions | None, fields.thresholds("'tps>=500' or 'p95(checkout)<20ms'")
    ] = None


@operation(
    "sql run",
    Kind.JOB,
    Right.ADMIN,
    ("Invoke", "HotsetSql"),
    destroys=True,
    progress=True,
    lock=kits.lock,
    extras=(Extra.BENCH,),
)
def run(request: Run, context: Context) -> Windows:
    """Run SQL scripts with many users and measure a window. CSV has a line per second.

    On PostgreSQL its own pgbench runs them (Debian's package postgresql). On SQL Server statements
    end in semicolons, \\set NAME random(A, B) draws a variable, and :NAME takes it. Changes to the
    database are not undone. A list of numbers of users measures a curve; its CSV has a line per
    number.

    Exit code 4: the run failed (what it measured is still printed); 5: a threshold was missed, or
    no rate meets the limits.
    """
    from hotset.databases import connect

    from ..sql import run as runs
    from ..sql import sources as given
    from ..sql.workload import SqlWorkload

    options = runs.options(
        users=fields.each_users(request.users)[0],
        rampup_s=request.rampup,
        duration_s=request.duration,
        seed=secrets.randbelow(2**32) if request.seed is None else request.seed,
        max_errors=request.max_errors,
        rate=request.rate,
    )
    defined, sources = given.parse_definitions(request.define), given.sources(request.script)
    database = connect.of_request(request)
    popular = fields.POPULAR if request.seed is None else None
    workload = SqlWorkload(database, sources, options, defined, request.protocol, popular)
    by = runs.Runs(workload, context.report)

    def subject(database: FoundDatabase) -> Subject:
        return keeping.of_sql(request, workload, database)

    return Windows(*measure(request, by, database, options, context, subject))
