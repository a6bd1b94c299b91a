"""From what a user types (`--engine`, `--dsn`) to a database that workloads can open.

A password is never taken from the command line, where every user of the computer can read it:
it comes from the environment (HOTSET_PASSWORD), from a file, from libpq's own places, or is asked
for on a terminal.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

import psycopg
from psycopg.conninfo import conninfo_to_dict

from hotset.core import environment
from hotset.core.errors import GIVE_PASSWORD, PrerequisiteError, RequestError

from . import dsn_rules
from .base import Engine
from .postgres.admin import PostgresEngine
from .postgres.client import PostgresDatabase
from .postgres.tpch import PostgresTpch
from .sqlserver import dsn as sqlserver_dsn
from .sqlserver.admin import SqlServerEngine
from .sqlserver.client import SqlServerDatabase
from .sqlserver.tpch import SqlServerTpch

SqlDatabase = PostgresDatabase | SqlServerDatabase
EngineName = Literal["postgres", "sqlserver"]
_UNKNOWN = re.compile(r'^invalid (?:connection option|URI query parameter):? (".*")')


class DsnError(RequestError):
    """The DSN does not say where the database is; the message names the part."""


def database(engine: EngineName, dsn: str, password: str | None = None) -> SqlDatabase:
    """The database a DSN names; nothing is connected yet.

    :param dsn: for ``postgres`` a libpq URI or keyword string, for ``sqlserver`` a URL.
    :param password: None: of the environment (HOTSET_PASSWORD), or of the terminal.
    :raises DsnError: it cannot be understood, or holds a password.
    """
    given = environment.password() if password is None else password
    named = _sqlserver(dsn, given) if engine == "sqlserver" else _postgres(dsn, given)
    if password is None and environment.can_ask() and named.needs_password():
        return replace(named, password=environment.ask_password(named.whose_password))
    return named


def check_dsn(engine: EngineName, dsn: str) -> None:
    """See that a DSN names a database and holds no password, before it is kept anywhere.

    :raises DsnError: it does not, or does.
    """
    database(engine, dsn, "")


def engine(database: SqlDatabase) -> Engine:
    """Connect, to look at the server itself. Raises CannotConnect."""
    if isinstance(database, SqlServerDatabase):
        return SqlServerEngine(database.session(), database.dbname)
    return PostgresEngine(database.session())


def _sqlserver(dsn: str, password: str) -> SqlServerDatabase:
    try:
        named = sqlserver_dsn.parse(dsn)
    except ValueError as error:
        own = (GIVE_PASSWORD,) if sqlserver_dsn.A_PASSWORD in str(error) else ()
        raise DsnError(f"the DSN {error}", *own, field="dsn") from None
    return named if named.trusted else replace(named, password=password)


def _postgres(dsn: str, password: str) -> PostgresDatabase:
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        unknown = _UNKNOWN.search(str(error))
        if unknown:
            raise DsnError(
                f"the DSN has a keyword that libpq does not know: {unknown[1]}", field="dsn"
            ) from None
        # The library's other messages quote the DSN, secrets included.
        raise DsnError(
            "the DSN is neither a URI such as postgresql://user@host:5432/dbname nor keywords such"
            " as 'host=… user=… dbname=…'",
            field="dsn",
        ) from None
    if parts.pop("password", None) is not None:
        raise DsnError(f"the DSN holds {sqlserver_dsn.A_PASSWORD}", GIVE_PASSWORD, field="dsn")
    dsn_rules.require_known(parts.keys())
    return PostgresDatabase(
        host=str(parts.pop("host", "")),
        port=_port(parts),
        user=str(parts.pop("user", "")),
        password=password,
        dbname=str(parts.pop("dbname", "")),
        more=tuple((key, str(value)) for key, value in parts.items()),
    )


def _port(parts: dict[str, Any]) -> int:
    """Taken out where it is one; 0 leaves it to libpq: those of several servers, and what the
    environment, a service or the default says where the DSN does not."""
    given = str(parts.get("port") or "")
    each = given.split(",")
    if any(port and not (port.isdecimal() and 0 < int(port) <= 65535) for port in each):
        raise DsnError(f"the DSN's port {given!r} is not a number from 1 to 65535", field="dsn")
    if len(each) > 1 or not given:
        return 0
    del parts["port"]
    return int(given)


def require_direct(database: SqlDatabase) -> None:
    """See that a run measures the server itself.

    :raises PrerequisiteError: a connection pooler answers in its place.
    """
    if isinstance(database, PostgresDatabase) and database.is_pooled():
        raise PrerequisiteError(
            "a connection pooler (such as pgbouncer) answers in the server's place: prepared"
            " statements and settings need not hold behind it, and its queue would be measured as"
            " the server's time. Name the server's own host and port in the DSN"
        )


def tpch_database(
    engine: EngineName, dsn: str, password: str | None = None, *, looks: bool = False
) -> PostgresTpch | SqlServerTpch:
    """Open what `database` opens, for TPC-H.

    :param looks: it waits for no table that somebody has to himself; see `PostgresDatabase`.
    """
    named = database(engine, dsn, password)
    named = named.looking() if looks else named
    return SqlServerTpch(named) if isinstance(named, SqlServerDatabase) else PostgresTpch(named)
