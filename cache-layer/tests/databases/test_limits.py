"""The server's own limit of time for a statement is named where it ends one of hotset's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import pytest

from hotset.core.sql import Aborted, Refused, TimedOut
from hotset.databases.postgres.product import PostgresDatabase
from hotset.databases.postgres.tpch import PostgresTpch

pytestmark = pytest.mark.database

SLOW = "SELECT count(pg_sleep(5))::text"
LIFT = "lift it, or add options='-c statement_timeout=0' to the DSN"


def by_role(database: PostgresDatabase, setting: str) -> None:
    with closing(database.session()) as session:
        session.script(f"ALTER ROLE tester {setting}")


def by_database(database: PostgresDatabase, setting: str) -> None:
    with closing(database.session()) as session:
        session.script(f"ALTER DATABASE {database.dbname} {setting}")


@pytest.mark.parametrize(
    ("set_", "who"),
    [
        (by_role, "the role's settings (ALTER ROLE)"),
        (by_database, "the database's settings (ALTER DATABASE)"),
    ],
)
def test_a_limit_that_ends_a_statement_is_named_with_whose_it_is(
    empty: PostgresDatabase, set_: Callable[[PostgresDatabase, str], None], who: str
) -> None:
    words = f"statement_timeout is 300 ms, by {who}: {LIFT}"
    set_(empty, "SET statement_timeout = 300")
    try:
        with closing(empty.session()) as session:
            for done in (lambda: session.query(SLOW), lambda: session.script(f"BEGIN; {SLOW}")):
                with pytest.raises(Aborted, match="error 57014") as failure:
                    done()
                assert str(failure.value).endswith(f"; {words}")
        with closing(PostgresTpch(empty).session()) as session:
            with pytest.raises(Refused) as refused:
                session.query(SLOW)
            assert str(refused.value).endswith(f"; {words}")
            # Its own limit takes the place of the server's.
            with pytest.raises(TimedOut, match=r"cancelled after 0\.6 s"):
                session.query(SLOW, timeout_s=0.6)
    finally:
        set_(empty, "RESET statement_timeout")


def test_options_of_the_dsn_lift_it_or_are_named(empty: PostgresDatabase) -> None:
    limited = replace(empty, more=(("options", "-c statement_timeout=300"),))
    with (
        closing(limited.session()) as session,
        pytest.raises(Aborted, match="by the connection's options"),
    ):
        session.query(SLOW)
    by_role(empty, "SET statement_timeout = 300")
    lifted = replace(empty, more=(("options", "-c statement_timeout=0"),))
    try:
        with closing(lifted.session()) as session:
            assert session.query("SELECT count(pg_sleep(0.5))::text") == [("1",)]
    finally:
        by_role(lifted, "RESET statement_timeout")


def test_what_somebody_cancels_was_no_limit(empty: PostgresDatabase) -> None:
    limited = replace(empty, more=(("options", "-c statement_timeout=60000"),))
    with closing(limited.session()) as session, closing(empty.session()) as other:
        ((pid,),) = session.query("SELECT pg_backend_pid()")
        cancel = threading.Timer(0.5, other.query, (f"SELECT pg_cancel_backend({pid})",))
        cancel.start()
        with pytest.raises(Aborted, match="error 57014") as failure:
            session.query(SLOW)
        cancel.join()
    assert "statement_timeout" not in str(failure.value)
