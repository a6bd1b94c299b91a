"""Readings of a machine, as a history records them, for the tests of its parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hotset.block.io_counters import Direction, IoCounters
from hotset.core.units import Blocks, Bytes
from hotset.monitoring.history.observation import Observation, SeenDisk
from hotset.tier.base import Counters, Counting

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
    facts = "dm-cache", "smq", "writeback", Bytes(64 << 20)
    return SeenDisk(identity, name, *facts, counted, BLOCK, Counting(32), passed)


@dataclass
class Clock:
    """Both clocks of a machine; only a test moves them."""

    at: float = NOON
    elapsed: float = 1000.0

    def passes(self, seconds: float) -> None:
        self.at += seconds
        self.elapsed += seconds

    def see(self, *disks: SeenDisk, tpm: float | None = None, error: str = "") -> Observation:
        return Observation(self.at, self.elapsed, disks, tpm, error)


def with_policy(one: SeenDisk, policy: str) -> SeenDisk:
    """The disk after ``tier set``."""
    return replace(one, policy=policy)
