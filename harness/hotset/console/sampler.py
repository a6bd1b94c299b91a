"""One reader of the tiers' counters for all who watch: it reads while somebody does.

What it found is encoded once and sent to everyone: a further watcher costs a write to a socket.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.core.errors import code_of
from hotset.core.machines.base import Machine
from hotset.core.units import SECTOR_BYTES
from hotset.disk import cache_device as cards
from hotset.hitratio.heat import Tally
from hotset.jobs import store as jobs
from hotset.jobs.store import Job
from hotset.monitoring import top, watch
from hotset.monitoring.top import DiskReading
from hotset.monitoring.watch import Line
from hotset.operations import connect
from hotset.tier import kinds
from hotset.tier.base import Counters, hits_over

INTERVAL_S = 2.0
WINDOW_S = 60.0
"""The large figure is of so long: steadier than an interval's, and still of now."""
HISTORY = 450
"""Samples that a new watcher's charts begin with: a quarter of an hour."""
Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class DiskSample:
    """A disk at a moment; ``line`` is its last interval.

    ``read_bytes`` and ``written_bytes`` are a second, through the device. ``minute_ratio`` is of
    the last minute, ``made_ratio`` since the tier's counters began. None: not asked, not counted,
    or not known yet; the tier of a disk that is not ``up`` gives no counters at all.
    """

    name: str
    kind: str
    about: str
    up: bool
    line: Line | None = None
    read_bytes: float | None = None
    written_bytes: float | None = None
    minute_ratio: float | None = None
    made_ratio: float | None = None
    dirty_bytes: int | None = None
    used_bytes: int | None = None
    cache_bytes: int | None = None

    @property
    def counter_lag(self) -> str:
        """How its counters come late, as a half sentence; empty: they do not."""
        return kinds.of(self.kind).counter_lag


@dataclass(frozen=True, slots=True)
class Sample:
    """All disks at a moment (seconds since 1970), or why they cannot be read; and the jobs that are
    at work on this computer."""

    at: float
    jobs: tuple[Job, ...]
    disks: tuple[DiskSample, ...] = ()
    error: str = ""

    @property
    def tpm(self) -> int | None:
        """Of all TPC-C runs that are at work; None: there is none."""
        found = [job.tick["tpm"] for job in self.jobs if job.tick is not None]
        return sum(found) if found else None


@dataclass(frozen=True, slots=True)
class _Reading:
    """``moved``: bytes read and written through the device since it was made."""

    at: float
    counters: Counters
    moved: tuple[int, int] | None


class Reader:
    """Reads a machine's tiers, over one connection that stays open between two readings."""

    def __init__(self, machine: str, clock: Clock = time.time) -> None:
        self._name = machine
        self._clock = clock
        self._open = ExitStack()
        self._machine: Machine | None = None
        self._kept: dict[str, deque[_Reading]] = {}

    def read(self) -> Sample:
        """One sample; a failure that hotset foresees is part of it. Takes as long as the machine
        takes to answer."""
        running = tuple(jobs.running())
        try:
            if self._machine is None:
                self._machine = self._open.enter_context(connect.open_machine(self._name))
            here = self._name == connect.LOCAL
            disks = tuple(self._sample(one) for one in top.inspect(self._machine, here))
        except Exception as error:
            self.close()
            foreseen = code_of(error) is not None
            said = str(error) if foreseen else f"unexpected {type(error).__name__}: {error}"
            return Sample(self._clock(), running, error=said)
        return Sample(self._clock(), running, disks)

    def close(self) -> None:
        """Give the connection up; the next reading begins anew."""
        self._open.close()
        self._machine = None
        self._kept.clear()

    def _sample(self, seen: DiskReading) -> DiskSample:
        kept = self._kept.setdefault(seen.name, deque())
        if seen.counters is None or self._machine is None:
            kept.clear()
            return DiskSample(seen.name, seen.kind, seen.about, up=False)
        now = _Reading(self._clock(), seen.counters, _moved(self._machine, seen))
        while kept and now.at - kept[0].at > WINDOW_S:
            kept.popleft()
        line: Line | None = None
        moved: tuple[float | None, float | None] = (None, None)
        bits = kinds.of(seen.kind).counter_bits
        if kept:
            before, seconds = kept[-1], now.at - kept[-1].at
            line = watch.line(before.counters, now.counters, now.at, seconds, bits, seen.block)
            moved = _rates(before.moved, now.moved, line.seconds)
        kept.append(now)
        minute = Tally.from_hits(hits_over([one.counters for one in kept], bits))
        levels = (
            int(size.bytes(seen.block))
            for size in (now.counters.dirty, now.counters.used, now.counters.total)
        )
        return DiskSample(
            seen.name,
            seen.kind,
            seen.about,
            True,
            line,
            *moved,
            minute.ratio,
            now.counters.hits.ratio,
            *levels,
        )


class Sampler:
    """Reads while somebody watches.

    :param encode: a sample and those before it as what is sent; called once for all watchers.
    """

    def __init__(
        self,
        read: Callable[[], Sample],
        close: Callable[[], None],
        encode: Callable[[Sample], bytes],
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._read = read
        self._close = close
        self._encode = encode
        self._interval_s = interval_s
        self._watchers = 0
        self._task: asyncio.Task[None] | None = None
        self._next: asyncio.Future[bytes] | None = None
        self.history: deque[Sample] = deque(maxlen=HISTORY)

    @property
    def working(self) -> bool:
        return self._task is not None and not self._task.done()

    async def frames(self, patience_s: float) -> AsyncIterator[bytes | None]:
        """What was read, as it is read; None where nothing came for so long. One who is slow
        misses some."""
        self._watchers += 1
        try:
            while True:
                if not self.working or self._next is None:
                    self._next = asyncio.get_running_loop().create_future()
                    self._task = asyncio.create_task(self._work())
                try:
                    yield await asyncio.wait_for(asyncio.shield(self._next), patience_s)
                except TimeoutError:
                    yield None
        finally:
            self._watchers -= 1

    async def _work(self) -> None:
        try:
            while self._watchers:
                begun = time.monotonic()
                sample = await asyncio.to_thread(self._read)
                self.history.append(sample)
                frame, told = self._encode(sample), self._next
                self._next = asyncio.get_running_loop().create_future()
                if told is not None:
                    told.set_result(frame)
                await asyncio.sleep(max(0.1, self._interval_s - (time.monotonic() - begun)))
        finally:
            self._close()


def _moved(machine: Machine, seen: DiskReading) -> tuple[int, int] | None:
    """Bytes read and written (Documentation/block/stat.rst); None where there is no device."""
    device = cards.device_of(seen.kind, seen.name)
    node = machine.run(["readlink", "-f", str(device)], check=False).stdout.strip()
    stat = f"/sys/class/block/{PurePosixPath(node).name}/stat"
    words = machine.run(["cat", stat], check=False).stdout.split()
    return (int(words[2]) * SECTOR_BYTES, int(words[6]) * SECTOR_BYTES) if words else None


def _rates(
    before: tuple[int, int] | None, now: tuple[int, int] | None, seconds: float
) -> tuple[float | None, float | None]:
    """None where a device was made anew in between."""
    if before is None or now is None or now < before:
        return None, None
    return (now[0] - before[0]) / seconds, (now[1] - before[1]) / seconds
