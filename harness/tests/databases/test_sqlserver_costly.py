"""Statements of Query Store and their scripts: rows as the server has them, by its documentation
(sys.query_store_query_text, showplan XML, sys.dm_db_stats_histogram)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from hotset.bench.sql import script, suggest
from hotset.core.errors import RequestError
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.sql import Aborted, Row
from hotset.databases.costly import Column, Costly
from hotset.databases.sqlserver import costly as sqlserver
from hotset.databases.sqlserver.client import SqlServerDatabase
from hotset.databases.sqlserver.costly import SqlServerCatalog

SEEK = """<ShowPlanXML xmlns="http://schemas.microsoft.com/sqlserver/2004/07/showplan">
<BatchSequence><Batch><Statements><StmtSimple><QueryPlan><RelOp><IndexScan><SeekPredicates>
<SeekPredicateNew><SeekKeys><Prefix ScanType="EQ"><RangeColumns>
<ColumnReference Database="[shop]" Schema="[dbo]" Table="[item]" Column="id"/></RangeColumns>
<RangeExpressions><ScalarOperator ScalarString="[@P1]"><Identifier>
<ColumnReference Column="@P1"/></Identifier></ScalarOperator></RangeExpressions></Prefix></SeekKeys>
</SeekPredicateNew></SeekPredicates>
<Predicate><ScalarOperator ScalarString="[shop].[dbo].[item].[kind] as [i].[kind]=[@P2] AND
 [shop].[dbo].[item].[added]&gt;CONVERT_IMPLICIT(date,[@P3],0)"/></Predicate></IndexScan></RelOp>
<ParameterList>
<ColumnReference Column="@P3" ParameterDataType="nvarchar(20)"
 ParameterCompiledValue="N'2026-01-01'"/>
<ColumnReference Column="@P2" ParameterDataType="varchar(20)" ParameterCompiledValue="'rare'"/>
<ColumnReference Column="@P1" ParameterDataType="int" ParameterCompiledValue="(7)"/>
</ParameterList></QueryPlan></StmtSimple></Statements></Batch></BatchSequence></ShowPlanXML>"""
UPDATE = """<ShowPlanXML xmlns="http://schemas.microsoft.com/sqlserver/2004/07/showplan"><Update>
<SetPredicate><ScalarOperator
 ScalarString="[shop].[dbo].[item].[price] = CONVERT_IMPLICIT(decimal(10,2),[@new],0)"/>
