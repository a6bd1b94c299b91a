"""Loading into a real server, and the twelve conditions on what it holds."""

from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from hotset.harness.engines.postgres import PostgresDatabase, PostgresSession
from hotset.tpcc.consistency import check
from hotset.tpcc.database import CannotConnect
from hotset.tpcc.load import LoadResult, load
from hotset.tpcc.record import LoadFailed, LoadProgress
from hotset.tpcc.schema import TABLES, SetupError, batches, estimated_bytes

pytestmark = pytest.mark.database


def test_row_counts(loaded: tuple[PostgresDatabase, LoadResult], session: PostgresSession) -> None:
    counts = {name: _number(session, f"SELECT count(*) FROM {name}") for name in TABLES}
    assert counts["item"] == 100_000
    assert counts["stock"] == 200_000
    assert counts["customer"] == 60_000
    assert counts["warehouse"] == 2
    assert counts["district"] == 20
    # What other tests' runs add, they add to these four; orders only ever grow.
    assert counts["orders"] >= 60_000
    assert counts["history"] >= 60_000
    assert loaded[1].rows == pytest.approx(100_000 + 2 * 499_011, rel=0.01)


def test_stock_level_searches_stock_by_key_whatever_random_reads_cost(
    session: PostgresSession,
) -> None:
    session.script("SET random_page_cost = 40")
    before = _number(session, "SELECT seq_tup_read FROM pg_stat_user_tables"
                              " WHERE relname = 'stock'")  # fmt: skip
    for _ in range(7):
        assert 0 <= int(str(session.call("slev", (1, 2, 15))[0])) <= 300
    session.script("SELECT pg_stat_force_next_flush()")
    after = _number(session, "SELECT seq_tup_read FROM pg_stat_user_tables"
                             " WHERE relname = 'stock'")  # fmt: skip
    assert after == before


def test_all_conditions_hold_after_load(
    database: PostgresDatabase, session: PostgresSession
) -> None:
    results = check(database, session)
    assert [result.number for result in results] == list(range(1, 13))
    assert [result for result in results if not result.holds] == []


BREAKS = {
    1: ("UPDATE district SET d_ytd = d_ytd {} 1 WHERE d_w_id = 1 AND d_id = 2", "+-"),
    2: ("UPDATE district SET d_next_o_id = d_next_o_id {} 1 WHERE d_w_id = 1 AND d_id = 2", "+-"),
    4: ("UPDATE orders SET o_ol_cnt = o_ol_cnt {} 1 WHERE o_w_id = 1 AND o_d_id = 2"
        " AND o_id = 7", "+-"),
    6: ("UPDATE orders SET o_ol_cnt = o_ol_cnt {} 1 WHERE o_w_id = 1 AND o_d_id = 2"
        " AND o_id = 7", "-+"),
    8: ("UPDATE warehouse SET w_ytd = w_ytd {} 1 WHERE w_id = 2", "+-"),
    9: ("UPDATE district SET d_ytd = d_ytd {} 1 WHERE d_w_id = 2 AND d_id = 9", "-+"),
    10: ("UPDATE customer SET c_balance = c_balance {} 1 WHERE c_w_id = 1 AND c_d_id = 2"
         " AND c_id = 3", "+-"),
    11: ("UPDATE customer SET c_delivery_cnt = c_delivery_cnt {} 1 WHERE c_w_id = 1"
         " AND c_d_id = 2 AND c_id = 3", "+-"),
    12: ("UPDATE customer SET c_ytd_payment = c_ytd_payment {} 1 WHERE c_w_id = 1"
         " AND c_d_id = 2 AND c_id = 3", "+-"),
}  # fmt: skip
DAMAGE: dict[int, tuple[str, str]] = {
    number: (sql.format(signs[0]), sql.format(signs[1])) for number, (sql, signs) in BREAKS.items()
} | {
    3: (
        "UPDATE new_order SET no_o_id = 999999 WHERE no_w_id = 1 AND no_d_id = 2"
        " AND no_o_id = (SELECT max(no_o_id) FROM new_order WHERE no_w_id = 1 AND no_d_id = 2)",
        "UPDATE new_order SET no_o_id = (SELECT max(o_id) FROM orders WHERE o_w_id = 1"
        " AND o_d_id = 2) WHERE no_o_id = 999999",
    ),
    5: (
        "UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 7",
        "UPDATE orders SET o_carrier_id = 1 WHERE o_w_id = 1 AND o_d_id = 2 AND o_id = 7",
    ),
    7: (
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 2"
        " AND ol_o_id = 7 AND ol_number = 1",
        "UPDATE order_line SET ol_delivery_d = now() WHERE ol_w_id = 1 AND ol_d_id = 2"
        " AND ol_o_id = 7 AND ol_number = 1",
    ),
}


@pytest.mark.parametrize("number", range(1, 13))
def test_each_condition_finds_its_broken_row(
    number: int, database: PostgresDatabase, session: PostgresSession
) -> None:
    damage, repair = DAMAGE[number]
    session.script(damage)
    try:
        (broken,) = check(database, session, [number])
        assert broken.violations == 1
        assert broken.number == number
        assert len(broken.examples) == 1
    finally:
        session.script(repair)
    (repaired,) = check(database, session, [number])
    assert repaired.holds


def test_loading_replaces_reports_progress_and_takes_the_estimated_space(
    empty: PostgresDatabase,
) -> None:
    seen: list[LoadProgress] = []
    with closing(empty.session()) as session:
        session.script("CREATE TABLE warehouse (w_id integer)")
        load(empty, 1, observe=seen.append)
        assert _number(session, "SELECT count(*) FROM warehouse") == 1
        size = sum(_number(session, f"SELECT pg_total_relation_size('{t}')") for t in TABLES)
    assert estimated_bytes(1) == pytest.approx(size, rel=0.03)
    assert [p.step for p in seen[-4:]] == ["indexes", "statistics", "procedures", "done"]
    assert seen[-1].warehouses_done == 1
    assert seen[-1].rows == pytest.approx(599_000, rel=0.02)
    assert all(a.rows <= b.rows and a.seconds <= b.seconds for a, b in pairwise(seen))


def test_a_failing_worker_fails_the_load(
    empty: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hotset.tpcc.schema.create", lambda *_: None)
    with pytest.raises(LoadFailed, match=r'error 42P01: .*"item" does not exist'):
        load(empty, 1)


def test_no_server_no_warehouses_no_dialect(database: PostgresDatabase) -> None:
    with pytest.raises(CannotConnect):
        load(replace(database, dbname="nowhere"), 1)
    with pytest.raises(ValueError, match="at least one warehouse"):
        load(database, 0)
    with pytest.raises(SetupError, match="engine 'oracle'; there is postgres, sqlserver"):
        batches("oracle", "schema")


def _number(session: PostgresSession, sql: str) -> int:
    value: Any = session.query(sql)[0][0]
    return int(value)
