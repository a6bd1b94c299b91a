"""Proven contents of a damaged cache in user space, from ``hotset-engine salvage``.

The cache is only read. A block is *dirty* or *clean* where that is proven; of an *unknown* one
nothing is: it may hold, of any block, what the origin lacks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hotset.core.units import Bytes

from .extents import Extent

COMPLETE, INCOMPLETE = 0, 5
"""Exit codes of ``hotset-engine salvage``: nothing is unknown; something is, or cannot be read."""
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Salvage:
    """Result of a salvage.

    :ivar dirty: blocks that hold what the origin lacks, and how many bytes that is.
    :ivar unknown: blocks that may hold it, and their size.
    :ivar clean: blocks that do not.
    :ivar is_identified: a superblock says that the cache is this origin's.
    :ivar last_seen: extents last seen in the unknown blocks.
    :ivar may_be_lost: where the origin may lack its newest data.
    :ivar unreadable: extents that the origin still lacks, as the flash cannot be read.
    """

    dirty: int
    dirty_size: Bytes
    unknown: int
    unknown_size: Bytes
    clean: int
    is_identified: bool
    last_seen: tuple[Extent, ...]
    may_be_lost: tuple[Extent, ...]
    unreadable: tuple[Extent, ...]


def parse(text: str) -> Salvage:
    """Parse the output of ``hotset-engine salvage --json``.

    >>> count = {"slots": 2, "bytes": 8192}
    >>> lists = dict.fromkeys(("last_seen", "may_be_lost", "unreadable"), [])
    >>> told = {"dirty": count, "unknown": count, "clean": count, "is_identified": True, **lists}
    >>> parse(json.dumps(told)).dirty_size
    Bytes(8192)
    """
    report = json.loads(text)
    return Salvage(
        report["dirty"]["slots"],
        Bytes(report["dirty"]["bytes"]),
        report["unknown"]["slots"],
        Bytes(report["unknown"]["bytes"]),
        report["clean"]["slots"],
        report["is_identified"],
        *(_extents(report[name]) for name in ("last_seen", "may_be_lost", "unreadable")),
    )


def _extents(stretches: Sequence[dict[str, Any]]) -> tuple[Extent, ...]:
    return tuple(Extent(Bytes(stretch["offset"]), Bytes(stretch["bytes"])) for stretch in stretches)


def in_words(extents: Sequence[Extent]) -> str:
    """The first of them, as byte ranges of the origin.

    >>> in_words([Extent(Bytes(0), Bytes(4096))])
    'bytes 0 to 4095'
    """
    ranges = (
        (int(extent.start), int(extent.start + extent.length) - 1) for extent in extents[:_SHOWN]
    )
    shown = ", ".join(f"{first} to {last}" for first, last in ranges)
    more = len(extents) - _SHOWN
    return f"bytes {shown}" + (f" and {more} more" if more > 0 else "")
