"""Parts of a history: readings of a machine, and its events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from hotset.block.io_counters import IoCounters
from hotset.core.clock import Moment
from hotset.core.units import Bytes
from hotset.tier.base import Counters

EventKind = Literal[
    "console",
    "unreachable",
    "down",
    "reset",
    "clock",
    "setting",
    "size",
    "disk",
    "warm-up",
    "benchmark",
    "history",
]


@dataclass(frozen=True, slots=True)
class Facts:
    """Description of a disk, apart from its counters.

    :ivar identity: what it is known by for good; of two disks with one name, one after the other,
        it tells which. Empty in a reading: it has none, and is the same for as long as it is
        watched.
    :ivar size: requested size of its cache; None: not known.
    :ivar present: it was there when the machine was read last.
    """

    identity: str
    name: str
    kind: str
    policy: str
    mode: str
    size: Bytes | None = None
    present: bool = True


@dataclass(frozen=True, slots=True)
class SeenDisk:
    """A disk in one reading.

    :ivar counters: None: its tier gives none.
    :ivar block: unit of the levels among the counters.
    :ivar device: I/O of the accelerated device; None: not shown.
    """

    facts: Facts
    counters: Counters | None
    block: Bytes
    device: IoCounters | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """A machine at one moment, or why it cannot be read.

    :ivar tpm: transactions a minute of running TPC-C; None: none is running.
    """

    moment: Moment
    disks: tuple[SeenDisk, ...] = ()
    tpm: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    :ivar key: names it for good: kept once more, it takes the place of the one before.
    :ivar at: seconds since 1970; as it is kept, since the computer started.
    :ivar until: when it ended; None: at once, not yet, or nobody knows.
    :ivar disk: the identity of the disk it happened to; empty: to the machine.
    """

    key: str
    at: float
    kind: EventKind
    text: str
    until: float | None = None
    disk: str = ""

    def later(self, seconds: float) -> Event:
        """The same by a clock that is so much ahead."""
        until = None if self.until is None else self.until + seconds
        return replace(self, at=self.at + seconds, until=until)
