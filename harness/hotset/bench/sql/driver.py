"""Drivers of scripts: pgbench on PostgreSQL, hotset's own users on SQL Server."""

from __future__ import annotations

from collections.abc import Callable

from hotset.databases.postgres.client import PostgresDatabase
from hotset.databases.postgres.pgbench import find
from hotset.load.record import Phase, Tick
from hotset.load.run import run_workload
from hotset.reports.model.windows import Repeat

from . import pgbench, pgbench_run, users
from .workload import SqlWorkload


def require(workload: SqlWorkload) -> None:
    """See that the scripts can be read, before anything connects.

    :raises RequestError: one cannot; names file and line.
    :raises PrerequisiteMissingError: pgbench is not here.
    """
    if isinstance(workload.database, PostgresDatabase):
        pgbench.check(find(), workload.sources)
    else:
        users.require(workload)


def check(workload: SqlWorkload) -> None:
    """Have a SQL Server read every statement; PostgreSQL reads one as it is run.

    :raises CannotConnect: there is no server.
    :raises ScriptError: it finds one that is no SQL; names file and line.
    """
    if not isinstance(workload.database, PostgresDatabase):
        users.check(workload, workload.database)


def run(workload: SqlWorkload, observe: Callable[[Tick | Phase], None]) -> Repeat:
    """Run scripts and measure a window; raises as `hotset.load.run.follow`."""
    if isinstance(workload.database, PostgresDatabase):
        return pgbench_run.run(workload, workload.database, observe)
    return run_workload(users.Users(workload, workload.database), observe)
