"""Where the time of a database's users goes: CPU, data, log, locks, the client.

A connection of its own samples the sessions (PostgreSQL) or reads the server's wait statistics
(SQL Server) while a benchmark runs. Either comes to session-seconds per class; a window's shares
are differences of these.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, Self, TypeVar, get_args

import numpy as np

from hotset.core.sql import Aborted, DatabaseError
from hotset.databases.base import Connection, extension_schema, number, sql
from hotset.databases.connect import SqlDatabase
from hotset.databases.sqlserver.client import SqlServerDatabase
from hotset.databases.sqlserver.refusals import explain_unseen
from hotset.reports.model.windows import ServerIo, TimeClass, TimeUse

from . import io as server_io
from . import settings as server_settings
from .io import Counts, PostgresIo, SqlServerIo

CLASSES: tuple[TimeClass, ...] = get_args(TimeClass)
_POSTGRES_INTERVAL_S = 0.1
_SQLSERVER_INTERVAL_S = 1.0
_PROFILE_INTERVAL_S = 1.0
_IO_INTERVAL_S = 1.0
_END_S = 5.0
Spent = Mapping[TimeClass, float]
"""Session-seconds per class since the first reading."""


class Readings(Protocol):
    """Readings of how an engine's users spend their time."""

    interval_s: float
    missing: str

    def read(self, now: float) -> Spent:
        """Session-seconds so far; ``now`` is monotonic. Raises `DatabaseError`."""

    @property
    def io(self) -> PostgresIo | SqlServerIo:
        """Reader of the server's own I/O counters, over the same connection."""

    def close(self) -> None:
        """Close the connection."""


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


class PostgresReadings:
    """Samples of pg_stat_activity: each session counts the time since the last sample."""

    interval_s = _POSTGRES_INTERVAL_S

    def __init__(self, connection: Connection, user: str) -> None:
        """:param user: of this connection, for the statement that permits more."""
        self._connection = connection
        self._user = user
        self._spent: Counter[TimeClass] = Counter()
        self._last: float | None = None
        self.missing = ""
        # The users' sessions are hotset's, too; this tells them apart for whoever looks.
        connection.script("SET application_name = 'hotset monitoring'")

    @cached_property
    def io(self) -> PostgresIo:
        return PostgresIo(self._connection)

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

    def close(self) -> None:
        self._connection.close()


class WaitSamplingReadings:
    """Waits of every session in the server itself, counted by the extension pg_wait_sampling, by
    default a hundred times a second: its differences are the waits, and the rest of the sessions'
    time is CPU."""

    interval_s = _PROFILE_INTERVAL_S

    def __init__(self, connection: Connection, text: str) -> None:
        """:param text: the statement that reads it."""
        self._connection = connection
        self._text = text
        self._spent: Counter[TimeClass] = Counter()
        self._count: dict[tuple[int, str, str], int] | None = None
        self._last = 0.0
        self.missing = ""
        connection.script("SET application_name = 'hotset monitoring'")

    @classmethod
    def find(cls, connection: Connection) -> Self | None:
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

    @cached_property
    def io(self) -> PostgresIo:
        return PostgresIo(self._connection)

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

    def close(self) -> None:
        self._connection.close()


_SQLSERVER_CLASSES: tuple[tuple[tuple[str, ...], TimeClass], ...] = (
    (("PAGEIOLATCH_", "IO_COMPLETION", "ASYNC_IO_COMPLETION", "IO_QUEUE_LIMIT"), "data_read"),
    (("WRITE_COMPLETION",), "data_write"),
    (("WRITELOG", "LOGBUFFER", "LOGMGR", "HADR_SYNC_COMMIT"), "log"),
    (("LCK_", "PAGELATCH_", "LATCH_"), "lock"),
    (("ASYNC_NETWORK_IO", "NET_WAITFOR_PACKET", "EXTERNAL_SCRIPT_NETWORK"), "client"),
    (("SOS_SCHEDULER_YIELD", "THREADPOOL"), "cpu"),
)