</SetPredicate></Update><ParameterList>
<ColumnReference Column="@new" ParameterDataType="decimal(10,2)" ParameterCompiledValue="(5.50)"/>
</ParameterList></ShowPlanXML>"""
TEXT = (
    "(@P1 int,@P2 varchar(20),@P3 nvarchar(20))SELECT i.price FROM dbo.item AS i WHERE i.id = @P1"
    " AND i.kind = @P2 AND i.added > @P3 AND i.note <> 'me @P1'"
)
STATEMENTS: list[Row] = [
    (TEXT, 900, 1.25, 0.6, SEEK),
    ("(@new decimal(10,2))UPDATE dbo.item SET price = @new", 100, 4.0, 0.3, UPDATE),
    ("SELECT @total = SUM(price) FROM dbo.item", 10, 9.0, 0.06, "<ShowPlanXML/>"),
    ("BACKUP DATABASE shop TO DISK = 'x'", 1, 9000.0, 0.04, ""),
    ("SELECT 1 FROM dbo.item", 1, 1.0, 0.0, None),
]
HISTOGRAMS: dict[str, list[Row]] = {
    "id": [("int", "1", 1, 0), ("int", "500", 1, 498), ("int", "1000", 1, 499)],
    "kind": [("varchar", "common", 900, 0), ("varchar", "it's :odd", 60, 0)]
    + [("varchar", f"kind {n}", 10, 0) for n in range(4)],
    "price": [("decimal", None, None, None)],
}


class Server:
    """Answers what a server with these rows would."""

    def __init__(self, state: int = 2, statements: Sequence[Row] = tuple(STATEMENTS)) -> None:
        self._state = state
        self._statements = list(statements)

    def script(self, sql: str) -> None: ...

    def query(self, sql: str) -> list[Row]:
        if "database_query_store_options" in sql:
            return [(self._state,)]
        if "query_store_runtime_stats" in sql:
            return self._statements
        return next((rows for name, rows in HISTOGRAMS.items() if f"N'{name}'" in sql), [])

    def close(self) -> None: ...


def database(monkeypatch: pytest.MonkeyPatch, server: Server) -> SqlServerDatabase:
    monkeypatch.setattr(SqlServerDatabase, "session", lambda _: server)
    monkeypatch.setattr(suggest, "_try", lambda *_: None)  # there is no server to run it on
    return SqlServerDatabase("db1", 1433, "sa", "secret", "shop")


def test_parameters_have_types_columns_and_a_value_of_the_plan() -> None:
    text = sqlserver.strip_parameters(TEXT)
    found = SqlServerCatalog(Server()).parameters(Costly(text, 1, 1, 1, SEEK))
    assert [(one.mark, one.kind, one.category, f"{one.column}", one.sample) for one in found] == [
        ("@P1", "int", "N", "item.id", "7"),
        ("@P2", "varchar(20)", "S", "item.kind", "'rare'"),
        ("@P3", "nvarchar(20)", "S", "item.added", "N'2026-01-01'"),
    ]


def test_values_that_a_column_has_often_are_told_from_the_others() -> None:
    known = SqlServerCatalog(Server()).look_up(Column("dbo", "item", "kind"))
    assert known is not None
    assert known.common == (("common", 0.9),)
    assert known.bounds == ("it's :odd", *(f"kind {n}" for n in range(4)))
    even = SqlServerCatalog(Server()).look_up(Column("dbo", "item", "id"))
    assert even is not None
    assert (even.common, even.bounds) == ((), ("1", "500", "1000"))


def test_scripts_are_suggested_and_can_be_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = suggest.suggest(database(monkeypatch, Server()), top=10)
    first, second = found.scripts
    assert (first.file, first.weight, first.calls) == ("01_select_item.sql", 900, 900)
    assert "-- p1: item.id, 1 to 1000 by its statistics" in first.text
    assert "i.id = :p1 AND i.kind = CAST(CHOOSE(:p2, 'common', 'it''s ' + ':' + 'odd'" in first.text
    assert "random(1, 10000) <= 9000 then random(1, 1)" in first.text
    assert "i.added > '2026-01-01' AND i.note <> 'me @P1';" in first.text
    assert first.guessed == 1, "nothing is known of added"
    assert "SET price = 5.50;" in second.text
    reasons = [one.reason for one in found.left_out]
    assert reasons[:2] == [
        "@total is a variable of a procedure or batch",
        "it reads and changes no rows",
    ]
    assert all(one.time_share >= 0 for one in found.left_out)
    suggest.write(found, tmp_path)
    for one in found.scripts:
        script.read(one.file, (tmp_path / one.file).read_text())


def test_query_store_that_is_off_is_told_with_what_turns_it_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(PrerequisiteMissingError, match="SET QUERY_STORE = ON"):
        suggest.suggest(database(monkeypatch, Server(state=0)), top=10)


def test_query_store_that_is_hidden_is_told_with_the_grant(monkeypatch: pytest.MonkeyPatch) -> None:
    class Blind(Server):
        def query(self, sql: str) -> list[Row]:  # noqa: ARG002
            raise Aborted("error 42000", False, "VIEW DATABASE STATE permission denied")

    with pytest.raises(RequestError, match="GRANT VIEW DATABASE STATE"):
        suggest.suggest(database(monkeypatch, Blind()), top=10)


def test_nothing_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RequestError, match="has counted no statement"):
        suggest.suggest(database(monkeypatch, Server(statements=())), top=10)
