"""PostgreSQL as a client sees it: the sessions that `hotset.tpcc` asks for, over psycopg 3.

Everything that is libpq's or PostgreSQL's own is in this file: connection
settings, how arguments travel, and what each SQLSTATE means to a benchmark.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import ClassVar

import psycopg
from psycopg import conninfo, pq, sql
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.types.datetime import DatetimeNoTzDumper

from hotset.core.errors import GIVE_PASSWORD
from hotset.core.sql import (
    Aborted,
    Argument,
    CannotConnect,
    DatabaseError,
    EngineName,
    IntendedRollback,
    Libpq,
    Row,
    ServerGone,
    Session,
    Value,
)

from .. import base
from ..product import SqlDatabase
from . import limits

INTENDED_ROLLBACK = "HS241"
"""The SQLSTATE that neword.sql raises for the unused item of clause 2.4.1.4."""

_RETRYABLE = {"40P01": "deadlock", "40001": "serialization", "55P03": "lock timeout"}
_LASTING = {
    **{"25006": "read-only", "53100": "disk full", "53200": "out of memory"},
    "58030": "I/O error",
    **dict.fromkeys(("XX001", "XX002"), "damaged data"),
}
_GONE_CLASSES = ("57P", "08")

_CONNECTION = {
    "connect_timeout": "10",
    "application_name": "hotset",
    "client_encoding": "utf8",
    # A server that is powered off sends nothing, not even a reset. Waiting for an answer,
    # keep-alive probes notice it (5 s + 2 × 2 s); with unanswered data under way,
    # tcp_user_timeout does (milliseconds).
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "2",
    "tcp_user_timeout": "10000",
}
_LOG_IN = r'authentication failed|role "[^"]*" does not exist|no pg_hba\.conf entry'
_LACKING = "the server asks for a password, and none was given; nor has libpq one, as in ~/.pgpass"
# Every statement here is a handful of key look-ups: its generic plan is the right one, and
# planning again at each call would cost more than running it. Compiling never pays.
_SETTINGS = "SET plan_cache_mode = force_generic_plan; SET jit = off"


@dataclass(frozen=True, slots=True)
class Address(SqlDatabase):
    """Where a PostgreSQL database is and who asks; `host` may be a socket directory. What is empty,
    or 0, is left to libpq: to its service, its environment, its defaults. `more` are other
    connection parameters by libpq's names (`sslmode`, and of several servers their `port`)."""

    engine: ClassVar[EngineName] = "postgres"
    title: ClassVar[str] = "PostgreSQL"
    more: tuple[tuple[str, str], ...] = ()

    def session(self) -> PostgresSession:
        """Open a connection. Raises CannotConnect with the server's reason, never the password."""
        try:
            connection = self.connect(_SETTINGS)
            _read_any_text(connection)
            return PostgresSession(connection, limits.read_limit(connection), self.looks)
        except psycopg.Error as error:
            raise self.unreached(error) from None

    @property
    def whose_password(self) -> str:
        """Whose password it is, as who is asked for it is told."""
        who = f" of {self.user!r}" if self.user else ""
        return f"PostgreSQL's password{who}{f' at {self.host}' if self.host else ''}"

    def needs_password(self) -> bool:
        """True if the server asks for a password, and neither this nor libpq's own places have
        one."""
        if self.password:
            return False
        try:
            self.connect("").close()
        except psycopg.Error as error:
            return _lacks_password(error)
        return False

    def connect(self, settings: str) -> psycopg.Connection:
        """A bare connection in autocommit, on which `settings`, statements, have been run: as
        options of the connection they would replace those of a service or of PGOPTIONS, and a
        pooler would refuse them.

        Raises what psycopg raises; `refusal` says it without the password.
        """
        connection = psycopg.connect(conninfo.make_conninfo(**self._parameters()), autocommit=True)
        try:
            if settings:
                connection.execute(settings.encode())
            if self.looks:
                limits.limit_lock_wait(connection)
        except psycopg.Error:
            connection.close()
            raise
        return connection

    def unreached(self, error: psycopg.Error) -> CannotConnect:
        """Return why no connection could be made, and what helps."""
        remedies = (GIVE_PASSWORD,) if _lacks_password(error) else ()
        return CannotConnect(self.refusal(error), *remedies, kind=_kind(error))

    def refusal(self, error: psycopg.Error) -> str:
        """Why no connection could be made, as one line."""
        database = f" database {self.dbname!r}" if self.dbname else ""
        where = f" at {self.host}" if self.host else ""
        port = f":{self.port}" if self.host and self.port else ""
        who = f" as {self.user!r}" if self.user else ""
        why = _LACKING if _lacks_password(error) else one_line(error)
        return f"cannot connect to PostgreSQL{database}{where}{port}{who}: {why}"

    @property
    def application(self) -> str:
        """The name under which its sessions are seen."""
        return dict(self.more).get("application_name", _CONNECTION["application_name"])

    def conninfo(self, application_name: str) -> str:
        """Where and as whom, as PostgreSQL's own programs take it; without the password."""
        named = {**self._parameters(), "application_name": application_name}
        named.pop("password", None)
        return conninfo.make_conninfo(**named)

    def libpq(self) -> Libpq:
        """Return the connection data with which another program connects as `session` does."""
        return Libpq(
            _library(),
            self._parameters(),
            _SETTINGS,
            INTENDED_ROLLBACK,
            _RETRYABLE,
            _LASTING,
            _GONE_CLASSES,
        )

    def _parameters(self) -> dict[str, str]:
        """Connection parameters by libpq's names; an empty one leaves the choice to libpq."""
        given = {
            "host": self.host,
            "port": str(self.port or ""),
            "user": self.user,
            "password": self.password,
            "dbname": self.dbname,
        }
        named = {name: value for name, value in given.items() if value}
        return _CONNECTION | dict(self.more) | named


