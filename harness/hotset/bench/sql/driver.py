"""Drivers of scripts: hotset's own users, where a database takes single statements of theirs; else
pgbench, which is PostgreSQL's."""

from __future__ import annotations

from collections.abc import Callable

from hotset.core.errors import RequestError
from hotset.databases.postgres.pgbench import find
from hotset.load.record import Phase, Tick
from hotset.load.run import run_workload
from hotset.reports.model.windows import Repeat

from . import described, pgbench, pgbench_run, users
from .pgbench_run import TakesPgbench
from .users import TakesStatements
from .workload import SqlWorkload


def require(workload: SqlWorkload) -> None:
    """See that the scripts can be read, before anything connects.

    :raises RequestError: one cannot; names file and line.
    :raises PrerequisiteMissingError: pgbench is not here.
    """
    if isinstance(workload.database, TakesStatements):
        users.require(workload)
    else:
        _by_pgbench(workload)
        pgbench.check(find(), workload.sources)


def check(workload: SqlWorkload) -> None:
    """Have the server read every statement.

    :raises CannotConnect: there is no server.
    :raises ScriptError: it finds one that is no SQL; names file and line.
    """
    if isinstance(workload.database, TakesStatements):
        users.check(workload, workload.database)
    else:
        described.check(workload, _by_pgbench(workload))


def run(workload: SqlWorkload, observe: Callable[[Tick | Phase], None]) -> Repeat:
    """Run scripts and measure a window; raises as `hotset.load.run.follow`."""
    if isinstance(workload.database, TakesStatements):
        return run_workload(users.Users(workload, workload.database), observe)
    return pgbench_run.run(workload, _by_pgbench(workload), observe)


def _by_pgbench(workload: SqlWorkload) -> TakesPgbench:
    if isinstance(workload.database, TakesPgbench):
        return workload.database
    raise RequestError(f"scripts are not run on {workload.database.title}", field="engine")
