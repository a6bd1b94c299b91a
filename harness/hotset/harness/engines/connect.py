"""From what a user types (`--engine`, `--dsn`) to a database that workloads can open.

A password is never taken from the command line, where every user of the computer can read it:
it comes from the environment (HOTSET_PASSWORD), from a file, or from libpq's own places.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

import psycopg
from psycopg.conninfo import conninfo_to_dict

from hotset.harness.engines import sqlserver_dsn
from hotset.harness.engines.engine import Engine
from hotset.harness.engines.postgres import PostgresDatabase
from hotset.harness.engines.postgres_engine import PostgresEngine
from hotset.harness.engines.postgres_tpch import PostgresTpch
from hotset.harness.engines.sqlserver import SqlServerDatabase
from hotset.harness.engines.sqlserver_engine import SqlServerEngine
from hotset.harness.engines.sqlserver_tpch import SqlServerTpch

SqlDatabase = PostgresDatabase | SqlServerDatabase
EngineName = Literal["postgres", "sqlserver"]
_PORT = 5432
_UNKNOWN = re.compile(r'^invalid (?:connection option|URI query parameter):? (".*")')
PASSWORD_VARIABLE = "HOTSET_PASSWORD"  # noqa: S105 - a variable's name


class DsnError(Exception):
    """What was given does not say where the database is; the message names the part."""


def database(engine: EngineName, dsn: str, password_file: Path | None = None) -> SqlDatabase:
    """The database a DSN names; nothing is connected yet.

    :param dsn: for ``postgres`` a libpq URI or keyword string, for ``sqlserver`` a URL.
    :raises DsnError: it cannot be understood, or holds a password.
    """
    if engine == "sqlserver":
        return _sqlserver(dsn, password_file)
    return _postgres(dsn, password_file)


def engine(database: SqlDatabase) -> Engine:
    """Connect, to look at the server itself. Raises CannotConnect."""
    if isinstance(database, SqlServerDatabase):
        return SqlServerEngine(database.session(), database.dbname)
    return PostgresEngine(database.session())


def _sqlserver(dsn: str, password_file: Path | None) -> SqlServerDatabase:
    try:
        named = sqlserver_dsn.parse(dsn)
    except ValueError as error:
        raise DsnError(f"--dsn {error}") from None
    return named if named.trusted else replace(named, password=_password(password_file))


def _postgres(dsn: str, password_file: Path | None) -> PostgresDatabase:
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        unknown = _UNKNOWN.search(str(error))
        if unknown:
            raise DsnError(f"--dsn has a keyword that libpq does not know: {unknown[1]}") from None
        # The library's other messages quote the DSN, secrets included.
        raise DsnError(
            "--dsn is neither a URI such as postgresql://user@host:5432/dbname nor keywords such"
            " as 'host=… user=… dbname=…'"
        ) from None
    if parts.pop("password", None) is not None:
        raise DsnError(
            f"--dsn holds a password, which the process list shows to everyone: set"
            f" {PASSWORD_VARIABLE} or give --password-file"
        )
    if "sslpassword" in parts:
        raise DsnError("--dsn holds sslpassword, which the process list shows to everyone:"
                       " use a key without one")  # fmt: skip
    return PostgresDatabase(
        host=str(parts.pop("host", "")),
        port=_port(parts.pop("port", None), in_service="service" in parts),
        user=str(parts.pop("user", "")),
        password=_password(password_file),
        dbname=str(parts.pop("dbname", "")),
        more=tuple((key, str(value)) for key, value in parts.items()),
    )


def _port(given: object, *, in_service: bool) -> int:
    """0 leaves the choice to libpq, which takes a service's from its file."""
    if given is None:
        given = 0 if in_service else os.environ.get("PGPORT", _PORT)
    text = str(given)
    if not text.isdecimal() or int(text) > 65535:
        raise DsnError(f"--dsn port {text!r}: give one number from 1 to 65535")
    return int(text)


def tpch_database(
    engine: EngineName, dsn: str, password_file: Path | None = None
) -> PostgresTpch | SqlServerTpch:
    """As `database`, for TPC-H."""
    named = database(engine, dsn, password_file)
    return SqlServerTpch(named) if isinstance(named, SqlServerDatabase) else PostgresTpch(named)


def _password(file: Path | None) -> str:
    if file is None:
        return os.environ.get(PASSWORD_VARIABLE, "")
    try:
        return file.read_text(encoding="utf-8").rstrip("\n")
    except OSError as error:
        raise DsnError(f"--password-file {file}: cannot be read: {error.strerror}") from None
