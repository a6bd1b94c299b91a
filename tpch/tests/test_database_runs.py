"""Load, check, power and throughput runs on a real server."""

import pickle
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotset.core.sql import CannotConnect, Refused, Row, SetupError
from hotset.databases.postgres.tpch import PostgresTpch, PostgresTpchSession
from hotset.tpch import check, data, load, schema
from hotset.tpch.check import TpchCheck
from hotset.tpch.load import LoadResult
from hotset.tpch.record import (
    Begun,
    Ended,
    Event,
    LoadFailed,
    LoadProgress,
    Refreshed,
    RunFailed,
    RunInterrupted,
)
from hotset.tpch.run import power, refresh, throughput
from hotset.tpch.schema import TABLES
from tests.postgres_cluster import PASSWORD

pytestmark = pytest.mark.database

SCALE = 0.01
SUMS = {
    name: f"SELECT count(*), sum(hashtextextended(t::text, 0)) FROM hotset_tpch.{name} t"
    for name in TABLES
}

RELATIONS = (
    "SELECT nspname::text, relname::text FROM pg_namespace AS n"
    " LEFT JOIN pg_class ON relnamespace = n.oid WHERE nspname LIKE 'hotset%'"
)


def contents(session: PostgresTpchSession) -> dict[str, list[Row]]:
    """A digest of every table's rows."""
    return {name: session.query(sql) for name, sql in SUMS.items()}


# Loading


def test_row_counts_of_clause_4_2_5(loaded: tuple[PostgresTpch, LoadResult]) -> None:
    assert loaded[1].rows == {
        "region": 5,
        "nation": 25,
        "supplier": 100,
        "customer": 1500,
        "part": 2000,
        "partsupp": 8000,
        "orders": 15000,
        "lineitem": 60175,
    }


def test_keys_and_statistics_are_there(session: PostgresTpchSession) -> None:
    kinds = dict(
        session.query(
            "SELECT contype::text, count(*) FROM pg_constraint"
            " WHERE contype <> 'n' AND conrelid::regclass::text = ANY"  # PostgreSQL 18 has NOT NULL
            f" (ARRAY{[f'hotset_tpch.{name}' for name in TABLES]}) GROUP BY contype"
        )
    )
    assert kinds == {"p": 8, "f": 8}
    # From PostgreSQL 16 on, COPY leaves pages without rows behind the last one that has some.
    assert session.query(
        "SELECT count(*) FROM pg_class WHERE relname = 'lineitem' AND reltuples = 60175"
        " AND relallvisible > (SELECT max((ctid::text::point)[0]) FROM hotset_tpch.lineitem)"
    ) == [(1,)]


def test_the_estimate_of_its_size(session: PostgresTpchSession) -> None:
    (row,) = session.query(
        "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r'"
        " AND relnamespace = 'hotset_tpch'::regnamespace"
    )
    assert float(str(row[0])) == pytest.approx(schema.estimate_bytes(SCALE), rel=0.15)


def test_steps_are_said(empty: PostgresTpch, folder: Path) -> None:
    said: list[LoadProgress] = []
    load.load(empty, SCALE, folder, said.append)
    steps = list(dict.fromkeys(one.step for one in said))
    assert steps == ["rows", "indexes", "foreign_keys", "statistics", "counts", "done"]
    assert said[-1].bytes_done == said[-1].bytes_total == data.prepare(folder, SCALE).bytes


