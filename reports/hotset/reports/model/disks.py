"""What the scenarios on modelled disks measured: files that are read again, and arrays."""

from __future__ import annotations

from statistics import median
from typing import Literal

from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from .base import Record, Share

Layer = Literal["page cache", "device", "both", "flash", "platters", "flash and platters"]
"""``device``: one that does not tell more; ``both``: the page cache and the device."""


class RaffleDraw(Record):
    """One ticket: a file that was read."""

    name: str
    seconds: PositiveFloat
    bytes: PositiveInt
    in_memory: Share
    """Of the file, before it was read."""
    major_faults: NonNegativeInt
    from_flash: Share | None = None
    """Of what the device served; None where it does not tell, or served nothing."""


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


class DiskArrayLine(Record):
    """A published value and ours."""

    array: str
    profile: str
    direction: Literal["read", "write", "mix"]
    unit: Literal["MB/s", "IOPS", "us"]
    published: PositiveFloat | None
    ours: NonNegativeFloat
    reason: str
    """Of a difference of more than 15 %."""
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
    """What was answered."""
    flushed_bytes: NonNegativeInt
    lost_bytes: NonNegativeInt
    """What it lacks of what was answered."""
    flushed_lost_bytes: NonNegativeInt


class DiskPowerFailure(Record):
    """A drive's power failed under writes."""

    protected: bool
    said_bytes: NonNegativeInt
    """What the model says it lost."""
    lost_bytes: NonNegativeInt
    """What the files lack of what was answered."""
    flushed_lost_bytes: NonNegativeInt
    files: tuple[DiskPowerFailureFile, ...]


class Searched(Record):
    """What the users of a full-text search saw."""

    seconds: PositiveFloat
    searches: NonNegativeInt
    found: NonNegativeInt
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
    """Of all requests, what the hottest tenth of the index got."""
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


class BenchLine(Record):
    """A profile in one direction."""

    profile: str
    direction: Literal["read", "write", "mix"]
    runs: tuple[BenchRun, ...]
    """Those of one measurement; of measurements that are pooled, the median of each."""
    measurements: PositiveInt = 1

    @property
    def name(self) -> str:
        """As thresholds and trends call it: ``seq1m-q8t1-read``."""
        return f"{self.profile.lower().replace(' ', '-')}-{self.direction}"

    @property
    def median(self) -> BenchRun:
        """Of each figure on its own."""
        return BenchRun(
            mb_per_s=median(one.mb_per_s for one in self.runs),
            iops=median(one.iops for one in self.runs),
            latency_us=median(one.latency_us for one in self.runs),
        )

    @property
    def each_mb_per_s(self) -> list[float]:
        """A value of each measurement: runs of one rise and fall together."""
        if self.measurements == 1:
            return [self.median.mb_per_s]
        return [one.mb_per_s for one in self.runs]


class ServingPath(Record):
    """What serving a model takes of a small request's time on this computer, microseconds."""

    way: Literal["file", "loop"]
    """As a file, or through a loop device over it."""
    path_us: NonNegativeInt
    """The median: the device is so much faster than its model."""
    runs_us: tuple[float, ...]
    """As each run measured it."""


class DiskResults(Record):
    """One of the two scenarios, as far as it has come, or a benchmark of a disk (``bench``)."""

    scenario: Literal["reread", "arrays", "bench"]
    disks: tuple[DiskReread, ...] = ()
    lines: tuple[DiskArrayLine, ...] = ()
    failures: tuple[DiskArrayFailure, ...] = ()
    cuts: tuple[DiskPowerFailure, ...] = ()
    searches: tuple[DiskArraySearch, ...] = ()
    bench: tuple[BenchLine, ...] = ()
    paths: tuple[ServingPath, ...] = ()
    """What serving took, measured at the start; empty where it was not: then 110 µs were taken off
    modelled flash, whatever the computer."""

    @property
    def has_any(self) -> bool:
        return any((self.disks, self.lines, self.failures, self.cuts, self.searches, self.bench))
