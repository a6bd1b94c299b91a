"""Tier: flash in front of an origin, split into CACHE and VOLUME.

The verbs are the same for every kind; each is idempotent and says what it changed. Counters of
every kind become the same record, and a hit ratio always comes from the difference of two of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, Protocol

from hotset.cachelayer.units import Blocks, Bytes

WriteMode = Literal["writeback", "writethrough"]


class TierFailedError(Exception):
    """The tier itself reports that it failed; it has no numbers to misread."""


@dataclass(frozen=True, slots=True)
class TierSpec:
    """How the flash is split and how the cache behaves."""

    mode: WriteMode
    policy: str
    block: Bytes
    metadata: Bytes
    cache: Bytes
    volume: Bytes


@dataclass(frozen=True, slots=True)
class Counters:
    """A tier's counters at one moment, in I/O requests (bios) since the cache was made.

    ``used``, ``total`` and ``dirty`` are cache blocks at that moment; ``bypassed`` are requests
    that the tier sent to the origin without looking (None where a kind has no bypass).
    """

    read_hits: int
    read_misses: int
    write_hits: int
    write_misses: int
    promotions: int
    demotions: int
    dirty: Blocks
    used: Blocks
    total: Blocks
    bypassed: int | None = None


@dataclass(frozen=True, slots=True)
class Hits:
    """What happened between two readings of the counters; ratios name their denominator."""

    read_hits: int
    read_misses: int
    write_hits: int
    write_misses: int
    promotions: int
    demotions: int
    bypassed: int | None = None

    @property
    def ratio(self) -> float | None:
        """Hits / (hits + misses), reads and writes together; None when nothing was asked."""
        return _ratio(self.read_hits + self.write_hits, self.read_misses + self.write_misses)

    @property
    def read_ratio(self) -> float | None:
        """Read hits / (read hits + read misses)."""
        return _ratio(self.read_hits, self.read_misses)

    @property
    def write_ratio(self) -> float | None:
        """Write hits / (write hits + write misses)."""
        return _ratio(self.write_hits, self.write_misses)


def hits_between(earlier: Counters, later: Counters, counter_bits: int) -> Hits:
    """Counter differences; a counter that is smaller than before has wrapped around once.

    :param counter_bits: width of the kind's counters (dm-cache: 32).
    """

    def counted(name: str) -> int:
        before: int = getattr(earlier, name)
        after: int = getattr(later, name)
        return (after - before) % (1 << counter_bits)

    bypasses = earlier.bypassed is not None and later.bypassed is not None
    return Hits(
        read_hits=counted("read_hits"),
        read_misses=counted("read_misses"),
        write_hits=counted("write_hits"),
        write_misses=counted("write_misses"),
        promotions=counted("promotions"),
        demotions=counted("demotions"),
        bypassed=counted("bypassed") if bypasses else None,
    )


class Tier(Protocol):
    """A flash tier on a machine."""

    counter_bits: int

    def create(self) -> PurePosixPath:
        """Make (or find) the accelerated device and return its path."""

    @property
    def volume(self) -> PurePosixPath:
        """The flash VOLUME, for logs and temporary space."""

    def counters(self) -> Counters:
        """:raises TierFailedError: the kernel says ``Fail`` or ``Error``."""

    def flush(self) -> int:
        """Write every dirty block back; returns how many there were."""

    def destroy(self) -> None:
        """Remove the tier; dirty blocks are written back first."""


def _ratio(hits: int, misses: int) -> float | None:
    return hits / (hits + misses) if hits + misses else None
