"""The PostgreSQL client adapter without a server; with one: tpcc/tests/test_client.py."""

import pickle
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from hotset.core.errors import PrerequisiteError
from hotset.core.sql import Aborted, CannotConnect, DatabaseError, IntendedRollback, ServerGone
from hotset.databases import connect
from hotset.databases.base import sql
from hotset.databases.postgres.client import meaning
from hotset.databases.postgres.product import PostgresDatabase
from hotset.databases.product import DsnError
from tests.postgres_cluster import PASSWORD, Cluster

DATABASE = PostgresDatabase("127.0.0.1", 1, "someone", "s3cret", "tpcc")


def test_password_is_not_in_repr_and_survives_pickling() -> None:
    assert "s3cret" not in repr(DATABASE)
    assert pickle.loads(pickle.dumps(DATABASE)) == DATABASE  # noqa: S301 - our own bytes
    assert DATABASE.engine == "postgres"


def test_refused_connection_is_one_clear_line() -> None:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))  # bound, not listening: refuses
        database = PostgresDatabase("127.0.0.1", unused.getsockname()[1], "u", "s3cret", "tpcc")
        with pytest.raises(CannotConnect) as failure:
            database.session()
    message = str(failure.value)
    assert "cannot connect to PostgreSQL database 'tpcc' at 127.0.0.1:" in message
    assert "refused" in message
    assert "s3cret" not in message
    assert "\n" not in message


def parameters(dsn: str) -> dict[str, str]:
    named = connect.database("postgres", dsn)
    assert isinstance(named, PostgresDatabase)
    return named.libpq().parameters


def test_what_a_dsn_says_reaches_libpq_and_nothing_is_made_up() -> None:
    """What a DSN leaves out, libpq takes from its service, environment and defaults."""
    given = parameters("host=h sslmode=verify-full options='-c work_mem=1MB'")
    assert (given["sslmode"], given["options"]) == ("verify-full", "-c work_mem=1MB")
    assert "port" not in given
    assert not {"port", "host", "options"} & parameters("service=sales").keys()
    several = parameters("host=a,b port=5432,5433 target_session_attrs=read-write")
    assert (several["host"], several["port"]) == ("a,b", "5432,5433")
    assert parameters("postgresql://u@h1:1,h2:2/d")["port"] == "1,2"
    with pytest.raises(DsnError, match="port '5432,x' is not a number"):
        parameters("host=a,b port=5432,x")


