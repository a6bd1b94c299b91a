"""Targets as users write them: parsed, and looked up in a real PostgreSQL."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psycopg
import pytest

from hotset.block import filesystem
from hotset.core.clock import wait_until
from hotset.core.machines.local import Local
from hotset.core.sql import Aborted
from hotset.core.units import Bytes
from hotset.databases.base import (
    DatabaseFile,
    Engine,
    Offer,
    Target,
    TargetError,
    TargetGoneError,
    Unavailable,
)
from hotset.databases.postgres.admin import segments
from hotset.databases.postgres.client import PostgresSession
from hotset.databases.postgres.product import PostgresDatabase
from hotset.databases.sqlserver.admin import SqlServerEngine
from hotset.warmup.targets import MountedView, parse
from tests.postgres_cluster import Cluster


@dataclass
class Server:
    """A server, and a session beside the one that looks things up."""

    engine: Engine
    connection: PostgresSession
    dbname: str

    def paths(self, machine: Local, target: Target) -> list[str]:
        return self.engine.find(machine, target, None)


def list_offers(database: PostgresDatabase, count: int) -> list[Offer]:
    with closing(database.looking().administer()) as engine:
        return engine.offers(count)


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("/srv/pg/", "path", "/srv/pg"),
        ("table:public.orders", "table", "public.orders"),
        ("index:i", "index", "i"),
        ("database:tpcc", "database", "tpcc"),
        ("region:1GiB+512MiB", "region", "1GiB+512MiB"),
        ("region:0+4096", "region", "0+4096"),
        ("heat", "heat", ""),
        ("snapshot:/var/lib/s", "snapshot", "/var/lib/s"),
    ],
)
def test_the_forms_of_a_target(text: str, kind: str, name: str) -> None:
    found = parse(text)
    assert (found.text, found.kind, found.name) == (text, kind, name)
    assert found.of_database == (kind in ("table", "index", "database"))


@pytest.mark.parametrize("text", ["", "srv/pg", "orders", "table:", "tables:x", "heat:1"])
def test_what_is_no_target_is_told_the_forms(text: str) -> None:
    with pytest.raises(TargetError, match="table:NAME, index:NAME") as refused:
        parse(text)
    assert repr(text) in str(refused.value)


@pytest.mark.parametrize(
    "text", ["region:", "region:1GiB", "region:+1GiB", "region:1GiB+", "region:-1+8", "region:1+0"]
)
def test_what_is_no_region_is_told_the_form(text: str) -> None:
    with pytest.raises(TargetError, match=r"region:OFFSET\+LENGTH|write at least 1") as refused:
        parse(text)
    assert text in str(refused.value)


def test_segments_and_forks_of_a_relation(tmp_path: Path) -> None:
    for name in ("16384", "16384.1", "16384.12", "16384_fsm", "16384_vm.1", "163840", "1638", "t"):
        (tmp_path / name).write_text("x")
    (tmp_path / "16384_init").touch()
    found = segments(Local(), [f"{tmp_path}/16384"])
    assert [Path(one).name for one in found] == [
        "16384",
        "16384.1",
        "16384.12",
        "16384_fsm",
        "16384_vm.1",
    ]


class FakeEngine(SqlServerEngine):
    """A SQL Server's answers."""

    def __init__(self, placed: list[DatabaseFile] | Unavailable) -> None:
        self._database = "tpcc"
        self.placed = placed

    def locate(self, *_: object) -> list[DatabaseFile] | Unavailable:
        return self.placed

    def databases(self) -> list[str]:
        return ["tpcc", "tempdb"]


FILES = [
    DatabaseFile("tpcc", "one", "data", "/sql/one.mdf", Bytes(1)),
    DatabaseFile("tpcc", "log", "log", "/sql/log.ldf", Bytes(1)),
    DatabaseFile("tempdb", "temp", "temp", "/sql/temp.mdf", Bytes(1)),
    DatabaseFile("tpcc", "two", "data", "/more/two.ndf", Bytes(1)),
]


