"""HammerDB's own record of a run: the SQLite file `hammer.DB` in its TMP folder.

Better than its output where both tell a thing: whole, typed, and with the time profile. Tables
(modules/jobs-1.0.tm of HammerDB 6.0): JOBMAIN, JOBOUTPUT, JOBTCOUNT, JOBTIMING.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .process.failures import HammerdbFailed
from .process.output import Line, User, UserError, parse, parse_line

FILE = "hammer.DB"
_ROUND_TRIP_S = 10.0


@dataclass(frozen=True, slots=True)
class Count:
    """One reading of the transaction counter; `at` in seconds since 1970."""

    at: float
    value: int


@dataclass(frozen=True, slots=True)
class Timing:
    """One procedure in the time profile of all users; milliseconds."""

    procedure: str
    calls: int
    mean: float
    p50: float
    p95: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job: what its users said, the counter, the time profile by procedure."""

    job: str
    lines: tuple[Line, ...]
    counts: tuple[Count, ...]
    timings: dict[str, Timing]


def read(file: Path, job: str) -> JobRecord:
    """The record of one job.

    :raises HammerdbFailed: it is not there, or the file is not HammerDB's.
    """
    try:
        with _opened(file) as database:
            known = database.execute("SELECT count(*) FROM JOBMAIN WHERE jobid = ?", (job,))
            if known.fetchone()[0] != 1:
                raise HammerdbFailed(f"HammerDB's {FILE} has no job {job}")
            return JobRecord(
                job,
                tuple(_lines(database, job)),
                tuple(_counts(database, job)),
                {timing.procedure: timing for timing in _timings(database, job)},
            )
    except sqlite3.Error as error:
        raise HammerdbFailed(f"HammerDB's {FILE} cannot be read: {error}") from None


def keep(file: Path, target: Path, secret: str) -> None:
    """Copy the record without the password, which HammerDB quotes when a connection fails."""
    if not file.is_file():
        return
    with closing(sqlite3.connect(target)) as copy:
        with _opened(file) as database:
            database.backup(copy)
        if secret:
            copy.execute("UPDATE JOBOUTPUT SET output = replace(output, ?, '***')", (secret,))
            copy.execute("UPDATE JOBMAIN SET jobdict = replace(jobdict, ?, '***')", (secret,))
            copy.commit()
        copy.execute("VACUUM")


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    # To be written to: a HammerDB that was ended amid a write leaves a journal to roll back first.
    uri = f"{file.absolute().as_uri()}?mode=rw"
    with closing(sqlite3.connect(uri, uri=True, timeout=_ROUND_TRIP_S)) as database:
        yield database


def _lines(database: sqlite3.Connection, job: str) -> Iterator[Line]:
    """JOBOUTPUT: user 0 is the program, whose lines carry `Vuser N:` themselves."""
    query = "SELECT vu, output FROM JOBOUTPUT WHERE jobid = ? ORDER BY rowid"
    for user, text in database.execute(query, (job,)):
        line = parse(text)
        yield (
            line
            if user == 0 or isinstance(line, UserError | User)
            else parse_line(user, text.strip())
        )


def _counts(database: sqlite3.Connection, job: str) -> Iterator[Count]:
    """JOBTCOUNT without the messages of a counter that failed; stamped in UTC (`TZ`)."""
    query = (
        "SELECT CAST(strftime('%s', timestamp) AS INTEGER), counter FROM JOBTCOUNT"
        " WHERE jobid = ? AND metric IN ('tpm', 'qph') ORDER BY rowid"
    )
    return (Count(float(at), int(value)) for at, value in database.execute(query, (job,)))


def _timings(database: sqlite3.Connection, job: str) -> Iterator[Timing]:
    query = (
        "SELECT procname, calls, avg_ms, p50_ms, p95_ms, p99_ms, max_ms FROM JOBTIMING"
        " WHERE jobid = ? AND summary = 1"
    )
    return (
        Timing(str(name).upper(), int(calls), *(float(value) for value in rest))
        for name, calls, *rest in database.execute(query, (job,))
    )
