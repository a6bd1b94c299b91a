"""Tier: flash in front of an origin, split into CACHE and VOLUME.

The verbs are the same for every kind; each is idempotent and says what it changed. Counters of
every kind become the same record, and a hit ratio always comes from the difference of two of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, Protocol

from hotset.cachelayer.extents import Run, count, nth_blocks
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.units import Blocks, Bytes, mb_per_s

TierKind = Literal["dm-cache", "bcache", "emulated"]
WarmupMethod = Literal["offline", "insert", "read"]
WriteMode = Literal["writeback", "writethrough"]
State = Literal["active", "inactive", "degraded", "failed"]


class TierFailedError(Exception):
    """The tier itself reports that it failed; it has no numbers to misread."""


@dataclass(frozen=True, slots=True)
class TierSpec:
    """How the flash is split and how the cache behaves.

    ``block`` is the unit that plans and counters count in: dm-cache's own, and for bcache, which
    caches whatever length was asked for, 4 KiB. ``bypass``: sequential reads and writes longer
    than this go past the cache (None: none does; dm-cache cannot).
    """

    mode: WriteMode
    policy: str
    block: Bytes
    metadata: Bytes
    cache: Bytes
    volume: Bytes
    bypass: Bytes | None = None


@dataclass(frozen=True, slots=True)
class Counters:
    """A tier's counters at one moment, in I/O requests (bios) since the cache was made.

    ``used``, ``total`` and ``dirty`` are cache blocks at that moment; ``bypassed`` are requests
    that the tier sent to the origin without looking. What a kind does not count is None, never 0:
    dm-cache has no bypass; bcache counts reads alone (``bch_mark_cache_accounting`` is called for
    reads, drivers/md/bcache/request.c) and neither promotions nor demotions.
    """

    read_hits: int
    read_misses: int
    write_hits: int | None
    write_misses: int | None
    promotions: int | None
    demotions: int | None
    dirty: Blocks
    used: Blocks
    total: Blocks
    bypassed: int | None = None

    @property
    def hits(self) -> Hits:
        """Since the counters began, when all were 0."""
        return Hits(self.read_hits, self.read_misses, self.write_hits, self.write_misses,
                    self.promotions, self.demotions, self.bypassed)  # fmt: skip


class MetadataDamagedError(TierFailedError):
    """The cache's metadata cannot be used; the message shows what its checker says."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a tier is now.

    ``active``: it works. ``inactive``: its devices do not stand. ``degraded``: it answers, but not
    as it was asked for (read-only metadata, no cache behind it). ``failed``: it has no figures.
    ``counters`` is None unless the tier answers; ``tunables`` are what the kernel says they are;
    ``notes`` are whole sentences that say what is wrong and what to do.
    """

    state: State
    counters: Counters | None
    tunables: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a warm-up is."""

    done: Bytes
    total: Bytes
    seconds: float


@dataclass(frozen=True, slots=True)
class Warmup:
    """What a warm-up did. ``seconds`` are those of the copy; ``total_seconds`` count metadata and
    activation as well; ``origin_mb_per_s`` was measured just before the copy.

    ``method``: ``offline`` wrote the cache and its metadata while the tier was down, ``insert``
    had the running tier fetch the blocks, ``read`` read them through the tier until its policy
    promoted them.
    """

    method: WarmupMethod
    bytes: Bytes
    seconds: float
    total_seconds: float
    origin_mb_per_s: float
    sampled_blocks: int
    differing_blocks: int

    @property
    def mb_per_s(self) -> float:
        return mb_per_s(self.bytes, self.seconds)


class WarmupFailedError(Exception):
    """The fill cannot be trusted; the message says why."""


def sample(runs: Sequence[Run], samples: int) -> list[tuple[int, int]]:
    """Some of the blocks, as (place in the order of the runs, origin block), ends included.

    Chosen by a fixed seed, so that a run can be repeated.
    """
    total = int(count(runs))
    if total == 0:
        return []
    chosen = random.Random(total).sample(range(total), min(samples, total))
    places = sorted({*chosen, 0, total - 1})
    return list(zip(places, nth_blocks(runs, places), strict=True))


