"""Counters of the database server itself during a benchmark: pages read and written, syncs, bytes
of the log. PostgreSQL: pg_stat_io and pg_stat_wal; SQL Server: sys.dm_io_virtual_file_stats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from hotset.core.sql import Aborted, Row
from hotset.databases.base import Connection, number, sql
from hotset.databases.sqlserver.refusals import explain_unseen
from hotset.reports.model.windows import ServerIo

Counts: TypeAlias = Mapping[str, int | None]
"""Since the server started, by the fields of `ServerIo`; None: not counted here."""
_COUNTED = (
    "reads",
    "read_bytes",
    "read_ms",
    "writes",
    "write_bytes",
    "write_ms",
    "fsyncs",
    "log_bytes",
    "log_writes",
    "log_syncs",
)
_OLDEST, _WITH_FSYNCS, _WITH_LOG_ROWS = 14, 16, 18


class PostgresIo:
    """Counters of the whole server, which every role may see."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        _, version = connection.query(sql("postgres", "version"))[0]
        self._major = number(version) // 10_000
        self.missing = ""
        if self._major < _OLDEST:
            self.missing = (
                f"PostgreSQL {self._major} does not count what it writes to its log: {_OLDEST} does"
            )
        elif self._major < _WITH_FSYNCS:
            self.missing = (
                f"PostgreSQL {self._major} does not count syncs of data files: {_WITH_FSYNCS} does"
            )

    def read(self) -> Counts | None:
        """None where nothing is counted."""
        if self._major < _OLDEST:
            return None
        from_ = max(
            version for version in (_OLDEST, _WITH_FSYNCS, _WITH_LOG_ROWS) if version <= self._major
        )
        try:
            return _counts(self._connection.query(sql("postgres", f"server_io_{from_}")))
        except Aborted as error:
            self.missing = f"what the server reads and writes is not seen: {error}"
            return None


class SqlServerIo:
    """Counters of the database's files."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.missing = ""

    def read(self) -> Counts | None:
        """None where this login may not see them."""
        if self.missing:
            return None
        try:
            return _counts(self._connection.query(sql("sqlserver", "server_io")))
        except Aborted as error:
            self.missing = explain_unseen("what the server reads and writes is", "it", error)
            return None


def _counts(rows: Sequence[Row]) -> Counts:
    counts = {
        str(name): None if value is None else round(float(str(value))) for name, value in rows
    }
    return {name: counts.get(name) for name in _COUNTED}


def between(first: Counts, last: Counts, seconds: float) -> ServerIo | None:
    """Return the counter deltas; None where the server reset its counters in between."""
    gained: dict[str, int | None] = {}
    for name in _COUNTED:
        before, now = first[name], last[name]
        gained[name] = None if before is None or now is None else now - before
    if seconds <= 0 or any(value is not None and value < 0 for value in gained.values()):
        return None
    return ServerIo(**gained, seconds=seconds)
