"""The PostgreSQL client adapter without a server; with one: tpcc/tests/test_client.py."""

import pickle
import socket
from contextlib import closing

import pytest

from hotset.harness.databases import connect
from hotset.harness.databases.postgres.client import PostgresDatabase, meaning
from hotset.tpcc.database import Aborted, CannotConnect, DatabaseError, IntendedRollback, ServerGone
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


def test_what_else_a_dsn_says_reaches_libpq(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPORT", "5433")
    named = connect.database("postgres", "host=h sslmode=verify-full options='-c work_mem=1MB'")
    assert isinstance(named, PostgresDatabase)
    given = named.libpq().parameters
    assert (given["port"], given["sslmode"]) == ("5433", "verify-full")
    assert given["options"].startswith("-c work_mem=1MB -c plan_cache_mode=")
    of_service = connect.database("postgres", "service=sales")
    assert isinstance(of_service, PostgresDatabase)
    assert "port" not in of_service.libpq().parameters, "its file names it"


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
        ("HS241", False, IntendedRollback()),
        ("40P01", False, Aborted("deadlock", True, "m")),
        ("40001", False, Aborted("serialization", True, "m")),
        ("55P03", False, Aborted("lock timeout", True, "m")),
        ("53100", False, Aborted("disk full", False, "m")),
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