def sqlserver_class(wait_type: str) -> TimeClass:
    """The class of a wait type of SQL Server ("sys.dm_os_wait_stats" in its manual).

    >>> [sqlserver_class(one) for one in ("PAGEIOLATCH_SH", "WRITELOG", "LCK_M_X", "CXPACKET")]
    ['data_read', 'log', 'lock', 'other']
    """
    classes = (name for starts, name in _SQLSERVER_CLASSES if wait_type.startswith(starts))
    return next(classes, "other")


class SqlServerReadings:
    """sys.dm_os_wait_stats since the first reading: resource waits by class, waits for a scheduler
    and the sessions' CPU time as CPU; what is left of the sessions' time is the client's."""

    interval_s = _SQLSERVER_INTERVAL_S

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._first: Counter[TimeClass] | None = None
        self._last = 0.0
        self._sessions_s = 0.0
        self.missing = ""

    @cached_property
    def io(self) -> SqlServerIo:
        return SqlServerIo(self._connection)

    def read(self, now: float) -> Spent:
        counted = self._count()
        sessions = self._sessions(counted)
        if self._first is None:
            self._first, self._last = counted, now
        self._sessions_s += sessions * (now - self._last)
        self._last = now
        spent = {name: max(0.0, counted[name] - self._first[name]) for name in CLASSES}
        spent["client"] += max(0.0, self._sessions_s - sum(spent.values()))
        return spent

    def _count(self) -> Counter[TimeClass]:
        """Seconds of waits since the server started."""
        counted: Counter[TimeClass] = Counter()
        for wait_type, resource_ms, signal_ms in self._query("wait_classes"):
            name = sqlserver_class(str(wait_type))
            counted[name] += number(resource_ms) / 1e3  # type: ignore[assignment]
            counted["cpu"] += number(signal_ms) / 1e3  # type: ignore[assignment]
        return counted

    def _sessions(self, counted: Counter[TimeClass]) -> int:
        """How many there are; their CPU time is added."""
        ((sessions, cpu_ms),) = self._query("session_cpu")
        counted["cpu"] += number(cpu_ms or 0) / 1e3  # type: ignore[assignment]
        return number(sessions)

    def _query(self, name: str) -> list[tuple[object, ...]]:
        try:
            return list(self._connection.query(sql("sqlserver", name)))
        except Aborted as error:
            self.missing = explain_unseen("waits are", "them", error)
            raise

    def close(self) -> None:
        self._connection.close()


def readings(database: SqlDatabase) -> Readings:
    """Over a connection of its own. Raises CannotConnect."""
    if isinstance(database, SqlServerDatabase):
        return SqlServerReadings(database.session())
    connection = database.session()
    counted = WaitSamplingReadings.find(connection)
    return counted or PostgresReadings(connection, database.user)


@dataclass(frozen=True, slots=True)
class Reading:
    """``at`` is ``time.time()``."""

    at: float
    spent: Spent


@dataclass(frozen=True, slots=True)
class IoReading:
    """The same of what the server counts."""

    at: float
    counts: Counts


AnyReading = TypeVar("AnyReading", Reading, IoReading)


