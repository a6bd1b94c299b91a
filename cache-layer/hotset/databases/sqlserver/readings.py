"""Where the time of SQL Server's users goes, and what the server reads and writes meanwhile:
sys.dm_os_wait_stats and sys.dm_io_virtual_file_stats."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import get_args

from hotset.core.sql import Aborted, Session, TimeClass

from ..base import number, sql
from ..readings import Counts, OverConnection, Spent, counts
from .refusals import explain_unseen

_INTERVAL_S = 1.0
_CLASSES: tuple[tuple[tuple[str, ...], TimeClass], ...] = (
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
    classes = (name for starts, name in _CLASSES if wait_type.startswith(starts))
    return next(classes, "other")


class SqlServerReadings(OverConnection):
    """sys.dm_os_wait_stats since the first reading: resource waits by class, waits for a scheduler
    and the sessions' CPU time as CPU; what is left of the sessions' time is the client's."""

    interval_s = _INTERVAL_S

    def __init__(self, connection: Session) -> None:
        super().__init__(connection)
        self._first: Counter[TimeClass] | None = None
        self._last = 0.0
        self._sessions_s = 0.0

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
        spent = {name: max(0.0, counted[name] - self._first[name]) for name in get_args(TimeClass)}
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


class SqlServerIo:
    """Counters of the database's files."""

    def __init__(self, connection: Session) -> None:
        self._connection = connection
        self.missing = ""

    def read(self) -> Counts | None:
        """None where this login may not see them."""
        if self.missing:
            return None
        try:
            return counts(self._connection.query(sql("sqlserver", "server_io")))
        except Aborted as error:
            self.missing = explain_unseen("what the server reads and writes is", "it", error)
            return None
