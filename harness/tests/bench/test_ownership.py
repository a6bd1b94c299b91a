"""What `drop`, `build` and `build --replace` take away: what hotset made, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from hotset.bench import ownership
from hotset.bench import tpcc as workload
from hotset.bench.ownership import KITS, TPCC, TPCH, AlreadyLoaded, Kit, NotOurs
from hotset.core.errors import RequestError
from hotset.databases.postgres.client import PostgresSession
from hotset.databases.postgres.product import PostgresDatabase
from hotset.databases.postgres.tpch import PostgresTpch
from hotset.tpcc import schema as tpcc
from hotset.tpch import schema as tpch
from tests.cli_server import CommandLine, Done
from tests.postgres_cluster import PASSWORD

pytestmark = pytest.mark.database

SHOP = """
CREATE TABLE customer (id integer PRIMARY KEY, name text);
CREATE TABLE orders (id integer PRIMARY KEY, buyer integer REFERENCES customer);
CREATE TABLE item (id integer); CREATE TABLE part (id integer); CREATE TABLE region (id integer);
CREATE TABLE invoice (of_order integer REFERENCES orders);
CREATE VIEW v_open AS SELECT * FROM orders;
CREATE FUNCTION payment(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
INSERT INTO customer VALUES (1, 'Ann'); INSERT INTO orders VALUES (7, 1);
"""
EVERYTHING = (
    "SELECT nspname || '.' || coalesce(relname, ''), coalesce(relkind::text, 'empty schema')"
    " FROM pg_namespace AS n LEFT JOIN pg_class ON relnamespace = n.oid"
    " WHERE nspname NOT LIKE 'pg%' AND nspname <> 'information_schema'"
    " UNION ALL SELECT proname::text || pg_get_function_arguments(oid), 'routine' FROM pg_proc"
    " WHERE pronamespace::regnamespace::text NOT LIKE 'pg%'"
    " AND pronamespace::regnamespace::text <> 'information_schema' ORDER BY 1, 2"
)


@pytest.fixture
def session(empty: PostgresDatabase) -> Iterator[PostgresSession]:
    with closing(empty.session()) as opened:
        yield opened


def make(kit: Kit, database: PostgresDatabase) -> None:
    """Its empty tables and functions: what a load begins with."""
    if kit is TPCC:
        with closing(database.session()) as session:
            tpcc.create(database, session)
    else:
        where = PostgresTpch(database)
        with closing(where.session()) as session:
            tpch.create(where, session)


def run(hotset: CommandLine, database: PostgresDatabase, *words: str, stdin: str = "") -> Done:
    dsn = f"host={database.host} port={database.port} user=tester dbname={database.dbname}"
    size = {"tpcc": ("-w", "1"), "tpch": ("--scale", "0.01")}[words[0]]
    more = size if words[1] == "build" else ()
    env = {"HOTSET_PASSWORD": PASSWORD}
    return hotset(*words, *more, "--dsn", dsn, env=env, stdin=stdin)


@pytest.mark.parametrize("kit", KITS)
@pytest.mark.parametrize("verb", [("drop", "--yes"), ("build",), ("build", "--replace", "--yes")])
def test_a_schema_without_the_mark_stays_whole_and_the_ways_out_are_named(
    hotset: CommandLine,
    empty: PostgresDatabase,
    session: PostgresSession,
    kit: Kit,
    verb: tuple[str, ...],
) -> None:
    session.script(f"CREATE SCHEMA {kit.schema}; SET search_path = {kit.schema}; {SHOP}")
    before = session.query(EVERYTHING)
    done = run(hotset, empty, kit.word, *verb)
    assert (done.code, done.out) == (2, "")
    assert f"has a schema {kit.schema} without hotset's mark: not made by hotset" in done.err
    assert "Rename or drop that schema yourself, or name another database" in done.err
    assert "--replace" not in done.err
    assert session.query(EVERYTHING) == before
    assert session.query("SELECT * FROM orders") == [(7, 1)]


@pytest.mark.parametrize("kit", KITS)
def test_what_hotset_made_goes_and_nothing_else(
    empty: PostgresDatabase, session: PostgresSession, kit: Kit
) -> None:
    (other,) = {*KITS} - {kit}
    session.script(SHOP)
    make(other, empty)
    before = session.query(EVERYTHING)
    ownership.require_free(ownership.holdings(empty, kit))
    make(kit, empty)
    asked = ownership.question(empty, kit)
    assert asked is not None
    assert "database empty on PostgreSQL at 127.0.0.1, port " in asked
    assert f"schema {kit.schema}\n" in asked
    assert f"table {kit.schema}.orders (owner tester), rows not counted" in asked
    with pytest.raises(AlreadyLoaded, match="hotset's TPC-"):
        ownership.require_free(ownership.holdings(empty, kit))
    assert set(ownership.drop(empty, kit)) >= {"orders", "customer"}
    assert session.query(EVERYTHING) == before
    assert ownership.drop(empty, kit) == []
    assert ownership.question(empty, kit) is None


def test_the_search_path_decides_nothing(empty: PostgresDatabase, session: PostgresSession) -> None:
    nowhere = replace(empty, more=(("options", "-csearch_path=nowhere"),))
    before = session.query(EVERYTHING)
    for kit in KITS:
        make(kit, nowhere)
        assert ownership.holdings(empty, kit).is_own
    session.script("DROP TABLE hotset_tpcc.item")  # what is left goes all the same
    assert len(ownership.drop(nowhere, TPCC)) == 8
    assert len(ownership.drop(nowhere, TPCH)) == 9
    assert session.query(EVERYTHING) == before


@pytest.mark.parametrize(
    ("needs", "named"),
    [
        ("CREATE VIEW v_open AS SELECT o_id FROM hotset_tpcc.orders", "view v_open"),
        (
            "CREATE TABLE invoice (w integer, d smallint, o integer);"
            "ALTER TABLE hotset_tpcc.orders ADD UNIQUE (o_w_id, o_d_id, o_id);"
            "ALTER TABLE invoice ADD CONSTRAINT invoice_order FOREIGN KEY (w, d, o)"
            " REFERENCES hotset_tpcc.orders (o_w_id, o_d_id, o_id)",
            "constraint invoice_order on table invoice",
        ),
        ("CREATE TABLE more () INHERITS (hotset_tpcc.orders)", "table more"),
        ("CREATE TABLE kept (was hotset_tpcc.orders)", "column was of table kept"),
        ("CREATE VIEW v AS SELECT * FROM hotset_tpcc.slev(1, 1, 10)", "view v"),
        ("CREATE TABLE hotset_tpcc.mine (a integer)", "table hotset_tpcc.mine"),
        ("CREATE TYPE hotset_tpcc.mine AS ENUM ('a')", "type hotset_tpcc.mine"),
        (
            "CREATE FUNCTION hotset_tpcc.payment(integer) RETURNS integer LANGUAGE sql"
            " AS 'SELECT 1'",
            "function hotset_tpcc.payment(integer)",
        ),
        (
            "ALTER TABLE hotset_tpcc.orders RENAME TO was;"
            "CREATE TABLE hotset_tpcc.orders (a integer)",
            "table hotset_tpcc.was",
        ),
    ],
)
def test_what_is_somebody_elses_in_the_schema_or_on_top_makes_the_drop_refuse(
    empty: PostgresDatabase, session: PostgresSession, needs: str, named: str
) -> None:
    make(TPCC, empty)
    session.script(needs)
    before = session.query(EVERYTHING)
    with pytest.raises(NotOurs) as error:
        ownership.drop(empty, TPCC)
    assert named in str(error.value)
    assert "nothing of it is gone" in str(error.value)
    assert "move or drop it first, or name another database" in str(error.value)
    assert "CASCADE" not in str(error.value)
    assert session.query(EVERYTHING) == before


def _hammerdbs(session: PostgresSession) -> None:
    for table in tpcc.TABLES.values():
        columns = ", ".join(f"{one} numeric" for one in reversed(table.columns))
        session.script(f"CREATE TABLE {table.name} ({columns})")
    for name in ("neword", "dbms_random"):
        session.script(
            f"CREATE FUNCTION {name}(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'"
        )


def test_a_database_of_another_driver_is_named_before_a_run(
    hotset: CommandLine, empty: PostgresDatabase, session: PostgresSession
) -> None:
    for name in ("hotset", "hammerdb"):
        workload.require_driver(empty, name)  # the run says that there is nothing
    make(TPCC, empty)
    workload.require_driver(empty, "hotset")
    with pytest.raises(RequestError, match="has hotset's TPC-C, which has other procedures"):
        workload.require_driver(empty, "hammerdb")
    ownership.drop(empty, TPCC)
    _hammerdbs(session)
    workload.require_driver(empty, "hammerdb")
    done = run(hotset, empty, "tpcc", "run", "--users", "1")
    assert done.code == 2
    assert "has HammerDB's TPC-C" in done.err
    assert "add --driver hammerdb" in done.err
    make(TPCC, empty)  # beside HammerDB's, which hotset did not ask for
    workload.require_driver(empty, "hotset")


def test_hammerdb_runs_tpch_where_its_own_tables_are(
    hotset: CommandLine, empty: PostgresDatabase, session: PostgresSession
) -> None:
    """It was refused on what it had built, which has no table of hotset's that tells the scale."""
    make(TPCH, empty)
    words = ("tpch", "run", "--driver", "hammerdb", "--scale", "1")
    done = run(hotset, empty, *words)
    assert done.code == 2
    assert "has no TPC-H where HammerDB would look for it" in done.err
    session.script("CREATE TABLE lineitem (l_orderkey integer)")
    assert "HAMMERDB_HOME" in run(hotset, empty, *words).err  # that is next


def test_what_hammerdb_built_for_hotset_is_marked_and_goes(
    empty: PostgresDatabase, session: PostgresSession
) -> None:
    before = session.query(EVERYTHING)
    ownership.require_free(ownership.holdings(empty, TPCC), by_hammerdb=True)
    with ownership.marking_hammerdbs(empty, TPCC):
        _hammerdbs(session)
    asked = ownership.question(empty, TPCC)
    assert asked is not None
    assert "table public.orders (owner tester)" in asked
    assert "schema hotset_tpcc" not in asked
    with pytest.raises(AlreadyLoaded):
        ownership.require_free(ownership.holdings(empty, TPCC))
    assert len(ownership.drop(empty, TPCC)) == 9
    assert session.query(EVERYTHING) == before


@pytest.mark.parametrize("kit", KITS)
def test_a_table_with_a_name_that_hammerdb_needs_is_in_its_way_alone(
    empty: PostgresDatabase, session: PostgresSession, kit: Kit
) -> None:
    """What is there before a build must not get its mark."""
    session.script(SHOP)
    found = ownership.holdings(empty, kit)
    with pytest.raises(NotOurs, match=r"has table public.orders \(owner tester\)"):
        ownership.require_free(found, by_hammerdb=True)
    ownership.require_free(found)
    assert ownership.drop(empty, kit) == []


@pytest.mark.parametrize("kit", KITS)
@pytest.mark.parametrize("verb", [("drop",), ("build", "--replace")])
def test_every_verb_that_destroys_asks(
    hotset: CommandLine,
    empty: PostgresDatabase,
    session: PostgresSession,
    kit: Kit,
    verb: tuple[str, ...],
) -> None:
    make(kit, empty)
    before = session.query(EVERYTHING)
    no = run(hotset, empty, kit.word, *verb, stdin="n\n")
    assert (no.code, "nothing was changed" in no.err) == (1, True)
    assert "In database empty on PostgreSQL at 127.0.0.1" in no.err
    assert f"table {kit.schema}.orders (owner tester)" in no.err
    ended = run(hotset, empty, kit.word, *verb, stdin="")
    assert ended.code == 2
    assert "nothing was changed: the question had no answer" in ended.err
    assert "add --yes" in ended.err
    assert session.query(EVERYTHING) == before