def test_a_database_of_sql_server_is_its_data_files() -> None:
    found = FakeEngine(FILES).find(Local(), parse("database:tpcc"), None)
    assert found == ["/sql/one.mdf", "/more/two.ndf"]


@pytest.mark.parametrize(
    ("placed", "target", "words"),
    [
        (FILES, "database:tpch", "no such database; it has: tpcc, tempdb"),
        (FILES, "table:orders", "keeps tables in shared files; .*database:tpcc"),
        (Unavailable("VIEW ANY DEFINITION is needed"), "database:tpcc", "VIEW ANY DEFINITION"),
    ],
)
def test_what_sql_server_cannot_say_is_told(
    placed: list[DatabaseFile] | Unavailable, target: str, words: str
) -> None:
    with pytest.raises(TargetError, match=words):
        FakeEngine(placed).find(Local(), parse(target), None)


SCHEMA = """
CREATE SCHEMA "Odd.name";
CREATE TABLE small (id int PRIMARY KEY, words text);
ALTER TABLE small ALTER words SET STORAGE EXTERNAL;
INSERT INTO small SELECT i, repeat(md5(i::text), 400) FROM generate_series(1, 200) AS i;
CREATE TABLE "Odd.name"."Its table" (id int);
INSERT INTO "Odd.name"."Its table" VALUES (1);
CREATE TABLE parted (id int, at int) PARTITION BY RANGE (at);
CREATE TABLE parted_1 PARTITION OF parted FOR VALUES FROM (0) TO (10);
CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (10) TO (20) PARTITION BY LIST (id);
CREATE TABLE parted_2a PARTITION OF parted_2 FOR VALUES IN (1);
CREATE INDEX by_at ON parted (at);
INSERT INTO parted SELECT 1, i FROM generate_series(0, 19) AS i;
CREATE VIEW seen AS SELECT * FROM small;
"""


@pytest.fixture
def server(empty: PostgresDatabase) -> Iterator[Server]:
    with closing(empty.session()) as session:
        session.script(SCHEMA)
        session.script("CHECKPOINT")
        with closing(empty.administer()) as engine:
            yield Server(engine, session, empty.dbname)


def paths_of(server: Server, *relations: str) -> set[str]:
    """The main files of relations, each asked for by itself."""
    session = server.connection
    rows = [
        session.query(
            "SELECT current_setting('data_directory') || '/' ||"
            f" pg_relation_filepath('{relation}'::regclass)"
        )[0][0]
        for relation in relations
    ]
    return {str(row) for row in rows}


def main_files(files: Iterable[str]) -> set[str]:
    """Without the maps beside them."""
    return {re.sub(r"_(fsm|vm)$", "", one) for one in files}


@pytest.mark.database
def test_a_table_is_its_heap_and_its_toast(server: Server) -> None:
    session = server.connection
    ((toast,),) = session.query(
        "SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'small'::regclass"
    )
    found = server.paths(Local(), parse("table:small"))
    wanted = paths_of(server, "small", str(toast), f"{toast}_index")
    assert wanted <= set(found)
    assert main_files(found) == wanted
    assert all(Path(one).stat().st_size for one in found)


@pytest.mark.database
def test_partitions_belong_to_their_table_at_every_level(server: Server) -> None:
    found = server.paths(Local(), parse("table:parted"))
    assert main_files(found) == paths_of(server, "parted_1", "parted_2a")
    indexes = server.paths(Local(), parse("index:by_at"))
    assert main_files(indexes) == paths_of(server, "parted_1_at_idx", "parted_2a_at_idx")


@pytest.mark.database
def test_names_are_sqls_own(server: Server) -> None:
    (found,) = server.paths(Local(), parse('table:"Odd.name"."Its table"'))
    assert {found} == paths_of(server, '"Odd.name"."Its table"')


@pytest.mark.database
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("table:missing", "database empty has no such table"),
        ("table:it's; DROP TABLE small", "the server says: .*invalid name syntax"),
        ("index:small", "is no index: write table:small"),
        ("table:small_pkey", "is no table: write index:small_pkey"),
        ("table:seen", "it has no files of its own"),
        ("database:missing", "no such database; it has: .*empty"),
    ],
)
def test_what_is_not_there_is_named(server: Server, text: str, words: str) -> None:
    with pytest.raises(TargetError, match=words):
        server.paths(Local(), parse(text))