class TimeSampler(AbstractContextManager["TimeSampler"]):
    """Reads where users' time goes for the length of a ``with`` block, in a thread.

    What fails is remembered in `missing` and leaves the benchmark alone.
    """

    def __init__(
        self, readings: Readings, settings: Callable[[], dict[str, str] | None] = lambda: None
    ) -> None:
        """:param settings: reads those that decide the figures."""
        self._readings = readings
        self._settings = settings
        self.settings: dict[str, str] | None = None
        """As the block began; None: the server does not tell."""
        self.settings_after: dict[str, str] | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._work, name="time-use", daemon=True)
        self._failed = ""
        # As the window's own times: a clock that is set meanwhile changes neither.
        self._epoch = time.time() - time.monotonic()
        self.readings: list[Reading] = []
        self.io_readings: list[IoReading] = []
        self.io_missing = ""
        """I/O counters that the server does not keep or show, and what enables them."""

    @property
    def missing(self) -> str:
        """Data that could not be read, and what permits it; empty if all was read."""
        return self._readings.missing or self._failed

    def __enter__(self) -> Self:
        self.settings = self._settings()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(_END_S)
        self.settings_after = self._settings()

    def _work(self) -> None:
        due = io_due = time.monotonic()
        try:
            while not self._over.is_set():
                spent = self._readings.read(time.monotonic())
                self.readings.append(Reading(self._now(), spent))
                if time.monotonic() >= io_due:
                    self._read_io()
                    io_due += _IO_INTERVAL_S
                due = max(due + self._readings.interval_s, time.monotonic())
                self._over.wait(due - time.monotonic())
        except DatabaseError as error:
            self._failed = f"sampling ended: {error}"
        finally:
            self._readings.close()

    def _read_io(self) -> None:
        io = self._readings.io
        counts, self.io_missing = io.read(), io.missing
        if counts is not None:
            self.io_readings.append(IoReading(self._now(), counts))

    def _now(self) -> float:
        return self._epoch + time.monotonic()

    def io_window(self, start: float, end: float) -> ServerIo | None:
        """Return the server's counter deltas from ``start`` to ``end``, by the nearest readings."""
        readings = [self._nearest(at, self.io_readings, _IO_INTERVAL_S) for at in (start, end)]
        first, last = readings
        if first is None or last is None:
            return None
        return server_io.between(first.counts, last.counts, last.at - first.at)

    def reads_each_second(self, start: float, seconds: int) -> list[float] | None:
        """Pages that the server read in each second, by the line through its readings; None where
        they do not reach from end to end, or it does not count them."""
        known = [(reading.at, reading.counts["reads"]) for reading in self.io_readings]
        counted = [(at, reads) for at, reads in known if reads is not None]
        ends = (start + _IO_INTERVAL_S, start + seconds - _IO_INTERVAL_S)
        if not counted or counted[0][0] > ends[0] or counted[-1][0] < ends[1]:
            return None
        times, reads = zip(*counted, strict=True)
        at = np.interp(start + np.arange(seconds + 1), times, reads)
        return [float(step) for step in np.diff(at)]

    def window(self, start: float, end: float) -> TimeUse | None:
        """Shares from ``start`` to ``end`` (``time.time()``), by the readings nearest to them;
        None where there are none."""
        interval_s = self._readings.interval_s
        first, last = (self._nearest(at, self.readings, interval_s) for at in (start, end))
        if first is None or last is None or last.at <= first.at:
            return None
        gained = {
            name: max(0.0, last.spent.get(name, 0.0) - first.spent.get(name, 0.0))
            for name in CLASSES
        }
        total = sum(gained.values())
        if total <= 0:
            return None
        shares = {name: round(value / total, 4) for name, value in gained.items()}
        return TimeUse(**shares, sessions=round(total / (last.at - first.at), 2))

    def each_second(self, start: float, seconds: int) -> list[TimeUse | None]:
        """The same second by second."""
        return [self.window(start + second, start + second + 1) for second in range(seconds)]

    @staticmethod
    def _nearest(at: float, readings: Sequence[AnyReading], interval_s: float) -> AnyReading | None:
        index = bisect_left(readings, at, key=lambda reading: reading.at)
        around = readings[max(0, index - 1) : index + 1]
        close = [reading for reading in around if abs(reading.at - at) <= 2 * interval_s + 0.5]
        return min(close, key=lambda reading: abs(reading.at - at), default=None)


def sample(database: SqlDatabase) -> TimeSampler:
    """A sampler over connections of its own. Raises CannotConnect."""
    return TimeSampler(readings(database), lambda: server_settings.read(database))


def _text(value: object) -> str | None:
    return None if value is None else str(value)
