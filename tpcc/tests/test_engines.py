"""The same loads, transactions and conditions on every engine.

SQL Server: on the server that HOTSET_SQLSERVER_DSN names (password in HOTSET_PASSWORD), in a
database of its own for these tests; two warehouses are loaded there if it has not got them.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from importlib.resources import files
from typing import get_args

import pytest
import sqlglot

from hotset.bench import ownership
from hotset.core.sql import Aborted, CannotConnect, EngineName, IntendedRollback
from hotset.databases import connect
from hotset.databases.postgres.product import PostgresDatabase
from hotset.databases.sqlserver.client import INTENDED_ROLLBACK
from hotset.databases.sqlserver.product import SqlServerDatabase
from hotset.tpcc.data.consistency import check
from hotset.tpcc.data.load import load
from hotset.tpcc.database import Database, Session
from hotset.tpcc.driver import run
from hotset.tpcc.record import RunOptions
from hotset.tpcc.schema import PROCEDURES, SCHEMA, TABLES, batches, has_statement
from hotset.tpcc.schema import statement as statement_of
from hotset.tpcc.transactions import UNUSED_ITEM

WAREHOUSES = 2
DSN = os.environ.get("HOTSET_SQLSERVER_DSN", "")


# Live


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("postgres", marks=pytest.mark.database),
        pytest.param(
            "sqlserver",
            marks=pytest.mark.skipif(not DSN, reason="HOTSET_SQLSERVER_DSN names no server"),
        ),
    ],
)
def database(request: pytest.FixtureRequest) -> Database:
    """A database with two warehouses; a test leaves it consistent."""
    if request.param == "postgres":
        loaded: tuple[Database, object] = request.getfixturevalue("loaded")
        return loaded[0]
    return _sqlserver()


def _sqlserver() -> Database:
    database = connect.database("sqlserver", DSN)
    with closing(database.session()) as session:
        try:
            count = session.query(statement_of("sqlserver", "count_warehouses"))[0][0]
        except Aborted:
            count = 0
        if count == WAREHOUSES and ownership.holdings(database, ownership.TPCC).is_own:
            # A procedure that was changed since is the one to test.
            for procedure in PROCEDURES:
                session.script(f"DROP PROCEDURE hotset_tpcc.{procedure}")
                for batch in batches("sqlserver", f"procedures/{procedure}"):
                    session.script(batch)
            return database
    for kit in ownership.KITS:  # TPC-H's tests may have left theirs
        ownership.drop(database, kit)
    load(database, WAREHOUSES, seed=7)
    return database


@pytest.fixture(scope="module")
def session(database: Database) -> Iterator[Session]:
    with closing(database.session()) as opened:
        yield opened


def _one(session: Session, sql: str) -> tuple[object, ...]:
    (row,) = session.query(sql)
    return row


def test_the_fixed_tables_are_complete(session: Session) -> None:
    counts = {name: _one(session, f"SELECT count(*) FROM hotset_tpcc.{name}")[0] for name in TABLES}
    assert counts["item"] == 100_000
    assert counts["stock"] == 200_000
    assert counts["customer"] == 60_000
    assert counts["warehouse"] == 2
    assert counts["district"] == 20


def test_new_order_takes_stock_and_writes_its_lines(session: Session) -> None:
    stock = (
        "SELECT s_quantity, s_ytd, s_order_cnt, s_remote_cnt"
        " FROM hotset_tpcc.stock WHERE s_w_id = {}"
        " AND s_i_id = 6"
    )
    before = [_one(session, stock.format(warehouse)) for warehouse in (1, 2)]
    order, total, *_, w_tax, d_tax = session.call(
        "hotset_tpcc.neword", (1, 3, 4, 0, (5, 6, 6), (1, 1, 2), (1, 7, 9))
    )
    after = [_one(session, stock.format(warehouse)) for warehouse in (1, 2)]
    for (had, ytd, orders, remote), now, wanted, far in zip(
        before, after, (7, 9), (0, 1), strict=True
    ):
        left = had - wanted if had >= wanted + 10 else had - wanted + 91
        assert now == (left, ytd + wanted, orders + 1, remote + far)
    lines = session.query(
        "SELECT ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info"
        f" FROM hotset_tpcc.order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = {order}"
        " ORDER BY ol_number"
    )
    assert [line[:4] for line in lines] == [(1, 5, 1, 1), (2, 6, 1, 7), (3, 6, 2, 9)]
    price = _one(session, "SELECT i_price FROM hotset_tpcc.item WHERE i_id = 6")[0]
    assert lines[1][4] == price * 7
    assert (
        lines[2][5]
        == _one(session, "SELECT s_dist_03 FROM hotset_tpcc.stock WHERE s_w_id = 2 AND s_i_id = 6")[
            0
        ]
    )
    assert _one(
        session,
        f"SELECT o_c_id, o_ol_cnt, o_all_local, o_carrier_id FROM hotset_tpcc.orders"
        f" WHERE o_w_id = 1 AND o_d_id = 3 AND o_id = {order}",
    ) == (4, 3, 0, None)
    discount = _one(
        session,
        "SELECT c_discount FROM hotset_tpcc.customer WHERE c_w_id = 1 AND c_d_id = 3 AND c_id = 4",
    )[0]
    expected = sum(line[4] for line in lines) * (1 - discount) * (1 + w_tax + d_tax)
    assert float(total) == pytest.approx(float(expected), abs=0.01)


def test_new_order_with_the_unused_item_leaves_nothing(session: Session) -> None:
    state = (
        "SELECT sum(d_next_o_id), (SELECT count(*) FROM hotset_tpcc.order_line),"
        " (SELECT sum(s_ytd) FROM hotset_tpcc.stock) FROM hotset_tpcc.district"
    )
    before = _one(session, state)
    for _ in range(2):
        with pytest.raises(IntendedRollback):
            session.call(
                "hotset_tpcc.neword", (1, 1, 1, 1, (5, 6, UNUSED_ITEM), (1, 1, 1), (1, 2, 3))
            )
    assert _one(session, state) == before


def test_payment_by_number_and_by_name(session: Session) -> None:
    amount = Decimal("12.34")
    balance = (
        "SELECT c_balance FROM hotset_tpcc.customer WHERE c_w_id = 2 AND c_d_id = 5 AND c_id = 17"
    )
    (before,) = _one(session, balance)
    row = session.call("hotset_tpcc.payment", (1, 1, 2, 5, 17, None, amount))
    assert row[0] == 17
    assert row[5] == before - amount == _one(session, balance)[0]
    named = session.query(
        "SELECT c_id FROM hotset_tpcc.customer WHERE c_w_id = 2 AND c_d_id = 5"
        " AND c_last = 'OUGHTOUGHTABLE' ORDER BY c_first"
    )
    middle = named[(len(named) + 1) // 2 - 1][0]
    assert (
        session.call("hotset_tpcc.payment", (1, 1, 2, 5, None, "OUGHTOUGHTABLE", amount))[0]
        == middle
    )
    assert session.call("hotset_tpcc.ostat", (2, 5, None, "OUGHTOUGHTABLE"))[0] == middle


def test_bad_credit_is_written_down_in_front(session: Session) -> None:
    customer = (
        "SELECT c_d_id, c_id FROM hotset_tpcc.customer WHERE c_w_id = 1 AND c_credit = 'BC'"
        " AND c_d_id = 7 AND c_id < 200"
    )
    district, number = session.query(customer)[0]
    session.call("hotset_tpcc.payment", (2, 4, 1, district, number, None, Decimal("1.50")))
    (data,) = _one(
        session,
        "SELECT c_data FROM hotset_tpcc.customer WHERE c_w_id = 1"
        f" AND c_d_id = {district} AND c_id = {number}",
    )
    assert str(data).startswith(f"{number} {district} 1 4 2 1.50 ")
    assert len(str(data)) <= 500


def test_order_status_is_of_the_latest_order(session: Session) -> None:
    order = session.call("hotset_tpcc.neword", (2, 6, 99, 1, (10, 11), (2, 2), (1, 1)))[0]
    row = session.call("hotset_tpcc.ostat", (2, 6, 99, None))
    assert row[4:6] == (order, None)
    assert row[7] == 2


def test_delivery_takes_the_oldest_order_of_each_district(session: Session) -> None:
    oldest = (
        "SELECT no_d_id, min(no_o_id) FROM hotset_tpcc.new_order WHERE no_w_id = 2 GROUP BY no_d_id"
        " ORDER BY no_d_id"
    )
    before = session.query(oldest)
    assert len(before) == 10
    assert session.call("hotset_tpcc.delivery", (2, 9)) == (10,)
    assert session.query(oldest) == [(district, order + 1) for district, order in before]
    for district, order in before:
        carrier = _one(
            session,
            "SELECT o_carrier_id FROM hotset_tpcc.orders WHERE o_w_id = 2"
            f" AND o_d_id = {district} AND o_id = {order}",
        )
        assert carrier == (9,)
        assert _one(
            session,
            "SELECT count(*) FROM hotset_tpcc.order_line WHERE ol_w_id = 2"
            f" AND ol_d_id = {district} AND ol_o_id = {order}"
            " AND ol_delivery_d IS NULL",
        ) == (0,)


def test_stock_level_counts_each_low_item_once(session: Session) -> None:
    (low,) = session.call("hotset_tpcc.slev", (1, 2, 15))
    next_order = _one(
        session, "SELECT d_next_o_id FROM hotset_tpcc.district WHERE d_w_id = 1 AND d_id = 2"
    )[0]
    expected = _one(
        session,
        "SELECT count(*) FROM hotset_tpcc.stock WHERE s_w_id = 1 AND s_quantity < 15 AND s_i_id IN"
        " (SELECT ol_i_id FROM hotset_tpcc.order_line WHERE ol_w_id = 1 AND ol_d_id = 2"
        f" AND ol_o_id >= {next_order} - 20 AND ol_o_id < {next_order})",
    )[0]
    assert low == expected


def test_two_deliveries_at_once_deliver_no_order_twice(
    database: Database, session: Session
) -> None:
    waiting = "SELECT count(*) FROM hotset_tpcc.new_order WHERE no_w_id = 1"
    before = int(str(_one(session, waiting)[0]))
    delivered: list[int] = []

    def deliver() -> None:
        with closing(database.session()) as own:
            for _ in range(3):
                delivered.append(int(str(own.call("hotset_tpcc.delivery", (1, 2))[0])))

    threads = [threading.Thread(target=deliver) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(delivered) == 9
    assert before - int(str(_one(session, waiting)[0])) == sum(delivered) > 0


@pytest.mark.database
def test_a_delivery_waits_for_another_and_leaves_no_gap_when_that_one_rolls_back(
    loaded: tuple[PostgresDatabase, object],
) -> None:
    database = loaded[0]
    with closing(database.session()) as first, closing(database.session()) as second:
        first.script("BEGIN")
        first.call("hotset_tpcc.delivery", (2, 5))
        done: list[object] = []
        thread = threading.Thread(
            target=lambda: done.append(second.call("hotset_tpcc.delivery", (2, 6)))
        )
        thread.start()
        while not first.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            assert thread.is_alive()
            first.script("SELECT pg_stat_clear_snapshot()")
            time.sleep(0.02)
        first.script("ROLLBACK")
        thread.join()
        assert done == [(10,)]
        (third,) = check(database, first, (3,))
        assert third.holds


@pytest.mark.database
def test_a_delivery_that_waited_takes_the_next_orders(
    loaded: tuple[PostgresDatabase, object],
) -> None:
    database = loaded[0]
    oldest = (
        "SELECT min(no_o_id) FROM hotset_tpcc.new_order"
        " WHERE no_w_id = 2 GROUP BY no_d_id ORDER BY no_d_id"
    )
    with closing(database.session()) as first, closing(database.session()) as second:
        before = [int(str(row[0])) for row in first.query(oldest)]
        first.script("BEGIN")
        first.call("hotset_tpcc.delivery", (2, 5))
        thread = threading.Thread(target=lambda: second.call("hotset_tpcc.delivery", (2, 6)))
        thread.start()
        while not first.query("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'"):
            assert thread.is_alive()
            first.script("SELECT pg_stat_clear_snapshot()")
            time.sleep(0.02)
        first.script("COMMIT")
        thread.join()
        assert [int(str(row[0])) for row in first.query(oldest)] == [one + 2 for one in before]


def test_a_short_run_fails_nothing_and_all_conditions_hold(
    database: Database, session: Session
) -> None:
    # Babelfish compiles each procedure in each session, which takes it seconds.
    rampup_s = 0.5 if database.engine == "postgres" else 15
    options = RunOptions(users=8, warehouses=WAREHOUSES, rampup_s=rampup_s, duration_s=3)
    result = run(database, options)
    assert result.failed == 0
    assert sum(kind.committed for kind in result.transactions.values()) > 0
    results = check(database, session)
    assert [one.number for one in results] == list(range(1, 13))
    assert [one for one in results if not one.holds] == []


def test_a_failed_copy_loads_nothing(session: Session) -> None:
    before = _one(session, "SELECT count(*) FROM hotset_tpcc.new_order")
    rows = [(99, 1, 1), (99, 1, None)]
    with pytest.raises(Aborted):
        session.copy("hotset_tpcc.new_order", ("no_w_id", "no_d_id", "no_o_id"), rows)
    assert _one(session, "SELECT count(*) FROM hotset_tpcc.new_order") == before
    # Autocommit is back: what follows is not undone with it.
    session.script("UPDATE hotset_tpcc.warehouse SET w_ytd = w_ytd WHERE w_id = 1")


def test_wrong_password_is_one_line_without_it(database: Database) -> None:
    assert isinstance(database, PostgresDatabase | SqlServerDatabase)
    wrong = replace(database, password="n;ot}the=passw}}ord")  # noqa: S106
    with pytest.raises(CannotConnect) as failure:
        wrong.session()
    assert "n;ot" not in str(failure.value)
    assert "\n" not in str(failure.value)


# The T-SQL files, without a server


FOLDER = files("hotset.tpcc") / "sql" / "sqlserver"
NAMES = [
    "schema",
    "indexes",
    "statistics",
    "drop",
    "marked_schema",
    "without_keys",
    "isolation",
    "count_orders",
    "read_only",
    "count_warehouses",
    "consistency",
    *(f"procedures/{name}" for name in PROCEDURES),
]


def test_t_sql_parses(subtests: pytest.Subtests) -> None:
    for name in NAMES:
        with subtests.test(name=str(name)):
            for batch in batches("sqlserver", name):
                # sqlglot does not know THROW, whose only use has a test of its own below.
                known = re.sub(r"THROW \d+, '[^']*', 1;", "SELECT 1;", batch)
                parsed = sqlglot.parse(known, dialect="tsql")
                assert parsed
                assert name == "marked_schema" or not any(
                    isinstance(one, sqlglot.exp.Command)
                    for one in parsed  # EXEC, of the mark
                ), batch[:60]


def test_every_file_is_parsed() -> None:
    on_disk = {file.name for file in FOLDER.iterdir() if file.name.endswith(".sql")}
    assert on_disk == {f"{name}.sql" for name in NAMES if "/" not in name}


def test_both_engines_have_the_same_tables_and_columns() -> None:
    for engine, dialect in (("postgres", "postgres"), ("sqlserver", "tsql")):
        found = {}
        for batch in batches(engine, "schema"):
            for statement in sqlglot.parse(batch, dialect=dialect):
                if isinstance(statement, sqlglot.exp.Create):
                    columns = [c.name for c in statement.find_all(sqlglot.exp.ColumnDef)]
                    found[statement.find(sqlglot.exp.Table).name] = set(columns)
        assert found == {name: set(table.columns) for name, table in TABLES.items()}


def test_both_engines_check_the_same_twelve_conditions() -> None:
    def titles(engine: str) -> list[str]:
        return [
            line
            for batch in batches(engine, "consistency")
            for line in batch.splitlines()
            if line.startswith("-- ") and line[3:5].strip(": ").isdigit()
        ]

    assert titles("sqlserver") == titles("postgres")
    assert len(titles("sqlserver")) == 12


def test_the_intended_rollback_has_the_adapters_number() -> None:
    assert f"THROW {INTENDED_ROLLBACK}," in (FOLDER / "procedures" / "neword.sql").read_text()


@pytest.mark.parametrize("engine", get_args(EngineName))
def test_the_schema_is_marked_and_dropped_with_every_table_and_procedure(engine: str) -> None:
    *_, mark = batches(engine, "marked_schema")
    assert f"'{ownership.TPCC.mark}'" in mark
    assert f"DROP SCHEMA {SCHEMA};" in statement_of(engine, "drop")
    for name in (*TABLES, *PROCEDURES):
        assert re.search(rf"\b{SCHEMA}\.{name}\b", statement_of(engine, "drop")), name


@pytest.mark.parametrize("engine", get_args(EngineName))
def test_no_statement_leaves_a_table_to_the_schema_of_whoever_asks(engine: str) -> None:
    """SQL Server would look in dbo, PostgreSQL in the search path: at another's table."""
    for name in NAMES:
        for batch in batches(engine, name) if has_statement(engine, name) else ():
            text = re.sub(r"--.*|'[^']*'|THROW .*;", "", batch)
            for table in (*TABLES, *PROCEDURES):
                kept = re.findall(rf"(?:FROM|JOIN|INTO|UPDATE|TABLE|ON|PROCEDURE) {table}\b", text)
                assert kept == [], name
