"""PostgreSQL for TPC-H: few statements, each of them long.

Session settings, and why. What the server's owner has set for disks and parallel workers stays:
that is part of what is measured.

- `work_mem` 64 MB, doubled for hashes: PostgreSQL's 4 MB lets nearly every join and sort of the 22
  queries spill to disk, and a run would measure temporary files. With two parallel workers and the
  four or so such steps of a query it stays near 1 GB a stream.
- `maintenance_work_mem` 256 MB: indexes and the check of foreign keys at load time.
- `jit` off: compiling takes seconds in every query, more than it saves below scale 10 or so.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psycopg
from psycopg import sql

from hotset.core.sql import DatabaseError, Refused, Row, ServerGone, TimedOut

from . import limits
from .client import Address, PostgresSession, is_gone

_SETTINGS = "SET work_mem = '64MB'; SET maintenance_work_mem = '256MB'; SET jit = off"
_NOTICE_LOST_CLIENT = "SET client_connection_check_interval = 1000"
"""A statement of minutes ends within a second or so of its client, even of a killed one."""
_CANCEL_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class PostgresTpch:
    """A PostgreSQL database that holds, or shall hold, TPC-H."""

    where: Address

    @property
    def engine(self) -> str:
        """The folder of its SQL files."""
        return self.where.engine

    def session(self) -> PostgresTpchSession:
        """Open a connection. Raises CannotConnect with the server's reason, never the password."""
        try:
            connection = self.where.connect(_SETTINGS)
            limit = limits.read_limit(connection)
        except psycopg.Error as error:
            raise self.where.unreached(error) from None
        with suppress(psycopg.Error):  # servers on some platforms cannot
            connection.execute(_NOTICE_LOST_CLIENT)
        return PostgresTpchSession(connection, limit, self.where.looks)


class PostgresTpchSession(PostgresSession):
    """A session of hours. Ctrl-C in a call cancels the statement: psycopg does that."""

    _timeout_s: float | None = None

    def script(self, sql: str) -> None:
        """Run several statements as one transaction, or one that must stand alone (VACUUM)."""
        self._limit(None)
        super().script(sql)

    def query(self, sql: str, timeout_s: float | None = None) -> list[Row]:
        """All rows of one statement; the server itself ends it after `timeout_s`."""
        started = time.monotonic()
        with self._errors():
            self._limit(timeout_s)
            try:
                return self._connection.execute(sql.encode()).fetchall()
            except psycopg.errors.QueryCanceled as error:
                # The same SQLSTATE says "cancelled by a user"; its words depend on the locale.
                if timeout_s is not None and time.monotonic() - started >= timeout_s:
                    raise TimedOut(f"cancelled after {timeout_s:g} s") from error
                raise

    def load(self, table: str, columns: Sequence[str], chunks: Iterable[bytes]) -> int:
        """COPY text as it is."""
        statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT text, DELIMITER '|')").format(
            sql.Identifier(*table.split(".")), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        with self._errors(), self._connection.cursor() as cursor:
            self._limit(None)
            with cursor.copy(statement) as copy:
                for chunk in chunks:
                    copy.write(chunk)
            return cursor.rowcount

    def cancel(self) -> None:
        """Ask the server to cancel the statement under way; any thread may."""
        with suppress(psycopg.Error):
            self._connection.cancel_safe(timeout=_CANCEL_TIMEOUT_S)

    def _limit(self, timeout_s: float | None) -> None:
        """Set the server's limit for statements, unless it is set already."""
        if timeout_s != self._timeout_s:
            limit_ms = 0 if timeout_s is None else max(1, round(timeout_s * 1000))
            self._connection.execute(f"SET statement_timeout = {limit_ms}".encode())
            self._timeout_s = timeout_s
            self.limit = limits.NONE

    def _meaning(self, error: psycopg.Error, message: str) -> DatabaseError:
        kind = ServerGone if is_gone(error.sqlstate, broken=self._connection.broken) else Refused
        return kind(message)
