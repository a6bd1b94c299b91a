"""Populate a database (clause 4.3): data, tables, rows in parallel, keys, statistics, counts."""

import os
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path

from hotset.core.sql import CannotConnect, DatabaseError
from hotset.core.sql.files import nothing_half_done

from . import data, queries, schema
from .database import Database, Session
from .parameters import Parameter
from .record import LoadFailed, LoadProgress
from .workers import Workers


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Result of a load: seconds for making the data (0 when it was there), for the rows alone,
    and for everything after the data."""

    scale: float
    rows: dict[str, int]
    data_s: float
    rows_s: float
    seconds: float


@dataclass(frozen=True, slots=True)
class _File:
    """A job: the rows of one file."""

    table: str
    path: Path
    size: int


@dataclass(frozen=True, slots=True)
class _Script:
    """A job: one batch of SQL."""

    sql: str
    size: int = 0


_Job = _File | _Script

_BYTES_PER_PROCESS = 64_000_000


def load(
    database: Database,
    scale: float,
    folder: Path,
    observe: Callable[[LoadProgress], None] = lambda _: None,
    *,
    processes: int | None = None,
) -> LoadResult:
    """Make the TPC-H tables at `scale`.

    The text files come from `folder`, and stay there for the next load. Rows go into bare
    tables from `processes` processes (default: one per CPU, fewer for less than 64 MB each);
    keys come after, since building an index once is far cheaper than keeping it up.

    A load that fails or is interrupted drops its tables, as long as the server answers.

    Raises LoadFailed (there is such a schema already, for one), CannotConnect,
    record.Lacks, record.DataFailed, or ValueError for a scale that gives no whole rows.
    """
    require_scale(scale)
    with closing(database.session()):
        pass  # a wrong password should not wait for the data
    started = time.monotonic()
    made = data.prepare(folder, scale, observe)
    data_s = time.monotonic() - started
    try:
        count = processes or min(os.cpu_count() or 1, 1 + made.bytes // _BYTES_PER_PROCESS)
        with closing(database.session()) as session:
            schema.create(database, session)
        with nothing_half_done(database.session, partial(schema.drop, database)):
            return _load(database, made, count, data_s, observe)
    except CannotConnect:
        raise
    except DatabaseError as error:
        raise LoadFailed(str(error)) from error


def require_scale(scale: float) -> None:
    """Raises ValueError unless a data set can have this scale."""
    if not 0.01 <= scale <= 100_000 or round(scale, 4) != scale:
        raise ValueError(
            f"scale {scale:g}: give one from 0.01 to 100000, with at most four decimals"
        )
    suppliers = round(10_000 * scale)
    # Clause 4.2.3: a part's suppliers lie this far apart, in a circle of all of them.
    steps = (suppliers // 4 + turn for turn in range(20))
    if any(count * step % suppliers == 0 for step in steps for count in (1, 2, 3)):
        raise ValueError(
            f"scale {scale:g}: with {suppliers} suppliers clause 4.2.3 gives a part the same one"
            " twice; 0.01, 0.02 and all from 0.03 on are fine"
        )


def _load(
    database: Database,
    made: data.DataSet,
    processes: int,
    data_s: float,
    observe: Callable[[LoadProgress], None],
) -> LoadResult:
    """The steps of a load into empty tables, in order."""
    started, done, total = time.monotonic(), 0, made.bytes

    def report(step: str) -> None:
        observe(LoadProgress(step, done, total, time.monotonic() - started))

    with Workers(database, _work, processes) as workers:
        report("rows")
        for loaded in workers.share_out(_files(made)):
            done += loaded
            report("rows")
        rows_s = time.monotonic() - started
        for name in ("indexes", "foreign_keys", "statistics"):
            report(name)
            for _ in workers.share_out(map(_Script, schema.batches(database.engine, name))):
                pass
    report("counts")
    with closing(database.session()) as session:
        rows = counts(database, session)
        if rows != made.rows:
            wrong = [
                f"{name}: {rows[name]} of {made.rows[name]}"
                for name in rows
                if rows[name] != made.rows[name]
            ]
            raise LoadFailed(f"rows are missing after the load: {', '.join(wrong)}")
        session.script(_finish(database.engine, made.scale))
    report("done")
    return LoadResult(made.scale, rows, data_s, rows_s, time.monotonic() - started)


def counts(database: Database, session: Session) -> dict[str, int]:
    """Rows of every table."""
    counted = session.query(schema.statement(database.engine, "counts"))
    return {str(name): int(str(rows)) for name, rows in counted}


def _finish(engine: str, scale: float) -> str:
    values: tuple[Parameter, ...] = (Decimal(f"{scale:g}"),)
    return queries.fill(schema.statement(engine, "finish"), values)


def _files(made: data.DataSet) -> Iterable[_Job]:
    """The largest table first, its parts in the order of keys: workers end at about one time."""
    tables = sorted(made.files, key=lambda name: -made.rows[name])
    return [_File(name, path, path.stat().st_size) for name in tables for path in made.files[name]]


def _work(session: Session, database: Database, job: _Job) -> int:  # noqa: ARG001
    """Do a job in a worker; returns the bytes of text it has loaded."""
    if isinstance(job, _Script):
        session.script(job.sql)
    else:
        columns = schema.TABLES[job.table].columns
        session.load(f"{schema.SCHEMA}.{job.table}", columns, data.chunks(job.path))
    return job.size