@pytest.mark.database
def test_a_database_is_its_folder_in_every_tablespace(server: Server) -> None:
    session = server.connection
    # The server runs as another user, who must be able to come here.
    place = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    data = Path(str(session.query("SELECT current_setting('data_directory')")[0][0]))
    subprocess.run(["chown", f"--reference={data}", str(place)], check=True)
    session.script(f"CREATE TABLESPACE elsewhere LOCATION '{place}'")
    try:
        session.script("CREATE TABLE there (id int) TABLESPACE elsewhere")
        session.script("INSERT INTO there VALUES (1)")
        found = server.paths(Local(), parse(f"database:{server.dbname}"))
        assert len(found) == 2
        assert found[0].startswith(f"{data}/base/")
        assert str(Path(found[1]).resolve()).startswith(f"{place}/PG_")
        assert all(Path(one).is_dir() for one in found)
    finally:
        session.script("DROP TABLE IF EXISTS there")
        session.script("DROP TABLESPACE elsewhere")
        place.rmdir()


@pytest.mark.database
def test_what_a_server_offers_can_each_be_looked_up(
    server: Server, empty: PostgresDatabase
) -> None:
    session = server.connection
    session.script("CREATE TEMPORARY TABLE mine (id int); ANALYZE")
    found = list_offers(empty, 1000)
    names = [one.target for one in found]
    assert len(set(names)) == len(names)
    # Databases, then what has parts, then what has most bytes.
    assert names.index("database:empty") < names.index("table:public.parted")
    assert names.index("table:public.parted") < names.index("table:public.small")
    assert {"index:public.small_pkey", 'table:"Odd.name"."Its table"'} <= set(names)
    assert not [one for one in names if "pg_" in one or "mine" in one or "template" in one]
    sizes = [one.bytes for one in found if one.bytes is not None]
    assert sizes == sorted(sizes, reverse=True)
    for one in found:
        if parse(one.target).kind != "database":
            files = server.paths(Local(), parse(one.target))
            # Of all that it names: the heap, its TOAST and their maps. Parts have their own.
            assert one.bytes in (None, sum(Path(file).stat().st_size for file in files))
    small = next(one for one in found if one.target == "table:public.small")
    assert small.bytes is not None
    assert small.bytes > 200 * 32 * 400, "most of it is TOAST"
    assert list_offers(empty, 2) == found[:2]


@pytest.mark.database
@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("waits", [False, True])
def test_a_table_that_is_locked_costs_its_size_and_not_the_list(
    empty: PostgresDatabase, waits: bool
) -> None:
    """:param waits: who wants it for itself waits for a reader."""
    dsn = f"host={empty.host} port={empty.port} user={empty.user} dbname={empty.dbname}"
    reader, owner = psycopg.connect(dsn, password=empty.password), threading.Thread()
    with closing(reader), closing(psycopg.connect(dsn, password=empty.password)) as other:
        lock = "LOCK TABLE public.small IN ACCESS EXCLUSIVE MODE"
        if waits:
            reader.execute("SELECT count(*) FROM public.small")
            owner = threading.Thread(target=other.execute, args=(lock,))
            owner.start()
            seen = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation IS NOT NULL"
            assert wait_until(lambda: reader.execute(seen).fetchone() == (1,), 10)
        else:
            other.execute(lock)
        begun = time.monotonic()
        found = {one.target: one.bytes for one in list_offers(empty, 1000)}
        assert time.monotonic() - begun < 5
        reader.rollback()
        if waits:
            owner.join()
        other.rollback()
    assert found["table:public.small"] is None
    assert found["index:public.small_pkey"]


BYTES = b"bl\xe4tter"
ESCAPED = r'"bl\xe4tter"'


