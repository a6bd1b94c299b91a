"""Tier: flash in front of an origin, split into CACHE and VOLUME.

The verbs are the same for every kind; each is idempotent and says what it changed. Counters of
every kind become the same record, and a hit ratio always comes from the difference of two of them.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Literal

from hotset.block.extents import Run, count, nth_blocks
from hotset.block.io_counters import Readings
from hotset.core.errors import HotsetError
from hotset.core.machines.base import Machine
from hotset.core.units import Blocks, Bytes, mb_per_s

from .filling import Filling
from .regions import Regions

TierKind = Literal["dm-cache", "bcache", "userspace"]
WarmupMethod = Literal["offline", "insert", "read"]
WriteMode = Literal["writeback", "writethrough"]
State = Literal["active", "inactive", "restarting", "degraded", "failed"]


class TierFailedError(HotsetError):
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


_EARLY_PART = 64
"""Less of a count than one part of so many may be early; more that is missing was restarted."""


@dataclass(frozen=True, slots=True)
class Counting:
    """How a kind counts.

    :ivar bits: width of its counters: one that falls from the upper half has wrapped around.
    :ivar kept: those that outlast their devices: after any other fall they go on from what was
        written down last, and what happened since is not known. All others begin at zero again.
    :ivar lag_s: by how long a request may have ended before it is counted.
    :ivar early: how many requests at most are counted that have not been made yet, as the rest of
        an ``early_step``: they are taken back within the lag where they are not made.
    """

    bits: int
    kept: frozenset[str] = frozenset()
    lag_s: float = 0.0
    early: int = 0

    @property
    def early_step(self) -> int:
        return _EARLY_PART * self.early

    @property
    def range(self) -> int:
        return 1 << self.bits

    @property
    def late(self) -> str:
        """How the counters come late, as a half sentence; empty: they do not."""
        return f"what was asked in the last {self.lag_s:g} s may not be counted" * bool(self.lag_s)


@dataclass(frozen=True, slots=True)
class Counters:
    """A tier's counters at one moment, in I/O requests (bios) since the cache was made.

    ``used``, ``total`` and ``dirty`` are cache blocks at that moment; ``bypassed`` are requests
    that the tier sent to the origin without looking. What a kind does not count is None, never 0:
    dm-cache has no bypass; bcache counts reads alone (``bch_mark_cache_accounting`` is called for
    reads, drivers/md/bcache/request.c) and neither promotions nor demotions, and where it is to
    bypass nothing, what it does bypass counts as missed. ``begun``: when all were 0, seconds since
    1970, where the kind tells; another time, another count. ``device`` names what was read, where
    that is known: the counters of one device do not begin again. ``stale``: what was counted lately
    is not in it yet, as while dm-cache writes everything back: it is compared with no other.
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
    begun: float | None = None
    stale: bool = False
    device: str = ""

    @property
    def reads(self) -> int:
        """Reads that are counted as hit or missed."""
        return self.read_hits + self.read_misses

    @property
    def hits(self) -> Hits:
        """Since the counters began, when all were 0."""
        return Hits(
            self.read_hits,
            self.read_misses,
            self.write_hits,
            self.write_misses,
            self.promotions,
            self.demotions,
            self.bypassed,
        )


class MetadataDamagedError(TierFailedError):
    """The cache's metadata cannot be used; the message shows what its checker says."""


class FlushStalledError(TierFailedError):
    """A flush writes nothing back; the message says why, and what helps."""


@dataclass(frozen=True, slots=True)
class Report:
    """How a tier is now.

    ``active``: it works. ``inactive``: its devices are not there. ``restarting``: they are not, and
    its engine, which ended by itself, is being restarted. ``degraded``: it answers, but not as it
    was asked for (read-only metadata, no cache behind it). ``failed``: it has no figures.
    ``counters`` is None unless the tier answers; ``tunables`` are what the kernel says they are;
    ``notes`` are whole sentences that say what is wrong and what to do. ``metadata``: the share of
    the room for metadata that is used, 0 to 1; None: the tier does not answer, or its kind has
    none that could become full.
    """

    state: State
    counters: Counters | None
    tunables: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    metadata: float | None = None


