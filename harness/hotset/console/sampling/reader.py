"""Reads a machine's tiers: as they are shown live, and as they are recorded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.block import io_counters
from hotset.block.io_counters import IoCounters
from hotset.core import clock
from hotset.core.clock import Moment
from hotset.core.errors import code_of
from hotset.core.machines import names as connect
from hotset.core.machines.base import Machine
from hotset.disk import flash_devices
from hotset.hitratio.heat import Tally
from hotset.monitoring import watch
from hotset.monitoring.history.observation import Facts, Observation, SeenDisk
from hotset.monitoring.top import DiskReading
from hotset.monitoring.watch import Line
from hotset.operations import activity
from hotset.operations.jobs import store as jobs
from hotset.operations.jobs.store import Job
from hotset.tier import kinds
from hotset.tier.base import Counters, hits_over

WINDOW_S = 60.0
"""The large figure is of so long: steadier than an interval's, and still of now."""


@dataclass(frozen=True, slots=True)
class DiskSample:
    """A disk at a moment; ``line`` is its last interval, ``seen`` what is recorded.

    ``read_bytes`` and ``written_bytes`` are a second, through the device. ``minute_ratio`` is of
    the last minute, ``made_ratio`` since the tier's counters began. None: not asked, not counted,
    or not known yet; the tier of a disk that is not ``up`` gives no counters at all.
    """

    name: str
    kind: str
    about: str
    up: bool
    seen: SeenDisk | None = None
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
        return kinds.kind_of_name(self.kind).counting.late


@dataclass(frozen=True, slots=True)
class Sample:
    """All disks at a moment, or why they cannot be read; and the jobs that are at work on this
    computer."""

    moment: Moment
    jobs: tuple[Job, ...]
    disks: tuple[DiskSample, ...] = ()
    error: str = ""

    @property
    def tpm(self) -> int | None:
        """Sum over all TPC-C runs at work; None: there is none."""
        rates = [job.tick["tpm"] for job in self.jobs if job.tick is not None]
        return sum(rates) if rates else None

    @property
    def observation(self) -> Observation:
        """The observation to record."""
        disks = tuple(disk.seen for disk in self.disks if disk.seen is not None)
        return Observation(self.moment, disks, self.tpm, self.error)


@dataclass(frozen=True, slots=True)
class _Reading:
    """``device``: what went through the accelerated device since it was made."""

    moment: Moment
    counters: Counters
    device: IoCounters | None


class Reader:
    """Reads a machine's tiers, over one connection that stays open between two readings."""

    def __init__(self, machine: str, now: Callable[[], Moment] = clock.moment) -> None:
        self._name = machine
        self._now = now
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
            active = activity.disks(self._machine)
            moment = self._now()
            disks = tuple(self._sample(self._machine, disk, moment) for disk in active)
        except Exception as error:
            self.close()
            foreseen = code_of(error) is not None
            message = str(error) if foreseen else f"unexpected {type(error).__name__}: {error}"
            return Sample(self._now(), running, error=message)
        return Sample(moment, running, disks)

    def close(self) -> None:
        """Give the connection up; the next reading begins again."""
        self._open.close()
        self._machine = None
        self._kept.clear()

    def _sample(self, machine: Machine, seen: DiskReading, moment: Moment) -> DiskSample:
        kept = self._kept.setdefault(seen.name, deque())
        device = None if seen.counters is None else _device(machine, seen)
        counting = kinds.kind_of_name(seen.kind).counting
        facts = Facts(seen.identity, seen.name, seen.kind, seen.policy, seen.mode, seen.cache)
        recorded = SeenDisk(facts, seen.counters, seen.block, device)
        if seen.counters is None:
            kept.clear()
            return DiskSample(seen.name, seen.kind, seen.about, up=False, seen=recorded)
        now = _Reading(moment, seen.counters, device)
        while kept and moment.since(kept[0].moment) > WINDOW_S:
            kept.popleft()
        line: Line | None = None
        moved: tuple[float | None, float | None] = (None, None)
        if kept:
            before, seconds = kept[-1], moment.since(kept[-1].moment)
            line = watch.line(
                before.counters, now.counters, moment.wall, seconds, counting, seen.block
            )
            moved = _rates(before.device, now.device, line.seconds)
        kept.append(now)
        minute = Tally.from_hits(hits_over([sample.counters for sample in kept], counting))
        levels = (
            int(size.bytes(seen.block))
            for size in (now.counters.dirty, now.counters.used, now.counters.total)
        )
        return DiskSample(
            seen.name,
            seen.kind,
            seen.about,
            True,
            recorded,
            line,
            *moved,
            minute.ratio,
            now.counters.hits.ratio,
            *levels,
        )


def _device(machine: Machine, seen: DiskReading) -> IoCounters | None:
    """Read the I/O counters of the accelerated device; None where there is none."""
    device = flash_devices.device_of(seen.kind, seen.name)
    node = machine.run(["readlink", "-f", str(device)], check=False).stdout.strip()
    stat = f"/sys/class/block/{PurePosixPath(node).name}/stat"
    line = machine.run(["cat", stat], check=False).stdout
    return io_counters.parse_stat(line) if line.strip() else None


def _rates(
    before: IoCounters | None, now: IoCounters | None, seconds: float
) -> tuple[float | None, float | None]:
    """Bytes read and written a second; None where a device was made again in between."""
    if before is None or now is None:
        return None, None
    read, written = now.read.size - before.read.size, now.write.size - before.write.size
    return (None, None) if min(read, written) < 0 else (read / seconds, written / seconds)
