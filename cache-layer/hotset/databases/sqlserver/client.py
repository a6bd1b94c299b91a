"""SQL Server as a client sees it: the sessions that `hotset.tpcc` asks for, over ODBC."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import TYPE_CHECKING, cast

from hotset.core.sql import (
    Aborted,
    Argument,
    DatabaseError,
    IntendedRollback,
    Row,
    ServerGone,
    Value,
)

from . import odbc
from .address import Address

if TYPE_CHECKING:
    import pyodbc

INTENDED_ROLLBACK = 50241
"""The number that neword.sql throws for the unused item of clause 2.4.1.4."""
_RETRYABLE = {1205: "deadlock", odbc.LOCK_TIMEOUT: "lock timeout", 3960: "serialization"}
_LASTING = {
    **dict.fromkeys((3906, 3908), "read-only"),
    # A file group, an extent, the log.
    **dict.fromkeys((1105, 1101, 9002), "disk full"),
    **dict.fromkeys((701, 802), "out of memory"),
    823: "I/O error",
    824: "damaged data",
}
"""By number of sys.messages."""
_LIST_DIGITS = 10
"""How many digits each integer of a list has in the string that carries it (see neword.sql)."""


class OdbcSession:
    """Base of the sessions: one connection."""

    _connection: pyodbc.Connection

    def close(self) -> None:
        """Close the connection, whatever state it is in."""
        import pyodbc

        with suppress(pyodbc.Error):
            self._connection.close()


class SqlServerSession(OdbcSession):
    """One connection, in autocommit: each batch or call is a transaction of its own."""

    def __init__(
        self, connection: pyodbc.Connection, *, by_array: bool, where: Address | None = None
    ) -> None:
        """:param where: what it is connected to."""
        # No statement timeout: building an index takes its time. Set before any cursor is made.
        connection.timeout = 0
        self._connection = connection
        self._by_array = by_array
        self._where = where
        self._calls: dict[str, pyodbc.Cursor] = {}

    def script(self, sql: str) -> None:
        """Run one batch."""
        with known_errors(self._where), self._connection.cursor() as cursor:
            odbc.drain(cursor.execute(sql))

    def query(self, sql: str) -> list[Row]:
        """All rows of the one statement of a batch that has some."""
        with known_errors(self._where), self._connection.cursor() as cursor:
            cursor.execute(sql)
            # Babelfish answers each statement, also those before that have none.
            while cursor.description is None:
                if not cursor.nextset():
                    raise Aborted("no rows", False, "the server answered, and sent no table")
            rows = [tuple(row) for row in cursor.fetchall()]
            odbc.drain(cursor)
            return cast("list[Row]", rows)

    def call(self, procedure: str, args: Sequence[Argument]) -> Row:
        """Run `EXEC procedure ?, …`, prepared once per cursor.

        A null is part of the text, not a parameter: for one without a type the driver would
        ask the server, a round trip each time. Everything the procedure sends is read to its
        end, since an error behind a result would otherwise be lost.
        """
        marks = ", ".join("NULL" if value is None else "?" for value in args)
        statement = f"EXEC {procedure} {marks}"
        given = [value for value in args if value is not None]
        with known_errors(self._where):
            cursor = self._calls.get(statement)
            if cursor is None:
                cursor = self._calls[statement] = self._connection.cursor()
                cursor.setinputsizes([_type(value) for value in given])
            cursor.execute(statement, [_bound(value) for value in given])
            row: tuple[Value, ...] | None = None
            while row is None and (cursor.description is not None or cursor.nextset()):
                if cursor.description is None:
                    continue
                record = cursor.fetchone()
                if record is None:
                    break
                row = tuple(record)
            odbc.drain(cursor)
        if row is None:
            raise Aborted("no result", False, f"{procedure} returned no row")
        return row

    def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> int:
        """Insert rows by the array, in one transaction."""
        with known_errors(self._where):
            return odbc.insert(self._connection, table, columns, rows, by_array=self._by_array)


@contextmanager
def known_errors(where: Address | None = None) -> Iterator[None]:
    """Turn the driver's errors into those that the benchmark knows.

    :param where: what the session is connected to: one that only looks says that it had to wait.
    """
    import pyodbc

    try:
        yield
    except pyodbc.Error as error:
        failure = odbc.failure(error)
        raise (where and odbc.lock_error(failure, where)) or meaning(failure) from error


def meaning(failure: odbc.Failure) -> DatabaseError:
    """Map what the driver reports to the benchmark's errors.

    >>> meaning(odbc.Failure("40001", (1205,), "deadlock victim"))
    Aborted('deadlock', True, 'deadlock victim')
    >>> meaning(odbc.Failure("25000", (3906,), "the database is read-only")).cause
    'read-only'
    >>> meaning(odbc.Failure("08S01", (), "Communication link failure"))
    ServerGone('Communication link failure')
    """
    if INTENDED_ROLLBACK in failure.numbers:
        return IntendedRollback("item number is not valid")
    if failure.gone:
        return ServerGone(failure.message)
    for number in failure.numbers:
        if (cause := (_RETRYABLE | _LASTING).get(number)) is not None:
            return Aborted(cause, number in _RETRYABLE, failure.with_remedy)
    if failure.state == "40001":
        return Aborted("deadlock", True, failure.message)
    name = next((str(number) for number in failure.numbers if number), failure.state)
    return Aborted(f"error {name}", False, failure.with_remedy)


def _bound(value: Argument) -> object:
    """A value as it travels; a list of integers becomes one string of ten digits each.

    >>> _bound((7, 1234))
    '00000000070000001234'
    """
    if isinstance(value, tuple):
        return "".join([f"{number:0{_LIST_DIGITS}d}" for number in value])
    return value


def _type(value: Argument) -> tuple[int, int, int]:
    """SQL type, size and digits of a parameter, always the same for one kind of value.

    Left to itself, the driver names the size of each single value, and the server prepares the
    statement again for every length of a name.
    """
    import pyodbc

    if isinstance(value, str | tuple):
        return pyodbc.SQL_VARCHAR, 200, 0
    if isinstance(value, Decimal):
        return pyodbc.SQL_DECIMAL, 12, 2
    if isinstance(value, int):
        return pyodbc.SQL_INTEGER, 0, 0
    if isinstance(value, float):
        return pyodbc.SQL_FLOAT, 0, 0
    return pyodbc.SQL_TYPE_TIMESTAMP, 23, 3
