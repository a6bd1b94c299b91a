"""Heat: how often each region of an accelerated disk is asked for, and what came of it.

Every kind of tier counts the same record per region (:class:`Tally`), in requests as the tier sees
them, so the sum over all regions is the tier's total and a part of the regions is a part of it.
Heat is requests, each worth half as much after every half-life: what was busy last week is colder
than what is busy today. Bypassed requests heat nothing: a cache would not have served them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from math import log

from hotset.block.extents import Extent, Run
from hotset.core.units import Blocks, Bytes
from hotset.tier.base import HitRatios, Hits

MAX_REGIONS = 32_768
"""Regions of a disk at most: a kernel table of them costs 24 MB, a store of them some megabytes."""
HALF_LIFE_S = 24 * 3600.0
NO_SHIFT = Bytes(0)


@dataclass(frozen=True, slots=True)
class Tally(HitRatios):
    """Requests to a region, or to many of them.

    ``reads`` and ``writes`` are all of them; hits are those that the flash served, ``bypassed``
    those that the tier sent to the origin without looking. None: this kind does not count it
    (bcache takes or bypasses a write and never looks whether the block was there).
    """

    reads: int
    writes: int
    read_hits: int
    read_misses: int
    write_hits: int | None
    write_misses: int | None
    bypassed: int | None

    @classmethod
    def from_hits(cls, hits: Hits) -> Tally:
        """Convert a gain of the tier's counters: requests that none of them counts are left out."""
        reads = hits.read_hits + hits.read_misses + (hits.bypassed or 0)
        writes = (hits.write_hits or 0) + (hits.write_misses or 0)
        return cls(
            reads,
            writes,
            hits.read_hits,
            hits.read_misses,
            hits.write_hits,
            hits.write_misses,
            hits.bypassed,
        )

    @property
    def requests(self) -> int:
        return self.reads + self.writes

    @property
    def denominator(self) -> str:
        """Denominator of this tally's ratios, in words."""
        reads = "read hits + read misses"
        counted = reads if self.write_hits is None else f"{reads} + write hits + write misses"
        left_out = {
            None: "",
            0: ", bypassed requests left out (there were none)",
        }.get(self.bypassed, ", bypassed requests left out")
        unlooked = ", writes are not in the ratio (bcache counts no hits of writes)"
        return f"requests: {counted}{left_out}{unlooked if self.write_hits is None else ''}"

    def minus(self, earlier: Tally) -> Tally:
        """Subtract an earlier tally; negative where the counters restarted."""
        return Tally(
            *(
                None if now is None or then is None else now - then
                for now, then in zip(_figures(self), _figures(earlier), strict=True)
            )  # type: ignore[arg-type]
        )

    @property
    def is_growth(self) -> bool:
        """True if no counter is negative."""
        return all(figure is None or figure >= 0 for figure in _figures(self))


NOTHING = Tally(0, 0, 0, 0, 0, 0, 0)


def total(tallies: Iterable[Tally]) -> Tally:
    """The sum; what one of them does not count, the sum does not either.

    >>> total([Tally(3, 1, 2, 1, None, None, 0), Tally(1, 1, 0, 1, None, None, 0)]).read_ratio
    0.5
    """
    columns = zip(*(_figures(tally) for tally in tallies), strict=True)
    sums = [None if None in column else sum(figure or 0 for figure in column) for column in columns]
    return Tally(*sums) if sums else NOTHING  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Grid:
    """How a disk is cut into regions of equal size.

    Region ``n`` holds the requests that begin in [n·region - shift, (n+1)·region - shift) of the
    accelerated disk; ``shift`` is where the origin's data begin on the origin (bcache: behind its
    superblock; else 0), as kernels count in the origin's own sectors.
    """

    disk: Bytes
    region: Bytes
    shift: Bytes = NO_SHIFT

    @property
    def count(self) -> int:
        return -(-(self.disk + self.shift) // self.region)

    def extent(self, number: int) -> Extent:
        """Where a region lies on the disk, cut off at its ends."""
        start = max(0, number * self.region - self.shift)
        end = min(self.disk, (number + 1) * self.region - self.shift)
        return Extent(Bytes(start), Bytes(max(0, end - start)))

    def numbers(self, extent: Extent) -> range:
        """The regions that an extent touches."""
        if extent.length <= 0:
            return range(0)
        first = (extent.start + self.shift) // self.region
        return range(first, (extent.start + extent.length - 1 + self.shift) // self.region + 1)

    def run(self, number: int, block: Bytes) -> Run:
        """The region as cache blocks: those that begin in it (none of two regions overlap)."""
        extent = self.extent(number)
        first = -(-extent.start // block)
        end = -(-(extent.start + extent.length) // block)
        return Run(Blocks(first), Blocks(max(0, end - first)))


def grid_of(disk: Bytes, block: Bytes, shift: Bytes = NO_SHIFT, regions: int = MAX_REGIONS) -> Grid:
    """The finest grid of whole cache blocks with at most so many regions.

    >>> str(grid_of(Bytes.parse("1TiB"), Bytes.parse("64KiB")).region)
    '32 MiB'
    """
    blocks = -(-(disk + shift) // block)
    return Grid(disk, Bytes(block * max(1, -(-blocks // regions))), shift)


@dataclass(frozen=True, slots=True)
class Reading:
    """All counters of a disk's regions at one moment, since ``begun`` (seconds since 1970).

    ``epoch`` names this counting: another one began at zero. Regions nobody asked for are not in
    it. ``dropped`` requests found no room in the kernel's table: they are in no region.
    """

    grid: Grid
    epoch: str
    begun: float
    tallies: Mapping[int, Tally]
    dropped: int = 0


def difference(earlier: Mapping[int, Tally], later: Mapping[int, Tally]) -> dict[int, Tally]:
    """Subtract tallies per region; regions without requests since are left out.

    :raises ValueError: a figure shrank: the two are not of one counting.
    """
    gained: dict[int, Tally] = {}
    for number, tally in later.items():
        more = tally.minus(earlier[number]) if number in earlier else tally
        if not more.is_growth:
            raise ValueError(f"the counters of region {number} shrank: {earlier[number]}, {tally}")
        if more.requests:
            gained[number] = more
    return gained


def cacheable_requests(tally: Tally) -> int:
    """The requests that count as heat: those that a cache serves or might have."""
    return tally.requests - (tally.bypassed or 0)


def decay(heat: float, seconds: float, half_life_s: float) -> float:
    """Decay heat over some seconds.

    >>> decay(8.0, 2 * 86400, 86400)
    2.0
    """
    return float(heat * 0.5 ** (max(0.0, seconds) / half_life_s))


def spread(requests: float, seconds: float, half_life_s: float) -> float:
    """Heat, at the end of an interval, of requests that came evenly over it.

    >>> round(spread(100, 86400, 86400), 1)
    72.1
    """
    lives = max(0.0, seconds) / half_life_s
    return requests * (1 - 0.5**lives) / (lives * log(2)) if lives > 1e-9 else float(requests)


def _figures(tally: Tally) -> tuple[int | None, ...]:
    return tuple(getattr(tally, name) for name in _NAMES)


_NAMES = tuple(field.name for field in fields(Tally))
