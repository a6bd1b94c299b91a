"""Requirements of this package on a database, beside what every connection does.

What all dialects take is in `sql/common/`, the rest in `sql/<engine>/`.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from hotset.core import sql
from hotset.core.sql import Row


class Session(sql.Session, Protocol):
    """One connection, used by one thread at a time, in autocommit."""

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


class Database(Protocol):
    """How to reach one database. Picklable, because worker processes get a copy.

    Implementations keep secrets out of `repr`.
    """

    @property
    def engine(self) -> str:
        """The dialect: names a folder under `sql/`."""

    def session(self) -> Session:
        """Open a connection; raises `CannotConnect`."""
