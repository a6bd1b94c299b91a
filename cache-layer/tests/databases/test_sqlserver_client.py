"""The SQL Server client adapters without a server; with one: tpcc/tests/test_engines.py."""

from __future__ import annotations

import json
import pickle
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any, cast
from urllib.parse import quote

import pyodbc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.sql import (
    Aborted,
    CannotConnect,
    DatabaseError,
    IntendedRollback,
    Locked,
    Refused,
    Row,
    ServerGone,
    TimedOut,
    Value,
)
from hotset.databases import connect
from hotset.databases.product import DsnError
from hotset.databases.sqlserver import freetds, odbc
from hotset.databases.sqlserver.client import SqlServerSession, _bound, meaning
from hotset.databases.sqlserver.product import SqlServerDatabase
from hotset.databases.sqlserver.statements import SqlServerStatements
from hotset.databases.sqlserver.tpch import SqlServerTpch, _lines
from hotset.databases.sqlserver.tpch import _meaning as _tpch_meaning

DATABASE = SqlServerDatabase("127.0.0.1", 1, "someone", "s3cret", "tpcc", trust=True)
DRIVER = "[Microsoft][ODBC Driver 18 for SQL Server]"


def raised(state: str, text: str, number: int | None, call: str = "SQLExecute") -> odbc.Failure:
    """What `failure` reads of an error as pyodbc raises it."""
    tail = "" if number is None else f" ({number})"
    return odbc.failure(pyodbc.Error(state, f"[{state}] {DRIVER}[SQL Server]{text}{tail} ({call})"))


# Where the database is


words = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=12)


@settings(max_examples=50)
@given(
    host=st.from_regex(r"[a-z][a-z0-9-]{0,8}(\.[a-z]{2,5})?", fullmatch=True),
    port=st.none() | st.integers(1, 65535),
    user=words.filter(lambda user: "\\" not in user),
    dbname=st.just("") | words,
    encrypt=st.sampled_from(["yes", "no", "strict"]),
    trust=st.booleans(),
    driver=st.none() | words,
)
def test_every_url_reads_back(
    host: str,
    port: int | None,
    user: str,
    dbname: str,
    encrypt: str,
    trust: bool,
    driver: str | None,
) -> None:
    options = f"encrypt={encrypt}&trust={'yes' if trust else 'no'}"
    options += f"&driver={quote(driver, safe='')}" if driver else ""
    where = host if port is None else f"{host}:{port}"
    url = f"sqlserver://{quote(user, safe='')}@{where}/{quote(dbname, safe='')}?{options}"
    assert SqlServerDatabase.parse(url, "") == SqlServerDatabase(
        host, port or 1433, user, "", dbname, encrypt, trust, driver=driver
    )


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://u@h/d", ["is no URL such as sqlserver://"]),
        ("sqlserver:u@h", ["names no host"]),
        ("sqlserver://h/d", ["names no user", "trusted=yes"]),
        ("sqlserver://u@h:port/d", ["host and port cannot be read"]),
        ("sqlserver://u@h:99999/d", ["host and port cannot be read"]),
        ("sqlserver://u@h%5CSQLEXPRESS/d", ["names instance 'SQLEXPRESS'", "its port"]),
        ("sqlserver://u@h\\SQLEXPRESS/d", ["names instance 'SQLEXPRESS'", "its port"]),
        ("sqlserver://u@h/d?encrpyt=yes", ["unknown option 'encrpyt'", "encrypt, trust"]),
        ("sqlserver://u@h/d?encrypt=maybe", ["encrypt='maybe'", "yes or no or strict"]),
        ("sqlserver://u@h/d?trust", ["not key=value"]),
        ("sqlserver://u@h/d?driver=", ["driver is empty"]),
        ("sqlserver://u@h/d?trust=yes&trust=no", ["names option trust twice"]),
        ("sqlserver://u@h/d?trusted=yes", ["names user 'u'", "trusted=yes"]),
        ("sqlserver://u:s3cret@h/d", ["holds a password", "separately"]),
        ("sqlserver://u@h/d?password=s3cret", ["unknown option 'password'"]),
        (f"sqlserver://{'u' * 129}@h/d", ["names user", "has 129 characters", "takes 128"]),
        (f"sqlserver://u@h/{'d' * 129}", ["names database", "has 129 characters", "takes 128"]),
        ("sqlserver://u%00v@h/d", ["user 'u\\x00v'", "a character that cannot be sent"]),
        ("sqlserver://u@h/d\udcff", ["database 'd\\udcff'", "cannot be sent"]),
        (f"sqlserver://u@{'h' * 254}/d", ["names a host with", "over 253 characters"]),
        ("sqlserver://DOM%5Cme@h/d", ["names user 'DOM\\\\me'", "trusted=yes"]),
    ],
)
def test_bad_urls_are_told_in_one_line(url: str, words: list[str]) -> None:
    with pytest.raises(DsnError) as failure:
        connect.database("sqlserver", url)
    message = str(failure.value)
    assert message.startswith("the DSN ")
    assert "s3cret" not in message
    assert "\n" not in message
    assert [word for word in words if word not in message] == []


