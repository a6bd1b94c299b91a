"""Single statements of a user's own: how a workload of SQL scripts sends them, on any engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from typing import Literal, Protocol, TypeAlias

from hotset.core.sql import Value

Protocols: TypeAlias = Literal["prepared", "simple"]
"""With parameters and prepared once per connection, or with the values in the text."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a statement returned."""

    columns: tuple[str, ...]
    rows: list[tuple[Value, ...]]


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """What the server finds wrong with a statement's text.

    :ivar line: of the statement, from 0; 0 where the server does not tell.
    """

    message: str
    line: int = 0


class Client(Protocol):
    """One connection, in autocommit, used by one thread.

    A statement is given as the parts of its text, between which the values stand. Values are typed
    as the same literals would be. Methods raise `Aborted` and `ServerGone`.
    """

    def execute(
        self, parts: Sequence[str], values: Sequence[Value], *, rows: bool = True
    ) -> Rows | None:
        """Run one statement and take all that it returns; None where that is no rows, or where
        ``rows`` are not wanted."""

    def check(self, parts: Sequence[str]) -> SyntaxProblem | None:
        """Have a statement read and not run. Only what is no SQL is a problem: a table that is not
        there may be made by the statement before."""

    def in_transaction(self) -> bool:
        """A transaction was begun and not ended, as far as that is known without asking."""

    def rollback(self) -> None:
        """End the transaction that may be open after a failure."""

    def close(self) -> None:
        """Close the connection."""


def literal(value: Value) -> str:
    """A value in a statement's text.

    >>> literal("it's"), literal(7), literal(None), literal(True)
    ("'it''s'", '7', 'NULL', 'true')
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | Decimal):
        return str(value)
    if isinstance(value, float):
        return str(exact(value))
    if isinstance(value, date | datetime | time):
        return f"'{value.isoformat(' ')}'" if isinstance(value, datetime) else f"'{value}'"
    return "'" + str(value).replace("'", "''") + "'"


def exact(value: float) -> Decimal:
    """A double as the number that its text shows: beside a column of numbers a database compares
    numbers, and uses the index; beside a double it may not.

    >>> exact(0.1)
    Decimal('0.1')
    """
    return Decimal(repr(value))


def fill_gaps(parts: Sequence[str], marks: Sequence[str]) -> str:
    """A statement with a text in each of its gaps, which are one fewer than its parts.

    >>> fill_gaps(("SELECT ", " + 1"), ("$1",))
    'SELECT $1 + 1'
    """
    return "".join(map("".join, zip(parts, [*marks, ""], strict=True)))


def text_of(parts: Sequence[str], values: Sequence[Value]) -> str:
    """A statement with its values.

    >>> text_of(("SELECT ", " + 1"), (7,))
    'SELECT 7 + 1'
    """
    return fill_gaps(parts, [literal(value) for value in values])