@dataclass(frozen=True, slots=True)
class Hits:
    """What happened between two readings of the counters; ratios name their denominator. None
    where the kind of tier does not count."""

    read_hits: int
    read_misses: int
    write_hits: int | None
    write_misses: int | None
    promotions: int | None
    demotions: int | None
    bypassed: int | None = None

    @property
    def ratio(self) -> float | None:
        """Hits / (hits + misses), reads and writes together, of reads alone where writes are not
        counted; None when nothing was asked."""
        return hit_share(self.read_hits + (self.write_hits or 0),
                         self.read_misses + (self.write_misses or 0))  # fmt: skip

    @property
    def read_ratio(self) -> float | None:
        """Read hits / (read hits + read misses)."""
        return hit_share(self.read_hits, self.read_misses)

    @property
    def write_ratio(self) -> float | None:
        """Write hits / (write hits + write misses); None also where they are not counted."""
        return hit_share(self.write_hits or 0, self.write_misses or 0)


def hits_between(earlier: Counters, later: Counters, counter_bits: int) -> Hits:
    """Counter differences; a counter that is smaller than before has wrapped around once.

    :param counter_bits: width of the kind's counters (dm-cache: 32).
    """

    def counted(before: int, after: int) -> int:
        return (after - before) % (1 << counter_bits)

    def maybe(before: int | None, after: int | None) -> int | None:
        return None if before is None or after is None else counted(before, after)

    return Hits(
        read_hits=counted(earlier.read_hits, later.read_hits),
        read_misses=counted(earlier.read_misses, later.read_misses),
        write_hits=maybe(earlier.write_hits, later.write_hits),
        write_misses=maybe(earlier.write_misses, later.write_misses),
        promotions=maybe(earlier.promotions, later.promotions),
        demotions=maybe(earlier.demotions, later.demotions),
        bypassed=maybe(earlier.bypassed, later.bypassed),
    )


class Tier(Protocol):
    """A flash tier on a machine."""

    kind: TierKind
    counter_bits: int

    @property
    def machine(self) -> Machine:
        """Where it is."""

    @property
    def spec(self) -> TierSpec:
        """How it was asked for."""

    def prepare(self) -> PurePosixPath:
        """Make the tier's parts, the cache empty.

        Returns the device on which the origin's files can be looked at (mounted read-only) before
        :meth:`warm` or :meth:`create`.
        """

    def create(self) -> PurePosixPath:
        """Make (or find) the accelerated device and return its path."""

    @property
    def volume(self) -> PurePosixPath:
        """The flash VOLUME, for logs and temporary space."""

    def warm(
        self, runs: Sequence[Run], samples: int, on_progress: Callable[[Progress], None]
    ) -> Warmup:
        """Fill the prepared tier with blocks of the origin the fastest way the kind has; the
        accelerated device stands afterwards.

        :param runs: in origin order, no more than the cache holds.
        :param samples: how many blocks to compare with the origin.
        :raises WarmupFailedError: the fill cannot be trusted.
        """

    def status_argv(self) -> list[str]:
        """The command, on the machine, that prints the counters as one line."""

    def parse(self, line: str) -> Counters:
        """Read that line.

        :raises TierFailedError: the tier says that it failed.
        """

    def counters(self) -> Counters:
        """The counters now; raises as :meth:`parse` does."""

    def resident(self) -> list[Run]:
        """What is cached: runs of origin blocks, in origin order."""

    def flush(self, progress: Callable[[Blocks], None] = ..., *, going: bool = False) -> int:
        """Write every dirty block back; returns how many there were. None becomes dirty meanwhile.

        :param progress: called now and then with how many are left.
        :param going: the tier goes away afterwards, so nothing need be as it was before.
        """

    def destroy(self) -> None:
        """Remove the tier; dirty blocks are written back first."""

    def discard(self) -> None:
        """Remove the tier without writing back: for an origin that is restored anyway."""


def hit_share(hits: int, misses: int) -> float | None:
    """Hits / (hits + misses); None when nothing was asked."""
    return hits / (hits + misses) if hits + misses else None
