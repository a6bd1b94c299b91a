"""What `drop`, `build` and `build --replace` take away: what hotset made, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from hotset.bench import ownership
from hotset.bench import tpcc as workload
from hotset.bench.ownership import TPCC, TPCH, AlreadyLoaded, Holdings, Kit, NotOurs, Thing
from hotset.core.errors import RequestError
from hotset.databases.postgres.client import PostgresDatabase, PostgresSession
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
    "SELECT relname::text, relkind::text FROM pg_class WHERE relnamespace::regnamespace::text"
    " NOT LIKE 'pg%' AND relnamespace::regnamespace::text <> 'information_schema'"
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


@pytest.mark.parametrize("kit", ["tpcc", "tpch"])
@pytest.mark.parametrize("verb", [("drop", "--yes"), ("build",), ("build", "--replace", "--yes")])
def test_a_shop_stays_whole_and_its_tables_are_named(
    hotset: CommandLine,
    empty: PostgresDatabase,
    session: PostgresSession,
    kit: str,
    verb: tuple[str, ...],
) -> None:
    session.script(SHOP)
    before = session.query(EVERYTHING)
    done = run(hotset, empty, kit, *verb)
    assert (done.code, done.out) == (2, "")
    assert "table public.customer (owner tester)" in done.err
    assert "table public.orders (owner tester)" in done.err
    assert "not made by hotset" in done.err
    assert "--replace" not in done.err
    assert session.query(EVERYTHING) == before
    assert session.query("SELECT * FROM orders") == [(7, 1)]


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        ("view", "CREATE VIEW orders AS SELECT 1 AS a"),
        ("materialized view", "CREATE MATERIALIZED VIEW orders AS SELECT 1 AS a"),
        ("partitioned table", "CREATE TABLE orders (a integer) PARTITION BY RANGE (a)"),
        (
            "partition",
            "CREATE TABLE year (a integer) PARTITION BY RANGE (a);"
            "CREATE TABLE orders PARTITION OF year FOR VALUES FROM (1) TO (2)",
        ),
        (
            "foreign table",
            "CREATE FOREIGN DATA WRAPPER far; CREATE SERVER away FOREIGN DATA WRAPPER far;"
            "CREATE FOREIGN TABLE orders (a integer) SERVER away",
        ),
        ("sequence", "CREATE SEQUENCE orders"),
        ("type", "CREATE TYPE orders AS ENUM ('a')"),
        ("type", "CREATE TYPE orders AS (a integer)"),
        ("type", "CREATE DOMAIN orders AS integer"),
        ("index", "CREATE TABLE mine (a integer); CREATE INDEX orders ON mine (a)"),
    ],
)
@pytest.mark.parametrize("kit", [TPCC, TPCH])
def test_whatever_has_the_name_is_in_the_way_and_stays(
    empty: PostgresDatabase, session: PostgresSession, kit: Kit, kind: str, made: str
) -> None:
    session.script(made)
    before = session.query(EVERYTHING)
    for refused in (
        lambda: ownership.drop(empty, kit),
        lambda: ownership.require_free(ownership.holdings(empty), kit, replacing=True),
    ):
        with pytest.raises(NotOurs, match=rf"has {kind} public.orders \(owner tester\)"):
            refused()
    assert session.query(EVERYTHING) == before


@pytest.mark.parametrize("kit", [TPCC, TPCH])
@pytest.mark.parametrize("marked", [True, False])
def test_what_hotset_made_goes_and_nothing_else(
    empty: PostgresDatabase, session: PostgresSession, kit: Kit, marked: bool
) -> None:
    session.script("CREATE TABLE mine (a integer); CREATE SCHEMA b; CREATE TABLE b.orders (a int)")
    before = session.query(EVERYTHING)
    make(kit, empty)
    if not marked:
        _unmark(session, kit)
    found = ownership.holdings(empty)
    assert len(found.ours(kit)) == (14 if kit is TPCC else 9)
    assert found.others(kit) == []
    asked = ownership.question(empty, kit)
    assert asked is not None
    assert "database empty on PostgreSQL at 127.0.0.1, port " in asked
    assert "table public.orders (owner tester), rows not counted" in asked
    assert ("known by their columns" in asked) == (not marked)
    with pytest.raises(AlreadyLoaded, match="hotset's TPC-"):
        ownership.require_free(found, kit)
    assert set(ownership.drop(empty, kit)) >= {"orders", "customer"}
    assert session.query(EVERYTHING) == before
    assert ownership.drop(empty, kit) == []
    assert ownership.question(empty, kit) is None


def _unmark(session: PostgresSession, kit: Kit) -> None:
    """As a load before there were marks left it."""
    for name in kit.tables:
        session.script(f"COMMENT ON TABLE {name} IS NULL")
    for name in kit.routines:
        session.script(f"COMMENT ON FUNCTION {name} IS NULL")


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE orders ADD COLUMN note text",
        "DROP VIEW IF EXISTS v; ALTER TABLE orders RENAME TO was; CREATE TABLE orders (a integer)",
    ],
)
@pytest.mark.parametrize("marked", [True, False])
def test_a_table_that_was_changed_is_not_ours(
    empty: PostgresDatabase, session: PostgresSession, marked: bool, change: str
) -> None:
    make(TPCC, empty)
    if not marked:
        _unmark(session, TPCC)
    session.script(change)
    before = session.query(EVERYTHING)
    with pytest.raises(NotOurs, match=r"table public.orders"):
        ownership.drop(empty, TPCC)
    assert session.query(EVERYTHING) == before


@pytest.mark.parametrize(
    ("needs", "named"),
    [
        ("CREATE VIEW v_open AS SELECT o_id FROM orders", "view v_open"),
        (
            "CREATE TABLE invoice (w integer, d smallint, o integer);"
            "ALTER TABLE orders ADD UNIQUE (o_w_id, o_d_id, o_id);"
            "ALTER TABLE invoice ADD CONSTRAINT invoice_order"
            " FOREIGN KEY (w, d, o) REFERENCES orders (o_w_id, o_d_id, o_id)",
            "constraint invoice_order on table invoice",
        ),
        (
            "CREATE FUNCTION mine(orders) RETURNS integer LANGUAGE sql AS 'SELECT 1'",
            "function mine(orders)",
        ),
        (
            "CREATE FUNCTION mine() RETURNS bigint LANGUAGE sql"
            " BEGIN ATOMIC SELECT count(*) FROM stock; END",
            "function mine()",
        ),
        ("CREATE TABLE more () INHERITS (orders)", "table more"),
        ("CREATE TABLE kept (was orders)", "column was of table kept"),
        ("CREATE TABLE kept (was orders[])", "column was of table kept"),
        ("CREATE VIEW v AS SELECT * FROM slev(1, 1, 10)", "view v"),
        ("CREATE MATERIALIZED VIEW m AS SELECT * FROM item", "materialized view m"),
    ],
)
def test_what_needs_our_tables_makes_the_drop_refuse(
    empty: PostgresDatabase, session: PostgresSession, needs: str, named: str
) -> None:
    make(TPCC, empty)
    session.script(needs)
    before = session.query(EVERYTHING)
    for refused in (ownership.drop, ownership.question):
        with pytest.raises(NotOurs) as error:
            refused(empty, TPCC)
        assert named in str(error.value)
    assert session.query(EVERYTHING) == before


def test_functions_of_ones_own_stay_and_stop_a_build(
    empty: PostgresDatabase, session: PostgresSession
) -> None:
    own = (
        "CREATE FUNCTION payment(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';"
        "CREATE FUNCTION delivery(text) RETURNS integer LANGUAGE sql AS 'SELECT 1';"
        "CREATE PROCEDURE delivery(text, integer) LANGUAGE sql AS 'SELECT 1'"
    )
    session.script(own)
    before = session.query(EVERYTHING)
    with pytest.raises(NotOurs) as error:
        ownership.require_free(ownership.holdings(empty), TPCC, replacing=True)
    assert "function public.payment(integer) (owner tester)" in str(error.value)
    assert "procedure public.delivery(text, integer) (owner tester)" in str(error.value)
    with pytest.raises(NotOurs):
        ownership.drop(empty, TPCC)
    # TPC-H has no functions: these are not in its way.
    ownership.require_free(ownership.holdings(empty), TPCH)
    assert session.query(EVERYTHING) == before


def test_a_function_beside_ours_stays_when_ours_go(
    empty: PostgresDatabase, session: PostgresSession
) -> None:
    make(TPCC, empty)
    session.script("CREATE FUNCTION payment(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'")
    ownership.drop(empty, TPCC)
    assert session.query(EVERYTHING) == [("paymentinteger", "routine")]


@pytest.mark.parametrize(("there", "wanted"), [(TPCC, TPCH), (TPCH, TPCC)])
def test_the_two_benchmarks_do_not_share_a_schema_and_say_so_at_once(
    hotset: CommandLine,
    empty: PostgresDatabase,
    session: PostgresSession,
    there: Kit,
    wanted: Kit,
) -> None:
    make(there, empty)
    before = session.query(EVERYTHING)
    for verb in (("build",), ("build", "--replace", "--yes"), ("drop", "--yes")):
        done = run(hotset, empty, wanted.word, *verb)
        assert done.code == 2, done.err
        assert f"it looks like hotset's {there.title}" in done.err
        if verb[0] == "build":
            assert "another schema (options=-csearch_path=NAME in the DSN)" in done.err
    assert session.query(EVERYTHING) == before


def test_only_the_schema_that_a_build_would_use_is_looked_at(
    empty: PostgresDatabase, session: PostgresSession
) -> None:
    make(TPCC, empty)
    session.script("CREATE SCHEMA mine")
    other = replace(empty, more=(("options", "-csearch_path=nowhere,mine,public"),))
    assert ownership.holdings(other).schema == "mine"
    assert ownership.drop(other, TPCC) == []
    ownership.require_free(ownership.holdings(other), TPCC)
    make(TPCH, other)
    assert len(ownership.drop(empty, TPCC)) == 9
    assert len(ownership.holdings(other).ours(TPCH)) == 9
    nowhere = replace(empty, more=(("options", "-csearch_path=nowhere"),))
    with pytest.raises(NotOurs, match="no schema to make tables in"):
        ownership.holdings(nowhere)


@pytest.mark.parametrize(
    ("extra", "tool"),
    [
        (
            "CREATE FUNCTION dbms_random(integer, integer) RETURNS integer LANGUAGE sql"
            " AS 'SELECT 1'",
            "HammerDB's TPC-C",
        ),
        ("", "TPC-C of another tool"),
        ("ALTER TABLE orders RENAME TO oorder", "BenchBase's TPC-C"),
    ],
)
def test_another_tools_tpcc_is_named_and_stays(
    empty: PostgresDatabase, session: PostgresSession, extra: str, tool: str
) -> None:
    for table in tpcc.TABLES.values():
        columns = ", ".join(f"{one} numeric" for one in table.columns)
        session.script(f"CREATE TABLE {table.name} ({columns})")
    if extra:
        session.script(extra)
    before = session.query(EVERYTHING)
    with pytest.raises(NotOurs, match=f"it looks like {tool}"):
        ownership.drop(empty, TPCC)
    with pytest.raises(NotOurs, match=f"it looks like {tool}"):
        ownership.require_free(ownership.holdings(empty), TPCC, replacing=True)
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
    session.script("DROP FUNCTION neword, payment, ostat, delivery, slev")
    ownership.drop(empty, TPCC)
    _hammerdbs(session)
    workload.require_driver(empty, "hammerdb")
    done = run(hotset, empty, "tpcc", "run", "--users", "1")
    assert done.code == 2
    assert "has HammerDB's TPC-C" in done.err
    assert "add --driver hammerdb" in done.err
    session.script("DROP FUNCTION neword; DROP FUNCTION dbms_random")
    for name in ("hotset", "hammerdb"):
        with pytest.raises(RequestError, match="has TPC-C of another tool, without procedures"):
            workload.require_driver(empty, name)


def test_what_hammerdb_built_for_hotset_is_marked_and_goes(
    empty: PostgresDatabase, session: PostgresSession
) -> None:
    with ownership.marking_hammerdbs(empty, TPCC):
        _hammerdbs(session)
    assert len(ownership.drop(empty, TPCC)) == 9
    assert session.query(EVERYTHING) == []


def test_hammerdbs_tables_on_sql_server_are_known_by_their_mark() -> None:
    """It pads two of them; another column is somebody's own."""

    def table(name: str, *more: str) -> Thing:
        columns = tuple(f"{one} int" for one in (*sorted(TPCC.columns(name)), *more))
        return Thing(name, "table", "dbo", TPCC.hammerdbs_mark, 1, f"[dbo].[{name}]", 1, columns)

    padded, changed = table("warehouse", "padding"), table("district", "padding", "note")
    there = Holdings("sqlserver", "h:1", "bench", "dbo", (padded, changed, table("item")))
    assert {one.name for one in there.ours(TPCC)} == {"warehouse", "item"}
    assert there.others(TPCC) == [changed]


@pytest.mark.parametrize("kit", [TPCC, TPCH])
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
    assert "schema public of database empty on PostgreSQL at 127.0.0.1" in no.err
    assert "table public.orders (owner tester)" in no.err
    ended = run(hotset, empty, kit.word, *verb, stdin="")
    assert ended.code == 2
    assert "nothing was changed: the question had no answer" in ended.err
    assert "add --yes" in ended.err
    assert session.query(EVERYTHING) == before


def test_another_roles_tables_are_named_with_their_owner(
    empty: PostgresDatabase, session: PostgresSession
) -> None:
    session.script("CREATE ROLE ann; CREATE SCHEMA ann AUTHORIZATION ann; SET ROLE ann")
    try:
        session.script("CREATE TABLE ann.orders (id integer)")
        hers = replace(empty, more=(("options", "-csearch_path=ann"),))
        with pytest.raises(NotOurs, match=r"table ann.orders \(owner ann\)"):
            ownership.drop(hers, TPCC)
    finally:
        session.script("RESET ROLE; DROP OWNED BY ann; DROP ROLE ann")