def _lacks_password(error: psycopg.Error) -> bool:
    return error.pgconn is not None and error.pgconn.needs_password


def _kind(error: psycopg.Error) -> str:
    """The kind of a refusal, by the server's words: libpq tells no SQLSTATE of one.

    Empty: another one, or said in another language.
    """
    message = str(error)
    if _lacks_password(error) or re.search(_LOG_IN, message):
        return "log-in"
    return "unknown-database" if re.search('database "[^"]*" does not exist', message) else ""


@cache
def _library() -> str:
    """The libpq that psycopg has loaded: the wheel's own, or the system's."""
    for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines():
        path = line.partition("/")[2]
        if path.rpartition("/")[2].startswith("libpq"):
            return f"/{path}"
    raise CannotConnect("psycopg runs without a libpq of its own: install psycopg[binary]")


class _AnyText(Loader):
    """Text as UTF-8, and what is none as bytes in words: ``bl\\xe4tter``. In a database of encoding
    SQL_ASCII names may be anything, and those of databases and roles are so everywhere: one of them
    would take all the others along."""

    def load(self, data: Buffer) -> str:
        return bytes(data).decode(errors="backslashreplace")


def _read_any_text(connection: psycopg.Connection) -> None:
    """The server itself refuses to send what is no UTF-8, unless it is asked for bytes."""
    if connection.info.parameter_status("server_encoding") == "SQL_ASCII":
        connection.execute("SET client_encoding = 'SQL_ASCII'")
    for name in ("text", "name", "varchar", "bpchar"):
        connection.adapters.register_loader(name, _AnyText)


class PostgresSession:
    """One connection, in autocommit: each statement or call is a transaction of its own."""

    def __init__(
        self, connection: psycopg.Connection, limit: limits.StatementLimit, looks: bool
    ) -> None:
        """
        :param limit: of its own server, to be named where it ends a statement.
        :param looks: see `SqlDatabase`.
        """
        self._connection = connection
        self.limit = limit
        self._looks = looks

    @property
    def server(self) -> str:
        """Host, or the folder of its socket, and port."""
        info = self._connection.info
        return f"{info.host or info.hostaddr}:{info.port}"

    def is_pooled(self) -> bool:
        """True if something such as pgbouncer answers in the server's place: the process that it
        named when it let us in is not the process that works for us."""
        return self.query("SELECT pg_backend_pid()") != [(self._connection.info.backend_pid,)]

    def script(self, sql: str) -> None:
        """Run several statements as one batch, or one that must stand alone (VACUUM)."""
        with self._errors():
            self._connection.execute(sql.encode())

    def query(self, sql: str) -> list[Row]:
        """All rows of one statement; a lone surrogate in it is a byte that is no UTF-8."""
        with self._errors():
            return self._connection.execute(sql.encode(errors="surrogateescape")).fetchall()

    def call(self, procedure: str, args: Sequence[Argument]) -> Row:
        """Call a function. A run's users do not come here: they call through `libpq`."""
        marks = ", ".join(["%s"] * len(args))
        values = [list(value) if isinstance(value, tuple) else value for value in args]
        with self._errors():
            cursor = self._connection.execute(
                f"SELECT * FROM {procedure}({marks})".encode(), values
            )
            row = cursor.fetchone()
        assert row is not None, f"{procedure} returned no row"
        return row

    def copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> int:
        """COPY rows in text format, in one transaction."""
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(*table.split(".")), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        count = 0
        with self._errors(), self._connection.cursor() as cursor:
            cursor.adapters.register_dumper(datetime, _RepeatedDatetime)
            with cursor.copy(statement) as copy:
                write = copy.write_row
                for count, row in enumerate(rows, 1):  # noqa: B007 - the count is the result
                    write(row)
        return count

    def close(self) -> None:
        """Close the connection, whatever state it is in."""
        self._connection.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn psycopg's errors into the three that the benchmark knows."""
        started = time.monotonic()
        try:
            yield
        except psycopg.Error as error:
            if self._looks and error.sqlstate == limits.LOCKED:
                raise limits.lock_error(self._connection) from error
            seconds = time.monotonic() - started
            words = describe_end(self._connection, error)
            message = self.limit.explain(words, error.sqlstate, seconds)
            raise self._meaning(error, message) from error

    def _meaning(self, error: psycopg.Error, message: str) -> DatabaseError:
        return meaning(error.sqlstate, message, broken=self._connection.broken)


