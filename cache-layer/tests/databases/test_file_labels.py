"""Files of a server by database and table."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path, PurePosixPath

import pytest

from hotset.core.machines.local import Local
from hotset.databases import file_labels
from hotset.databases.base import Unavailable
from hotset.databases.file_labels import ANOTHER, LOG, OTHERS, SERVER
from hotset.databases.postgres.admin import PostgresEngine
from hotset.databases.postgres.whereabouts import Whereabouts
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


def test_files_of_sql_server_by_database_and_never_by_table() -> None:
    label = sqlserver(placement=FILES).labels("database", Local(), None)
    assert not isinstance(label, Unavailable)
    assert label("/var/opt/mssql/data/tpcc.mdf") == "tpcc"
    assert label("/accelerated/sql/tpcc.mdf") == OTHERS, "it may be another server's"
    assert label("/accelerated/sql/unknown.mdf") == OTHERS
    refused = sqlserver(placement=FILES).labels("table", Local(), None)
    assert isinstance(refused, Unavailable)
    assert "by database" in refused.reason


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