def test_password_comes_from_the_environment_and_stays_out_of_sight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOTSET_PASSWORD", "s3cret")
    database = connect.database("sqlserver", "sqlserver://u@h/d")
    assert database.password == "s3cret"  # noqa: S105
    assert "s3cret" not in repr(database)
    assert pickle.loads(pickle.dumps(database)) == database  # noqa: S301 - our own bytes
    trusted = connect.database("sqlserver", "sqlserver://h/d?trusted=yes")
    assert trusted.password == ""


@given(password=st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20))
def test_no_value_escapes_its_braces(password: str) -> None:
    text = odbc.connection_string(replace(DATABASE, password=password), "{odd};driver}")
    # A reader of ODBC's grammar: a key, "=", and a value in braces with "}}" for "}".
    found: dict[str, str] = {}
    while text:
        key, text = text.split("={", 1)
        value = ""
        while text.startswith("}}") or not text.startswith("}"):
            width = 2 if text.startswith("}}") else 1
            value, text = value + text[0], text[width:]
        text = text[1:].removeprefix(";")
        found[key] = value
    assert found["PWD"] == password
    assert found["DRIVER"] == "{odd};driver}"
    assert found["SERVER"] == "tcp:127.0.0.1,1"
    assert found["TrustServerCertificate"] == "yes"


def test_a_trusted_connection_names_no_user() -> None:
    text = odbc.connection_string(replace(DATABASE, user="", trusted=True), "d")
    assert "Trusted_Connection={yes}" in text
    assert "UID" not in text
    assert "PWD" not in text


def test_freetds_has_keys_of_its_own_and_no_arrays() -> None:
    plain = replace(DATABASE, encrypt="no")
    text = odbc.connection_string(plain, "/usr/lib/odbc/libtdsodbc.so")
    assert f"SERVERNAME={{{freetds.section(plain)}}}" in text
    assert "port = 1\n" in freetds.settings(plain)
    assert "encryption = off\n" in freetds.settings(plain)
    assert "TrustServerCertificate" not in text
    assert freetds.is_freetds("FreeTDS")
    assert not freetds.is_freetds("ODBC Driver 18 for SQL Server")


def test_a_driver_without_arrays_sends_many_rows_a_statement() -> None:
    """It took two round trips a row, and the server read the statement anew for each."""
    rows = [(n, "a", None, Decimal("2.50"), datetime(2026, 1, 2, 3, 4)) for n in range(25_000)]
    connection = Filled()
    names = ["n", "t", "e", "d", "at"]
    assert odbc.insert(cast("Any", connection), "t", names, rows, by_array=False) == len(rows)
    assert len(connection.executed) < 10
    arrived = [row for _, text in connection.executed for row in json.loads(text)]
    assert arrived == [[n, "a", None, "2.50", "2026-01-02T03:04:00.000"] for n in range(25_000)]
    assert len({statement for statement, _ in connection.executed}) == 1


class Filled:
    """A connection that notes what it is sent."""

    def __init__(self) -> None:
        self.autocommit = True
        self.executed = list[tuple[str, str]]()

    def cursor(self) -> Filled:
        return self

    def execute(self, statement: str, text: str) -> None:
        self.executed.append((statement, text))

    def executemany(self, statement: str, rows: Sequence[Sequence[object]]) -> None:
        for row in rows:
            self.execute(statement, json.dumps([row], default=str))

    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


# The driver


