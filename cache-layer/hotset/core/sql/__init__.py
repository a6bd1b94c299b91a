"""A connection to a SQL server, and the ways it fails: what workloads, warm-ups and reports share.

Classes that implement the Protocols hold every fact about a client library.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Literal, Protocol, TypeAlias

from ..errors import HotsetError

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


LASTING = ("read-only", "disk full", "out of memory", "I/O error", "damaged data")
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
    """The database cannot serve what it is asked for; says the remedy."""


class NotLoadedError(SetupError):
    """The database does not hold what the caller asked to work on; says the remedy."""

    kind = "not-loaded"


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
