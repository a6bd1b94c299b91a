"""I/O of a device and its latency: IOPS, MB/s, latencies, queue, utilisation.

The kernel counts the requests of every block device (Documentation/block/stat.rst), hotset's own
engine those of the devices below it, and these with a histogram of their latencies. Either comes to
the same record; what happened in a while is the difference of two.
"""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal, Protocol

from hotset.core.machines.base import Machine
from hotset.core.units import Bytes, Sectors, mb_per_s

from . import programs
from .filesystem import device_number

ORIGIN, CACHE, VOLUME, LOG, FLASH = "origin", "flash cache", "flash volume", "log", "flash"
"""Roles of a device for a database."""
ENGINE_NAMES = {"origin": ORIGIN, "cache": CACHE, "volume": VOLUME}
"""Roles by the names that `hotset-engine tier` gives the devices below it."""
_TICKS = 2**32
"""The kernel shows its sums of milliseconds with 32 bits."""

CountedBy = Literal["engine", "kernel"]


@dataclass(frozen=True, slots=True)
class Direction:
    """Reads or writes that have ended: how many, of how much, and their latencies together.

    ``latencies_us``: how many took at most so many microseconds and more than the entry before
    says; None where only the sum is counted.
    """

    requests: int
    size: Bytes
    ms: float
    latencies_us: tuple[tuple[int, int], ...] | None = None


@dataclass(frozen=True, slots=True)
class IoCounters:
    """A device since its counters began. ``busy_ms``: with at least one request under way."""

    counted_by: CountedBy
    read: Direction
    write: Direction
    busy_ms: float


@dataclass(frozen=True, slots=True)
class DirectionUse:
    """Reads or writes of a while; latencies are None where no request ended, the 99th percentile
    also where it is not counted. ``queue``: how many were under way on average."""

    iops: float
    mb_per_s: float
    latency_ms_mean: float | None
    latency_ms_p99: float | None
    queue: float


@dataclass(frozen=True, slots=True)
class IoUse:
    """I/O of a device in an interval; ``utilisation`` is the share of it with at least one
    request under way, as iostat(1) has it."""

    name: str
    counted_by: CountedBy
    read: DirectionUse
    write: DirectionUse
    utilisation: float


Readings = Mapping[str, IoCounters]
"""By the device's name."""


def parse_stat(line: str) -> IoCounters:
    """A line of ``/sys/block/*/stat`` (Documentation/block/stat.rst): reads, merges, sectors and
    milliseconds; the same of writes; in flight; busy milliseconds; …

    >>> parse_stat("2 0 16 30 1 0 8 5 0 20 35 0 0 0 0 0 0").read
    Direction(requests=2, size=Bytes(8192), ms=30.0, latencies_us=None)

    :raises ValueError: it is no such line.
    """
    words = line.split()
    if len(words) < 11 or not all(word.isdecimal() for word in words):
        raise ValueError(f"not the counters of a block device: {line!r}")
    reads, _, read, read_ms, writes, _, written, write_ms, _, busy_ms, *_ = map(int, words)
    return IoCounters(
        "kernel",
        Direction(reads, Sectors(read).bytes, float(read_ms)),
        Direction(writes, Sectors(written).bytes, float(write_ms)),
        float(busy_ms),
    )


def bytes_read(machine: Machine, device: PurePosixPath) -> Bytes:
    """Read from a block device, a partition or a disk, since the machine's start."""
    path = f"/sys/dev/block/{device_number(machine, device)}/stat"
    return parse_stat(machine.run(["cat", path]).stdout).read.size


def parse_engine(devices: list[dict[str, Any]]) -> dict[str, IoCounters]:
    """Parse the engine's counters of its devices, by its own names.

    :raises KeyError: a field is missing, of a plain dictionary.
    """
    return {device["name"]: _of_engine(device) for device in devices}


def _of_engine(device: dict[str, Any]) -> IoCounters:
    read, write = (_direction(device[which]) for which in ("read", "write"))
    return IoCounters("engine", read, write, device["busy_ns"] / 1e6)


