"""Requirements of this package on a database, beside what every connection does."""

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from hotset.core import sql
from hotset.core.sql import Argument, Libpq, Row, Value


class Session(sql.Session, Protocol):
    """One connection, used by one thread at a time."""

    def call(self, procedure: str, args: Sequence[Argument]) -> Row:
        """Run a stored procedure as one transaction, committed on return.

        Returns the one row of scalars the procedure gives back. Raises
        `workload.IntendedRollback` when the procedure found the unused item of clause
        2.4.1.4.
        """

    def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> int:
        """Bulk-load rows in one transaction; returns how many."""


class Database(Protocol):
    """How to reach one database. Picklable, because worker processes get a copy.

    Implementations keep secrets out of `repr`.
    """

    @property
    def engine(self) -> str:
        """The dialect: names a folder under `sql/`."""

    def session(self) -> Session:
        """Open a connection; raises `CannotConnect`."""


@runtime_checkable
class LibpqDatabase(Database, Protocol):
    """A database that libpq speaks to: its users run in the compiled driver (`tpcc/driver`)."""

    def libpq(self) -> Libpq:
        """Return the parameters of the driver."""