def describe_end(connection: psycopg.Connection, error: psycopg.Error) -> str:
    """Describe an error. If a server ends a session while data is sent to it, libpq loses the
    message and supposes a crash: a server that answers has ended the session alone."""
    if error.sqlstate is not None or not connection.broken:
        if connection.info.encoding == "ascii" and error.pgresult is not None:
            return one_line(error.pgresult.get_error_message())
        return one_line(error)
    info = connection.info
    where = conninfo.make_conninfo(host=info.host, port=info.port, dbname=info.dbname)
    if pq.PGconn.ping(where.encode()) != pq.Ping.OK:
        return one_line(error)
    return (
        "the server has ended this session, and answers others: its log says why, such as"
        " transaction_timeout or an administrator"
    )


def meaning(state: str | None, message: str, *, broken: bool) -> DatabaseError:
    """Map a SQLSTATE to the benchmark's errors.

    >>> meaning("40P01", "deadlock detected", broken=False)
    Aborted('deadlock', True, 'deadlock detected')
    >>> meaning("57P01", "terminating connection", broken=True)
    ServerGone('terminating connection')
    """
    if state == INTENDED_ROLLBACK:
        return IntendedRollback("item number is not valid")
    if is_gone(state, broken=broken):
        return ServerGone(message)
    assert state is not None
    if state in _RETRYABLE:
        return Aborted(_RETRYABLE[state], True, message)
    return Aborted(_LASTING.get(state, f"error {state}"), False, message)


def is_gone(state: str | None, *, broken: bool) -> bool:
    """True if an error with this SQLSTATE means that the connection is of no more use."""
    return broken or state is None or state.startswith(_GONE_CLASSES)


_ATTEMPT = re.compile(r"^(- host: .*?': )?(connection failed: )?")
"""Prefix of libpq's sentence, for the first attempt or for each of several."""


def one_line(error: psycopg.Error | str) -> str:
    """Put psycopg's message on one line. libpq repeats it per attempt: with TLS, then without.

    >>> one_line(psycopg.OperationalError("connection failed: at db1: no\\nat db1: no\\nask her"))
    'connection failed: at db1: no; ask her'
    """
    lines: dict[str, str] = {}
    for line in str(error).splitlines():
        if line.strip():
            lines.setdefault(_ATTEMPT.sub("", line.strip()), line.strip())
    return "; ".join(lines.values())


class _RepeatedDatetime(DatetimeNoTzDumper):
    """Formats a time stamp once when rows share it, as a load's 400,000 per warehouse do."""

    _last: datetime | None = None
    _formatted: bytes = b""

    def dump(self, obj: datetime) -> bytes:
        if obj is not self._last:
            self._last = obj
            self._formatted = str(obj).encode()
        return self._formatted

    def get_key(self, obj: datetime, format: object) -> type[datetime]:  # noqa: ARG002
        return self.cls

    def upgrade(self, obj: datetime, format: object) -> _RepeatedDatetime:  # noqa: ARG002
        return self


def extension_schema(connection: Session, name: str) -> str | None:
    """Where an extension lies, quoted: it need not be in a schema that is searched;
    None: this database has none."""
    rows = connection.query(base.sql("postgres", "extension_schema").format(name=name))
    return str(rows[0][0]) if rows else None
