"""The statements of a SQL Server database that take the most time, by Query Store, and what their
parameters are compared with.

Query Store keeps each statement's text, as `(@P1 int)SELECT … WHERE id = @P1` where it came with
parameters, and its plan. The plan (showplan XML) has the parameters' types, the values that it was
made for, and conditions such as `[shop].[dbo].[item].[id]=[@P1]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from hotset.core.errors import RequestError
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.sql import Aborted

from ..base import Connection, number, sql
from ..costly import CATALOGS_ONLY, NO_QUERY, Column, Costly, Known, Parameter, apart, is_query

_OFF = (
    "Query Store does not collect in this database: ALTER DATABASE CURRENT SET QUERY_STORE = ON"
    " (OPERATION_MODE = READ_WRITE), and let the users work for a while"
)
_GRANT = "GRANT VIEW DATABASE STATE to this user (SQL Server 2022: VIEW DATABASE PERFORMANCE STATE)"
_COLLECTING = (1, 2)
_DECLARED = re.compile(r"\s*\((?=@)(?:[^()]|\([^()]*\))*\)")
_NAME = r"\[((?:[^\]]|\]\])+)\]"
_COLUMN = rf"{_NAME}\.{_NAME}\.{_NAME}\.{_NAME}(?:\s+as\s+\[[^\]]+\]\.\[[^\]]+\])?"
"""Database, schema, table, column, perhaps under an alias."""
_VARIABLE = r"(?:\w+\((?:\w+(?:\([\d,]+\))?,)*)?\[(@\w+)\]"
_COMPARED = (
    re.compile(rf"{_COLUMN}\s*(?:=|<>|<=|>=|<|>|\blike\b)\s*{_VARIABLE}"),
    re.compile(rf"\[(?P<variable>@\w+)\](?:,\d+)?\)*\s*(?:=|<>|<=|>=|<|>)\s*{_COLUMN}"),
)
_CATEGORIES = {
    "N": (
        *("int", "bigint", "smallint", "tinyint", "bit"),
        *("decimal", "numeric", "float", "real", "money", "smallmoney"),
    ),
    "S": ("char", "varchar", "nchar", "nvarchar", "text", "ntext", "sysname"),
    "D": ("date", "datetime", "datetime2", "smalldatetime", "datetimeoffset"),
}


class SqlServerCatalog:
    """See `costly.Catalog`."""

    mark = re.compile(r"(?<![@\w])@\w+")
    grant = _GRANT

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def statements(self, most: int) -> list[Costly]:
        try:
            ((state,),) = self._connection.query(sql("sqlserver", "query_store_state"))
            if number(state) not in _COLLECTING:
                raise PrerequisiteMissingError(_OFF)
            asked = sql("sqlserver", "costly_statements").format(top=most)
            rows = self._connection.query(asked)
        except Aborted as refused:
            if "permission" in (refused.detail or "").lower():
                raise RequestError(f"Query Store is hidden: {_GRANT}") from None
            raise
        return [
            Costly(
                strip_parameters(str(text)),
                number(calls),
                float(str(mean_ms)),
                float(str(share or 0)),
                str(plan or ""),
            )
            for text, calls, mean_ms, share, plan in rows
        ]

    def is_hidden(self, statement: Costly) -> bool:  # noqa: ARG002 - all are shown, or none
        return False

    def against(self, statement: Costly) -> str | None:
        if not is_query(statement.text):
            return NO_QUERY
        if not statement.plan:
            return None
        schemas = [one.get("Schema", "") for one in _tagged(_parsed(statement.plan), "Object")]
        is_own = bool(schemas) and all(
            schema in ("[sys]", "[INFORMATION_SCHEMA]") for schema in schemas
        )
        return CATALOGS_ONLY if is_own else None

    def parameters(self, statement: Costly) -> list[Parameter]:
        """Those that the plan lists, in the order of the text; raises `Aborted` for a variable that
        is none: it is a procedure's own."""
        plan = _parsed(statement.plan)
        declared = dict(_declared(plan))
        columns = dict(_columns(plan))
        marks = dict.fromkeys(self.mark.findall(_without_strings(statement.text)))
        found = []
        for mark in marks:
            if mark not in declared:
                raise Aborted(
                    "no parameter", False, f"{mark} is a variable of a procedure or batch"
                )
            kind, sample = declared[mark]
            found.append(Parameter(mark, kind, _category(kind), columns.get(mark), sample))
        return found

    def look_up(self, column: Column) -> Known | None:
        rows = self._connection.query(
            sql("sqlserver", "column_values").format(
                table=_literal(f"[{column.schema}].[{column.relation}]"),
                column=_literal(column.name),
            )
        )
        if not rows:
            return None
        steps = [
            (str(value), float(str(equal or 0)), float(str(between or 0)))
            for _, value, equal, between in rows
            if value is not None
        ]
        total = sum(equal + between for _, equal, between in steps) or 1
        # As common as an even share of two steps: such a value is why a step ends there.
        least = 2 / max(1, len(steps))
        common = sorted(
            ((value, equal / total) for value, equal, _ in steps if equal / total > least),
            key=lambda one: -one[1],
        )
        named = {value for value, _ in common}
        kind = str(rows[0][0])
        bounds = tuple(value for value, _, _ in steps if value not in named)
        return Known(kind, _category(kind), tuple(common), bounds)

    def literal(self, text: str) -> str:
        # Beside a column of varchar, nvarchar would cost its index.
        return apart(text, "+", "" if text.isascii() else "N")

    def pick_literal(self, literals: Sequence[str], kind: str, place: str) -> str:
        return f"CAST(CHOOSE({place}, {', '.join(literals)}) AS {_sized(kind)})"

    def guess(self, parameter: Parameter) -> str:
        return {"S": "'a'", "D": f"CAST(SYSDATETIME() AS {parameter.kind})"}.get(
            parameter.category, f"CAST(NULL AS {parameter.kind})"
        )


