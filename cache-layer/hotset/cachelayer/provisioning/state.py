"""How a disk's tier was left: one line on the flash, which the unit at boot writes and reads too.

``active`` is written before the tier can take its first write, ``clean`` or ``dirty`` after it was
taken down in good order, with what its origin looked like then. So whoever finds ``active`` on a
tier that is down knows that it ended by a crash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from ..block import label
from ..hosts.base import Machine
from .cache_device import Card, Disk
from .identity.origin import OriginState

Word = Literal["active", "dirty", "clean"]


@dataclass(frozen=True, slots=True)
class TierRecord:
    """``origin``: what the origin looked like when the tier was taken down; None while active."""

    word: Word
    origin: OriginState | None = None


def key(disk: Disk) -> str:
    """Tells a disk's record from one that an earlier disk left there."""
    return disk.identity or disk.name


def render(disk: Disk, left: TierRecord) -> str:
    """The record's line."""
    seen = left.origin
    parts = (seen.fingerprint, seen.boot, str(seen.written)) if seen else ("-", "-", "-")
    return " ".join((key(disk), left.word, *parts))


def parse(disk: Disk, text: str | None) -> TierRecord | None:
    """None if it is another disk's, or none."""
    words = (text or "").split(" ")
    if len(words) != 5 or words[0] != key(disk) or words[1] not in get_args(Word):
        return None
    word: Word = words[1]  # type: ignore[assignment]
    if words[2] == "-":
        return TierRecord(word)
    return TierRecord(
        word, OriginState(words[2], words[3], int(words[4]) if words[4].isdigit() else 0)
    )


def read(machine: Machine, card: Card, disk: Disk) -> TierRecord | None:
    """None: nothing was ever written, or not to the end; nobody knows then how it was left.

    :raises CommandError: the flash cannot be read.
    """
    return parse(disk, label.read_record(machine, card.flash, disk.record))


def write(machine: Machine, card: Card, disk: Disk, left: TierRecord) -> None:
    label.write_record(machine, card.flash, disk.record, render(disk, left))
