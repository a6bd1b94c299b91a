"""Populate a database (clause 4.3.3.1): tables, procedures, rows in parallel, keys, statistics."""

import os
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from multiprocessing import connection
from typing import Any, TypeAlias

from hotset.core.progress import Measured, Reporter
from hotset.core.sql import CannotConnect, DatabaseError, LoadFailed
from hotset.core.sql.files import nothing_half_done
from hotset.load.processes import Channel, PythonCrew, WorkerDied

from .. import schema
from ..database import Database, Session
from ..schema import TABLES
from .rows import table_rows

_ITEMS_ONLY = 0
"""The warehouse number that stands for the one table no warehouse owns."""


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is; `step` is "rows", then "indexes", "statistics", "done"."""

    warehouses_done: int
    warehouses: int
    rows: int
    seconds: float
    step: str = "rows"

    def show(self, report: Reporter) -> None:
        """Implement :class:`~hotset.core.progress.Step`."""
        if self.step != "rows":
            report.figure(f"{self.seconds:.1f} s, {self.step}")
            return
        done = self.warehouses_done, self.warehouses
        measured = Measured.by_rate(*done, "warehouses", self.seconds)
        report.figure(
            f"{self.seconds:.1f} s, {self.warehouses_done} of {self.warehouses}"
            f" warehouses, {self.rows:,} rows{measured.left}",
            measured,
        )


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Result of a load: rows, and seconds for the rows alone and for everything."""

    warehouses: int
    rows: int
    rows_seconds: float
    seconds: float


@dataclass(frozen=True, slots=True)
class _Rows:
    """A job: all rows of one warehouse."""

    warehouse: int


@dataclass(frozen=True, slots=True)
class _Script:
    """A job: one batch of SQL."""

    sql: str


_Job: TypeAlias = _Rows | _Script


@dataclass(frozen=True, slots=True)
class _Done:
    """A worker's answer: the rows it loaded."""

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
    """Make the TPC-C tables and procedures, with `warehouses` warehouses.

    A load that fails or is interrupted drops what it made, as long as the server answers.

    Rows load into bare tables, from `processes` processes (default: one per CPU, at
    most one per warehouse); keys and statistics come after, since
    building an index once is far cheaper than keeping it up.

    Raises LoadFailed (there is such a schema already, for one), CannotConnect, or
    ValueError for less than one warehouse.
    """
    if warehouses < 1:
        raise ValueError(f"at least one warehouse, not {warehouses}")
    crew_size = max(1, min(processes or os.cpu_count() or 1, warehouses))
    try:
        with closing(database.session()) as session:
            schema.create(database, session)
        with nothing_half_done(database.session, partial(schema.drop, database)):
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
    """The steps of a load into empty tables, in order."""
    started = time.monotonic()
    done = rows = 0

    def report(step: str) -> None:
        observe(LoadProgress(done, warehouses, rows, time.monotonic() - started, step))

    # One time stamp for all rows, without fractions: every engine can hold it.
    now = datetime.now().replace(microsecond=0)
    with PythonCrew(_worker, [(database, seed, now)] * crew_size) as crew:
        for job, loaded in _share_out(crew, map(_Rows, range(_ITEMS_ONLY, warehouses + 1))):
            rows += loaded
            done += job != _Rows(_ITEMS_ONLY)
            report("rows")
        rows_seconds = time.monotonic() - started
        for name in ("indexes", "statistics"):
            report(name)
            # Batches concern different tables: they run side by side.
            for _ in _share_out(crew, map(_Script, schema.batches(database.engine, name))):
                pass
    report("done")
    return LoadResult(warehouses, rows, rows_seconds, time.monotonic() - started)


def _share_out(crew: PythonCrew, jobs: Iterable[_Job]) -> Iterator[tuple[_Job, int]]:
    """Keep every worker busy until all jobs are done; yields each with the rows it loaded."""
    waiting = deque(jobs)
    idle = list(range(len(crew)))
    busy: dict[int, _Job] = {}
    while waiting or busy:
        while waiting and idle:
            worker = idle.pop()
            busy[worker] = waiting.popleft()
            crew.tell(busy[worker], worker)
        for worker, answer in _listen(crew):
            if isinstance(answer, _Failed):
                raise LoadFailed(answer.cause)
            assert isinstance(answer, _Done)
            idle.append(worker)
            yield busy.pop(worker), answer.rows


def _listen(crew: PythonCrew) -> list[tuple[int, object]]:
    try:
        return list(crew.listen(60.0))
    except WorkerDied as death:
        raise LoadFailed(str(death)) from None


def _worker(
    pipe: "connection.Connection[Any, Any]", database: Database, seed: int, now: datetime
) -> None:
    """A process of the crew: one job after the other, until the parent lets go."""
    channel = Channel(pipe)
    try:
        with closing(database.session()) as session:
            while True:
                match channel.receive():
                    case _Rows(warehouse):
                        channel.send(_Done(_copy_all(session, warehouse, seed, now)))
                    case _Script(sql):
                        session.script(sql)
                        channel.send(_Done(0))
    except DatabaseError as error:
        channel.send(_Failed(str(error)))
    except Exception:
        channel.send(_Failed(traceback.format_exc()))
    channel.receive()  # stay until the parent has read the reason


def _copy_all(session: Session, warehouse: int, seed: int, now: datetime) -> int:
    """Load the rows of one warehouse, or of what belongs to none; returns how many."""
    tables = [t for t in TABLES.values() if t.per_warehouse == (warehouse != _ITEMS_ONLY)]
    return sum(
        session.copy(
            f"{schema.SCHEMA}.{t.name}", t.columns, table_rows(t.name, warehouse, seed, now)
        )
        for t in tables
    )