def strip_parameters(text: str) -> str:
    """Without the parameters' types before it.

    >>> strip_parameters("(@P1 int,@p2 decimal(10,2))SELECT @P1"), strip_parameters("(SELECT 1)")
    ('SELECT @P1', '(SELECT 1)')
    """
    found = _DECLARED.match(text)
    return text[found.end() :] if found else text


def _parsed(plan: str) -> ElementTree.Element:
    """Raises `Aborted` where there is no plan that can be read."""
    try:
        # Of the server that the user named; expat expands no entity beyond its own limits.
        return ElementTree.fromstring(plan)  # noqa: S314
    except ElementTree.ParseError:
        raise Aborted("no plan", False, "Query Store kept no plan of it") from None


def _tagged(plan: ElementTree.Element, name: str) -> Iterator[ElementTree.Element]:
    """Elements of a name, in whichever namespace."""
    return (one for one in plan.iter() if one.tag.rpartition("}")[2] == name)


def _declared(plan: ElementTree.Element) -> Iterator[tuple[str, tuple[str, str]]]:
    """Type and value of each parameter."""
    for listed in _tagged(plan, "ParameterList"):
        for one in listed:
            kind = one.get("ParameterDataType", "sql_variant")
            value = one.get("ParameterCompiledValue", "")
            yield one.get("Column", ""), (kind, _bare(value))


def _bare(value: str) -> str:
    """A plan's literal without its brackets.

    >>> _bare("(7)"), _bare("((-1))"), _bare("N'it''s'"), _bare("'2026-01-01'")
    ('7', '-1', "N'it''s'", "'2026-01-01'")
    """
    while value.startswith("(") and value.endswith(")"):
        value = value[1:-1]
    return "" if value.upper() == "NULL" else value


def _columns(plan: ElementTree.Element) -> Iterator[tuple[str, Column]]:
    """What each parameter is compared with or written to: a seek's keys, then conditions."""
    for scan in _tagged(plan, "ScalarOperator"):
        yield from _compared(scan.get("ScalarString", ""))
    # Seeks count before what is only compared.
    for name in ("Prefix", "StartRange", "EndRange"):
        for keys in _tagged(plan, name):
            columns = [one for range_ in _tagged(keys, "RangeColumns") for one in range_]
            values = [one for range_ in _tagged(keys, "RangeExpressions") for one in range_]
            for column, value in zip(columns, values, strict=False):
                found = re.search(r"\[?(@\w+)\]?", value.get("ScalarString", ""))
                if found and column.get("Table"):
                    yield (
                        found[1],
                        _column(
                            column.get("Schema", ""),
                            column.get("Table", ""),
                            column.get("Column", ""),
                        ),
                    )


def _compared(condition: str) -> Iterator[tuple[str, Column]]:
    for match in _COMPARED[0].finditer(condition):
        _, schema, table, name, variable = match.groups()
        yield variable, _column(schema, table, name)
    for match in _COMPARED[1].finditer(condition):
        variable, _, schema, table, name = match.groups()
        yield variable, _column(schema, table, name)


def _column(schema: str, table: str, name: str) -> Column:
    return Column(*(one.strip("[]").replace("]]", "]") for one in (schema, table, name)))


def _category(kind: str) -> str:
    """
    >>> _category("decimal(10,2)"), _category("nvarchar(20)"), _category("uniqueidentifier")
    ('N', 'S', 'U')
    """
    base = kind.partition("(")[0].lower()
    return next((one for one, kinds in _CATEGORIES.items() if base in kinds), "U")


def _sized(kind: str) -> str:
    """A type that cuts nothing off: a bare `varchar` has 30 characters in a CAST."""
    return {
        "char": "varchar(8000)",
        "varchar": "varchar(8000)",
        "nchar": "nvarchar(4000)",
        "nvarchar": "nvarchar(4000)",
        "decimal": "decimal(38, 10)",
        "numeric": "decimal(38, 10)",
    }.get(kind, kind)


def _literal(text: str) -> str:
    return "N'" + text.replace("'", "''") + "'"


def _without_strings(text: str) -> str:
    """
    >>> _without_strings("SELECT 'me@home', @P1")
    "SELECT '', @P1"
    """
    return re.sub(r"'(?:[^']|'')*'", "''", text)
