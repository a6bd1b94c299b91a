"""Populate a database (clause 4.3.3.1): tables, rows in parallel, keys, procedures, statistics."""

import os
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from multiprocessing import connection
from typing import Any

from hotset.tpcc import schema
from hotset.tpcc.database import CannotConnect, Database, DatabaseError
from hotset.tpcc.processes import Channel, Crew, WorkerDied
from hotset.tpcc.rows import table_rows
from hotset.tpcc.schema import TABLES

_ITEMS_ONLY = 0
"""The job number that stands for the one table no warehouse owns."""


class LoadFailed(Exception):
    """The load did not finish; the database holds a part of it and must be loaded again."""


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is; `step` is "rows", then "indexes", "procedures", "statistics", "done"."""

    warehouses_done: int
    warehouses: int
    rows: int
    seconds: float
    step: str = "rows"


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did: rows, and seconds for the rows alone and for everything."""

    warehouses: int
    rows: int
    rows_seconds: float
    seconds: float


@dataclass(frozen=True, slots=True)
class _Loaded:
    job: int
    rows: int


@dataclass(frozen=True, slots=True)
class _Failed:
    cause: str


def load(
    database: Database,
    warehouses: int,
    *,
    seed: int = 1,
    processes: int | None = None,
    observe: Callable[[LoadProgress], None] = lambda _: None,
) -> LoadResult:
    """Replace whatever TPC-C tables the database has by `warehouses` fresh ones.

    Rows load into bare tables, from `processes` processes (default: one per CPU, at
    most one per warehouse); keys, procedures and statistics come after, since
    building an index once is far cheaper than keeping it up.

    Raises LoadFailed, CannotConnect, or ValueError for less than one warehouse.
    """
    if warehouses < 1:
        raise ValueError(f"at least one warehouse, not {warehouses}")
    crew_size = max(1, min(processes or os.cpu_count() or 1, warehouses))
    try:
        return _load(database, warehouses, seed, crew_size, observe)
    except CannotConnect:
        raise
    except DatabaseError as error:
        raise LoadFailed(str(error)) from error


def _load(
    database: Database,
    warehouses: int,
    seed: int,
    crew_size: int,
    observe: Callable[[LoadProgress], None],
) -> LoadResult:
    """The steps of a load, in order."""
    started = time.monotonic()
    with closing(database.session()) as session:
        schema.drop(database, session)
        schema.create(database, session)
    rows = _load_rows(database, warehouses, seed, crew_size, observe, started)
    rows_seconds = time.monotonic() - started

    def step(name: str) -> None:
        observe(LoadProgress(warehouses, warehouses, rows, time.monotonic() - started, name))

    step("indexes")
    _each_batch(database, "indexes", crew_size)
    step("procedures")
    with closing(database.session()) as session:
        schema.create_procedures(database, session)
    step("statistics")
    _each_batch(database, "statistics", crew_size)
    step("done")
    return LoadResult(warehouses, rows, rows_seconds, time.monotonic() - started)


def _load_rows(
    database: Database,
    warehouses: int,
    seed: int,
    crew_size: int,
    observe: Callable[[LoadProgress], None],
    started: float,
) -> int:
    """Share the warehouses out among processes and wait for all of them; returns the rows."""
    # One time stamp for all rows, without fractions: every engine can hold it.
    now = datetime.now().replace(microsecond=0)
    jobs = [_ITEMS_ONLY, *range(1, warehouses + 1)]
    shares = [(database, jobs[first::crew_size], seed, now) for first in range(crew_size)]
    rows = done = 0
    with Crew(_load_worker, shares) as crew:
        left = len(jobs)
        while left:
            for _, message in _listen(crew):
                if isinstance(message, _Failed):
                    raise LoadFailed(message.cause)
                assert isinstance(message, _Loaded)
                left -= 1
                rows += message.rows
                done += message.job != _ITEMS_ONLY
                observe(LoadProgress(done, warehouses, rows, time.monotonic() - started))
    return rows


def _listen(crew: Crew) -> list[tuple[int, object]]:
    try:
        return list(crew.listen(60.0))
    except WorkerDied as death:
        raise LoadFailed(str(death)) from None


def _load_worker(
    pipe: "connection.Connection[Any, Any]",
    database: Database,
    jobs: list[int],
    seed: int,
    now: datetime,
) -> None:
    """A process of the crew: load its share, one warehouse after the other."""
    channel = Channel(pipe)
    try:
        with closing(database.session()) as session:
            for job in jobs:
                tables = [t for t in TABLES.values() if t.per_warehouse == (job != _ITEMS_ONLY)]
                rows = sum(
                    session.copy(t.name, t.columns, table_rows(t.name, job, seed, now))
                    for t in tables
                )
                channel.send(_Loaded(job, rows))
    except DatabaseError as error:
        channel.send(_Failed(str(error)))
    except Exception:
        channel.send(_Failed(traceback.format_exc()))
    channel.receive()  # stay until the parent has read everything and lets go


def _each_batch(database: Database, name: str, sessions: int) -> None:
    """Run the batches of a file over several sessions: they concern different tables."""

    def run(batch: str) -> None:
        with closing(database.session()) as session:
            session.script(batch)

    with ThreadPoolExecutor(sessions) as pool:
        list(pool.map(run, schema.batches(database.engine, name)))
