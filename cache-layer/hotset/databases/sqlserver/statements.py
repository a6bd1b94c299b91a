"""Single statements of a user's own on SQL Server, over ODBC.

A statement is given as the parts of its text, between which the values go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING

from hotset.core.sql import Aborted, CannotConnect, Value

from . import odbc
from .address import Address
from .client import OdbcSession, known_errors

if TYPE_CHECKING:
    import pyodbc


class SqlServerStatements(OdbcSession):
    """One connection, in autocommit, used by one thread; raises `Aborted` and `ServerGone`."""

    def __init__(self, database: Address, *, prepared: bool) -> None:
        """
        :param prepared: values are parameters, typed as the same literals would be, of statements
            prepared once; otherwise they are in the text.
        :raises CannotConnect: with the server's reason.
        """
        try:
            self._connection, _ = odbc.connect(database)
        except ConnectionError as error:
            raise CannotConnect(str(error)) from None
        self._connection.timeout = 0
        self._prepared = prepared
        self._cursors: dict[tuple[str, tuple[object, ...]], pyodbc.Cursor] = {}
        self._plain = self._connection.cursor()
        self._known: set[tuple[str, ...]] = set()
        self._open = 0
        self._is_sure = True

    def execute(self, parts: Sequence[str], values: Sequence[Value]) -> None:
        """Run one statement; each has a cursor of its own, which keeps it prepared."""
        key = tuple(parts)
        self._open += _opened(key)
        self._is_sure = self._is_sure and key in self._known
        self._known.add(key)
        if not self._prepared:
            self._run(self._plain, fill_gaps(parts, [literal(value) for value in values]))
            return
        text = fill_gaps(parts, ["?"] * len(values))
        bound = [exact(value) if isinstance(value, float) else value for value in values]
        types = tuple(map(_type, bound))
        cursor = self._cursors.get((text, types))
        if cursor is None:
            cursor = self._cursors[text, types] = self._connection.cursor()
            if types:
                cursor.setinputsizes(list(types))
        self._run(cursor, text, bound)

    def _run(self, cursor: pyodbc.Cursor, text: str, values: Sequence[object] = ()) -> None:
        """An error behind the first result shows only when all is read."""
        with known_errors():
            cursor.execute(text, *([values] if values else []))
            while True:
                if cursor.description is not None:
                    cursor.fetchall()
                if not cursor.nextset():
                    return

    def check(self, parts: Sequence[str]) -> str | None:
        """Return the server's complaint about a statement's text, which it parses and does not run
        (SET PARSEONLY). A missing table may be made by the statement before."""
        self._run(self._plain, "SET PARSEONLY ON")
        try:
            self._run(self._plain, "1".join(parts))
        except Aborted as problem:
            return problem.detail or problem.cause
        finally:
            self._run(self._plain, "SET PARSEONLY OFF")
        return None

    def in_transaction(self) -> bool:
        """Asked where the texts begin and end a different number, and after each text's first run:
        it may call what begins one. In every other case the question would cost what it measures.
        """
        if self._open == 0 and self._is_sure:
            return False
        self._open, self._is_sure = 0, True
        with known_errors():
            self._plain.execute("SELECT @@TRANCOUNT")
            return bool(self._plain.fetchall()[0][0])

    def rollback(self) -> None:
        """Where there is something to roll back."""
        self._open, self._is_sure = 0, True
        self._run(self._plain, "IF @@TRANCOUNT > 0 ROLLBACK")


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


def literal(value: Value) -> str:
    """A value in a statement's text.

    >>> literal("it's"), literal(7), literal(0.1)
    ("'it''s'", '7', '0.1')
    """
    if isinstance(value, float):
        return str(exact(value))
    return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"


def exact(value: float) -> Decimal:
    """A double as the number that its text shows: beside a column of numbers a database compares
    numbers, and uses the index; beside a double it may not.

    >>> exact(0.1)
    Decimal('0.1')
    """
    return Decimal(repr(value))


def fill_gaps(parts: Sequence[str], marks: Sequence[str]) -> str:
    """A statement with a text in each of its gaps, which are one fewer than its parts.

    >>> fill_gaps(("SELECT ", " + 1"), ("?",))
    'SELECT ? + 1'
    """
    return "".join(map("".join, zip(parts, [*marks, ""], strict=True)))


def _type(value: object) -> tuple[int, int, int]:
    """SQL type, size and digits, the same for all values of one kind: the driver would name the
    size of each value, and the server prepare the statement again for every length of a text."""
    import pyodbc

    if isinstance(value, int):
        return (pyodbc.SQL_INTEGER if -(2**31) <= value < 2**31 else pyodbc.SQL_BIGINT), 0, 0
    if isinstance(value, Decimal):
        return pyodbc.SQL_DECIMAL, 38, 10
    # Beside a column of varchar, nvarchar would cost its index.
    return (pyodbc.SQL_VARCHAR if str(value).isascii() else pyodbc.SQL_WVARCHAR), 4000, 0
