"""The statements of a PostgreSQL database that take the most time, and what their parameters are
compared with.

pg_stat_statements has the texts, with `$1` in place of each constant and, from PostgreSQL 18 on,
`$1 /*, ... */` in place of a list of them. The server itself is asked what a parameter belongs to:
the statement is prepared, and its generic plan (EXPLAIN, which runs nothing) shows conditions such
as `(item.id = $1)`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.sql import Aborted, Row

from ..base import extension_schema, number, sql
from ..costly import (
    CATALOGS_ONLY,
    NO_QUERY,
    Column,
    Costly,
    Known,
    Parameter,
    apart,
    bare,
    is_query,
)
from .client import PostgresSession

HIDDEN = "<insufficient privilege>"
_SETUP = (
    "pg_stat_statements does not count here: set shared_preload_libraries ="
    " 'pg_stat_statements', restart the server, and run CREATE EXTENSION pg_stat_statements in"
    " this database"
)
Plan: TypeAlias = Mapping[str, Any]


class PostgresCatalog:
    """See `costly.Catalog`."""

    mark = re.compile(r"\$\d+")

    def __init__(self, session: PostgresSession, user: str) -> None:
        """:param user: of the session, for the statement that permits more."""
        self._session = session
        self.grant = f"GRANT pg_read_all_stats TO {user or 'the role'}"

    def statements(self, most: int) -> list[Costly]:
        return statements(self._session, most)

    def is_hidden(self, statement: Costly) -> bool:
        return statement.text == HIDDEN

    def against(self, statement: Costly) -> str | None:
        if self.is_hidden(statement):
            return f"{self.grant} shows it"
        return None if is_query(statement.text) else NO_QUERY

    def parameters(self, statement: Costly) -> list[Parameter]:
        return parameters(self._session, statement.text)

    def look_up(self, column: Column) -> Known | None:
        return read_statistics(self._session, column)

    def literal(self, text: str) -> str:
        return apart(text, "||")

    def pick_literal(self, literals: Sequence[str], kind: str, place: str) -> str:
        return f"(ARRAY[{', '.join(literals)}]::{kind}[])[{place}]"

    def guess(self, parameter: Parameter) -> str:
        return {
            "B": "true",
            "D": f"now()::{parameter.kind}",
            "S": "'a'",
            "T": "interval '1 day'",
        }.get(parameter.category, f"NULL::{parameter.kind}")


def statements(session: PostgresSession, most: int) -> list[Costly]:
    """So many of the most costly ones, the first the most.

    :raises PrerequisiteMissingError: the server does not count them.
    """
    schema = extension_schema(session, "pg_stat_statements")
    if schema is None:
        raise PrerequisiteMissingError(_SETUP)
    asked = sql("postgres", "costly_statements").format(place=schema, most=most)
    try:
        rows = session.query(asked)
    except Aborted as refused:
        if refused.cause == "error 55000":
            raise PrerequisiteMissingError(_SETUP) from None
        raise
    return [
        Costly(_preparable(str(text)), number(calls), float(str(mean)), float(str(share or 0)))
        for text, calls, mean, share in rows
    ]


_TYPED = re.compile(
    r"\b(date|interval|time(?:stamp)?(?:tz| with(?:out)? time zone)?)\s+(\$\d+)", re.I
)


_PREPARE = re.compile(r"prepare\s+\S+?\s*(?:\([^)]*\)\s*)?\bas\b\s*", re.I)


def _preparable(text: str) -> str:
    """A constant may stand behind its type, a parameter only before it; what PREPARE prepared is
    counted with it.

    >>> _preparable("SELECT date $1 - interval $2")
    'SELECT $1::date - $2::interval'
    >>> _preparable("PREPARE one (int) AS SELECT $1")
    'SELECT $1'
    """
    prepared = _PREPARE.match(bare(text))
    return _TYPED.sub(r"\2::\1", bare(text)[prepared.end() :] if prepared else text)


def parameters(session: PostgresSession, text: str) -> list[Parameter]:
    """Those of a statement, in the order of their numbers. Raises `Aborted` where it cannot be
    prepared: what was a constant may stand where no parameter can."""
    session.script(f"PREPARE hotset_suggest AS {bare(text)}")
    try:
        types = session.query(sql("postgres", "prepared_types"))
        nulls = ", ".join(["NULL"] * len(types))
        arguments = f"({nulls})" if types else ""
        ((cell,),) = session.query(
            f"EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE hotset_suggest{arguments}"
        )
        plan = _plan(cell)
        if _is_of_catalogs(plan, text):
            raise Aborted("catalogs", False, CATALOGS_ONLY)
        found = dict(_columns(session, plan, text))
        squashed = {int(place) for place in _SQUASHED.findall(text)}
        return [
            Parameter(
                f"${place}", str(kind), str(category), found.get(place), is_list=place in squashed
            )
            for place, (kind, category) in enumerate(types, 1)
        ]
    finally:
        session.script("DEALLOCATE hotset_suggest")


def read_statistics(session: PostgresSession, column: Column) -> Known | None:
    """What the statistics have of a column."""
    rows = session.query(
        sql("postgres", "column_values").format(
            schema=_quoted(column.schema),
            relation=_quoted(column.relation),
            column=_quoted(column.name),
        )
    )
    if not rows:
        return None
    kind, category, _, shares, common, bounds = rows[0]
    values = _elements(common)
    return Known(
        str(kind),
        str(category),
        tuple(zip(values, map(float, _elements(shares)), strict=False)),
        tuple(_elements(bounds)),
    )


def _plan(cell: object) -> Plan:
    read = json.loads(cell) if isinstance(cell, str) else cell
    assert isinstance(read, list)
    plan: Plan = read[0]["Plan"]
    return plan


_SYSTEM = ("pg_catalog", "information_schema", "pg_toast")


_OWN_FUNCTION = re.compile(r"\bpg_\w+\s*\(", re.I)


def _is_of_catalogs(plan: Plan, text: str) -> bool:
    """Whether all that it reads, tables and functions in place of tables, is the server's own; or
    whether it reads nothing and calls what may act on the server (pg_stat_statements_reset)."""
    schemas = [
        str(node.get("Schema", "public"))
        for node in _nodes(plan)
        if "Relation Name" in node or "Function Name" in node
    ]
    if not schemas:
        return _OWN_FUNCTION.search(text) is not None
    return all(schema in _SYSTEM for schema in schemas)


def _nodes(plan: Plan) -> Iterator[Plan]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from _nodes(below)


_NAME = r'(?:"(?:[^"]|"")+"|\w+)'
_CAST = r"(?:::[\w ]+(?:\(\d+(?:,\d+)?\))?(?:\[\])?)?"
_COLUMN = rf"\(*(?P<alias>{_NAME})\.(?P<column>{_NAME})\)*{_CAST}\)*"
_SIGN = r"\s*(?:=|<>|<=|>=|<|>|~~\*?)\s*"
_COMPARED = (
    re.compile(rf"{_COLUMN}{_SIGN}(?:ANY\s*)?\(*(?:ARRAY\[)?\(*\$(?P<place>\d+)\b"),
    re.compile(rf"\$(?P<place>\d+)\)*{_CAST}\)*{_SIGN}{_COLUMN}"),
)
_REST = r"\s*/\*, \.\.\. \*/"
_SQUASHED = re.compile(rf"\$(\d+){_REST}")
_PLACES = rf"\$\d+(?:\s*,\s*\$\d+|{_REST})*"
_LISTED = re.compile(rf"{_COLUMN}{_SIGN}(?:ANY|ALL)\s*\(+ARRAY\[(?P<places>[^\]]*)\]")
_IN = re.compile(
    rf"(?P<column>\"(?:[^\"]|\"\")+\"|\w+)\s+(?:not\s+)?in\s*\(\s*(?P<places>{_PLACES})\s*\)", re.I
)
_WRITTEN = re.compile(
    r"(?P<column>\"(?:[^\"]|\"\")+\"|\w+)\s*(?:=|<>|<=|>=|<|>|\blike\b)\s*\$(?P<place>\d+)\b", re.I
)


def _columns(session: PostgresSession, plan: Plan, text: str) -> Iterator[tuple[int, Column]]:
    """By number of parameter; what the plan shows comes last, and counts before the text."""
    tables = {
        str(node["Alias"]): (str(node.get("Schema", "public")), str(node["Relation Name"]))
        for node in _nodes(plan)
        if "Relation Name" in node and "Alias" in node
    }
    names = {table: [str(row[0]) for row in _rows(session, table)] for table in tables.values()}
    for match in _WRITTEN.finditer(text):
        owners = [table for table in names if _plain(match["column"]) in names[table]]
        if len(owners) == 1:
            yield int(match["place"]), Column(*owners[0], _plain(match["column"]))
    for match in _IN.finditer(text):
        owners = [table for table in names if _plain(match["column"]) in names[table]]
        if len(owners) == 1:
            yield from _each(match["places"], Column(*owners[0], _plain(match["column"])))
    for node in _nodes(plan):
        yield from _inserted(node, names)
        for key, value in node.items():
            if key.endswith(("Cond", "Filter")) and isinstance(value, str):
                yield from _compared(value, tables)


def _compared(
    condition: str, tables: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[int, Column]]:
    for match in _LISTED.finditer(condition):
        if (table := tables.get(_plain(match["alias"]))) is not None:
            yield from _each(match["places"], Column(*table, _plain(match["column"])))
    for pattern in _COMPARED:
        for match in pattern.finditer(condition):
            table = tables.get(_plain(match["alias"]))
            if table is not None:
                yield int(match["place"]), Column(*table, _plain(match["column"]))


def _each(places: str, column: Column) -> Iterator[tuple[int, Column]]:
    """All parameters of a list are compared with the same column."""
    for place in re.findall(r"\$(\d+)", places):
        yield int(place), column


def _inserted(
    node: Plan, names: Mapping[tuple[str, str], list[str]]
) -> Iterator[tuple[int, Column]]:
    """An insert's row has the table's columns in their order."""
    if node.get("Operation") != "Insert" or not node.get("Plans"):
        return
    table = str(node.get("Schema", "public")), str(node["Relation Name"])
    row = node["Plans"][0].get("Output", ())
    for name, value in zip(names.get(table, ()), row, strict=False):
        if found := re.fullmatch(rf"\(*\$(\d+)\)*{_CAST}", str(value)):
            yield int(found[1]), Column(*table, name)


def _rows(session: PostgresSession, table: tuple[str, str]) -> list[Row]:
    schema, relation = map(_quoted, table)
    return session.query(sql("postgres", "columns").format(schema=schema, relation=relation))


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


_ELEMENT = re.compile(r'"((?:[^"\\]|\\.)*)"|([^,{}"]+)')


def _elements(text: object) -> list[str]:
    r"""Those of an array, as the server writes it.

    >>> _elements('{a,"b, c","d\\"e"}'), _elements(None)
    (['a', 'b, c', 'd"e'], [])
    """
    if text is None:
        return []
    return [
        re.sub(r"\\(.)", r"\1", quoted) if plain == "" else plain
        for quoted, plain in _ELEMENT.findall(str(text))
    ]
