"""A connection to a SQL server, and the ways it fails: what workloads, warm-ups and reports share.

Whoever implements the Protocols holds every fact about a client library; whoever writes the files
under `sql/<engine>/` of a package holds every fact about a dialect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Literal, Protocol, TypeAlias

from .errors import HotsetError

_COMMON = "common"
_SEPARATOR = re.compile(r"^\s*(?:--\s*)?GO\s*$", re.IGNORECASE | re.MULTILINE)
EngineName = Literal["postgres", "sqlserver"]
"""Database products, by their names on the command line and of their folders of SQL; what each is
has `databases/connect.py`."""
TimeClass = Literal["cpu", "data_read", "data_write", "log", "lock", "client", "other"]
"""Classes of the time of a database's users."""
Value: TypeAlias = int | float | str | Decimal | datetime | date | None
Row: TypeAlias = tuple[Value, ...]
Argument: TypeAlias = Value | tuple[int, ...]
"""A scalar, or a list of integers (the items of one order), as procedures take it."""


class Session(Protocol):
    """One connection, used by one thread at a time.

    Every method raises `ServerGone` when the connection breaks and `Refused` (or `Aborted`) when
    the server refuses the statement.
    """

    def script(self, sql: str) -> None:
        """Run one batch (several statements, or one that must stand alone), autocommitted."""

    def query(self, sql: str) -> list[Row]:
        """Run one reading statement and return all its rows."""

    def close(self) -> None:
        """Close the connection; closing twice, or a broken one, is no error."""


class DatabaseError(HotsetError):
    """Any failure below; not raised itself."""


class Refused(DatabaseError):
    """The server refused one statement, in its own words; the connection still works."""


LASTING = ("read-only", "disk full", "out of memory")
"""Causes of states that do not pass by themselves: what is measured in one is no figure."""


class Aborted(Refused):
    """The server rolled one transaction back; the connection still works.

    `cause` is short and countable: "deadlock", "serialization", "lock timeout", one of `LASTING`,
    or "error XXXXX" with the SQLSTATE. `detail` is the server's own message.
    """

    def __init__(self, cause: str, retryable: bool, detail: str = "") -> None:
        super().__init__(cause)
        # All fields, so that the error survives pickling between processes.
        self.args = (cause, retryable, detail)
        self.cause = cause
        self.retryable = retryable
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.cause}: {self.detail}" if self.detail else self.cause

    @property
    def message(self) -> str:
        """The message alone, without what PostgreSQL adds to it.

        >>> Aborted("error 23505", False, "duplicate key; DETAIL: Key (id)=(7) exists.").message
        'duplicate key'
        """
        return re.split(r"; (?:DETAIL|LINE|HINT|CONTEXT)\b", self.detail)[0]


class TimedOut(DatabaseError):
    """A statement took longer than it was allowed, and was cancelled."""


class Locked(DatabaseError):
    """A table that another session has to itself; the message names both."""


class ServerGone(DatabaseError):
    """The connection broke: the server went down, crashed, or vanished from the network."""

    @property
    def cause(self) -> str:
        """The same words, as `Aborted` has them."""
        return str(self)


class CannotConnect(ServerGone):
    """No connection could be made: refused, wrong password, unknown database, too many clients."""


class IntendedRollback(DatabaseError):
    """A new-order that met the unused item number and rolled back (clause 2.4.1.4)."""


class SetupError(HotsetError):
    """The database does not hold what the caller asked to work on; says the remedy."""


class LoadFailed(HotsetError):
    """The load did not finish."""


@dataclass(frozen=True, slots=True)
class Libpq:
    """How a program of its own reaches a PostgreSQL database, and what its errors mean.

    library            path of the libpq that this process's connections use
    parameters         connection parameters by libpq's names, the password among them
    setup              statements that each connection begins with
    intended_rollback  the SQLSTATE of `workload.IntendedRollback`
    retryable          SQLSTATE to `Aborted.cause`, of what is worth a repetition
    lasting            SQLSTATE to `Aborted.cause`, of states that do not pass
    gone               beginnings of the SQLSTATEs of `ServerGone`
    """

    library: str
    parameters: dict[str, str] = field(repr=False)
    setup: str
    intended_rollback: str
    retryable: dict[str, str]
    lasting: dict[str, str]
    gone: tuple[str, ...]


def split_batches(text: str) -> tuple[str, ...]:
    """The batches of an SQL file, which lines `GO` or `-- GO` part: the first is SQL Server's own,
    the second passes as a comment elsewhere, so that a file also runs in its engine's client.

    >>> split_batches("SELECT 1\\nGO\\nSELECT 2;\\n-- go\\n")
    ('SELECT 1', 'SELECT 2;')
    """
    return tuple(batch.strip() for batch in _SEPARATOR.split(text) if batch.strip())


@cache
def _batches(sql: SqlFiles, engine: str, name: str) -> tuple[str, ...]:
    return split_batches(sql.file(engine, name).read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True)
class SqlFiles:
    """SQL of a benchmark's package: `sql/<engine>/<name>.sql`, or `sql/common/<name>.sql`, which
    all products take."""

    package: str
    title: str

    def file(self, engine: str, name: str) -> Traversable:
        """:raises SetupError: the package has no SQL for that product."""
        root = files(self.package) / "sql"
        known = sorted(folder.name for folder in root.iterdir() if folder.is_dir())
        known = [name for name in known if name != _COMMON]
        if engine not in known:
            have = ", ".join(known)
            raise SetupError(f"no {self.title} SQL for engine {engine!r}; there is {have}")
        own = root / engine / f"{name}.sql"
        return own if own.is_file() else root / _COMMON / f"{name}.sql"

    def has(self, engine: str, name: str) -> bool:
        """True if there is such a file; not every question can be asked of every product."""
        return self.file(engine, name).is_file()

    def batches(self, engine: str, name: str) -> tuple[str, ...]:
        """The batches of a file."""
        return _batches(self, engine, name)

    def statement(self, engine: str, name: str) -> str:
        """The single batch of a file."""
        (only,) = self.batches(engine, name)
        return only

    def run(self, engine: str, session: Session, *names: str) -> None:
        """Run files as one transaction, which stays open where a batch of them fails."""
        run_whole(session, (batch for name in names for batch in self.batches(engine, name)))


def run_whole(session: Session, batches: Iterable[str]) -> None:
    """Run batches as one transaction, which stays open where one of them fails."""
    session.script("BEGIN TRANSACTION")
    for batch in batches:
        session.script(batch)
    session.script("COMMIT TRANSACTION")


@contextmanager
def nothing_half_done(
    open_: Callable[[], Session], drop: Callable[[Session], object]
) -> Iterator[None]:
    """Drop what was made when what is done inside fails, as far as the server lets it.

    :param drop: over a session of its own.
    """
    try:
        yield
    except BaseException:
        with suppress(DatabaseError), closing(open_()) as session:
            drop(session)
        raise
