"""Where the time of PostgreSQL's users goes, and what the server reads and writes meanwhile:
samples of pg_stat_activity or counts of pg_wait_sampling, pg_stat_io and pg_stat_wal."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import Self

from hotset.core.sql import Aborted, Session, TimeClass

from ..base import number, sql
from ..readings import Counts, OverConnection, Spent, counts
from .client import extension_schema

_INTERVAL_S = 0.1
_PROFILE_INTERVAL_S = 1.0
_OLDEST, _WITH_FSYNCS, _WITH_LOG_ROWS = 14, 16, 18


def open_readings(connection: Session, user: str) -> PostgresReadings | WaitSamplingReadings:
    """By the extension where it is there.

    :param user: of the connection.
    """
    return WaitSamplingReadings.find(connection) or PostgresReadings(connection, user)


def postgres_class(state: str, wait_type: str | None, wait: str | None) -> TimeClass:
    """The class of what one session of PostgreSQL does (the tables of "Wait Events" in its manual).

    >>> postgres_class("active", None, None), postgres_class("idle", "Client", "ClientRead")
    ('cpu', 'client')
    >>> postgres_class("active", "IO", "DataFileRead"), postgres_class("active", "IO", "WALSync")
    ('data_read', 'log')
    >>> postgres_class("active", "LWLock", "WALWrite"), postgres_class("active", "Lock", "tuple")
    ('log', 'lock')
    """
    event = (wait or "").lower()
    time_class: TimeClass = _TYPES.get(wait_type, "other")
    if state.startswith("idle"):
        time_class = "client"
    elif wait_type in ("IO", "IPC", "LWLock") and _is_log(event):
        time_class = "log"
    elif wait_type == "IO":
        time_class = _io_class(event)
    elif event in ("bufferio", "buffermapping"):
        time_class = "data_read"  # waits for a page that another session reads
    return time_class


_TYPES: dict[str | None, TimeClass] = {
    None: "cpu",
    "Lock": "lock",
    "LWLock": "lock",
    "BufferPin": "lock",
    "Buffer": "lock",
    "Client": "client",
}


def _is_log(event: str) -> bool:
    return event.startswith("wal") or event in ("syncrep", "recoverywalstream")


def _io_class(event: str) -> TimeClass:
    if event.startswith(("datafile", "slru", "buffile", "aio", "copyfile", "relationmap")):
        return "data_read" if "read" in event or "prefetch" in event else "data_write"
    return "other"


class _Readings(OverConnection):
    def __init__(self, connection: Session) -> None:
        super().__init__(connection)
        self._spent: Counter[TimeClass] = Counter()
        # The users' sessions are hotset's, too; this tells them apart for whoever looks.
        connection.script("SET application_name = 'hotset monitoring'")

    @cached_property
    def io(self) -> PostgresIo:
        return PostgresIo(self._connection)


class PostgresReadings(_Readings):
    """Samples of pg_stat_activity: each session counts the time since the last sample."""

    interval_s = _INTERVAL_S

    def __init__(self, connection: Session, user: str) -> None:
        """:param user: of this connection, for the statement that permits more."""
        super().__init__(connection)
        self._user = user
        self._last: float | None = None

    def read(self, now: float) -> Spent:
        rows = self._connection.query(sql("postgres", "sessions"))
        passed = 0.0 if self._last is None else now - self._last
        self._last = now
        for state, wait_type, wait, count in rows:
            if state is None:
                self._note_hidden(number(count))
                continue
            name = postgres_class(str(state), _text(wait_type), _text(wait))
            self._spent[name] += passed * number(count)  # type: ignore[assignment]
        return dict(self._spent)

    def _note_hidden(self, sessions: int) -> None:
        user = self._user or "the connecting role"
        self.missing = (
            f"other roles' sessions ({sessions}) are hidden: GRANT pg_monitor TO {user} shows them"
        )


class WaitSamplingReadings(_Readings):
    """Waits of every session in the server itself, counted by the extension pg_wait_sampling, by
    default a hundred times a second: its differences are the waits, and the rest of the sessions'
    time is CPU."""

    interval_s = _PROFILE_INTERVAL_S

    def __init__(self, connection: Session, text: str) -> None:
        """:param text: the statement that reads it."""
        super().__init__(connection)
        self._text = text
        self._count: dict[tuple[int, str, str], int] | None = None
        self._last = 0.0

    @classmethod
    def find(cls, connection: Session) -> Self | None:
        """Where this database has it, the server has loaded it, and this role may read it."""
        try:
            schema = extension_schema(connection, "pg_wait_sampling")
            if schema is None:
                return None
            text = sql("postgres", "wait_profile").format(place=schema)
            connection.query(text)
        except Aborted:
            return None
        return cls(connection, text)

    def read(self, now: float) -> Spent:
        rows = self._connection.query(self._text)
        before, counted = self._count, dict[tuple[int, str, str], int]()
        sessions: set[int] = set()
        waited: Counter[TimeClass] = Counter()
        for pid, is_used, wait_type, wait, ms in rows:
            if is_used:
                sessions.add(number(pid))
            if wait is None:  # nothing was counted, or it ran on a CPU
                continue
            key = number(pid), str(wait_type), str(wait)
            counted[key] = number(ms)
            if is_used and before is not None:
                gained = max(0, counted[key] - before.get(key, 0)) / 1e3
                waited[postgres_class("active", key[1], key[2])] += gained  # type: ignore[assignment]
        if before is not None:
            self._add(waited, len(sessions) * (now - self._last))
        self._count, self._last = counted, now
        return dict(self._spent)

    def _add(self, waited: Counter[TimeClass], sessions_s: float) -> None:
        # Its clock and ours are not the same: no more was waited than there was time.
        total = sum(waited.values())
        fit = min(1.0, sessions_s / total) if total else 0.0
        for name, seconds in waited.items():
            self._spent[name] += seconds * fit  # type: ignore[assignment]
        self._spent["cpu"] += max(0.0, sessions_s - total)  # type: ignore[assignment]


class PostgresIo:
    """Counters of the whole server, which every role may see."""

    def __init__(self, connection: Session) -> None:
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
            return counts(self._connection.query(sql("postgres", f"server_io_{from_}")))
        except Aborted as error:
            self.missing = f"what the server reads and writes is not seen: {error}"
            return None


def _text(value: object) -> str | None:
    return None if value is None else str(value)
