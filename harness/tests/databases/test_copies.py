"""Copies of a database for one run: what differs from the database itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from hotset.harness.databases.postgres import copies
from hotset.harness.databases.postgres.client import PostgresDatabase
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
    database: PostgresDatabase,
) -> None:
    said: list[str] = []
    with copies.of(database, said.append) as copy:
        assert left_alone(copy) == STORED
        with closing(copy.session()) as session:
            kept = session.query("SELECT reloptions FROM pg_class WHERE relname = 'quick'")
    assert "fillfactor=50" in str(kept[0][0]), "what a table was set to before stays"
    assert left_alone(database) == set()
    assert said == ["copying database copied"]


def test_tables_of_others_are_told(database: PostgresDatabase) -> None:
    said: list[str] = []
    with closing(database.session()) as session:
        session.script(f"CREATE ROLE copier LOGIN CREATEDB PASSWORD '{PASSWORD}'")
        try:
            session.script(
                "ALTER TABLE plain OWNER TO copier; ALTER DATABASE copied OWNER TO copier"
            )
            session.close()
            with copies.of(replace(database, user="copier"), said.append) as copy:
                assert left_alone(copy) == {"plain"}
        finally:
            with closing(database.session()) as again:
                again.script("REASSIGN OWNED BY copier TO tester; DROP ROLE copier")
    assert said[-1] == (
        "autovacuum stays as it is for 4 tables of the copy: copier does not own them"
    )
