"""PostgreSQL's session for TPC-H on a real server."""

import threading

import pytest

from hotset.core.sql import Refused, ServerGone, TimedOut
from hotset.databases.postgres.tpch import PostgresTpch, PostgresTpchSession

pytestmark = pytest.mark.database


def test_a_time_out_leaves_the_connection_working(session: PostgresTpchSession) -> None:
    with pytest.raises(TimedOut, match=r"after 0\.2 s"):
        session.query("SELECT pg_sleep(10)", 0.2)
    assert session.query("SELECT 1") == [(1,)]
    session.query("SELECT pg_sleep(0.3)")  # the limit is gone


def test_cancel_from_another_thread(session: PostgresTpchSession) -> None:
    timer = threading.Timer(0.3, session.cancel)
    timer.start()
    with pytest.raises(Refused, match="cancel"):
        session.query("SELECT pg_sleep(10)", 30)
    timer.join()
    assert session.query("SELECT 1") == [(1,)]


def test_a_closed_session(database: PostgresTpch) -> None:
    session = database.session()
    session.close()
    session.close()
    session.cancel()
    with pytest.raises(ServerGone):
        session.query("SELECT 1")
