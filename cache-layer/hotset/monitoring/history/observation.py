"""What a history is made of: readings of a machine, and what happened to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from hotset.block.io_counters import IoCounters
from hotset.core.units import Bytes
from hotset.tier.base import Counters, Counting

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
EVENT_KINDS: tuple[EventKind, ...] = get_args(EventKind)
TEXT_MAX = 300
"""Characters of an event's text; a longer one is cut."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a disk is, apart from what it counts. ``size``: of its cache; None: not known."""

    identity: str
    name: str
    kind: str
    policy: str
    mode: str
    size: Bytes | None = None


@dataclass(frozen=True, slots=True)
class SeenDisk:
    """A disk in one reading.

    :ivar identity: what it is known by for good; of two disks with one name, one after the other,
        it tells which. Empty: it has none, and is the same for as long as it is watched.
    :ivar counters: None: its tier gives none.
    :ivar size: of its cache, as it was asked for; None: not known.
    :ivar block: what levels of the counters are counted in.
    :ivar counting: how they count.
    :ivar device: what went through the accelerated device; None: it is not shown.
    """

    identity: str
    name: str
    kind: str
    policy: str
    mode: str
    size: Bytes | None
    counters: Counters | None
    block: Bytes
    counting: Counting
    device: IoCounters | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """A machine at one moment, or why it cannot be read.

    :ivar at: seconds since 1970, by a clock that people set.
    :ivar elapsed: seconds by one that nobody sets.
    :ivar tpm: of the TPC-C runs at work; None: none is.
    """

    at: float
    elapsed: float
    disks: tuple[SeenDisk, ...] = ()
    tpm: float | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    :ivar key: names it for good: kept once more, it takes the place of the one before.
    :ivar until: when it ended; None: at once, not yet, or nobody knows.
    :ivar disk: the identity of the disk it happened to; empty: to the machine.
    """

    key: str
    at: float
    kind: EventKind
    text: str
    until: float | None = None
    disk: str = ""