def test_a_load_the_server_refuses_leaves_no_tables(
    empty: PostgresTpch, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when its disk is full: COPY is refused in the middle."""

    def full(_: Path) -> Iterator[bytes]:
        yield b"1|2|3\n"

    monkeypatch.setattr(data, "chunks", full)
    with pytest.raises(LoadFailed, match="missing data for column"):
        load.load(empty, SCALE, folder)
    with closing(empty.session()) as session:
        assert session.query(RELATIONS) == []


def test_an_interrupted_load_leaves_no_tables(empty: PostgresTpch, folder: Path) -> None:
    def interrupt(progress: LoadProgress) -> None:
        if progress.step == "indexes":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        load.load(empty, SCALE, folder, interrupt, processes=2)
    with closing(empty.session()) as session:
        assert session.query(RELATIONS) == []
        others = session.query(
            "SELECT count(*) FROM pg_stat_activity WHERE datname ="
            " current_database() AND pid <> pg_backend_pid()"
        )
    assert others == [(0,)]


def test_a_half_loaded_database_is_not_taken_for_a_whole_one(
    empty: PostgresTpch, folder: Path
) -> None:
    with closing(empty.session()) as session:
        with pytest.raises(SetupError, match="no TPC-H tables that were loaded to the end"):
            schema.read_scale(session)
        schema.create(empty, session)
    with pytest.raises(SetupError, match="no TPC-H tables that were loaded to the end"):
        power.run(empty)
    with pytest.raises(SetupError, match="no TPC-H tables that were loaded to the end"):
        check.check(empty, None, folder)


@pytest.mark.parametrize("scale", [0, -1, 0.001, 0.12345, 1e6, float("nan")])
def test_a_scale_that_cannot_be(database: PostgresTpch, tmp_path: Path, scale: float) -> None:
    with pytest.raises(ValueError, match=r"from 0\.01 to 100000"):
        load.load(database, scale, tmp_path)


def test_a_wrong_password_is_said_before_data_is_made(
    database: PostgresTpch, tmp_path: Path
) -> None:
    wrong = PostgresTpch(replace(database.where, password="wr0ng"))  # noqa: S106
    with pytest.raises(CannotConnect, match="authentication failed") as failure:
        load.load(wrong, SCALE, tmp_path)
    assert "wr0ng" not in str(failure.value)
    assert not list(tmp_path.iterdir())


def test_the_password_stays_out_of_sight(database: PostgresTpch) -> None:
    assert PASSWORD not in repr(database)
    assert pickle.loads(pickle.dumps(database)) == database  # noqa: S301 - our own bytes


# Answers


def test_all_answers_are_those_of_duckdb(database: PostgresTpch, folder: Path) -> None:
    found = check.check(database, SCALE, folder)
    assert found.holds
    assert [one.number for one in found.answers] == list(range(1, 23))
    assert {one.comparison.verdict for one in found.answers} == {"equal"}
    assert len(found.references) == 8


def _wrong(found: TpchCheck) -> set[str]:
    return {
        one.title
        for part in (found.tables, found.references, found.answers)
        for one in part
        if not one.holds
    }


DAMAGE = {
    "a line is lost": (
        "DELETE FROM hotset_tpch.lineitem WHERE l_orderkey = 1 AND l_linenumber = 2",
        {"lineitem", "query 1"},
    ),
    "an order is shipped later": (
        "UPDATE hotset_tpch.orders SET o_orderdate = date '1993-07-05' WHERE o_orderkey = 7",
        {"query 4"},
    ),
    "a customer's order points nowhere": (
        "SET session_replication_role = replica;"
        " UPDATE hotset_tpch.orders SET o_custkey = 999999 WHERE o_orderkey = 32;"
        " RESET session_replication_role",
        {"orders -> customer"},
    ),
    "a name is misspelt": (
        "UPDATE hotset_tpch.supplier SET s_name = 'Supplier#' WHERE s_suppkey IN"
        " (SELECT s_suppkey FROM hotset_tpch.supplier, hotset_tpch.nation"
        " WHERE s_nationkey = n_nationkey AND n_name = 'CANADA')",
        {"query 20"},
    ),
}


@pytest.mark.parametrize(("sql", "expected"), DAMAGE.values(), ids=list(DAMAGE))
def test_a_damaged_database_fails(
    cluster: Any,  # noqa: ANN401
    database: PostgresTpch,
    folder: Path,
    sql: str,
    expected: set[str],
) -> None:
    with copy_of(PostgresTpch(cluster.database("template1")), database) as damaged:
        with closing(damaged.session()) as session:
            session.script(sql)
        found = check.check(damaged, None, folder, numbers=(1, 4, 20))
    assert not found.holds
    assert expected <= _wrong(found)


@contextmanager
def copy_of(owner: PostgresTpch, database: PostgresTpch) -> Iterator[PostgresTpch]:
    """A copy to damage; the original must have no connections."""
    with closing(owner.session()) as session:
        session.script(f"CREATE DATABASE damaged TEMPLATE {database.where.dbname}")
        try:
            yield PostgresTpch(replace(database.where, dbname="damaged"))
        finally:
            session.script("DROP DATABASE damaged WITH (FORCE)")


# Refresh functions


def test_refresh_functions_leave_the_database_as_it_was(
    database: PostgresTpch, session: PostgresTpchSession
) -> None:
    before = contents(session)
    for number in (0, 1, 0):
        update = refresh.update_set(SCALE, number)
        refresh.insert(session, update)
        (orders,) = session.query("SELECT count(*) FROM hotset_tpch.orders")
        assert orders == (15_015,)
        refresh.delete(database, session, update)
        assert contents(session) == before


def test_rows_that_a_killed_run_left_do_not_disturb_the_next(
    database: PostgresTpch, session: PostgresTpchSession
) -> None:
    before = contents(session)
    refresh.insert(session, refresh.update_set(SCALE, 0))
    assert power.run(database, queries=(6,)).refresh_s is not None
    assert contents(session) == before


# Power


def test_a_power_run(database: PostgresTpch, session: PostgresTpchSession) -> None:
    before, events = contents(session), list[Event]()
    run = power.run(database, SCALE, seed=42, observe=events.append)
    assert run.complete
    assert run.cause == ""
    assert run.tproc_h_power is not None
    assert [one.number for one in run.queries][:4] == [14, 2, 9, 20]
    assert all(
        one.seconds > 0 and one.checksum and one.rows
        for one in run.queries
        if one.number not in (2, 17, 18, 20)
    )
    assert isinstance(events[0], Refreshed)
    assert isinstance(events[-1], Refreshed)
    assert sum(isinstance(one, Begun) for one in events) == 22
    assert [one.result for one in events if isinstance(one, Ended)] == list(run.queries)
    assert contents(session) == before
    again = power.run(database, seed=42, queries=(1, 3, 10))
    other = power.run(database, seed=43, queries=(1, 3, 10))
    first = {one.number: one.checksum for one in run.queries}
    assert all(one.checksum == first[one.number] for one in again.queries)
    assert any(one.checksum != first[one.number] for one in other.queries)


def test_a_query_that_takes_too_long_is_named_and_the_run_goes_on(
    database: PostgresTpch, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_down(monkeypatch, 9, "SELECT pg_sleep(30)")
    run = power.run(database, refresh=False, timeout_s=1.0)
    assert [(one.number, one.seconds) for one in run.queries if one.outcome == "timed out"] == [
        (9, 1.0)
    ]
    assert len(run.queries) == 22
    assert not run.complete
    assert run.geometric_mean_s is None
    assert run.cause == ""
    assert run.total_s > 1


def test_a_refused_query_is_recorded_and_the_run_goes_on(
    database: PostgresTpch, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_down(monkeypatch, 2, "SELECT nothing FROM nowhere")
    run = power.run(database, refresh=False, queries=(14, 2, 6))
    assert [one.outcome for one in run.queries] == ["ok", "failed", "ok"]
    assert "nowhere" in run.queries[1].cause


def test_a_server_that_goes_away_leaves_what_was_measured(
    database: PostgresTpch, session: PostgresTpchSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_down(monkeypatch, 9, "SELECT pg_terminate_backend(pg_backend_pid())")
    run = power.run(database, queries=(14, 2, 9, 20))
    assert [(one.number, one.outcome) for one in run.queries] == [
        (14, "ok"),
        (2, "ok"),
        (9, "failed"),
    ]
    assert "terminating connection" in run.cause
    assert "RF1's rows stay until the next run" in run.cause
    assert run.refresh_s is None
    monkeypatch.undo()
    assert power.run(database, queries=(6,)).refresh_s is not None
    assert session.query("SELECT count(*) FROM hotset_tpch.orders") == [(15000,)]


def test_ctrl_c_cancels_the_query_and_takes_the_refresh_back(
    database: PostgresTpch, session: PostgresTpchSession
) -> None:
    before = contents(session)

    def interrupt(event: Event) -> None:
        if isinstance(event, Begun) and event.number == 9:
            raise KeyboardInterrupt

    with pytest.raises(RunInterrupted) as ended:
        power.run(database, observe=interrupt)
    assert contents(session) == before
    assert [one.number for one in ended.value.partial.queries] == [14, 2]
    assert (ended.value.partial.cause, ended.value.partial.complete) == ("interrupted", False)


def test_another_scale_is_refused(database: PostgresTpch) -> None:
    with pytest.raises(SetupError, match=r"holds TPC-H at scale 0\.01, not 1: leave the scale out"):
        power.run(database, 1)


def test_a_refused_rf1_says_how_to_leave_it_out(
    database: PostgresTpch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise Refused("permission denied")

    monkeypatch.setattr(refresh, "insert", refuse)
    with pytest.raises(RunFailed, match="RF1 failed: permission denied") as refused:
        power.run(database)
    assert [one.parameters for one in refused.value.remedies] == [{"refresh": False}]


# Throughput


@pytest.mark.parametrize("kind", ["power", "throughput"])
def test_a_clock_that_is_set_meanwhile_changes_no_figure(
    database: PostgresTpch, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """By a time server, or by hand: the computer's time is an hour later from then on."""
    real = time.time

    def set_clock(event: Event) -> None:
        if isinstance(event, Begun):
            monkeypatch.setattr(time, "time", lambda: real() + 3600)

    before = real()
    if kind == "power":
        run = power.run(database, queries=(1, 6), refresh=False, observe=set_clock)
        assert 0 < run.duration_s <= real() - before
        return
    streams = throughput.run(database, streams=2, refresh=False, observe=set_clock)
    assert 0 < streams.duration_s <= real() - before
    assert all(one.duration_s <= streams.duration_s for one in streams.streams)


def test_a_throughput_run(database: PostgresTpch, session: PostgresTpchSession) -> None:
    before = contents(session)
    run = throughput.run(database, seed=1)
    assert [one.number for one in run.streams] == [1, 2]
    assert [one.queries[0].number for one in run.streams] == [21, 6]
    assert run.refresh_s is not None
    assert len(run.refresh_s) == 2
    assert run.tproc_h_throughput == pytest.approx(2 * 22 * 3600 / run.duration_s * SCALE)
    assert run.duration_s >= max(one.duration_s for one in run.streams)
    assert contents(session) == before


def test_ctrl_c_cancels_all_streams(
    database: PostgresTpch, session: PostgresTpchSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(session)
    slow_down(monkeypatch, 3, "SELECT pg_sleep(60)")  # stream 1's second, stream 2's nineteenth
    begun = threading.Event()

    def interrupt(event: Event) -> None:
        if isinstance(event, Begun) and event.number == 3:
            begun.set()

    def wait(thread: threading.Thread, timeout: float | None = None) -> None:
        if thread.name.startswith("stream") and begun.is_set() and not fired.is_set():
            fired.set()
            time.sleep(0.3)
            raise KeyboardInterrupt
        join(thread, timeout)

    fired, join = threading.Event(), threading.Thread.join
    monkeypatch.setattr(threading.Thread, "join", wait)
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        throughput.run(database, observe=interrupt)
    assert time.monotonic() - started < 20
    assert contents(session) == before
    sleeping = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'"
    assert session.query(f"{sleeping} AND state = 'active' AND pid <> pg_backend_pid()") == [(0,)]


def test_too_many_streams(database: PostgresTpch) -> None:
    with pytest.raises(ValueError, match="1 to 40"):
        throughput.run(database, streams=41)


def slow_down(monkeypatch: pytest.MonkeyPatch, number: int, instead: str) -> None:
    """Send something else for one of the queries."""
    from hotset.tpch import queries

    text: Callable[..., str] = queries.text
    monkeypatch.setattr(
        queries,
        "text",
        lambda engine, query, *rest: instead if query == number else text(engine, query, *rest),
    )
