"""What this package needs from a database: three Protocols and five ways to fail.

Whoever implements them holds every fact about a client library; whoever writes
the files under `sql/<engine>/` holds every fact about a dialect. The rest of the
package knows neither.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Protocol, TypeAlias, runtime_checkable

Value: TypeAlias = int | float | str | Decimal | datetime | tuple[int, ...] | None
"""A scalar, or a list of integers (the items of one order), as procedures take it."""

Row: TypeAlias = tuple[Value, ...]


class Session(Protocol):
    """One connection, used by one thread at a time.

    Every method raises `ServerGone` when the connection breaks and `Aborted`
    when the server refuses the statement.
    """

    def script(self, sql: str) -> None:
        """Run one batch (several statements, or one that must stand alone), autocommitted."""

    def query(self, sql: str) -> list[Row]:
        """Run one reading statement and return all its rows."""

    def call(self, procedure: str, args: Sequence[Value]) -> Row:
        """Run a stored procedure as one transaction, committed on return.

        Returns the one row of scalars the procedure gives back. Raises
        `IntendedRollback` when the procedure found the unused item of clause
        2.4.1.4.
        """

    def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> int:
        """Bulk-load rows in one transaction; returns how many."""

    def close(self) -> None:
        """Close the connection; closing twice, or a broken one, is no error."""


class Database(Protocol):
    """How to reach one database. Picklable, because worker processes get a copy.

    Implementations keep secrets out of `repr`.
    """

    @property
    def engine(self) -> str:
        """The dialect: names a folder under `sql/`."""

    def session(self) -> Session:
        """Open a connection; raises `CannotConnect`."""


@dataclass(frozen=True, slots=True)
class Libpq:
    """How a program of its own reaches a PostgreSQL database, and what its errors mean.

    library            path of the libpq that this process's connections use
    parameters         connection parameters by libpq's names, the password among them
    setup              statements that each connection begins with
    intended_rollback  the SQLSTATE of `IntendedRollback`
    retryable          SQLSTATE to `Aborted.cause`, of what is worth a repetition
    gone               beginnings of the SQLSTATEs of `ServerGone`
    """

    library: str
    parameters: dict[str, str] = field(repr=False)
    setup: str
    intended_rollback: str
    retryable: dict[str, str]
    gone: tuple[str, ...]


@runtime_checkable
class LibpqDatabase(Database, Protocol):
    """A database that libpq speaks to: its users run in the compiled driver (`tpcc/driver`)."""

    def libpq(self) -> Libpq:
        """What that driver needs."""


class DatabaseError(Exception):
    """Any failure below; not raised itself."""

    exit_code = 4
    http_status = 424


class IntendedRollback(DatabaseError):
    """A new-order that met the unused item number and rolled back (clause 2.4.1.4)."""


class Aborted(DatabaseError):
    """The server rolled one transaction back; the connection still works.

    `cause` is short and countable: "deadlock", "serialization", "lock timeout",
    or "error XXXXX" with the SQLSTATE. `detail` is the server's own message.
    """

    def __init__(self, cause: str, retryable: bool, detail: str = "") -> None:
        # All fields go to Exception so that the error survives pickling between processes.
        super().__init__(cause, retryable, detail)
        self.cause = cause
        self.retryable = retryable
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.cause}: {self.detail}" if self.detail else self.cause

    @property
    def said(self) -> str:
        """The message alone, without what PostgreSQL adds to it.

        >>> Aborted("error 23505", False, "duplicate key; DETAIL: Key (id)=(7) exists.").said
        'duplicate key'
        """
        return re.split(r"; (?:DETAIL|LINE|HINT|CONTEXT)\b", self.detail)[0]


class ServerGone(DatabaseError):
    """The connection broke: the server went down, crashed, or vanished from the network."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


class CannotConnect(ServerGone):
    """No connection could be made: refused, wrong password, unknown database, too many clients."""
