"""From what a user types (`--engine`, `--dsn`) to a database that workloads can open.

A password is never taken from the command line, where every user of the computer can read it:
it comes from the environment (HOTSET_PASSWORD), from a file, or from libpq's own places.
"""

from __future__ import annotations

import os
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
    except psycopg.ProgrammingError:
        # The library's message quotes the DSN, secrets included.
        raise DsnError(
            "--dsn is neither a URI such as postgresql://user@host:5432/dbname nor keywords such"
            " as 'host=… user=… dbname=…'"
        ) from None
    if parts.pop("password", None) is not None:
        raise DsnError(
            f"--dsn holds a password, which the process list shows to everyone: set"
            f" {PASSWORD_VARIABLE} or give --password-file"
        )
    return PostgresDatabase(
        host=str(parts.pop("host", "")),
        port=int(str(parts.pop("port", 5432))),
        user=str(parts.pop("user", "")),
        password=_password(password_file),
        dbname=str(parts.pop("dbname", "")),
    )


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
