"""Readings of a machine, as a history records them, for the tests of its parts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from hotset.block.io_counters import Direction, IoCounters
from hotset.core.clock import Moment
from hotset.core.units import Blocks, Bytes
from hotset.monitoring.history import opening, series
from hotset.monitoring.history.observation import Facts, Observation, SeenDisk
from hotset.monitoring.history.recorder import Recorder
from hotset.monitoring.history.series import Choice, Series
from hotset.tier.base import Counters

BLOCK = Bytes(65536)
NOON = 1_795_694_400.0
"""A multiple of the longest span: a time that spans begin at."""


def counters(hits: int, misses: int = 0, writes: int = 0, dirty: int = 1) -> Counters:
    """Of a tier that counts all; half of the writes hit."""
    half = writes // 2
    levels = Blocks(dirty), Blocks(100), Blocks(1024)
    return Counters(hits, misses, half, writes - half, 0, 0, *levels, 0)


def device(requests: int) -> IoCounters:
    """Each request of 8 KiB in 2 ms; as many writes as reads."""
    one = Direction(requests, Bytes(8192 * requests), 2.0 * requests)
    return IoCounters("kernel", one, one, 0.0)


def disk(counted: Counters | None, identity: str = "u1", name: str = "shop") -> SeenDisk:
    """A disk in one reading; its device was asked as often as its tier."""
    passed = None if counted is None else device(counted.reads)
    facts = Facts(identity, name, "dm-cache", "smq", "writeback", Bytes(64 << 20))
    return SeenDisk(facts, counted, BLOCK, passed)


@dataclass
class Clock:
    """Both clocks of a computer; only a test moves them."""

    at: float = NOON
    elapsed: float = 1000.0
    boot: str = "first"

    @property
    def moment(self) -> Moment:
        return Moment(self.at, self.boot, self.elapsed)

    def passes(self, seconds: float) -> None:
        self.at += seconds
        self.elapsed += seconds

    def starts_again(self) -> None:
        self.boot, self.elapsed = f"{self.boot}, then another", 1.0

    def see(self, *disks: SeenDisk, tpm: float | None = None, error: str = "") -> Observation:
        return Observation(self.moment, disks, tpm, error)


def with_policy(one: SeenDisk, policy: str) -> SeenDisk:
    """The disk after ``tier set``."""
    return replace(one, facts=replace(one.facts, policy=policy))


def end(one: Recorder, clock: Clock, *disks: SeenDisk) -> None:
    """End a record, with a further reading that bears the last one out."""
    clock.passes(1)
    one.take(clock.see(*disks))
    one.close(clock.see())


def recorded(file: Path, clock: Clock, length_s: int = 3 * 3600) -> Series:
    """What a history has of the time until now, in steps of ten seconds."""
    choice = Choice("", "", length_s, 10)
    found = opening.look(file, lambda store: series.load(store, choice, clock.moment))
    assert found is not None
    return found