def _direction(of: dict[str, Any]) -> Direction:
    counted = of.get("latencies_us")
    latencies = None if counted is None else tuple((int(us), int(n)) for us, n in counted)
    return Direction(of["requests"], Bytes(of["bytes"]), of["ns"] / 1e6, latencies)


def between(first: Readings, last: Readings, seconds: float) -> tuple[IoUse, ...]:
    """Compare two readings, for devices that are in both and whose counters did not restart in
    between."""
    return tuple(
        _use(name, first[name], now, seconds)
        for name, now in last.items()
        if name in first and seconds > 0 and _goes_on(first[name], now)
    )


def _goes_on(first: IoCounters, last: IoCounters) -> bool:
    pairs = ((first.read, last.read), (first.write, last.write))
    return all(a.requests <= b.requests and a.size <= b.size for a, b in pairs)


def _use(name: str, first: IoCounters, last: IoCounters, seconds: float) -> IoUse:
    return IoUse(
        name,
        last.counted_by,
        _difference(first.read, last.read, seconds),
        _difference(first.write, last.write, seconds),
        # The kernel counts in steps of its clock, which may be a little beside ours.
        min(1.0, _elapsed(first.busy_ms, last.busy_ms) / 1000 / seconds),
    )


def _difference(first: Direction, last: Direction, seconds: float) -> DirectionUse:
    requests, ms = last.requests - first.requests, _elapsed(first.ms, last.ms)
    return DirectionUse(
        requests / seconds,
        mb_per_s(Bytes(last.size - first.size), seconds),
        ms / requests if requests else None,
        _percentile(first, last, 0.99),
        ms / 1000 / seconds,
    )


def _elapsed(first: float, last: float) -> float:
    return last - first if last >= first else last - first + _TICKS


def _percentile(first: Direction, last: Direction, share: float) -> float | None:
    """In milliseconds, at most a sixteenth too high; None where it is not counted."""
    if first.latencies_us is None or last.latencies_us is None:
        return None
    gained = Counter(dict(last.latencies_us))
    gained.subtract(dict(first.latencies_us))
    total = sum(gained.values())
    passed = 0
    for us, count in sorted(gained.items()):
        passed += count
        if total and passed >= share * total:
            return us / 1000
    return None


class Source(Protocol):
    """Where counters of devices come from, on the machine."""

    @property
    def command(self) -> str:
        """Words of a shell that print one line; they fail where there is nothing to print."""

    def parse(self, line: str) -> Readings:
        """Read that line. Raises ValueError: it is no such line."""


@dataclass(frozen=True, slots=True)
class KernelDevice:
    """A block device of the machine."""

    name: str
    stat: PurePosixPath

    @classmethod
    def find(cls, machine: Machine, name: str, device: PurePosixPath) -> KernelDevice:
        """:raises CommandError: there is no such device."""
        return cls(name, PurePosixPath(f"/sys/dev/block/{device_number(machine, device)}/stat"))

    @property
    def command(self) -> str:
        # By the shell itself: no program is started for it each second.
        return f'read -r stat < {shlex.quote(str(self.stat))} && echo "$stat"'

    def parse(self, line: str) -> Readings:
        return {self.name: parse_stat(line)}


@dataclass(frozen=True, slots=True)
class ServedDevice:
    """A device that `flashdev serve` serves, which counts latencies as well.

    ``file``: ``disk``, or the ``volume`` behind it.
    """

    name: str
    program: str
    control: PurePosixPath
    file: str = "disk"

    @classmethod
    def ask(
        cls, machine: Machine, name: str, control: PurePosixPath, file: str = "disk"
    ) -> ServedDevice:
        """:param machine: on which the control socket lies."""
        return cls(name, programs.engine(machine), control, file)

    @property
    def command(self) -> str:
        return shlex.join(programs.look_argv(self.program, self.control, '{"devices": {}}'))

    def parse(self, line: str) -> Readings:
        try:
            served = parse_engine(json.loads(line)["devices"])
            return {self.name: served[self.file]}
        except (json.JSONDecodeError, KeyError, TypeError):
            raise ValueError(f"not the counters of a served device: {line!r}") from None
