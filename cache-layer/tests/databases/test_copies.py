"""Copies of a database for one run: what differs from the database itself."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from hotset.databases.postgres import copies
from hotset.databases.postgres.product import PostgresDatabase
from tests.postgres_cluster import PASSWORD, Cluster

pytestmark = pytest.mark.database

TABLES = """
CREATE SCHEMA "other one";
CREATE TABLE plain (id int);
CREATE TABLE "other one"."with text" (id int, words text);
CREATE UNLOGGED TABLE quick (id int) WITH (fillfactor = 50);
CREATE MATERIALIZED VIEW sums AS SELECT sum(id) FROM plain;
CREATE TABLE parts (id int) PARTITION BY HASH (id);
CREATE TABLE part PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0);
"""
STORED = {"plain", "with text", "quick", "sums", "part"}


class Said:
    """A reporter that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.warned: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.warned.append(text)


@pytest.fixture
def report() -> Said:
    return Said()


@pytest.fixture
def database(cluster: Cluster) -> Iterator[PostgresDatabase]:
    with cluster.fresh("copied") as made:
        with closing(made.session()) as session:
            session.script(TABLES)
        yield made


def left_alone(database: PostgresDatabase) -> set[str]:
    """Tables whose own setting keeps autovacuum off, and their TOAST does, too."""
    with closing(database.session()) as session:
        rows = session.query(
            "SELECT c.relname FROM pg_class AS c LEFT JOIN pg_class AS t ON t.oid = c.reltoastrelid"
            " WHERE 'autovacuum_enabled=off' = ANY (c.reloptions) AND c.relkind <> 't'"
            " AND (t.oid IS NULL OR 'autovacuum_enabled=off' = ANY (t.reloptions))"
        )
        return {str(name) for (name,) in rows}


def test_autovacuum_leaves_a_copy_alone_and_the_database_as_it_was(
    database: PostgresDatabase, report: Said
) -> None:
    with copies.copy_database(database, report) as copy:
        assert left_alone(copy) == STORED
        with closing(copy.session()) as session:
            kept = session.query("SELECT reloptions FROM pg_class WHERE relname = 'quick'")
    assert "fillfactor=50" in str(kept[0][0]), "what a table was set to before stays"
    assert left_alone(database) == set()
    assert report.said == ["copying database copied"]


def test_tables_of_others_are_told(database: PostgresDatabase, report: Said) -> None:
    with closing(database.session()) as session:
        session.script(f"CREATE ROLE copier LOGIN CREATEDB PASSWORD '{PASSWORD}'")
        try:
            session.script(
                "ALTER TABLE plain OWNER TO copier; ALTER DATABASE copied OWNER TO copier"
            )
            session.close()
            with copies.copy_database(replace(database, user="copier"), report) as copy:
                assert left_alone(copy) == {"plain"}
        finally:
            with closing(database.session()) as again:
                again.script("REASSIGN OWNED BY copier TO tester; DROP ROLE copier")
    assert report.said[-1] == (
        "autovacuum stays as it is for 4 tables of the copy: copier does not own them"
    )


def names(database: PostgresDatabase) -> set[str]:
    with closing(database.session()) as session:
        return {str(name) for (name,) in session.query("SELECT datname FROM pg_database")}


def test_a_copy_that_a_run_uses_stays(database: PostgresDatabase, report: Said) -> None:
    with copies.copy_database(database, report) as copy:
        with (
            pytest.raises(copies.CopyFailed, match=r"another run .* uses copied_hotset_fresh \("),
            copies.copy_database(database, report),
        ):
            pytest.fail("it was copied again")
        with closing(copy.session()) as session:
            assert session.query("SELECT count(*) FROM plain") == [(0,)]
    assert copy.dbname not in names(database)


def test_one_copy_at_a_time_is_created_or_dropped(database: PostgresDatabase, report: Said) -> None:
    """Who comes at the very same time waits, and is refused or copies; nobody loses a copy."""
    found: list[str] = []

    def run() -> None:
        try:
            with copies.copy_database(database, report) as copy, closing(copy.session()) as session:
                for _ in range(20):
                    session.query("SELECT count(*) FROM plain")
                    time.sleep(0.02)
                found.append("ran")
        except copies.CopyFailed as refused:
            found.append(str(refused))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert "ran" in found
    assert all(one == "ran" or "uses copied_hotset_fresh" in one for one in found), found
    assert "copied_hotset_fresh" not in names(database)


def test_a_copy_that_cannot_be_dropped_is_named(
    cluster: Cluster, database: PostgresDatabase, report: Said
) -> None:
    """Whatever became of the run stays what it is."""

    def fail() -> None:
        with closing(cluster.database().session()) as server:
            server.script("ALTER DATABASE copied_hotset_fresh IS_TEMPLATE true")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), copies.copy_database(database, report):
        fail()
    with closing(cluster.database().session()) as server:
        server.script("ALTER DATABASE copied_hotset_fresh IS_TEMPLATE false")
    assert "copied_hotset_fresh could not be dropped" in report.warned[0]
    with copies.copy_database(database, report):
        pass
    assert "copied_hotset_fresh" not in names(database)


def test_settings_of_the_database_are_the_copys(
    cluster: Cluster, database: PostgresDatabase, report: Said
) -> None:
    with closing(cluster.database().session()) as server:
        server.script("""ALTER DATABASE copied SET search_path = "other one", public""")
        server.script("ALTER DATABASE copied SET random_page_cost = 1.25")
        server.script("ALTER ROLE tester IN DATABASE copied SET work_mem = '7MB'")
    with copies.copy_database(database, report) as copy, closing(copy.session()) as session:
        found = [
            session.query(f"SHOW {one}")[0][0]
            for one in ("search_path", "random_page_cost", "work_mem")
        ]
    assert found == ['"other one", public', "1.25", "7MB"]
