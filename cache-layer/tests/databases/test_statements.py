"""Single statements on the SQL Server that HOTSET_SQLSERVER_DSN names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from hotset.core.sql import Aborted
from hotset.databases import connect
from hotset.databases.base import sql
from hotset.databases.sqlserver.product import SqlServerDatabase
from hotset.databases.sqlserver.statements import SqlServerStatements

DSN = os.environ.get("HOTSET_SQLSERVER_DSN", "")
pytestmark = [
    pytest.mark.database,
    pytest.mark.skipif(not DSN, reason="HOTSET_SQLSERVER_DSN names no server"),
]


@pytest.fixture(params=[True, False], ids=["prepared", "simple"])
def client(request: pytest.FixtureRequest) -> Iterator[SqlServerStatements]:
    """A connection with a table of its own."""
    database = connect.database("sqlserver", DSN)
    assert isinstance(database, SqlServerDatabase)
    with closing(SqlServerStatements(database, prepared=request.param)) as opened:
        made = "CREATE TABLE #item (id bigint, price decimal(10, 2), name nvarchar(100))"
        opened.execute((made,), ())
        yield opened


def holds(client: SqlServerStatements, condition: str, *values: int | float | str) -> bool:
    """Whether a condition with these values in its gaps is true of one row of the table."""
    parts = f"IF (SELECT count(*) FROM #item WHERE {condition}) <> 1 THROW 50000, 'no', 1"
    try:
        client.execute(tuple(parts.split("?")), values)
    except Aborted:
        return False
    return True


def test_a_benchmark_that_is_taken_in_one_database_is_free_in_another() -> None:
    """Babelfish has one set of application locks: a build in one refused a run in another."""
    database = connect.database("sqlserver", DSN)
    assert isinstance(database, SqlServerDatabase)
    take = sql("sqlserver", "take_benchmark").format(benchmark="test")
    with (
        closing(database.session()) as one,
        closing(database.session()) as another,
        closing(replace(database, dbname="master").session()) as elsewhere,
    ):
        assert [session.query(take) for session in (one, another, elsewhere)] == [
            [(1,)],
            [(0,)],
            [(1,)],
        ]


def test_values_of_each_type_arrive(client: SqlServerStatements) -> None:
    insert = ("INSERT INTO #item (id, price, name) VALUES (", ", ", ", ", ")")
    rows: list[tuple[int, float, str]] = [(7, 1.25, "it's 100 % ? :x"), (2**40, 3.5, "grün")]
    for row in rows:
        client.execute(insert, row)
    for row in rows:
        assert holds(client, "id = ? AND price = ? AND name = ?", *row)
    assert not holds(client, "id = ?", 8)


def test_what_failed_is_rolled_back_and_the_connection_goes_on(
    client: SqlServerStatements,
) -> None:
    client.execute(("BEGIN TRANSACTION",), ())
    client.execute(("INSERT INTO #item (id) VALUES (", ")"), (1,))
    with pytest.raises(Aborted) as failed:
        client.execute(("SELECT 1 / ", ""), (0,))
    assert failed.value.cause == "error 8134"
    client.rollback()
    assert not client.in_transaction()
    assert not holds(client, "id = ?", 1)


def test_only_what_is_no_sql_is_a_problem(client: SqlServerStatements) -> None:
    assert client.check(("SELECT id FROM #item WHERE id = ", "")) is None
    assert client.check(("SELECT id FROM made_later WHERE id = ", "")) is None
    problem = client.check(("SELECT id\nFROM #item\nWEHRE id = ", ""))
    assert problem is not None
    assert "syntax" in problem
    client.execute(("SELECT 1",), ())
