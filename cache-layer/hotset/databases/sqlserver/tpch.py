"""SQL Server for `hotset.tpch`: the sessions its Protocols ask for, over ODBC."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

from hotset.core.sql import DatabaseError, Refused, Row, ServerGone, TimedOut

from . import odbc
from .address import Address
from .client import OdbcSession

if TYPE_CHECKING:
    import pyodbc

_TIMEOUT_EXPIRED = "HYT00"
_CANCEL_TIMEOUT_S = 5.0
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class SqlServerTpch:
    """A SQL Server database as `hotset.tpch` wants it."""

    database: Address
    engine: str = field(default="sqlserver", init=False)

    def session(self) -> SqlServerTpchSession:
        """Open a connection; raises CannotConnect with the server's reason, without password."""
        return SqlServerTpchSession(self.database)


class SqlServerTpchSession(OdbcSession):
    """One connection, in autocommit."""

    def __init__(self, database: Address) -> None:
        self._database = database
        self._busy: pyodbc.Cursor | None = None
        self._open()

    def _open(self) -> None:
        self._connection, self._by_array = odbc.connect(self._database)

    def script(self, sql: str) -> None:
        """Run one batch."""
        with self._errors(), self._cursor(None) as cursor:
            self._interruptibly(lambda: odbc.drain(cursor.execute(sql)))

    def query(self, sql: str, timeout_s: float | None = None) -> list[Row]:
        """All rows of one statement; raises TimedOut after `timeout_s`, in whole seconds."""
        try:
            with self._errors(), self._cursor(timeout_s) as cursor:
                return self._interruptibly(lambda: _all_rows(cursor, sql))
        except TimedOut:
            self._survive()
            raise

    def _survive(self) -> None:
        """Connect again if the server did not take the cancellation (Babelfish does not)."""
        import pyodbc

        try:
            with self._cursor(None) as cursor:
                cursor.execute("SELECT 1").fetchall()
        except pyodbc.Error:
            self.close()
            self._open()

    def load(self, table: str, columns: Sequence[str], chunks: Iterable[bytes]) -> int:
        """Insert the rows of a `|`-separated text, as texts: the server knows the types."""
        rows = (line.split("|") for line in _lines(chunks))
        with self._errors():
            return odbc.insert(self._connection, table, columns, rows, by_array=self._by_array)

    def cancel(self) -> None:
        """Ask the server to cancel the statement under way; any thread may."""
        import pyodbc

        busy = self._busy
        if busy is not None:
            with suppress(pyodbc.Error):
                busy.cancel()

    @contextmanager
    def _cursor(self, timeout_s: float | None) -> Iterator[pyodbc.Cursor]:
        """A cursor with a time limit, which it takes from the connection when it is made."""
        self._connection.timeout = 0 if timeout_s is None else max(1, math.ceil(timeout_s))
        with self._connection.cursor() as cursor:
            self._busy = cursor
            try:
                yield cursor
            finally:
                self._busy = None

    def _interruptibly(self, work: Callable[[], Result]) -> Result:
        """Do the work so that Ctrl-C ends it: inside the driver Python sees no signal."""
        if threading.current_thread() is not threading.main_thread():
            return work()
        done: Future[Result] = Future()

        def in_thread() -> None:
            try:
                done.set_result(work())
            except BaseException as error:
                done.set_exception(error)

        threading.Thread(target=in_thread, name="statement", daemon=True).start()
        try:
            return done.result()
        except KeyboardInterrupt:
            self.cancel()
            with suppress(Exception):
                done.result(_CANCEL_TIMEOUT_S)
            raise

    @contextmanager
    def _errors(self) -> Iterator[None]:
        import pyodbc

        try:
            yield
        except pyodbc.Error as error:
            failure = odbc.failure(error)
            raise odbc.lock_error(failure, self._database) or _meaning(failure) from error


def _all_rows(cursor: pyodbc.Cursor, sql: str) -> list[Row]:
    rows = [tuple(row) for row in cursor.execute(sql).fetchall()]
    odbc.drain(cursor)
    return cast("list[Row]", rows)


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """The lines of a text cut anywhere.

    >>> list(_lines([b"1|a", b"b\\n2|c\\n3", b"|d"]))
    ['1|ab', '2|c', '3|d']
    """
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line.decode() for line in whole)
    if rest:
        yield rest.decode()


def _meaning(failure: odbc.Failure) -> DatabaseError:
    if failure.state == _TIMEOUT_EXPIRED:
        return TimedOut(failure.message)
    if failure.gone:
        return ServerGone(failure.message)
    return Refused(failure.with_remedy)