def test_driver_is_installed_one_then_bundled_one_then_freetds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    installed = ["FreeTDS", "ODBC Driver 17 for SQL Server"]
    monkeypatch.setattr(pyodbc, "drivers", lambda: installed)
    assert odbc.driver(None) == "ODBC Driver 17 for SQL Server"
    installed.pop()
    assert "libmsodbcsql" in odbc.driver(None)
    assert odbc.driver("FreeTDS") == "FreeTDS"
    assert odbc.driver(__file__) == __file__
    monkeypatch.setattr(odbc, "_find_bundled", lambda: None)
    assert odbc.driver(None) == "FreeTDS"


def test_a_missing_driver_says_what_brings_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pyodbc, "drivers", list)
    monkeypatch.setattr(odbc, "_find_bundled", lambda: None)
    with pytest.raises(PrerequisiteMissingError, match=r"pip install 'hotset\[sqlserver\]'"):
        odbc.driver(None)
    with pytest.raises(PrerequisiteMissingError, match="driver=Nonsense: neither"):
        odbc.driver("Nonsense")


def test_refused_connection_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(odbc, "CONNECT_TIMEOUT_S", 1)
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))  # bound, not listening: refuses
        database = replace(DATABASE, port=unused.getsockname()[1])
        for refused, make in (
            (CannotConnect, database.session),
            (CannotConnect, SqlServerTpch(database).session),
        ):
            with pytest.raises(refused) as failure:
                make()
            message = str(failure.value)
            assert "cannot connect to SQL Server database 'tpcc' at 127.0.0.1:" in message
            assert "refused" in message
            assert "s3cret" not in message
            assert "\n" not in message


# Errors


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            raised("42000", "item number is not valid", 50241),
            IntendedRollback("item number is not valid"),
        ),
        (raised("40001", "deadlock victim", 1205), Aborted("deadlock", True, "deadlock victim")),
        (raised("42000", "m", 1205), Aborted("deadlock", True, "m")),
        (raised("HYT00", "m", 1222), Aborted("lock timeout", True, "m")),
        (raised("42000", "m", 3960), Aborted("serialization", True, "m")),
        (raised("23000", "dup (1, 2).", 2627), Aborted("error 2627", False, "dup (1, 2).")),
        (
            raised("HYT00", "Query timeout expired", 0),
            Aborted("error HYT00", False, "Query timeout expired"),
        ),
        (raised("42000", "m", 229), Aborted("error 229", False, "m")),
        (raised("HY000", "m", 823), Aborted("I/O error", False, "m")),
        (raised("08S01", "link failure", 10054), ServerGone("link failure")),
        (
            raised("HY000", "session is in the kill state", 596),
            ServerGone("session is in the kill state"),
        ),
        (raised("HYT01", "m", None), ServerGone("m")),
    ],
)
def test_errors(found: odbc.Failure, expected: DatabaseError) -> None:
    meant = meaning(found)
    assert type(meant) is type(expected)
    assert meant.args == expected.args
    assert pickle.loads(pickle.dumps(meant)).args == expected.args  # noqa: S301 - our own bytes


def test_several_messages_are_one_line() -> None:
    text = (
        f"[28000] {DRIVER}[SQL Server]Login failed for user 'u'. (18456) (SQLDriverConnect);"
        f" [28000] {DRIVER}[SQL Server]Login failed for user 'u'. (18456)"
    )
    found = odbc.failure(pyodbc.Error("28000", text))
    assert found == odbc.Failure("28000", (18456, 18456), "Login failed for user 'u'.")


def test_brackets_of_the_message_itself_stay() -> None:
    """Why a certificate is refused, and which object it is about."""
    tls = "[error:0A000086:SSL routines::certificate verify failed:self-signed certificate]"
    text = f"[08001] {DRIVER}SSL Provider: {tls} (-1) (SQLDriverConnect)"
    assert odbc.failure(pyodbc.Error("08001", text)).message == f"SSL Provider: {tls}"
    text = (
        f"[42000] {DRIVER}[SQL Server]object [dbo].[orders] of [dba] is busy (51000) (SQLExecute)"
    )
    found = odbc.failure(pyodbc.Error("42000", text))
    assert found.message == "object [dbo].[orders] of [dba] is busy"
    assert "trust=yes" in odbc._refusal("certificate verify failed", DATABASE)


