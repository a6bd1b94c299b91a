"""Single statements on SQL Server, over ODBC."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

from hotset.core.sql import Aborted, CannotConnect, Value

from ..statements import Protocols, Rows, SyntaxProblem, exact, fill_gaps, text_of
from . import odbc
from .client import SqlServerDatabase, known_errors

if TYPE_CHECKING:
    import pyodbc


class SqlServerStatements:
    """One connection; see `statements.Client`."""

    def __init__(self, database: SqlServerDatabase, protocol: Protocols) -> None:
        """:raises CannotConnect: with the server's reason."""
        try:
            self._connection, _ = odbc.connect(database)
        except ConnectionError as error:
            raise CannotConnect(str(error)) from None
        self._connection.timeout = 0
        self._prepared = protocol == "prepared"
        self._cursors: dict[tuple[str, tuple[object, ...]], pyodbc.Cursor] = {}
        self._plain = self._connection.cursor()
        self._known: set[tuple[str, ...]] = set()
        self._open = 0
        self._is_sure = True

    def execute(
        self,
        parts: Sequence[str],
        values: Sequence[Value],
        *,
        rows: bool = True,  # noqa: ARG002 - they have to be read in any case
    ) -> Rows | None:
        """Run one statement; each has a cursor of its own, which keeps it prepared."""
        key = tuple(parts)
        self._open += _opened(key)
        self._is_sure = self._is_sure and key in self._known
        self._known.add(key)
        if not self._prepared:
            values = [int(value) if isinstance(value, bool) else value for value in values]
            return self._rows(self._plain, text_of(parts, values), [])
        # A null is part of the text: of one without a type the driver would ask the server.
        marks = ["NULL" if value is None else "?" for value in values]
        text = fill_gaps(parts, marks)
        given = [_bound(value) for value in values if value is not None]
        types = tuple(_type(one) for one in given)
        cursor = self._cursors.get((text, types))
        if cursor is None:
            cursor = self._cursors[text, types] = self._connection.cursor()
            if types:
                cursor.setinputsizes(list(types))
        return self._rows(cursor, text, given)

    def _rows(self, cursor: pyodbc.Cursor, text: str, values: Sequence[object]) -> Rows | None:
        """Those of the first result; an error behind it shows only when all is read."""
        with known_errors():
            cursor.execute(text, *([values] if values else []))
            found: Rows | None = None
            while True:
                if found is None and cursor.description is not None:
                    columns = tuple(str(column[0]) for column in cursor.description)
                    found = Rows(columns, [tuple(row) for row in cursor.fetchall()])
                if not cursor.nextset():
                    return found

    def check(self, parts: Sequence[str]) -> SyntaxProblem | None:
        """By SET PARSEONLY."""
        self._rows(self._plain, "SET PARSEONLY ON", [])
        try:
            self._rows(self._plain, "1".join(parts), [])
        except Aborted as problem:
            return SyntaxProblem(problem.detail or problem.cause)
        finally:
            self._rows(self._plain, "SET PARSEONLY OFF", [])
        return None

    def in_transaction(self) -> bool:
        """Asked where the texts begin and end a different number, and after each text's first run:
        it may call what begins one. In every other case the question would cost what it measures.
        """
        if self._open == 0 and self._is_sure:
            return False
        self._open, self._is_sure = 0, True
        found = self._rows(self._plain, "SELECT @@TRANCOUNT", [])
        assert found is not None
        return bool(found.rows[0][0])

    def rollback(self) -> None:
        """Where there is something to roll back."""
        self._open, self._is_sure = 0, True
        self._rows(self._plain, "IF @@TRANCOUNT > 0 ROLLBACK", [])

    def close(self) -> None:
        """Close the connection, whatever state it is in."""
        import pyodbc

        with suppress(pyodbc.Error):
            self._connection.close()


_BEGIN = re.compile(r"\bbegin\s+(?:distributed\s+)?tran", re.I)
_END = re.compile(r"\b(?:commit|rollback)\b", re.I)


@cache
def _opened(parts: tuple[str, ...]) -> int:
    """How many transactions a text begins more than it ends, by its words.

    >>> _opened(("BEGIN TRAN; SELECT ", "")), _opened(("COMMIT",)), _opened(("BEGIN SELECT 1 END",))
    (1, -1, 0)
    """
    text = " ".join(parts)
    return len(_BEGIN.findall(text)) - len(_END.findall(text))


def _bound(value: Value) -> object:
    return exact(value) if isinstance(value, float) else value


def _type(value: object) -> tuple[int, int, int]:
    """SQL type, size and digits, the same for all values of one kind: the driver would name the
    size of each value, and the server prepare the statement anew for every length of a text."""
    import pyodbc

    if isinstance(value, bool):
        return pyodbc.SQL_BIT, 0, 0
    if isinstance(value, int):
        return (pyodbc.SQL_INTEGER if -(2**31) <= value < 2**31 else pyodbc.SQL_BIGINT), 0, 0
    if isinstance(value, Decimal):
        return pyodbc.SQL_DECIMAL, 38, 10
    if isinstance(value, str):
        # Beside a column of varchar, nvarchar would cost its index.
        return (pyodbc.SQL_VARCHAR if value.isascii() else pyodbc.SQL_WVARCHAR), 4000, 0
    return pyodbc.SQL_TYPE_TIMESTAMP, 27, 7
