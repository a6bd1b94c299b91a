"""The result document: one run of one experiment. `hotset runs show --format json` prints it.

Units are the last word of a name. Ratios and shares run from 0 to 1. Rates are wall-clock rates of
the machine the run was made on: where `time_scale` is not 1, or the CPU was emulated, they are NOT
the rates of the hardware that was modelled; only ratios between arms carry over.

A phase that did not happen leaves `None` or an empty list, never zeros.
"""

# Schema history
#   1  2026-11  first version
#   2  2026-11  power runs of TPC-H, more arms; a document of version 1 is one of version 2
#   3  2026-11  prices and costs, parts, others_cpu and the command; one of version 2 is one of 3

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC
from math import exp, fsum, log
from typing import Annotated, Final, Literal, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

SCHEMA_VERSION: Final = 3

# How far a stated hit ratio may lie from hits / (hits + misses) of the same window: rounding only.
HIT_RATIO_TOLERANCE = 0.005
# Above this share of busy time the server's CPU, not its storage, set the pace.
CPU_BOUND_SHARE = 0.85

Share = Annotated[float, Field(ge=0, le=1)]
UtcTime = Annotated[AwareDatetime, AfterValidator(lambda time: time.astimezone(UTC))]
ArmName = Literal[
    "baseline", "split-disks", "in-memory", "flash-volume", "accelerated", "all-flash"
]
CheckedAfter = Literal["load", "every-arm"]
WarmupOrder = Literal["disk", "heat"]
State = Literal["complete", "failed", "interrupted"]
Workload = Literal["tpcc", "tpch"]


def geometric_mean(seconds: Iterable[float]) -> float:
    """Of positive times; one of zero counts as a microsecond, the clock's own doubt.

    >>> round(geometric_mean([1, 100]), 6)
    10.0
    """
    logs = [log(max(one, 1e-6)) for one in seconds]
    return exp(fsum(logs) / len(logs))


class Record(BaseModel):
    """An unknown key is an error that names it; a record never changes; no NaN, no infinity."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PublishedFigure(Record):
    """A figure of a published test, before and after."""

    before: PositiveFloat
    after: PositiveFloat


class Published(Record):
    """What somebody else measured with the set-up that an experiment reproduces."""

    source: str
    nopm: PublishedFigure | None = None
    tpm: PublishedFigure | None = None
    queries_s: PublishedFigure | None = None  # the 22 queries in sum
    hit_ratio: str = ""


class Prices(Record):
    """What the parts of a set-up cost, in one currency. What is not given is not known: an arm that
    needs it has no price."""

    currency: Annotated[str, Field(min_length=1, max_length=8)] = "USD"
    server: PositiveFloat
    origin: PositiveFloat | None = None
    """The slow storage with its disks."""
    split_disk: PositiveFloat | None = None
    """Each further slow disk of the `split-disks` arm."""
    flash_per_gb: PositiveFloat | None = None
    """A GB (10⁹ bytes) of flash."""
    memory_per_gb: PositiveFloat | None = None
    """A GB of the memory that the `in-memory` arm takes for its buffers."""


class Cost(Record):
    """What an arm of TPC-C costs, and what it gives for that; None: not known, or no gain."""

    arm: ArmName
    flash_bytes: NonNegativeInt
    price: PositiveFloat | None = None
    price_per_nopm: PositiveFloat | None = None
    gained_nopm_per_flash_gb: PositiveFloat | None = None
    """NOPM above the baseline's for each GB of flash."""
    price_per_gained_nopm: PositiveFloat | None = None
    """What it costs above the baseline for each NOPM above the baseline's."""


class Experiment(Record):
    name: str
    title: str
    spec: dict[str, JsonValue]  # resolved: every default filled in
    published: Published | None = None


class Failure(Record):
    """Why a run that is not complete stopped."""

    phase: str
    text: str


class Phase(Record):
    name: str
    state: Literal["done", "failed", "interrupted", "skipped"]
    seconds: NonNegativeFloat


class Tier(Record):
    kind: Literal["dm-cache", "bcache", "emulated"]
    mode: Literal["writeback", "writethrough", "writearound"]
    policy: str
    block_bytes: PositiveInt
    metadata_bytes: NonNegativeInt
    cache_bytes: PositiveInt
    volume_bytes: NonNegativeInt
    emulated: bool
    flash: str = ""
    """What holds cache and volume, in words."""


class Calibration(Record):
    """Figures of a storage device. Those of a modelled one are in model time (scaling undone)."""

    seq_read_mb_per_s: PositiveFloat | None = None
    seq_write_mb_per_s: PositiveFloat | None = None
    rand_read_iops: PositiveFloat | None = None
    rand_write_iops: PositiveFloat | None = None
    rand_read_latency_us: PositiveFloat | None = None
    rand_write_latency_us: PositiveFloat | None = None


class Storage(Record):
    """The slow storage (origin)."""

    kind: Literal["modelled", "device"]
    name: str
    description: str
    size_bytes: PositiveInt
    measured: Calibration | None = None
    expected: Calibration | None = None  # what the model promises; None for a device


