"""Loading into a real server, and the twelve conditions on what it holds."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hotset.core.sql import CannotConnect, LoadFailed, SetupError
from hotset.databases.postgres.client import PostgresSession
from hotset.databases.postgres.product import PostgresDatabase
from hotset.reports.model.windows import Condition
from hotset.tpcc import schema
from hotset.tpcc.data.consistency import Violated, check, require
from hotset.tpcc.data.load import LoadProgress, LoadResult, load
from hotset.tpcc.schema import TABLES, batches, estimate_bytes
from tests.postgres_cluster import Cluster

pytestmark = pytest.mark.database


def test_row_counts(loaded: tuple[PostgresDatabase, LoadResult], session: PostgresSession) -> None:
    counts = {name: _number(session, f"SELECT count(*) FROM hotset_tpcc.{name}") for name in TABLES}
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
    before = _number(
        session, "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'stock'"
    )
    for _ in range(7):
        assert 0 <= int(str(session.call("hotset_tpcc.slev", (1, 2, 15))[0])) <= 300
    session.script("SELECT pg_stat_force_next_flush()")
    after = _number(session, "SELECT seq_tup_read FROM pg_stat_user_tables WHERE relname = 'stock'")
    assert after == before


def test_all_conditions_hold_after_load(
    database: PostgresDatabase, session: PostgresSession
) -> None:
    results = check(database, session)
    assert [result.number for result in results] == list(range(1, 13))
    assert [result for result in results if not result.holds] == []


@dataclass(frozen=True)
class Damage:
    """One statement, and the keys it breaks by condition: (warehouse,) for the conditions 1 and 8,
    (warehouse, district) for the others. Each damage has a district of its own."""

    sql: str
    breaks: dict[int, tuple[int, ...]]


OLD = "o_id = 7"  # delivered when it was loaded, with lines of no amount
DAMAGE = {
    1: Damage(
        "UPDATE hotset_tpcc.district SET d_ytd = d_ytd + 1 WHERE d_w_id = 1 AND d_id = 1",
        {1: (1,), 9: (1, 1)},
    ),
    2: Damage(
        "UPDATE hotset_tpcc.district SET d_next_o_id = d_next_o_id + 1"
        " WHERE d_w_id = 1 AND d_id = 2",
        {2: (1, 2)},
    ),
    3: Damage(
        "DELETE FROM hotset_tpcc.new_order WHERE no_w_id = 1 AND no_d_id = 3 AND no_o_id ="
        " (SELECT max(no_o_id) - 1 FROM hotset_tpcc.new_order WHERE no_w_id = 1 AND no_d_id = 3)",
        {3: (1, 3), 5: (1, 3), 11: (1, 3)},
    ),
    4: Damage(
        "UPDATE hotset_tpcc.orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1"
        f" AND o_d_id = 4 AND {OLD}",
        {4: (1, 4), 6: (1, 4)},
    ),
    5: Damage(
        "UPDATE hotset_tpcc.orders SET o_carrier_id = NULL WHERE o_w_id = 1"
        f" AND o_d_id = 5 AND {OLD}",
        {5: (1, 5), 7: (1, 5)},
    ),
    6: Damage(
        "UPDATE hotset_tpcc.orders SET o_ol_cnt = o_ol_cnt + CASE o_id WHEN 7 THEN 1 ELSE -1 END"
        " WHERE o_w_id = 1 AND o_d_id = 6 AND o_id IN (7, 8)",
        {6: (1, 6)},
    ),
    7: Damage(
        "UPDATE hotset_tpcc.order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 7"
        f" AND ol_{OLD} AND ol_number = 1",
        {7: (1, 7)},
    ),
    8: Damage(
        "UPDATE hotset_tpcc.warehouse SET w_ytd = w_ytd + 1 WHERE w_id = 2", {1: (2,), 8: (2,)}
    ),
    9: Damage(
        "UPDATE hotset_tpcc.history SET h_amount = h_amount + 1 WHERE ctid = (SELECT min(ctid) FROM"
        " hotset_tpcc.history WHERE h_w_id = 1 AND h_d_id = 9 AND h_c_w_id = 1 AND h_c_d_id = 9)",
        {8: (1,), 9: (1, 9), 10: (1, 9)},
    ),
    10: Damage(
        "UPDATE hotset_tpcc.customer SET c_balance = c_balance + 1 WHERE c_w_id = 1 AND c_d_id = 10"
        " AND c_id = 3",
        {10: (1, 10), 12: (1, 10)},
    ),
    11: Damage(
        "UPDATE hotset_tpcc.customer SET c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = 2"
        " AND c_d_id = 1 AND c_id = 3",
        {11: (2, 1)},
    ),
    12: Damage(
        "UPDATE hotset_tpcc.customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_w_id = 2"
        " AND c_d_id = 2 AND c_id = 3",
        {12: (2, 2)},
    ),
}


@pytest.fixture(scope="module")
def broken(loaded: tuple[PostgresDatabase, LoadResult]) -> dict[int, set[tuple[Any, ...]]]:
    """The keys that violate each condition once all damage is done; all of it is rolled back."""
    database = loaded[0]
    with closing(database.session()) as session, pytest.MonkeyPatch.context() as patch:
        patch.setattr("hotset.tpcc.data.consistency._LIMIT", 1000)
        session.script("BEGIN; " + "; ".join(damage.sql for damage in DAMAGE.values()))
        results = check(database, session)
        session.script("ROLLBACK")
        assert not any(result.holds for result in results)
        return {
            result.number: {row[: 1 if result.number in (1, 8) else 2] for row in result.examples}
            for result in results
        }


@pytest.mark.parametrize("number", DAMAGE)
def test_each_damage_breaks_its_condition_and_those_it_implies(
    number: int, broken: dict[int, set[tuple[Any, ...]]]
) -> None:
    damage = DAMAGE[number]
    assert number in damage.breaks
    districts = {key for key in damage.breaks.values() if len(key) == 2}
    for condition, keys in broken.items():
        assert (condition in damage.breaks) == bool(
            keys & (districts if condition not in (1, 8) else {damage.breaks.get(condition)})
        )


def test_nothing_else_is_reported(broken: dict[int, set[tuple[Any, ...]]]) -> None:
    wanted = {
        condition: {d.breaks[condition] for d in DAMAGE.values() if condition in d.breaks}
        for condition in range(1, 13)
    }
    assert broken == wanted


def test_a_violation_says_which_and_an_example() -> None:
    one = Condition(
        number=3, title="gaps", holds=False, violations=2, examples=((1, 7, 5, None), (2, 7, 5, 6))
    )
    held = Condition(number=4, title="sums", holds=True, violations=0)
    require([held])
    with pytest.raises(Violated, match=r"condition 3 \(gaps\): 2 violations, such as \(1, 7, 5, N"):
        require([held, one])


def test_loading_reports_progress_and_takes_the_estimated_space(
    empty: PostgresDatabase,
) -> None:
    seen: list[LoadProgress] = []
    with closing(empty.session()) as session:
        load(empty, 1, observe=seen.append)
        assert _number(session, "SELECT count(*) FROM hotset_tpcc.warehouse") == 1
        size = sum(
            _number(session, f"SELECT pg_total_relation_size('hotset_tpcc.{t}')") for t in TABLES
        )
    assert estimate_bytes(1) == pytest.approx(size, rel=0.03)
    assert [p.step for p in seen[-4:]] == ["rows", "indexes", "statistics", "done"]
    assert seen[-1].warehouses_done == 1
    assert seen[-1].rows == pytest.approx(599_000, rel=0.02)
    assert all(a.rows <= b.rows and a.seconds <= b.seconds for a, b in pairwise(seen))


RELATIONS = (
    "SELECT nspname::text, relname::text FROM pg_namespace AS n"
    " LEFT JOIN pg_class ON relnamespace = n.oid WHERE nspname LIKE 'hotset%'"
)


def test_a_load_makes_nothing_where_there_is_such_a_schema(empty: PostgresDatabase) -> None:
    with closing(empty.session()) as session:
        session.script("CREATE SCHEMA hotset_tpcc CREATE TABLE mine (a integer)")
        before = session.query(RELATIONS)
        with pytest.raises(LoadFailed, match="already exists"):
            load(empty, 1)
        assert session.query(RELATIONS) == before == [("hotset_tpcc", "mine")]


def test_a_failing_worker_fails_the_load_which_drops_what_it_made(
    empty: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = schema.create

    def narrow(database: PostgresDatabase, session: PostgresSession) -> None:
        create(database, session)
        session.script("ALTER TABLE hotset_tpcc.item DROP COLUMN i_data")

    monkeypatch.setattr(schema, "create", narrow)
    with pytest.raises(LoadFailed, match=r'error 42703: column "i_data" of relation "item" does'):
        load(empty, 1)
    with closing(empty.session()) as session:
        assert session.query(RELATIONS) == []


def test_an_interrupted_load_drops_what_it_made(empty: PostgresDatabase) -> None:
    def interrupt(progress: LoadProgress) -> None:
        if progress.rows:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load(empty, 2, observe=interrupt)
    with closing(empty.session()) as session:
        assert session.query(RELATIONS) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_full_disk_is_named(cluster: Cluster, empty: PostgresDatabase) -> None:
    with small_disk(cluster.root / "small") as small:
        cluster.hand_over(small)
        with closing(cluster.database().session()) as owner:
            owner.script(f"CREATE TABLESPACE small LOCATION '{small}'")
            owner.script(f"ALTER DATABASE {empty.dbname} SET default_tablespace = small")
            try:
                with pytest.raises(LoadFailed, match=r"disk full: .*No space left on device"):
                    load(empty, 2)
                with closing(empty.session()) as session:
                    assert session.query(RELATIONS) == []
            finally:
                owner.script(f"ALTER DATABASE {empty.dbname} RESET default_tablespace")
                owner.script("DROP TABLESPACE small")


@contextmanager
def small_disk(at: Path) -> Iterator[Path]:
    """32 MiB, in memory."""
    at.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "small", str(at)], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


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