class CountingServer:
    """Counts transactions as the server does, and who asks for the count."""

    def __init__(self) -> None:
        self.open = self.asked = 0
        self.description: object = None

    def cursor(self) -> CountingServer:
        return self

    def execute(self, text: str, *_: object) -> None:
        self.description = None
        if text == "SELECT @@TRANCOUNT":
            self.asked += 1
            self.description = [("",)]
        elif "ROLLBACK" in text:
            self.open = 0
        else:
            self.open += text.startswith(("BEGIN TRAN", "EXEC begin_one"))
            self.open -= text.startswith("COMMIT")

    def fetchall(self) -> list[tuple[int]]:
        return [(self.open,)]

    def nextset(self) -> bool:
        return False


def test_a_transaction_that_a_script_leaves_open_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    server = CountingServer()
    monkeypatch.setattr(odbc, "connect", lambda _: (server, True))
    database = SqlServerDatabase.parse("sqlserver://u@h/d", "")
    client = SqlServerStatements(database, prepared=False)

    def run(*texts: str) -> bool:
        for text in texts:
            client.execute((text,), ())
        return client.in_transaction()

    assert not run("BEGIN TRANSACTION", "INSERT x", "COMMIT")
    assert server.asked == 1, "after the first run, to be sure"
    assert not run("BEGIN TRANSACTION", "INSERT x", "COMMIT")
    assert server.asked == 1, "what ends what it begins costs no question"
    assert run("BEGIN TRANSACTION", "INSERT x")
    client.rollback()
    assert run("EXEC begin_one"), "a procedure's own"


@pytest.mark.parametrize("code", ["0x2746", "0x68"])
def test_a_server_that_closes_the_connection_is_said_to(code: str) -> None:
    text = f"[08S01] {DRIVER}TCP Provider: Error code {code} (10054) (SQLExecute)"
    message = odbc.failure(pyodbc.Error("08S01", text)).message
    assert message == f"TCP Provider: Error code {code} (the server closed the connection)"
    assert "SQL Server 2022" in odbc._refusal(message, replace(DATABASE, encrypt="strict"))
    assert odbc._refusal(message, DATABASE) == message


@pytest.mark.parametrize(
    ("number", "remedy"), [(262, "ALTER ROLE db_owner"), (3906, "another database in the DSN")]
)
def test_a_refusal_of_a_change_names_what_helps(number: int, remedy: str) -> None:
    """A user without rights; a database that is read-only."""
    error = meaning(raised("42000", "refused", number))
    assert isinstance(error, Aborted)
    assert remedy in error.detail
    assert remedy in str(_tpch_meaning(raised("42000", "refused", number)))


def test_tpch_errors() -> None:
    assert isinstance(_tpch_meaning(raised("HYT00", "m", 0)), TimedOut)
    assert isinstance(_tpch_meaning(raised("08S01", "m", 0)), ServerGone)
    assert isinstance(_tpch_meaning(raised("42000", "m", 102)), Refused)


@pytest.mark.parametrize(
    ("value", "bound"),
    [
        (7, 7),
        ("é", "é"),
        (Decimal("1.5"), Decimal("1.5")),
        ((), ""),
        ((1, 100_001), "00000000010000100001"),
    ],
)
def test_arguments(value: Value, bound: object) -> None:
    assert _bound(value) == bound


@given(st.binary(max_size=60).map(lambda raw: raw.replace(b"\n", b"|")), st.integers(1, 9))
def test_lines_are_the_same_wherever_the_text_is_cut(raw: bytes, size: int) -> None:
    text = b"1|" + raw.hex().encode() + b"\n2|last"
    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    assert list(_lines(chunks)) == text.decode().split("\n")


# What a procedure sends


class FakeCursor:
    """Results as the driver hands them out; an exception among them is raised on the way there."""

    def __init__(self, results: list[Any]) -> None:
        self._results: Iterator[Any] = iter(results)
        self.description: object = None
        self._rows: list[tuple[Any, ...]] = []

    def setinputsizes(self, sizes: list[tuple[int, int, int]]) -> None:
        self.sizes = sizes

    def execute(self, statement: str, values: list[object]) -> None:
        self.statement, self.values = statement, values
        self.nextset()

    def nextset(self) -> bool:
        try:
            result = next(self._results)
        except StopIteration:
            return False
        if isinstance(result, Exception):
            raise result
        self.description, self._rows = (None, []) if result is None else ("columns", list(result))
        return True

    def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows.pop(0) if self._rows else None


class FakeConnection:
    def __init__(self, *results: Any) -> None:  # noqa: ANN401
        self.made = FakeCursor(list(results))
        self.timeout = 5

    def cursor(self) -> FakeCursor:
        return self.made


