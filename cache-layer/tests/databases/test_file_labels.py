"""Files of a server by database and table."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path, PurePosixPath

import pytest

from hotset.core.clock import wait_until
from hotset.core.machines.local import Local
from hotset.core.sql import Row
from hotset.databases import file_labels
from hotset.databases.base import Unavailable
from hotset.databases.file_labels import ANOTHER, LOG, OTHERS, SERVER, Label
from hotset.databases.postgres.admin import PostgresEngine
from hotset.databases.postgres.whereabouts import Whereabouts
from hotset.databases.sqlserver.admin import SqlServerEngine
from hotset.hitratio.attribution import SystemName
from tests.databases.test_engines import FILES, sqlserver
from tests.postgres_cluster import Cluster

DATABASES = {5: "erp", 7: "dwh"}


@pytest.mark.parametrize(
    ("path", "database", "table"),
    [
        ("/d/base/5/16384", "erp", "public.stock"),
        ("/d/base/5/16384.12", "erp", "public.stock"),
        ("/d/base/5/16384_vm", "erp", "public.stock"),
        ("/ts/PG_17_202406281/5/16384_fsm.3", "erp", "public.stock"),
        ("/d/base/5/163840", "erp", "erp: (other files)"),
        ("/d/base/5/pg_filenode.map", "erp", "erp: (other files)"),
        ("/d/base/7/16384", "dwh", "dwh: (other files)"),
        ("/d/base/9/1", "database 9", "database 9: (other files)"),
        ("/d/pg_wal/000000010000000000000001", LOG, LOG),
        ("/d/global/1260", SERVER, SERVER),
        ("/d/postgresql.conf", OTHERS, OTHERS),
        ("/backup/base/5/readme/16384", OTHERS, OTHERS),
    ],
)
def test_files_of_postgresql(path: str, database: str, table: str) -> None:
    link, space = "pg_tblspc/16390/PG_17_202406281", "/ts/PG_17_202406281"
    place = Whereabouts(PurePosixPath("/d"), {PurePosixPath(link): PurePosixPath(space)})
    assert file_labels.postgres(place.name, DATABASES, None)(path) == database
    relations = {(5, 16384): "public.stock"}
    assert file_labels.postgres(place.name, DATABASES, relations)(path) == table
    elsewhere = Whereabouts(PurePosixPath("/data"), {})
    another = OTHERS if database in (OTHERS, SERVER) else ANOTHER
    assert file_labels.postgres(elsewhere.name, DATABASES, relations)(path) == another


@contextmanager
def sql_server(folder: Path, files: Sequence[Path], *names: str) -> Iterator[None]:
    """A process of that name that has files open; ``names``: commands in name spaces of its own."""
    program = folder / "sqlservr"
    if not program.exists():
        shutil.copy("/bin/sleep", program)
    opened = " ".join(f"{number}< {file}" for number, file in enumerate(files, 3))
    inside = "; ".join((*names, f"exec {program} 60 {opened}"))
    spaces = ("unshare", "--mount", "--uts") if names else ()
    server = subprocess.Popen([*spaces, "sh", "-ec", inside])
    try:
        assert wait_until(lambda: "sqlservr" in Path(f"/proc/{server.pid}/comm").read_text(), 30)
        yield
    finally:
        server.kill()
        server.wait()


def of_server(machine: str, *files: Path) -> SqlServerEngine:
    rows: list[Row] = [(file.stem, file.stem, "ROWS", str(file), 8192) for file in files]
    return sqlserver(placement=rows, machine_name=[(machine,)])


def by_database(engine: SqlServerEngine, below: Path | None = None) -> Label | Unavailable:
    where = None if below is None else PurePosixPath(below)
    return engine.labels("database", Local(), where)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sees another's files")
def test_files_of_sql_server_are_those_that_its_process_has_open(tmp_path: Path) -> None:
    erp, dwh = tmp_path / "erp.mdf", tmp_path / "dwh.mdf"
    for file in (erp, dwh):
        file.touch()
    here = socket.gethostname().upper()
    assert isinstance(by_database(of_server(here, erp)), Unavailable), "no server runs"
    with sql_server(tmp_path, [erp]):
        label = by_database(of_server(here, erp, dwh))
        assert not isinstance(label, Unavailable)
        assert (label(str(erp)), label(str(dwh))) == ("erp", OTHERS)
        assert label("/accelerated/erp.mdf") == OTHERS
        other = by_database(of_server("replica-of-it", erp))
        assert isinstance(other, Unavailable), "of the same names, on another machine"
        assert "another server's" in other.unavailable


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has name spaces")
def test_two_sql_servers_with_the_same_database_and_paths_are_told_apart(tmp_path: Path) -> None:
    """One database restored on both, one of which is in a container."""
    own, inside = tmp_path / "own", tmp_path / "inside"
    for folder in (own, inside):
        folder.mkdir()
        (folder / "erp.mdf").touch()
    file = own / "erp.mdf"
    names = (f"mount --bind {inside} {own}", "hostname sql2")
    with sql_server(tmp_path, [file]), sql_server(tmp_path, [file], *names):
        for machine, folder in ((socket.gethostname(), own), ("SQL2", inside)):
            label = by_database(of_server(machine, file), tmp_path)
            assert not isinstance(label, Unavailable)
            for one in (own, inside):
                assert label(str(one / "erp.mdf")) == ("erp" if one == folder else OTHERS)
        twin = (f"mount --bind {own} {inside}; mount --bind {inside} {own}", "hostname sql2")
        with sql_server(tmp_path, [file], *twin):
            same = by_database(of_server("SQL2", file), tmp_path)
            assert isinstance(same, Unavailable)
            assert "several servers" in same.unavailable


def test_files_of_sql_server_are_not_told_by_table() -> None:
    refused = sqlserver(placement=FILES).labels("table", Local(), None)
    assert isinstance(refused, Unavailable)
    assert "by database" in refused.unavailable


@pytest.mark.database
def test_every_file_of_a_table_is_told_by_a_real_server(cluster: Cluster) -> None:
    with closing(cluster.database().session()) as session:
        session.script("CREATE DATABASE named")
    with closing(cluster.database("named").session()) as session:
        session.script("CREATE TABLE docs (id int PRIMARY KEY, body text)")
        session.script('CREATE TABLE "Odd one" (id int)')
        session.script("ALTER TABLE docs ALTER body SET STORAGE EXTERNAL")
        session.script(
            "INSERT INTO docs SELECT n, repeat(n::text, 4000) FROM generate_series(1, 200) n"
        )
        engine = PostgresEngine(session)
        main, index, toast = session.query(
            "SELECT pg_relation_filepath('docs'), pg_relation_filepath('docs_pkey'),"
            " pg_relation_filepath(reltoastrelid) FROM pg_class WHERE relname = 'docs'"
        )[0]
        session.script("CREATE SCHEMA information; CREATE TABLE information.pg_class (id int)")
        mine, catalog, schema, large = session.query(
            "SELECT pg_relation_filepath('information.pg_class'),"
            " pg_relation_filepath('pg_catalog.pg_statistic'),"
            " pg_relation_filepath('information_schema.sql_features'),"
            " pg_relation_filepath('pg_catalog.pg_largeobject')"
        )[0]
        ((odd,),) = session.query("""SELECT pg_relation_filepath('"Odd one"')""")
        ((place,),) = session.query("SELECT current_setting('data_directory')")
        table = engine.labels("table", Local(), None)
        database = engine.labels("database", Local(), None)
        assert not isinstance(table, Unavailable)
        assert not isinstance(database, Unavailable)
    data = Path(str(place))
    assert table(str(data / str(main))) == "public.docs"
    assert table(str(data / str(toast))) == "public.docs"
    assert table(str(data / str(index))) == "public.docs_pkey (index)"
    assert table(str(data / str(odd))) == 'public."Odd one"', "as SQL takes it"
    assert database(str(data / str(main))) == "named"
    # By what the server says of it, not by how it is called: the name of a schema is the user's.
    own = [table(str(data / str(file))) for file in (main, toast, index, odd, mine)]
    assert not any(isinstance(name, SystemName) for name in own), own
    assert all(isinstance(table(str(data / str(file))), SystemName) for file in (catalog, schema))
    assert isinstance(table(str(data / str(main).replace(str(main)[-3:], "999"))), SystemName)
    assert not isinstance(table(str(data / str(large))), SystemName), "large objects are the user's"
