"""The PostgreSQL client adapter against a real server: what its errors become."""

import threading
from contextlib import closing
from dataclasses import replace

import pytest

from hotset.core.sql import Aborted, CannotConnect, IntendedRollback, ServerGone
from hotset.databases.postgres.client import PostgresSession
from hotset.databases.postgres.product import PostgresDatabase
from hotset.tpcc.transactions import UNUSED_ITEM

pytestmark = pytest.mark.database


def test_wrong_password_is_one_line_without_it(database: PostgresDatabase) -> None:
    wrong = replace(database, password="not-the-password")  # noqa: S106
    with pytest.raises(CannotConnect) as failure:
        wrong.session()
    assert "password authentication failed" in str(failure.value)
    assert "not-the-password" not in str(failure.value)
    assert "\n" not in str(failure.value)
    assert failure.value.__cause__ is None


def test_unknown_database(database: PostgresDatabase) -> None:
    with pytest.raises(CannotConnect, match='database "nowhere" does not exist'):
        replace(database, dbname="nowhere").session()


def test_new_order_with_the_unused_item_leaves_nothing(session: PostgresSession) -> None:
    orders = (
        "SELECT sum(d_next_o_id), (SELECT count(*) FROM hotset_tpcc.order_line)"
        " FROM hotset_tpcc.district"
    )
    before = session.query(orders)
    with pytest.raises(IntendedRollback):
        session.call("hotset_tpcc.neword", (1, 1, 1, 1, (5, 6, UNUSED_ITEM), (1, 1, 1), (1, 2, 3)))
    assert session.query(orders) == before


def test_deadlock_is_retryable(database: PostgresDatabase) -> None:
    outcomes: list[tuple[str, bool]] = []
    both = threading.Barrier(2)

    def cross(first: str, second: str) -> None:
        with closing(database.session()) as session:
            session.script("BEGIN")
            session.script(f"SELECT pg_advisory_xact_lock({first})")
            both.wait()
            try:
                session.script(f"SELECT pg_advisory_xact_lock({second})")
                outcomes.append(("fine", False))
            except Aborted as aborted:
                outcomes.append((aborted.cause, aborted.retryable))

    threads = [threading.Thread(target=cross, args=pair) for pair in (("1", "2"), ("2", "1"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [("deadlock", True), ("fine", False)]


def test_lock_timeout_is_retryable_in_a_call(
    database: PostgresDatabase, session: PostgresSession
) -> None:
    with closing(database.session()) as other:
        other.script("BEGIN; UPDATE hotset_tpcc.warehouse SET w_ytd = w_ytd WHERE w_id = 1")
        session.script("SET lock_timeout = 20")
        with pytest.raises(Aborted) as failure:
            session.call("hotset_tpcc.payment", (1, 1, 1, 1, 1, None, 5))
    assert failure.value.cause == "lock timeout"
    assert failure.value.retryable


def test_other_errors_are_final(session: PostgresSession) -> None:
    with pytest.raises(Aborted, match="error 42883") as failure:
        session.call("no_such_procedure", (1,))
    assert not failure.value.retryable
    with pytest.raises(Aborted, match="error 42601"):
        session.query("SELEC 1")


def test_a_terminated_session_is_gone(database: PostgresDatabase, session: PostgresSession) -> None:
    (pid,) = session.query("SELECT pg_backend_pid()")[0]
    with closing(database.session()) as other:
        other.query(f"SELECT pg_terminate_backend({pid})")
    with pytest.raises(ServerGone):
        session.call("hotset_tpcc.slev", (1, 1, 15))
    with pytest.raises(ServerGone):
        session.query("SELECT 1")
    session.close()


def test_copy_escapes_text_and_keeps_nulls(session: PostgresSession) -> None:
    session.script("CREATE TEMPORARY TABLE odd (number integer, words text)")
    rows = [(1, "tab\there"), (2, "line\nbreak"), (3, "back\\slash"), (4, "\\N"), (5, None)]
    assert session.copy("odd", ("number", "words"), rows) == 5
    assert session.query("SELECT * FROM odd ORDER BY number") == rows


def test_a_failed_copy_loads_nothing(session: PostgresSession) -> None:
    session.script("CREATE TEMPORARY TABLE small (number smallint)")
    with pytest.raises(Aborted, match="error 22003"):
        session.copy("small", ("number",), [(1,), (99_999,)])
    assert session.query("SELECT count(*) FROM small") == [(0,)]