@pytest.fixture
def ascii_database(cluster: Cluster) -> Iterator[PostgresDatabase]:
    """Of encoding SQL_ASCII, with a table whose name is Latin-1 and one whose name is UTF-8; beside
    it a database whose name is Latin-1."""
    with closing(cluster.database().session()) as owner:
        how = "ENCODING SQL_ASCII TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        owner.script(f"CREATE DATABASE bytes {how}")
        database = cluster.database("bytes")
        dsn = f"host={database.host} port={database.port} user={database.user} dbname=bytes"
        with closing(psycopg.connect(dsn, password=database.password, autocommit=True)) as raw:
            raw.execute("SET client_encoding = 'SQL_ASCII'")
            for name in (BYTES, "größe".encode()):
                raw.execute(b'CREATE TABLE "%b" AS SELECT 1 AS id' % name)
            raw.execute(b'CREATE DATABASE "%b"' % BYTES)
            raw.execute("CHECKPOINT")
            try:
                yield database
            finally:
                raw.execute(b'DROP DATABASE "%b"' % BYTES)
        owner.script("DROP DATABASE bytes WITH (FORCE)")


@pytest.mark.database
def test_a_name_that_is_no_utf_8_takes_no_other_along_and_can_be_named(
    cluster: Cluster, ascii_database: PostgresDatabase
) -> None:
    """One made the whole list fail, and hits by table, too."""
    for database, tables in ((ascii_database, (ESCAPED, '"größe"')), (cluster.database(), ())):
        listed = {one.target for one in list_offers(database, 1000)}
        wanted = {*(f"table:public.{name}" for name in tables), r"database:bl\xe4tter"}
        assert wanted <= listed
        with closing(database.administer()) as engine, closing(database.session()) as session:
            assert r"bl\xe4tter" in engine.databases()
            found = Server(engine, session, database.dbname)
            label = engine.labels("table", Local(), None)
            assert not isinstance(label, Unavailable)
            for target in wanted:
                files = found.paths(Local(), parse(target))
                assert files
                if target.startswith("table:"):
                    assert {label(file) for file in files} == {target.removeprefix("table:")}


@pytest.mark.database
def test_what_is_not_there_is_told_by_the_name_that_was_given(
    ascii_database: PostgresDatabase, server: Server
) -> None:
    with (
        closing(ascii_database.session()) as session,
        closing(ascii_database.administer()) as of,
    ):
        for found in (Server(of, session, "bytes"), server):
            with pytest.raises(TargetError, match=r"table:\"gr\\xfcn\": "):
                found.paths(Local(), parse(r'table:"gr\xfcn"'))
        # The server's own words stay readable.
        with pytest.raises(Aborted, match="größer"):
            session.query('SELECT * FROM "größer"')


def test_a_path_is_gone_only_if_the_disks_own_file_system_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mount that was missing passed for a table that was dropped: its pin was advised away."""
    number = tmp_path.stat().st_dev
    here = f"{os.major(number)}:{os.minor(number)}"
    monkeypatch.setattr(filesystem, "device_number", lambda *_: here)
    device = PurePosixPath("/dev/origin")
    view = MountedView(Local(), device, PurePosixPath(tmp_path), "ext4", Bytes(2**20), Bytes(2**30))
    (tmp_path / "there").mkdir()
    (tmp_path / "moved").symlink_to("/proc/version")
    (tmp_path / "dangling").symlink_to("/proc/nothing/at/all")
    (tmp_path / "elsewhere").symlink_to("/proc")
    gone = ("none", "there/none", "none/below", "moved", "dangling", "elsewhere/version")
    for name in gone:
        with pytest.raises(TargetGoneError):
            view.files([str(tmp_path / "there"), str(tmp_path / name)])
    # What is mounted there, or not, may hide it.
    for path in ("/proc/version", "/proc/nothing", "/proc/self/none/below"):
        with pytest.raises(TargetError) as refused:
            view.files([path])
        assert not isinstance(refused.value, TargetGoneError), path
    (tmp_path / "led").symlink_to(tmp_path / "there")
    with pytest.raises(TargetGoneError):
        view.files([str(tmp_path / "led/none")])
