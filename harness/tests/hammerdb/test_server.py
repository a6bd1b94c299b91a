"""What is read beside HammerDB, of a real server."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest

from hotset.core.clock import wait_until
from hotset.databases.postgres.product import PostgresDatabase
from hotset.hammerdb import server
from hotset.hammerdb.server import Server

pytestmark = pytest.mark.database


def test_orders_users_and_states_are_the_servers(
    empty: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "DRAIN_S", 1.0)
    with closing(empty.session()) as session, closing(empty.session()) as user:
        session.script(
            "CREATE TABLE district (d_next_o_id int); INSERT INTO district VALUES (3001)"
        )
        under_way = threading.Thread(
            target=lambda: user.query("SELECT pg_sleep(6) AS neword"), daemon=True
        )
        with Server(empty) as beside:
            under_way.start()
            beside.ask("opens")
            time.sleep(1.5)
            session.script("UPDATE district SET d_next_o_id = d_next_o_id + 50")
            time.sleep(1.5)
            beside.ask("closes")
            edges = beside.edges(10)
            assert edges is not None
            assert [edge.orders for edge in edges] == [3001, 3051]
            assert sum(beside.each_second() or []) == 50
            assert 0 in (beside.each_second() or [])
            assert beside.users() == 1
            assert beside.unable == ""
            assert wait_until(lambda: beside.unfinished() is not None, 10)
            stuck = beside.unfinished()
            assert stuck is not None
            assert stuck.count == 1
            assert 2 < stuck.oldest_s < 6
            try:
                session.script("ALTER SYSTEM SET default_transaction_read_only = on")
                session.script("SELECT pg_reload_conf()")
                assert wait_until(lambda: "read-only" in beside.unable, 10)
            finally:
                session.script("SET default_transaction_read_only = off")
                session.script("ALTER SYSTEM RESET default_transaction_read_only")
                session.script("SELECT pg_reload_conf()")
            # HammerDB's next line comes ten seconds later: what was over by then was forgotten.
            looks = len(beside._readings)
            assert wait_until(lambda: len(beside._readings) > looks + 1, 10)
            assert "read-only" in beside.unable
        under_way.join()


def test_a_state_that_refuses_the_look_itself_is_told(empty: PostgresDatabase) -> None:
    """The thread ended, and nothing was known of the window from then on."""
    with closing(empty.session()) as session, Server(empty) as beside:
        session.script(
            "CREATE FUNCTION full_up() RETURNS int LANGUAGE plpgsql AS $$ BEGIN"
            " RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$;"
            "CREATE VIEW district AS SELECT full_up() AS d_next_o_id"
        )
        beside.ask("opens")
        assert wait_until(lambda: beside.unable.startswith("disk full: no space"), 10)
        assert beside.edges(1) is None