@pytest.mark.database
def test_a_service_and_the_environment_name_server_and_schema(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """libpq's own rules hold: hotset's settings come after connecting and replace none of these."""
    services = tmp_path / "services"
    services.write_text(
        f"[bench]\nhost=127.0.0.1\nport={cluster.port}\nuser=tester\ndbname=postgres\n"
        "options=-csearch_path=app\n"
    )
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.setenv("HOTSET_PASSWORD", PASSWORD)
    asked = "SELECT current_setting('search_path'), current_setting('plan_cache_mode')"

    def found(dsn: str) -> object:
        with closing(connect.database("postgres", dsn).session()) as session:
            return session.query(asked)

    assert found("service=bench") == [("app", "force_generic_plan")]
    monkeypatch.setenv("PGSERVICE", "bench")
    assert found("dbname=postgres") == [("app", "force_generic_plan")]
    monkeypatch.delenv("PGSERVICE")
    monkeypatch.setenv("PGOPTIONS", "-csearch_path=of_pgoptions")
    monkeypatch.setenv("PGPORT", str(cluster.port))
    assert found("host=127.0.0.1 user=tester dbname=postgres") == [
        ("of_pgoptions", "force_generic_plan")
    ]
    two = f"host=127.0.0.1,127.0.0.1 port=1,{cluster.port} user=tester dbname=postgres"
    assert found(f"{two} target_session_attrs=read-write") == [
        ("of_pgoptions", "force_generic_plan")
    ]


@pytest.fixture
def pooler(cluster: Cluster) -> Iterator[int]:
    """The port of something that, as poolers do, gives clients process numbers of its own."""
    listening = socket.create_server(("127.0.0.1", 0))
    key = re.compile(
        rb"(K\0\0\0\x0c)....", re.DOTALL
    )  # BackendKeyData: 12 bytes, the process first

    def forward(source: socket.socket, target: socket.socket, *, answers: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if answers:
                    data = key.sub(lambda found: found[1] + bytes((0, 0, 0, 1)), data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with suppress(OSError):
            while True:
                client, _ = listening.accept()
                server = socket.create_connection(("127.0.0.1", cluster.port))
                for pair, answers in (((client, server), False), ((server, client), True)):
                    how = {"answers": answers}
                    threading.Thread(target=forward, args=pair, kwargs=how, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield listening.getsockname()[1]
    listening.close()


@pytest.mark.database
def test_targets_have_the_size_of_their_files(empty: PostgresDatabase) -> None:
    """Documents lie in a table's TOAST; and nobody has analysed what was loaded a second ago."""
    with closing(empty.session()) as session:
        session.script(
            "CREATE TABLE document (body text);"
            " ALTER TABLE document ALTER body SET STORAGE EXTERNAL;"
            " INSERT INTO document SELECT repeat('x', 1000000) FROM generate_series(1, 3);"
            " CREATE TABLE small AS SELECT n FROM generate_series(1, 20000) AS n"
        )
        found = dict(session.query(sql("postgres", "targets").format(top=100)))
    assert int(str(found["table:public.document"])) > 3_000_000
    assert int(str(found["table:public.small"])) > 500_000
    tables = [name for name in found if str(name).startswith("table:public.")]
    assert tables == ["table:public.document", "table:public.small"]


@pytest.mark.database
def test_a_pooler_in_between_is_named(cluster: Cluster, pooler: int) -> None:
    cluster.database().require_direct()
    with pytest.raises(PrerequisiteError, match="Name the server's own host and port"):
        replace(cluster.database(), port=pooler).require_direct()


@pytest.mark.database
def test_a_server_without_tls_is_refused_where_the_dsn_asks_for_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOTSET_PASSWORD", PASSWORD)
    dsn = f"host=127.0.0.1 port={cluster.port} user=tester dbname=postgres"
    connect.database("postgres", dsn).session().close()
    with pytest.raises(CannotConnect, match="SSL"):
        connect.database("postgres", f"{dsn} sslmode=require").session()


@pytest.mark.parametrize(
    ("state", "broken", "expected"),
    [
        ("HS241", False, IntendedRollback("item number is not valid")),
        ("40P01", False, Aborted("deadlock", True, "m")),
        ("40001", False, Aborted("serialization", True, "m")),
        ("55P03", False, Aborted("lock timeout", True, "m")),
        ("53100", False, Aborted("disk full", False, "m")),
        ("42501", False, Aborted("error 42501", False, "m")),
        ("58030", False, Aborted("I/O error", False, "m")),
        ("XX001", False, Aborted("damaged data", False, "m")),
        ("57014", False, Aborted("error 57014", False, "m")),
        ("57P01", False, ServerGone("m")),
        ("57P03", False, ServerGone("m")),
        ("08006", False, ServerGone("m")),
        ("40001", True, ServerGone("m")),
        (None, False, ServerGone("m")),
    ],
)
def test_sqlstates(state: str | None, broken: bool, expected: DatabaseError) -> None:
    found = meaning(state, "m", broken=broken)
    assert type(found) is type(expected)
    assert found.args == expected.args
    assert pickle.loads(pickle.dumps(found)).args == expected.args  # noqa: S301 - our own bytes


@pytest.mark.database
def test_a_server_that_ends_a_session_during_a_load_is_not_said_to_have_crashed(
    empty: PostgresDatabase,
) -> None:
    """As transaction_timeout does (17); libpq says that the server terminated abnormally."""
    with closing(empty.session()) as session, closing(empty.session()) as other:
        session.script("CREATE TABLE large (a int, b text)")
        pid = session.query("SELECT pg_backend_pid()")[0][0]

        def rows() -> Iterator[tuple[int, str]]:
            for number in range(10**7):
                if number == 5_000:
                    other.query(f"SELECT pg_terminate_backend({pid})")
                yield number, "x" * 200

        with pytest.raises(ServerGone, match="has ended this session, and answers others") as no:
            session.copy("large", ("a", "b"), rows())
        assert "abnormally" not in str(no.value)