@dataclass(frozen=True, slots=True)
class Warmup:
    """Result of a warm-up. ``seconds`` are those of the copy; ``total_seconds`` count metadata and
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


class WarmupFailedError(HotsetError):
    """The fill cannot be trusted; the message says why."""


def sample(runs: Sequence[Run], samples: int) -> list[tuple[int, int]]:
    """Sample the blocks, as (place in the order of the runs, origin block), ends included.

    Chosen by a fixed seed, so that a run can be repeated.
    """
    total = int(count(runs))
    if total == 0:
        return []
    chosen = random.Random(total).sample(range(total), min(samples, total))
    places = sorted({*chosen, 0, total - 1})
    return list(zip(places, nth_blocks(runs, places), strict=True))


class HitRatios:
    """Hit ratios of counted requests; each names its denominator. None where nothing was
    requested, or where the kind of tier does not count."""

    __slots__ = ()
    read_hits: int
    read_misses: int
    write_hits: int | None
    write_misses: int | None

    @property
    def ratio(self) -> float | None:
        """Hits / (hits + misses), reads and writes together, of reads alone where writes are not
        counted."""
        return hit_share(
            self.read_hits + (self.write_hits or 0), self.read_misses + (self.write_misses or 0)
        )

    @property
    def read_ratio(self) -> float | None:
        """Read hits / (read hits + read misses)."""
        return hit_share(self.read_hits, self.read_misses)

    @property
    def write_ratio(self) -> float | None:
        """Write hits / (write hits + write misses)."""
        return hit_share(self.write_hits or 0, self.write_misses or 0)


@dataclass(frozen=True, slots=True)
class Hits(HitRatios):
    """Counter gains between two readings. None where the kind of tier does not
    count."""

    read_hits: int
    read_misses: int
    write_hits: int | None
    write_misses: int | None
    promotions: int | None
    demotions: int | None
    bypassed: int | None = None


_EVENTS = tuple(field.name for field in fields(Hits))
_ASKED = frozenset(("read_hits", "read_misses", "write_hits", "write_misses"))
"""Counters that hit ratios are made of."""


def hits_between(earlier: Counters, later: Counters, counting: Counting) -> Hits:
    """Compute the gains of the counters between two readings; as :func:`hits_over`."""
    return hits_over((earlier, later), counting)


def hits_over(readings: Sequence[Counters], counting: Counting) -> Hits:
    """Add up the gains from the first reading to the last; never more than was requested.

    Where the kind tells when its counters began, another time is another count, which began at
    zero, and a fall within one is of two that were read side by side and kept in the other order.
    Read hits may fall while the reads as a whole do not: some were taken for hits that were missed.
    """
    settled = [reading for reading in readings if not reading.stale]
    pairs = [
        (before, after, began_again(before, after, counting)) for before, after in pairwise(settled)
    ]
    sums: list[int | None] = []
    for name in _EVENTS:
        gains = [_gain(name, *pair, counting) for pair in pairs]
        sums.append(None if None in gains else max(0, sum(filter(None, gains))))
    return Hits(*sums)  # type: ignore[arg-type]


def counters_restarted(earlier: Counters, later: Counters, counting: Counting) -> bool:
    """True if a counter that hit ratios are made of restarted between two readings."""
    return bool(began_again(earlier, later, counting) & _ASKED)


def is_contradicted(
    before: Counters, counters: Counters, after: Counters, counting: Counting
) -> bool:
    """True if the readings beside it go on from one another, and by this one more was counted:
    either it is wrong, or the counters began again and are back where they were."""
    if counters_restarted(before, after, counting):
        return False
    by, past = (hits_over(some, counting) for some in ((before, counters, after), (before, after)))
    return any(getattr(by, name) != getattr(past, name) for name in _ASKED)


def began_again(earlier: Counters, later: Counters, counting: Counting) -> frozenset[str]:
    """The counters that began again between two readings, at zero or, where they are kept, at what
    was written down last: those of a kind together, as one of them may have grown beyond what it
    was."""
    names = frozenset(_EVENTS)
    if earlier.begun is not None and later.begun is not None:
        return names if earlier.begun != later.begun else frozenset()
    fell = {name for name in _EVENTS if _fell(name, earlier, later, counting)}
    # What outlasts the devices has not, so the others have not either.
    if fell & counting.kept or not counting.kept:
        return names if fell else frozenset()
    return names - counting.kept if fell else frozenset()


def _gain(
    name: str, before: Counters, after: Counters, restarted: frozenset[str], counting: Counting
) -> int | None:
    was, now = getattr(before, name), getattr(after, name)
    if was is None or now is None:
        return None
    if name in restarted:
        return 0 if name in counting.kept else int(now)
    if before.begun is not None or now >= was or _were_taken_back(name, before, after, counting):
        return int(now - was)
    return int(now - was + counting.range)


def _fell(name: str, before: Counters, after: Counters, counting: Counting) -> bool:
    """True if a counter fell, and did not wrap around."""
    was, now = getattr(before, name), getattr(after, name)
    if was is None or now is None or now >= was:
        return False
    went_on = _were_taken_back(name, before, after, counting)
    return bool(was < counting.range // 2) and not went_on


def _were_taken_back(name: str, before: Counters, after: Counters, counting: Counting) -> bool:
    """True if read hits fell since some were misses, and all reads by no more than
    those that were counted early: a small part of all."""
    was, now = (counters.reads + (counters.bypassed or 0) for counters in (before, after))
    return name == "read_hits" and was - now <= min(counting.early, was // _EARLY_PART)


class Tier(ABC):
    """A flash tier on a machine: of a disk (`DiskTier`), or of an experiment.

    :ivar machine: where it is.
    :ivar spec: how it was asked for.
    """

    kind: TierKind
    counting: Counting
    machine: Machine
    spec: TierSpec

    @abstractmethod
    def prepare(self) -> PurePosixPath:
        """Make the tier's parts, the cache empty.

        Returns the device on which the origin's files can be looked at (mounted read-only) before
        the cache is filled or :meth:`create` is called.
        """

    @abstractmethod
    def create(self) -> PurePosixPath:
        """Make (or find) the accelerated device and return its path."""

    @property
    @abstractmethod
    def volume(self) -> PurePosixPath:
        """The flash VOLUME, for logs and temporary space."""

    @abstractmethod
    def status_argv(self) -> list[str]:
        """The command, on the machine, that prints the counters as one line."""

    @abstractmethod
    def parse(self, line: str) -> Counters:
        """Read that line.

        :raises TierFailedError: the tier says that it failed.
        """

    @abstractmethod
    def counters(self) -> Counters:
        """The counters now; raises as :meth:`parse` does."""

    @abstractmethod
    def devices(self) -> dict[str, PurePosixPath]:
        """The block devices below it by what they are (`io_counters.ORIGIN`, …); empty where the
        tier counts what goes through them."""

    @abstractmethod
    def parse_devices(self, line: str) -> Readings:
        """Parse the I/O of the devices below it, latencies included, from the line of its
        counters; empty where the kernel counts that, or nothing does. Raises as :meth:`parse`."""

    @property
    @abstractmethod
    def regions(self) -> Regions:
        """By what its requests are counted region by region."""

    @abstractmethod
    def resident(self) -> list[Run]:
        """List the cached runs of origin blocks, in origin order."""

    @abstractmethod
    def fill(self, wanted: Filling) -> Warmup:
        """Have the blocks cached; the accelerated device is active afterwards.

        :raises InUseError: off line, and the accelerated device is in use.
        :raises WarmupFailedError: the fill cannot be trusted.
        """

    @abstractmethod
    def flush(self, progress: Callable[[Blocks], None] = ..., *, final: bool = False) -> int:
        """Write every dirty block back; returns how many there were. None becomes dirty meanwhile.

        :param progress: called now and then with how many are left.
        :param final: the tier goes away afterwards, so nothing need be as it was before.
        """

    @abstractmethod
    def discard(self) -> None:
        """Remove the tier without writing back: for an origin that is restored anyway."""


def hit_share(hits: int, misses: int) -> float | None:
    """Hits / (hits + misses); None when nothing was asked."""
    return hits / (hits + misses) if hits + misses else None
