"""What this package needs from a database: two Protocols and four ways to fail.

Whoever implements them holds every fact about a client library; whoever writes
the files under `sql/<engine>/` holds every fact about a dialect; what all of them take is in
`sql/common/`.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import Protocol, TypeAlias

Value: TypeAlias = int | float | str | Decimal | date | None
Row: TypeAlias = tuple[Value, ...]


class Session(Protocol):
    """One connection, used by one thread at a time, in autocommit.

    Every method raises `ServerGone` when the connection breaks and `Refused` when the server
    refuses the statement.
    """

    def script(self, sql: str) -> None:
        """Run one batch (several statements, or one that must stand alone)."""

    def query(self, sql: str, timeout_s: float | None = None) -> list[Row]:
        """Run one reading statement and return all its rows.

        Raises `TimedOut` after `timeout_s`; the connection still works then.
        """

    def load(self, table: str, columns: Sequence[str], chunks: Iterable[bytes]) -> int:
        """Bulk-load rows in one transaction; returns how many.

        May be called on tables with keys and rows (refresh function RF1). `chunks` are the
        pieces of a text cut anywhere: a row per line, its fields in the order of `columns` and
        between `|`, none after the last; dates as YYYY-MM-DD; no field holds `|`, a quote, a
        backslash or a line's end (clause 4.2.2).
        """

    def cancel(self) -> None:
        """Cancel what the server is doing for this session, from any thread; fails silently.

        The cancelled call raises `Refused`. Ctrl-C in the session's own thread must cancel, too.
        """

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


class DatabaseError(Exception):
    """Any failure below; not raised itself."""

    exit_code = 4
    http_status = 424


class Refused(DatabaseError):
    """The server refused one statement, in its own words; the connection still works."""


class TimedOut(DatabaseError):
    """A statement took longer than it was allowed, and was cancelled."""


class ServerGone(DatabaseError):
    """The connection broke: the server went down, crashed, or vanished from the network."""


class CannotConnect(ServerGone):
    """No connection could be made: refused, wrong password, unknown database, too many clients."""
