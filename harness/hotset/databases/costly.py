"""The statements of a database that take the most time, and what their parameters are compared
with, whatever the product."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Costly:
    """A statement as the server counted it.

    :ivar share: of the time that all statements of the database took.
    :ivar plan: as the server keeps it; empty where it keeps none.
    """

    text: str
    calls: int
    mean_ms: float
    share: float
    plan: str = ""


@dataclass(frozen=True, slots=True)
class Column:
    """A column that a parameter is compared with, or written to."""

    schema: str
    relation: str
    name: str

    def __str__(self) -> str:
        return f"{self.relation}.{self.name}"


@dataclass(frozen=True, slots=True)
class Parameter:
    """One of a statement.

    :ivar mark: what stands for it in the text.
    :ivar kind: its type, as SQL names it.
    :ivar category: the type's: N are numbers, S strings, D dates.
    :ivar column: None where none was found.
    :ivar sample: a value that it had once, as SQL writes it; empty where none is known.
    :ivar is_list: it stands for a list of values; how many they were, the server does not keep.
    """

    mark: str
    kind: str
    category: str
    column: Column | None
    sample: str = ""
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """What the statistics know of a column's values, all as text.

    :ivar common: the most common values and their shares of the rows.
    :ivar bounds: values that divide the others into equal parts.
    """

    kind: str
    category: str
    common: tuple[tuple[str, float], ...]
    bounds: tuple[str, ...]

    def values(self) -> Iterator[str]:
        """All that are known, the common ones first."""
        yield from (value for value, _ in self.common)
        yield from self.bounds


COMMENTS = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)+", re.DOTALL)
_QUERY = re.compile(r"\(*\s*(?:select|insert|update|delete|merge|with|values|table)\b", re.I)


def bare(text: str) -> str:
    """A statement without the comments in front of it, which programs write to tell theirs apart.

    >>> bare("-- name: GetUser :one\\n/* x */ select 1")
    'select 1'
    """
    found = COMMENTS.match(text)
    return text[found.end() :] if found else text


def is_query(text: str) -> bool:
    """Whether a statement reads or changes rows.

    >>> is_query("(select 1) union (select 2)"), is_query("MERGE INTO t"), is_query("BEGIN")
    (True, True, False)
    """
    return _QUERY.match(bare(text)) is not None


NO_QUERY = "it reads and changes no rows"
CATALOGS_ONLY = "it asks only what the server keeps about itself"


def apart(text: str, plus: str, before: str = "") -> str:
    r"""A literal of text without a colon before a letter, which would name a script's variable.

    :param plus: what joins texts.
    :param before: what stands before each quoted part.

    >>> apart("it's", "||"), apart("a:b", "||")
    ("'it''s'", "'a' || ':' || 'b'")
    """
    quoted = text.replace("'", "''")
    between = f"' {plus} {before}':' {plus} {before}'"
    return f"{before}'" + re.sub(r":(?=[A-Za-z_])", lambda _: between, quoted) + "'"


class Catalog(Protocol):
    """What a product knows of its statements and columns, over one connection, and how its SQL
    writes values."""

    mark: re.Pattern[str]
    """What a parameter looks like in a text."""
    grant: str
    """What shows hidden statements."""

    def statements(self, most: int) -> list[Costly]:
        """So many of the most costly ones at most, the first the most; each text once.

        :raises PrerequisiteMissingError: the server does not count them.
        :raises RequestError: this user may not see them.
        """

    def is_hidden(self, statement: Costly) -> bool:
        """Whether its text is not shown to this user."""

    def against(self, statement: Costly) -> str | None:
        """Why it makes no script, as far as its text or its plan tells; None: nothing is."""

    def parameters(self, statement: Costly) -> list[Parameter]:
        """Those of a statement. Raises `Aborted` where it cannot stand in a script."""

    def look_up(self, column: Column) -> Known | None:
        """What the statistics have of a column."""

    def literal(self, text: str) -> str:
        """A value as a literal of text."""

    def pick_literal(self, literals: Sequence[str], kind: str, place: str) -> str:
        """The value at a place, counted from 1, of a list of literals of a type."""

    def guess(self, parameter: Parameter) -> str:
        """Some value of its type, other than a number."""
