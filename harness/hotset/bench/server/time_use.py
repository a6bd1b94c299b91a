"""Where the time of a database's users goes: CPU, data, log, locks, the client.

A connection of its own reads what the product tells (`databases/readings.py`) while a benchmark
runs: session-seconds per class; a window's shares are differences of these.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from typing import Self, TypeVar, get_args

import numpy as np

from hotset.core.sql import DatabaseError, TimeClass
from hotset.databases.base import sql
from hotset.databases.product import SqlDatabase
from hotset.databases.readings import COUNTED, Counts, Readings, Spent
from hotset.reports.model.windows import ServerIo, TimeUse

CLASSES: tuple[TimeClass, ...] = get_args(TimeClass)
_IO_INTERVAL_S = 1.0
_END_S = 5.0


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
        return between(first.counts, last.counts, last.at - first.at)

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
    return TimeSampler(database.readings(), lambda: read_settings(database))


def between(first: Counts, last: Counts, seconds: float) -> ServerIo | None:
    """Return the counter deltas; None where the server reset its counters in between."""
    gained: dict[str, int | None] = {}
    for name in COUNTED:
        before, now = first[name], last[name]
        gained[name] = None if before is None or now is None else now - before
    if seconds <= 0 or any(value is not None and value < 0 for value in gained.values()):
        return None
    return ServerIo(**gained, seconds=seconds)


def read_settings(database: SqlDatabase) -> dict[str, str] | None:
    """By name, as a session like the users' has them; None: the server does not tell."""
    try:
        with closing(database.session()) as session:
            rows = session.query(sql(database.engine, "deciding_settings"))
    except DatabaseError:
        return None
    return {str(name): str(value) for name, value in rows if value is not None} or None
