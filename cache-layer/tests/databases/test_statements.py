"""Single statements on PostgreSQL, and on the SQL Server that HOTSET_SQLSERVER_DSN names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal

import pytest

from hotset.core.sql import Aborted, Value
from hotset.databases import connect
from hotset.databases.statements import Client, Protocols
from tests.postgres_cluster import Cluster

pytestmark = pytest.mark.database
DSN = os.environ.get("HOTSET_SQLSERVER_DSN", "")
ENGINES = [
    "postgres",
    pytest.param(
        "sqlserver",
        marks=pytest.mark.skipif(not DSN, reason="HOTSET_SQLSERVER_DSN names no server"),
    ),
]


@dataclass(frozen=True)
class Peer:
    """A connection with a table of its own, and what the engines say differently."""

    client: Client
    table: str
    begin: str
    divided: str

    def one(self, *parts: str, values: tuple[Value, ...] = ()) -> tuple[Value, ...]:
        found = self.client.execute(parts, values)
        assert found is not None
        (row,) = found.rows
        return row


@pytest.fixture(params=["prepared", "simple"])
def protocol(request: pytest.FixtureRequest) -> Protocols:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=ENGINES)
def peer(request: pytest.FixtureRequest, protocol: Protocols) -> Iterator[Peer]:
    if request.param == "sqlserver":
        client = connect.statements(connect.database("sqlserver", DSN), protocol)
        table, begin, divided = "#item", "BEGIN TRANSACTION", "error 8134"
        number, text = "decimal(10, 2)", "nvarchar(100)"
    else:
        cluster: Cluster = request.getfixturevalue("cluster")
        client = connect.statements(cluster.database(), protocol)
        table, begin, divided = "item", "BEGIN", "error 22012"
        number, text = "numeric(10, 2)", "text"
    with closing(client):
        temporary = "" if table.startswith("#") else "TEMP "
        made = f"CREATE {temporary}TABLE {table} (id bigint, price {number}, name {text})"
        assert client.execute((made,), ()) is None
        yield Peer(client, table, begin, divided)


def test_values_of_each_type_come_back(peer: Peer) -> None:
    insert = (f"INSERT INTO {peer.table} (id, price, name) VALUES (", ", ", ", ", ")")
    rows: list[tuple[Value, ...]] = [
        (7, 1.25, "it's 100 % ? :x"),
        (2**40, Decimal("3.50"), "grün"),
        (8, None, None),
    ]
    for row in rows:
        assert peer.client.execute(insert, row) is None
    for number, price, name in rows:
        found = peer.one(
            f"SELECT price, name AS said FROM {peer.table} WHERE id = ", "", values=(number,)
        )
        wanted = None if price is None else Decimal(str(price))
        assert found == (wanted, name)
    read = peer.client.execute((f"SELECT count(*) AS n FROM {peer.table}",), ())
    assert read is not None
    assert (read.columns, read.rows) == (("n",), [(3,)])


def test_what_failed_is_rolled_back_and_the_connection_goes_on(peer: Peer) -> None:
    peer.client.execute((peer.begin,), ())
    peer.client.execute((f"INSERT INTO {peer.table} (id) VALUES (", ")"), (1,))
    with pytest.raises(Aborted) as failed:
        peer.client.execute(("SELECT 1 / ", ""), (0,))
    assert failed.value.cause == peer.divided
    peer.client.rollback()
    assert not peer.client.in_transaction()
    assert peer.one(f"SELECT count(*) FROM {peer.table}") == (0,)


def test_only_what_is_no_sql_is_a_problem(peer: Peer) -> None:
    assert peer.client.check((f"SELECT id FROM {peer.table} WHERE id = ", "")) is None
    assert peer.client.check(("SELECT id FROM made_later WHERE id = ", "")) is None
    problem = peer.client.check((f"SELECT id\nFROM {peer.table}\nWEHRE id = ", ""))
    assert problem is not None
    assert "syntax" in problem.message
    assert peer.one("SELECT 1") == (1,)
