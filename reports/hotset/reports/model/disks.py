"""Results of the scenarios on modelled disks: files that are read again, and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Literal, Self

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from .base import Record, Share, UtcTime

Layer = Literal["page cache", "device", "both", "flash", "platters", "flash and platters"]
"""``device``: one that does not tell more; ``both``: the page cache and the device."""
_ALL, _NONE = 0.99, 0.01
_GAIN = 1.2
"""A disk serves repeats faster by itself from here on: less comes from the order of the reads."""


class RaffleDraw(Record):
    """One ticket: a file that was read."""

    name: str
    seconds: PositiveFloat
    bytes: PositiveInt
    in_memory: Share
    """Share of the file in memory, before it was read."""
    major_faults: NonNegativeInt
    from_flash: Share | None = None
    """Share of the device's reads from flash; None where not reported, or nothing was served."""

    @property
    def mb_per_s(self) -> float:
        return self.bytes / 1e6 / self.seconds

    @property
    def layer(self) -> Layer:
        if self.in_memory >= _ALL:
            return "page cache"
        if self.in_memory > _NONE:
            return "both"
        if self.from_flash is None:
            return "device"
        if self.from_flash >= _ALL:
            return "flash"
        return "platters" if self.from_flash <= _NONE else "flash and platters"


class RafflePass(Record):
    """All tickets once."""

    number: NonNegativeInt
    dropped: bool
    """Each file was taken out of the page cache before it was read."""
    draws: tuple[RaffleDraw, ...]
    served_by: Layer


class DiskReread(Record):
    """One disk. ``cold``: passes without the page cache; ``warm``: one with it."""

    disk: str
    cold: tuple[RafflePass, ...]
    warm: RafflePass
    first_mb_per_s: PositiveFloat
    again_mb_per_s: PositiveFloat
    gain: PositiveFloat
    page_cache_mb_per_s: PositiveFloat
    seeming_gain: PositiveFloat

    @property
    def keeps(self) -> bool:
        """The disk itself is faster with what it has read before."""
        return self.gain >= _GAIN


class DiskArrayLine(Record):
    """A published value and ours."""

    array: str
    profile: str
    direction: Literal["read", "write", "mix"]
    unit: Literal["MB/s", "IOPS", "us"]
    published: PositiveFloat | None
    ours: NonNegativeFloat
    reason: str
    """Reason for a difference of more than 15 %."""
    off: float | None


class DiskArrayFailure(Record):
    """4 KiB random reads before a member fails, and while it is rebuilt on a spare."""

    array: str
    before_iops: NonNegativeFloat
    during_iops: NonNegativeFloat
    rebuilt_s: NonNegativeFloat | None
    """Under the reads; None where it took longer than two minutes (until November 2026: than the
    measurement)."""


class DiskPowerFailureFile(Record):
    """A file that was written when the power failed."""

    flushed_every: PositiveInt | None
    """Pages of 4 KiB; None where it was never flushed."""
    written_bytes: NonNegativeInt
    """Bytes that were acknowledged."""
    flushed_bytes: NonNegativeInt
    lost_bytes: NonNegativeInt
    """Acknowledged bytes that are missing."""
    flushed_lost_bytes: NonNegativeInt


class DiskPowerFailure(Record):
    """A drive's power failed under writes."""

    protected: bool
    reported_bytes: NonNegativeInt
    """Bytes that the model reports as lost."""
    lost_bytes: NonNegativeInt
    """Acknowledged bytes that are missing in the files."""
    flushed_lost_bytes: NonNegativeInt
    files: tuple[DiskPowerFailureFile, ...]


class Searched(Record):
    """Full-text search as its users saw it."""

    seconds: PositiveFloat
    searches: NonNegativeInt
    posts: NonNegativeInt
    """Posts that were found."""
    p50_ms: NonNegativeFloat
    p99_ms: NonNegativeFloat
    added: NonNegativeInt
    """Posts that came in meanwhile."""
    commits: NonNegativeInt
    commit_ms: NonNegativeFloat


class DiskArrayHeat(Record):
    """Where on an array the requests went."""

    reads: NonNegativeInt
    read_bytes: NonNegativeInt
    writes: NonNegativeInt
    written_bytes: NonNegativeInt
    hottest_share: Share
    """Share of all requests that the hottest tenth of the index got."""
    read_strips: tuple[NonNegativeInt, ...]
    """Requests by place, in strips of equal size."""
    write_strips: tuple[NonNegativeInt, ...]


class DiskArraySearch(Record):
    """A full-text search on one array."""

    array: str
    searches_per_s: NonNegativeFloat
    searched: Searched
    heat: DiskArrayHeat


class BenchRun(Record):
    """One run of fio: MB/s (10^6 bytes), requests a second, mean latency."""

    mb_per_s: NonNegativeFloat
    iops: NonNegativeFloat
    latency_us: NonNegativeFloat


def median_run(runs: Sequence[BenchRun]) -> BenchRun:
    """The median of each value on its own."""
    return BenchRun(
        mb_per_s=median(run.mb_per_s for run in runs),
        iops=median(run.iops for run in runs),
        latency_us=median(run.latency_us for run in runs),
    )


class BenchLine(Record):
    """A profile in one direction."""

    profile: str
    direction: Literal["read", "write", "mix"]
    runs: tuple[BenchRun, ...]
    """Runs of one measurement; of measurements that are pooled, the median of each."""
    measurements: PositiveInt = 1

    @property
    def name(self) -> str:
        """Name in thresholds and trends: ``seq1m-q8t1-read``."""
        return f"{self.profile.lower().replace(' ', '-')}-{self.direction}"

    @property
    def median(self) -> BenchRun:
        return median_run(self.runs)

    @property
    def each_mb_per_s(self) -> list[float]:
        """A value of each measurement: runs of one rise and fall together."""
        if self.measurements == 1:
            return [self.median.mb_per_s]
        return [run.mb_per_s for run in self.runs]


Way = Literal["file", "loop"]
"""How a served model is reached: as a file, or through a loop device over it."""


class ServingPath(Record):
    """Time that serving a model adds to a small request on this computer, in microseconds."""

    way: Way
    path_us: NonNegativeInt
    """The median: the device is so much faster than its model."""
    runs_us: tuple[float, ...]
    """Value of each run."""


class DiskResults(Record):
    """One of the two scenarios, as far as it has come, or a benchmark of a disk (``bench``)."""

    scenario: Literal["reread", "arrays", "bench"]
    disks: tuple[DiskReread, ...] = ()
    lines: tuple[DiskArrayLine, ...] = ()
    failures: tuple[DiskArrayFailure, ...] = ()
    cuts: tuple[DiskPowerFailure, ...] = ()
    searches: tuple[DiskArraySearch, ...] = ()
    bench: tuple[BenchLine, ...] = ()
    began: tuple[UtcTime, ...] = Field(default=(), exclude=True)
    """When each of the measurements began that are pooled here; kept in no document."""
    paths: tuple[ServingPath, ...] = ()
    """Time that serving took, measured at the start; empty where it was not: then 110 µs were taken
    off modelled flash, whatever the computer."""

    def add(self, more: DiskResults) -> Self:
        """These results and more of the same run."""
        lists = DiskResults.model_fields.keys() - {"scenario"}
        both = {name: getattr(self, name) + getattr(more, name) for name in lists}
        return self.model_copy(update=both)

    @property
    def has_any(self) -> bool:
        return any((self.disks, self.lines, self.failures, self.cuts, self.searches, self.bench))