class Host(Record):
    cpu: str
    cores: PositiveInt
    memory_bytes: PositiveInt
    kernel: str


class Machine(Record):
    """Where the commands ran; `host` is what carries it (the same figures when it is local)."""

    kind: Literal["vm", "local", "ssh", "image"]
    accel: Literal["kvm", "tcg"] | None = None
    cores: PositiveInt
    memory_bytes: PositiveInt
    kernel: str
    cpu_slowdown: PositiveFloat | None = None  # guest CPU time per host CPU time, same work
    host: Host


class Database(Record):
    engine: str
    version: str
    bytes: NonNegativeInt
    buffers_bytes: NonNegativeInt
    direct_io: bool = False  # the operating system's page cache is bypassed
    warehouses: PositiveInt
    users: PositiveInt
    tpch_scale: PositiveFloat | None = None
    """Scale factor of the TPC-H database beside it; `bytes` is of both."""
    tpch_bytes: NonNegativeInt = 0
    # When TPC-C's consistency conditions were checked, and held; None if never.
    checked_after: CheckedAfter | None = None


class Latency(Record):
    p50: NonNegativeFloat
    p95: NonNegativeFloat
    p99: NonNegativeFloat


class Counters(Record):
    """Differences of the cached device's counters between the window's end and its start.

    `dirty_blocks` and `used_blocks` are levels, not events: their differences may be negative.
    What the kind of tier does not count is None (bcache: writes, promotions, demotions).
    """

    read_hits: NonNegativeInt
    read_misses: NonNegativeInt
    write_hits: NonNegativeInt | None
    write_misses: NonNegativeInt | None
    promotions: NonNegativeInt | None
    demotions: NonNegativeInt | None
    dirty_blocks: int
    used_blocks: int
    bypassed: NonNegativeInt

    def hit_ratio(self) -> float | None:
        """hits / (hits + misses), as far as they are counted; None when nothing reached the
        device."""
        hits = self.read_hits + (self.write_hits or 0)
        total = hits + self.read_misses + (self.write_misses or 0)
        return hits / total if total else None


class Transaction(Record):
    """One kind of transaction in one window."""

    committed: NonNegativeInt
    rolled_back: NonNegativeInt = 0  # by specification (TPC-C's 1 % of new orders)
    retries: NonNegativeInt = 0
    failed: dict[str, NonNegativeInt] = Field(default_factory=dict)  # cause → how many
    latency_ms: Latency | None = None


class Second(Record):
    """One second of the window; every second is present, idle ones with zeros."""

    second: NonNegativeInt  # since the window began
    nopm: NonNegativeFloat  # new orders of this second × 60
    tpm: NonNegativeFloat
    failed: NonNegativeInt = 0
    latency_ms_p95: NonNegativeFloat | None = None
    hit_ratio: Share | None = None
    server_cpu: Share | None = None
    dirty_bytes: NonNegativeInt | None = None


class Part(Record):
    """Requests to the cached device for one table, index or file; ratios of what is counted."""

    name: str
    reads: NonNegativeInt
    writes: NonNegativeInt
    hit_ratio: Share | None = None
    read_hit_ratio: Share | None = None
    write_hit_ratio: Share | None = None


class Window(Record):
    """What the machine and the tier did while one arm was measured."""

    repeat: PositiveInt
    hit_ratio: Share | None = None
    read_hit_ratio: Share | None = None
    write_hit_ratio: Share | None = None
    server_cpu: Share
    server_iowait: Share
    server_steal: Share = 0  # what a hypervisor gave to others; server_cpu counts it as busy
    others_cpu: Share = 0  # of this computer's CPU, busy before the arm was set up
    duration_s: PositiveFloat
    counters: Counters | None = None

    @model_validator(mode="after")
    def _hit_ratio_comes_from_the_counters(self) -> Self:
        if self.hit_ratio is None:
            return self
        counted = self.counters.hit_ratio() if self.counters else None
        if counted is None:
            raise ValueError("hit_ratio without counters of hits and misses it could come from")
        if abs(counted - self.hit_ratio) > HIT_RATIO_TOLERANCE:
            raise ValueError(f"hit_ratio {self.hit_ratio} is not the counters' {counted:.4f}")
        return self


class Repeat(Window):
    """One measured window of TPC-C in one arm, after its ramp-up."""

    nopm: NonNegativeFloat
    tpm: NonNegativeFloat
    latency_ms: Latency | None = None
    failed: NonNegativeInt
    retries: NonNegativeInt
    rampup_s: NonNegativeFloat
    transactions: dict[str, Transaction] = Field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    """By table, where the tier counts its regions: of the whole run, the ramp-up included."""
    series: tuple[Second, ...] = ()


class Query(Record):
    """One of the 22 queries; `seconds` of one that timed out is the time it was given."""

    number: Annotated[int, Field(ge=1, le=22)]
    seconds: NonNegativeFloat
    outcome: Literal["ok", "timed out", "failed"] = "ok"
    rows: NonNegativeInt | None = None
    checksum: str | None = None
    cause: str = ""


