"""What only looks does not wait for a table that somebody locks, and says who does; on a real
PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import psycopg
import pytest

from hotset.bench import tpcc
from hotset.bench.commands import tpch
from hotset.core.operation import Context
from hotset.core.progress import Reporter
from hotset.core.sql import Locked
from hotset.databases.postgres import limits
from hotset.databases.postgres.product import PostgresDatabase
from hotset.tpcc.driver import RunOptions

pytestmark = pytest.mark.database
LIMIT_S = 30
"""Of a look that waits for a second: the computer is busy."""


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOOK_WAIT_S", 1)


def dsn_of(database: PostgresDatabase) -> str:
    where = f"host={database.host} port={database.port}"
    return f"{where} user={database.user} dbname={database.dbname}"


@pytest.fixture
def owner(database: PostgresDatabase) -> Iterator[psycopg.Connection]:
    """A session of somebody else's, in a transaction that is rolled back."""
    dsn = f"{dsn_of(database)} application_name=nightly"
    with closing(psycopg.connect(dsn, password=database.password)) as other:
        yield other


def refused(look: Callable[[], object], owner: psycopg.Connection, table: str) -> None:
    """The look ends in time, and says who has the table."""
    begun = time.monotonic()
    with pytest.raises(Locked) as raised:
        look()
    assert time.monotonic() - begun < LIMIT_S
    pid = owner.info.backend_pid
    assert f"table {table} is locked by session {pid} (nightly, role tester" in str(raised.value)
    assert f"LOCK TABLE {table}" in str(raised.value)


def test_a_check_of_tpcc_says_who_has_its_table(
    database: PostgresDatabase, owner: psycopg.Connection
) -> None:
    """It waited until whoever had it let go, without a word."""
    owner.execute("LOCK TABLE hotset_tpcc.order_line IN ACCESS EXCLUSIVE MODE")
    report = Reporter(quiet=True)
    refused(lambda: tpcc.check(database, report), owner, "hotset_tpcc.order_line")
    options = RunOptions(warehouses=2, users=1, rampup_s=0.0, duration_s=1.0)
    refused(lambda: tpcc.Runs(report).run(database, options), owner, "hotset_tpcc.order_line")


def test_a_check_of_tpch_says_who_has_its_table(
    database: PostgresDatabase, owner: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOTSET_PASSWORD", database.password)
    with closing(database.session()) as session:
        session.script("CREATE SCHEMA hotset_tpch CREATE TABLE tpch_load (scale_factor float); ")
    try:
        owner.execute("LOCK TABLE hotset_tpch.tpch_load IN ACCESS EXCLUSIVE MODE")
        request = tpch.Check(engine="postgres", dsn=dsn_of(database))
        refused(lambda: tpch.check(request, Context()), owner, "hotset_tpch.tpch_load")
    finally:
        owner.rollback()
        with closing(database.session()) as session:
            session.script("DROP SCHEMA hotset_tpch CASCADE")


def test_who_waits_for_a_table_to_himself_is_told_with_whom_he_waits_for(
    database: PostgresDatabase, owner: psycopg.Connection
) -> None:
    with closing(psycopg.connect(dsn_of(database), password=database.password)) as reader:
        reader.execute("SELECT count(*) FROM hotset_tpcc.district")
        owner.pgconn.send_query(b"BEGIN; LOCK TABLE hotset_tpcc.district IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Locked, match=f"itself waits for {reader.info.backend_pid}: "):
            tpcc.check(database, Reporter(quiet=True))
        reader.rollback()


def test_a_list_of_targets_is_not_limited_by_a_limit_that_is_shorter_already(
    database: PostgresDatabase,
) -> None:
    with closing(database.session()) as session:
        session.script("ALTER ROLE tester SET lock_timeout = '5ms'")
        try:
            with closing(database.looking().session()) as looking:
                assert looking.query("SHOW lock_timeout") == [("5ms",)]
        finally:
            session.script("ALTER ROLE tester RESET lock_timeout")
