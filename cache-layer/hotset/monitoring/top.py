"""`hotset top`: readings of all that works on a machine's accelerated disks, taken again and again.

What is shown is a :class:`Picture`; a :class:`Watch` makes one of the machine's counters, the
database server's and the records of what hotset itself runs.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from hotset.core.machines.base import Machine
from hotset.core.units import Bytes
from hotset.databases.base import Counter, Engine, FileIo, Unavailable, Wait
from hotset.databases.report import Reading
from hotset.tier import kinds
from hotset.tier.base import Counters, TierKind

from . import tier_metrics, watch
from .watch import Line

T = TypeVar("T")
MINUTE_S = 60.0
_RECORDS_EVERY_S = 3.0
_COMMITS = ("commits", "Transactions/sec")
_WAITS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class DiskReading:
    """An accelerated disk at one time; without counters where its tier gives none.

    :ivar identity: lasting identity; empty: it has none.
    :ivar cache: how large its cache was asked to be.
    """

    name: str
    kind: TierKind
    about: str
    block: Bytes
    counters: Counters | None
    identity: str = ""
    policy: str = ""
    mode: str = ""
    cache: Bytes | None = None


@dataclass(frozen=True, slots=True)
class DiskView:
    """A disk, what its last interval held, and the hit ratios of a minute's intervals (None: no
    request). ``line`` is None with the first reading."""

    seen: DiskReading
    line: Line | None
    ratios: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """Load of a database server in an interval: rates a second, times in ms. None: not counted."""

    commits: float | None
    reads: float | None
    read_ms: float | None
    writes: float | None
    write_ms: float | None
    waits: tuple[tuple[str, float], ...]
    """Name and ms waited a second, the longest first."""
    missing: tuple[str, ...]
    """Reasons why the server does not show parts."""


@dataclass(frozen=True, slots=True)
class Picture:
    """All that is known at one time; ``rates`` are a minute's commits a second."""

    at: float
    disks: tuple[DiskView, ...]
    load: Load | None
    rates: tuple[float | None, ...]
    running: tuple[str, ...]


def inspect(machine: Machine) -> list[DiskReading]:
    """The accelerated disks of a machine."""
    return [
        DiskReading(
            measurement.disk.name,
            measurement.disk.kind,
            f"{measurement.disk.spec.mode}, {measurement.disk.database}",
            measurement.disk.spec.block,
            measurement.counters,
            measurement.disk.identity,
            measurement.disk.spec.policy,
            measurement.disk.spec.mode,
            measurement.disk.spec.cache,
        )
        for measurement in tier_metrics.measure(machine)
    ]


def load_of(reading: Reading, seconds: float) -> Load:
    """Convert the counts of an interval to rates."""
    counters: list[Counter] = _without_unknown(reading.counters)
    files: list[FileIo] = _without_unknown(reading.files)
    waits: list[Wait] = _without_unknown(reading.waits)
    commits = [counter.value / seconds for counter in counters if counter.name in _COMMITS]
    parts = (reading.counters, reading.files, reading.waits)
    longest = sorted(waits, key=lambda wait: -wait.wait_ms)[:_WAITS_SHOWN]
    return Load(
        commits[0] if commits else None,
        _sum([file.reads for file in files], seconds),
        _mean_ms([(file.reads, file.read_ms) for file in files]),
        _sum([file.writes for file in files], seconds),
        _mean_ms([(file.writes, file.write_ms) for file in files]),
        tuple((wait.name, wait.wait_ms / seconds) for wait in longest if wait.wait_ms > 0),
        tuple(part.unavailable for part in parts if isinstance(part, Unavailable)),
    )


def _without_unknown(part: list[T] | Unavailable) -> list[T]:
    return [] if isinstance(part, Unavailable) else part


def _sum(counts: Sequence[int | None], seconds: float) -> float | None:
    known = [count for count in counts if count is not None]
    return sum(known) / seconds if known else None


def _mean_ms(pairs: Sequence[tuple[int | None, float | None]]) -> float | None:
    known = [(count, ms) for count, ms in pairs if count and ms is not None]
    requests = sum(count for count, _ in known)
    return sum(ms for _, ms in known) / requests if requests else None


class Watch:
    """Takes pictures; each shows what happened since the one before."""

    def __init__(
        self,
        inspect: Callable[[], list[DiskReading]],
        server: Engine | None,
        interval_s: float,
        running: Callable[[], tuple[str, ...]],
    ) -> None:
        """:param inspect: reads the disks.
        :param running: a line for each thing that hotset does now.
        """
        self._inspect = inspect
        self._server = server
        self._list_running = running
        self._kept = max(2, round(MINUTE_S / interval_s))
        self._before: dict[str, tuple[float, Counters]] = {}
        self._ratios: dict[str, deque[float | None]] = {}
        self._reading: tuple[float, Reading] | None = None
        self._rates: deque[float | None] = deque(maxlen=self._kept)
        self._running: tuple[float, tuple[str, ...]] = (0.0, ())

    def take(self) -> Picture:
        disks = tuple(self._disk(seen) for seen in self._inspect())
        load = self._load()
        now = time.time()
        if now - self._running[0] >= _RECORDS_EVERY_S:
            self._running = (now, self._list_running())
        return Picture(now, disks, load, tuple(self._rates), self._running[1])

    def _disk(self, seen: DiskReading) -> DiskView:
        ratios = self._ratios.setdefault(seen.name, deque(maxlen=self._kept))
        before = self._before.pop(seen.name, None)
        if seen.counters is None:
            return DiskView(seen, None, tuple(ratios))
        now = time.time()
        self._before[seen.name] = now, seen.counters
        if before is None:
            return DiskView(seen, None, tuple(ratios))
        at, old = before
        counting = kinds.kind_of_name(seen.kind).counting
        line = watch.line(old, seen.counters, now, now - at, counting, seen.block)
        ratios.append(line.hit_ratio)
        return DiskView(seen, line, tuple(ratios))

    def _load(self) -> Load | None:
        if self._server is None:
            return None
        before, reading, now = self._reading, Reading.take(self._server), time.time()
        self._reading = now, reading
        if before is None:
            return None
        at, old = before
        load = load_of(reading.since(old), max(now - at, 1e-9))
        self._rates.append(load.commits)
        return load


class Feed:
    """Takes pictures in a thread for the length of a ``with`` block, so that keys are heard while a
    slow machine answers."""

    def __init__(self, watch: Watch, interval_s: float) -> None:
        self._watch = watch
        self._interval_s = interval_s
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="top")
        self.picture: Picture | None = None
        self.error: Exception | None = None
        """Why there will be no more."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(timeout=5)

    def _run(self) -> None:
        begun, number = time.monotonic(), 0
        try:
            while not self._end.is_set():
                self.picture = self._watch.take()
                # A reading that took longer than an interval is not made up for.
                number = max(number + 1, int((time.monotonic() - begun) / self._interval_s))
                self._end.wait(max(0.0, begun + number * self._interval_s - time.monotonic()))
        except Exception as error:
            self.error = error