class PowerRun(Window):
    """One power run of TPC-H in one arm: the queries in the order they ran."""

    queries: tuple[Query, ...]

    @property
    def complete(self) -> bool:
        """Every query came to its end."""
        return bool(self.queries) and all(query.outcome == "ok" for query in self.queries)

    @property
    def total_s(self) -> float:
        """Seconds of all queries; too few where one did not come to its end."""
        return sum(query.seconds for query in self.queries)

    @property
    def geometric_mean_s(self) -> float | None:
        """Of the queries' seconds; None unless all came to their end."""
        return geometric_mean(query.seconds for query in self.queries) if self.complete else None


class PowerArm(Record):
    """One arm of TPC-H."""

    name: ArmName
    repeats: tuple[PowerRun, ...] = ()

    @property
    def complete(self) -> bool:
        return bool(self.repeats) and all(run.complete for run in self.repeats)

    @property
    def cpu_bound(self) -> bool:
        return any(run.server_cpu > CPU_BOUND_SHARE for run in self.repeats)


class Arm(Record):
    name: ArmName
    workload: Literal["tpcc"] = "tpcc"
    repeats: tuple[Repeat, ...] = ()

    @property
    def cpu_bound(self) -> bool:
        """Whether the server's CPU, not its storage, set the pace in any repeat."""
        return any(repeat.server_cpu > CPU_BOUND_SHARE for repeat in self.repeats)


class WarmUpFigures(Record):
    method: Literal["offline", "read", "insert"]
    order: WarmupOrder = "disk"  # what a cache smaller than the databases took first
    bytes: NonNegativeInt
    seconds: NonNegativeFloat
    mb_per_s: NonNegativeFloat
    origin_mb_per_s: PositiveFloat  # sequential read of the origin alone, same machine and scale
    sampled_blocks: NonNegativeInt  # blocks compared, cache against origin
    differing_blocks: NonNegativeInt
    probe_hit_ratio: Share | None = None
    probe_hit_ratio_min: Share = 0.95  # what the experiment asked the probe to reach
    probe_seconds: NonNegativeFloat = 0


class WarmUpRepeat(WarmUpFigures):
    repeat: PositiveInt


class WarmUp(WarmUpFigures):
    """The figures over all repeats (rates: means), and those of each."""

    repeats: tuple[WarmUpRepeat, ...] = ()


class Factor(Record):
    """Accelerated against baseline, from `stats`; intervals are 95 %."""

    ratio: PositiveFloat
    ci_low: NonNegativeFloat
    ci_high: PositiveFloat
    ci_method: str
    significant: bool
    of_all_flash: NonNegativeFloat | None = None
    of_all_flash_ci_low: NonNegativeFloat | None = None
    of_all_flash_ci_high: NonNegativeFloat | None = None
    cpu_bound: bool

    @model_validator(mode="after")
    def _interval_agrees_with_verdict(self) -> Self:
        if not self.ci_low <= self.ratio <= self.ci_high:
            raise ValueError(f"ratio {self.ratio} outside {self.ci_low}–{self.ci_high}")
        if self.significant and self.ci_low <= 1 <= self.ci_high:
            raise ValueError(f"significant, though {self.ci_low}–{self.ci_high} contains 1")
        return self


class Caveat(Record):
    """One warning, filled in. `code` is a member of `caveats.Code`, or the harness's own."""

    code: str
    text: str
    advice: str


class RunDocument(Record):
    schema_version: Literal[1, 2, 3] = SCHEMA_VERSION
    hotset_version: str = ""
    run: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    command: tuple[str, ...] = ()
    """What made it; the experiment's file is `experiment.spec` with every default filled in."""
    state: State
    failure: Failure | None = None
    started_at: UtcTime
    seconds: NonNegativeFloat
    experiment: Experiment
    phases: tuple[Phase, ...] = ()
    tier: Tier | None = None
    storage: Storage | None = None
    machine: Machine | None = None
    time_scale: PositiveFloat = 1.0  # the modelled storage runs this many times slower than real
    database: Database | None = None
    arms: tuple[Arm, ...] = ()
    power_arms: tuple[PowerArm, ...] = ()
    warmup: WarmUp | None = None
    factors: dict[Workload, Factor | None] = Field(default_factory=dict)
    prices: Prices | None = None
    costs: tuple[Cost, ...] = ()
    warnings: tuple[Caveat, ...] = ()

    @model_validator(mode="after")
    def _each_arm_once(self) -> Self:
        for arms in (self.arms, self.power_arms):
            names = [arm.name for arm in arms]
            if len(names) != len(set(names)):
                raise ValueError(f"an arm appears twice: {names}")
        return self

    def arm(self, name: ArmName) -> Arm | None:
        """TPC-C's arm of that name if it has at least one repeat."""
        return next((arm for arm in self.arms if arm.name == name and arm.repeats), None)

    def power_arm(self, name: ArmName) -> PowerArm | None:
        """TPC-H's arm of that name if it has at least one repeat."""
        return next((arm for arm in self.power_arms if arm.name == name and arm.repeats), None)

    def factor(self, workload: Workload = "tpcc") -> Factor | None:
        return self.factors.get(workload)