def called(*results: Any) -> tuple[Value, ...]:  # noqa: ANN401
    session = SqlServerSession(FakeConnection(*results), by_array=True)
    return session.call("payment", (1, None, "NAME", Decimal("2.50"), (3, 4)))


def test_nulls_are_text_and_sizes_do_not_depend_on_values() -> None:
    connection = FakeConnection([(1,)])
    session = SqlServerSession(connection, by_array=True)
    assert session.call("payment", (1, None, "NAME", Decimal("2.50"), (3, 4))) == (1,)
    assert connection.made.statement == "EXEC payment ?, NULL, ?, ?, ?"
    assert connection.made.values == [1, "NAME", Decimal("2.50"), "00000000030000000004"]
    assert connection.made.sizes == [
        (pyodbc.SQL_INTEGER, 0, 0),
        (pyodbc.SQL_VARCHAR, 200, 0),
        (pyodbc.SQL_DECIMAL, 12, 2),
        (pyodbc.SQL_VARCHAR, 200, 0),
    ]


def test_the_row_is_found_behind_row_counts() -> None:
    assert called(None, None, [(5, "x")], None) == (5, "x")


def test_an_error_behind_the_row_is_not_lost() -> None:
    late = pyodbc.Error("40001", f"[40001] {DRIVER}[SQL Server]victim (1205) (SQLMoreResults)")
    with pytest.raises(Aborted, match="deadlock: victim"):
        called([(5,)], late)


@pytest.mark.parametrize("results", [(), (None,), ([],)])
def test_a_procedure_without_a_row_is_an_error(results: tuple[Any, ...]) -> None:
    with pytest.raises(Aborted, match="no result: payment returned no row"):
        called(*results)


class SentSets:
    """A cursor to whom a batch of statements is answered, one after the other."""

    def __init__(self, *sets: list[Row] | None) -> None:
        self._sets = list(sets)

    def __enter__(self) -> SentSets:
        return self

    def __exit__(self, *_: object) -> None: ...
    def execute(self, _: str) -> None: ...

    @property
    def description(self) -> object:
        return None if self._sets[0] is None else [("a",)]

    def nextset(self) -> bool:
        self._sets.pop(0)
        return bool(self._sets)

    def fetchall(self) -> list[Row]:
        rows = self._sets[0]
        if rows is None:
            raise pyodbc.ProgrammingError("No results.  Previous SQL was not a query.")
        return rows


def test_a_table_behind_statements_without_one_is_found() -> None:
    """The lock of a benchmark was "not known" on a server that answers each statement."""

    class Connection:
        timeout = 0

        def __init__(self, *sets: list[Row] | None) -> None:
            self.cursor = lambda: SentSets(*sets)

    def session(*sets: list[Row] | None) -> SqlServerSession:
        connection: Any = Connection(*sets)
        return SqlServerSession(connection, by_array=False)

    assert session(None, None, [(1,)], None).query("x") == [(1,)]
    with pytest.raises(Aborted, match="the server answered, and sent no table"):
        session(None).query("x")


class LockedConnection(FakeConnection):
    """One whose statements end as those of a table that somebody has to himself."""

    def __init__(self) -> None:
        text = "[42000] [Microsoft][ODBC Driver 18 for SQL Server][SQL Server]Lock request time out"
        super().__init__(pyodbc.ProgrammingError("42000", f"{text} (1222) (SQLExecDirectW)"))
        self.ran: list[str] = []

    def execute(self, statement: str) -> None:
        self.ran.append(statement)


def test_who_only_looks_waits_for_no_table_that_somebody_locks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A check of the rows waited until whoever had the table let go, without a word."""
    connection = LockedConnection()
    monkeypatch.setattr(odbc, "driver", lambda _: "ODBC Driver 18 for SQL Server")
    monkeypatch.setattr(pyodbc, "connect", lambda *_, **__: connection)
    where = SqlServerDatabase("db1", 1433, "sa", "x", "shop")
    session = where.looking().session()
    assert connection.ran == ["SET LOCK_TIMEOUT 10000"]
    with pytest.raises(Locked, match="a table was not to be had for 10 s"):
        session.call("rows", (1,))
    connection = LockedConnection()
    with pytest.raises(Aborted, match="lock timeout"):
        where.session().call("rows", (1,))
    assert connection.ran == [], "who works waits"
