"""The result document: one run of one experiment. `hotset runs show --format json` prints it.

Units are the last word of a name. Ratios and shares run from 0 to 1. Rates are wall-clock rates of
the machine the run was made on: where `time_scale` is not 1, or the CPU was emulated, they are NOT
the rates of the hardware that was modelled; only ratios between arms carry over.

A phase that did not happen leaves `None` or an empty list, never zeros.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC
from itertools import chain
from math import exp, fsum, log
from typing import Annotated, Literal, Self, get_args

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

from .schema import SCHEMA_VERSION

# How far a stated hit ratio may lie from hits / (hits + misses) of the same window: rounding only.
HIT_RATIO_TOLERANCE = 0.005
# How far shares of time may be from 1 in sum: rounding only.
TIME_TOLERANCE = 0.01
# Above this share of busy time the server's CPU, not its storage, set the pace.
CPU_BOUND_SHARE = 0.85

Share = Annotated[float, Field(ge=0, le=1)]
UtcTime = Annotated[AwareDatetime, AfterValidator(lambda time: time.astimezone(UTC))]
PolicyArm = Literal["hotset", "smq", "lru", "sieve", "s3-fifo", "arc"]
"""As `accelerated`, with this policy of hotset's own engine."""
POLICY_ARMS: tuple[PolicyArm, ...] = get_args(PolicyArm)
ArmName = (
    Literal["baseline", "split-disks", "in-memory", "flash-volume", "accelerated", "all-flash"]
    | PolicyArm
)
CACHED_ARMS: tuple[ArmName, ...] = ("accelerated", *POLICY_ARMS)
CheckedAfter = Literal["load", "every-arm"]
WarmupOrder = Literal["disk", "heat"]
State = Literal["complete", "failed", "interrupted"]
TimedWorkload = Literal["tpcc", "sql"]
"""Many users for a while; an experiment has one of them, or none."""
_TIMED: tuple[TimedWorkload, ...] = get_args(TimedWorkload)
Workload = Literal["tpcc", "tpch", "sql"]
TimeClass = Literal["cpu", "data_read", "data_write", "log", "lock", "client", "other"]


def geometric_mean(seconds: Iterable[float]) -> float:
    """Of positive times; one of zero counts as a microsecond, the clock's own doubt.

    >>> round(geometric_mean([1, 100]), 6)
    10.0
    """
    logs = [log(max(one, 1e-6)) for one in seconds]
    return exp(fsum(logs) / len(logs))


class Record(BaseModel):
    """An unknown key is an error that names it; a record never changes; no NaN, no infinity."""

    # Built when first used: a list of runs reads none of them.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True)


class PublishedFigure(Record):
    """A figure of a published test, before and after."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    before: PositiveFloat
    """Without the cache."""
    after: PositiveFloat
    """With the cache."""


class Published(Record):
    """What somebody else measured with the set-up that an experiment reproduces. The report puts
    it beside the measured values."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    source: str
    """Whose test it is, as the report names it."""
    nopm: PublishedFigure | None = None
    """New orders a minute."""
    tpm: PublishedFigure | None = None
    """Transactions a minute."""
    queries_s: PublishedFigure | None = None
    """Seconds of the 22 TPC-H queries together."""
    hit_ratio: str = ""
    """The hit ratio, as the source gives it."""


class Prices(Record):
    """What the parts of a set-up cost, in one currency. An arm that needs a part without a price
    has no price itself."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    currency: Annotated[str, Field(min_length=1, max_length=8)] = "USD"
    """Its name, as the report prints it."""
    server: PositiveFloat
    """The server without disks and flash."""
    origin: PositiveFloat | None = None
    """The slow storage with its disks."""
    split_disk: PositiveFloat | None = None
    """Each further slow disk of the `split-disks` arm."""
    flash_per_gb: PositiveFloat | None = None
    """A GB (10⁹ bytes) of flash."""
    memory_per_gb: PositiveFloat | None = None
    """A GB of the memory that the `in-memory` arm takes for its buffers."""


class Cost(Record):
    """What an arm costs, and what it gives for that; None: not known, or no gain. Of SQL of one's
    own, NOPM here are transactions a second."""

    arm: ArmName
    flash_bytes: NonNegativeInt
    price: PositiveFloat | None = None
    price_per_nopm: PositiveFloat | None = None
    gained_nopm_per_flash_gb: PositiveFloat | None = None
    """NOPM above the baseline's for each GB of flash."""
    price_per_gained_nopm: PositiveFloat | None = None
    """What it costs above the baseline for each NOPM above the baseline's."""


class Script(Record):
    """A script of one's own SQL, as it was run."""

    name: str
    weight: PositiveInt
    text: str


class Experiment(Record):
    name: str
    title: str
    spec: dict[str, JsonValue]  # resolved: every default filled in
    scripts: tuple[Script, ...] = ()
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
    kind: Literal["dm-cache", "bcache", "userspace"]
    mode: Literal["writeback", "writethrough", "writearound"]
    policy: str
    block_bytes: PositiveInt
    metadata_bytes: NonNegativeInt
    cache_bytes: PositiveInt
    volume_bytes: NonNegativeInt
    emulated: bool
    """Whether the flash was a model."""
    flash: str = ""
    """What holds cache and volume, in words."""

    @model_validator(mode="before")
    @classmethod
    def _of_an_earlier_version(cls, given: object) -> object:
        """hotset's own engine between models was a kind of its own once."""
        if isinstance(given, dict) and given.get("kind") == "emulated":
            return {**given, "kind": "userspace", "emulated": True}
        return given


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

    kind: Literal["vm", "uml", "local", "ssh", "image"]
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
    warehouses: PositiveInt | None = None
    """Of TPC-C."""
    users: PositiveInt | None = None
    """None where there are only the 22 queries."""
    driver: Literal["hotset", "hammerdb"] = "hotset"
    """What built TPC-C's database and drove its users. HammerDB tells no single seconds and no
    latency of all transactions together."""
    tpch_scale: PositiveFloat | None = None
    """Scale factor of the TPC-H database beside it; `bytes` is of both."""
    tpch_bytes: NonNegativeInt = 0
    # When TPC-C's consistency conditions were checked, and held; None if never.
    checked_after: CheckedAfter | None = None


class Latency(Record):
    """Percentiles; what the driver does not tell is None."""

    p50: NonNegativeFloat
    p90: NonNegativeFloat | None = None
    p95: NonNegativeFloat
    p99: NonNegativeFloat
    p99_9: NonNegativeFloat | None = None
    p99_99: NonNegativeFloat | None = None
    histogram: str | None = None
    """All of them: an HDR histogram of microseconds in its own text (V2, deflated, base64)."""


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


class TimeUse(Record):
    """Where the users' time went, as shares of it: sampled sessions of the database."""

    cpu: Share
    """Running, or waiting for a CPU."""
    data_read: Share
    data_write: Share
    log: Share
    """Writing and flushing the log."""
    lock: Share
    client: Share
    """The network and the client: the server waits for its user."""
    other: Share
    sessions: NonNegativeFloat
    """How many there were, on average."""

    @model_validator(mode="after")
    def _shares_add_up(self) -> Self:
        total = fsum(getattr(self, name) for name in get_args(TimeClass))
        if abs(total - 1) > TIME_TOLERANCE:
            raise ValueError(f"the shares of time add up to {total:.3f}, not 1")
        return self


class ServerIo(Record):
    """What the database server itself counted in a while; None: it does not count that. The data
    files' pages that were read passed by the server's buffers; the log is apart."""

    seconds: PositiveFloat
    reads: NonNegativeInt | None = None
    read_bytes: NonNegativeInt | None = None
    read_ms: NonNegativeInt | None = None
    """What readers waited."""
    writes: NonNegativeInt | None = None
    write_bytes: NonNegativeInt | None = None
    write_ms: NonNegativeInt | None = None
    fsyncs: NonNegativeInt | None = None
    """Of data files."""
    log_bytes: NonNegativeInt | None = None
    log_writes: NonNegativeInt | None = None
    log_syncs: NonNegativeInt | None = None


class DirectionUse(Record):
    """Reads or writes of a device in a while. Latencies: None where no request ended, the 99th
    percentile also where it is not counted."""

    iops: NonNegativeFloat
    mb_per_s: NonNegativeFloat
    latency_ms_mean: NonNegativeFloat | None = None
    latency_ms_p99: NonNegativeFloat | None = None
    queue: NonNegativeFloat
    """How many were under way, on average."""


class DeviceUse(Record):
    """What went through a device in a while."""

    name: str
    """What it is to the database: ``origin``, ``flash cache``, ``flash volume``, ``log``, …"""
    counted_by: Literal["engine", "kernel"]
    read: DirectionUse
    write: DirectionUse
    utilisation: Share
    """Of the time, with at least one request under way."""

    @property
    def queue(self) -> float:
        """Reads and writes under way, on average."""
        return self.read.queue + self.write.queue


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
    nopm: NonNegativeFloat | None = None  # new orders of this second × 60; None but in TPC-C
    tpm: NonNegativeFloat
    failed: NonNegativeInt = 0
    latency_ms_p95: NonNegativeFloat | None = None
    hit_ratio: Share | None = None
    server_cpu: Share | None = None
    time: TimeUse | None = None
    dirty_bytes: NonNegativeInt | None = None
    devices: tuple[DeviceUse, ...] = ()

    @property
    def rate(self) -> float:
        """As `Repeat.rate`."""
        return self.tpm / 60 if self.nopm is None else self.nopm


class Part(Record):
    """Requests to the cached device for one table, index or file; ratios of what is counted."""

    name: str
    reads: NonNegativeInt
    writes: NonNegativeInt
    hit_ratio: Share | None = None
    read_hit_ratio: Share | None = None
    write_hit_ratio: Share | None = None


class Steadiness(Record):
    """Whether a series stayed steady over the fifths of a window, as SNIA's PTS defines it: from
    round to round 20 % of the average, the fitted line 10 %. Shares are of the average."""

    of: str
    """``all``, or a kind of transaction."""
    measure: Literal["tpm", "latency_ms"]
    rounds: tuple[NonNegativeFloat, ...]
    excursion: NonNegativeFloat
    slope: float
    second: NonNegativeInt
    """Where the round begins that lies furthest from the average."""
    steady: bool


class Window(Record):
    """What the machine and the tier did while one arm was measured."""

    repeat: PositiveInt
    hit_ratio: Share | None = None
    read_hit_ratio: Share | None = None
    write_hit_ratio: Share | None = None
    server_cpu: Share
    server_user: Share | None = None
    server_system: Share | None = None
    server_iowait: Share
    server_steal: Share = 0  # what a hypervisor gave to others; server_cpu counts it as busy
    others_cpu: Share = 0  # of this computer's CPU, busy before the arm was set up
    duration_s: PositiveFloat
    counters: Counters | None = None
    devices: tuple[DeviceUse, ...] = ()

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


class Arrived(Record):
    """What became of the transactions that were due in a window with a given rate."""

    rate_per_s: PositiveFloat
    due: NonNegativeInt
    late: NonNegativeInt
    """Started more than a millisecond after they were due, as no user was free."""
    skipped: NonNegativeInt
    """Given up without a start."""


class Repeat(Window):
    """One measured window in one arm, after its ramp-up."""

    users: PositiveInt | None = None
    """None in documents before version 6: the database record's."""
    nopm: NonNegativeFloat | None = None
    """None but in TPC-C."""
    tpm: NonNegativeFloat
    latency_ms: Latency | None = None
    failed: NonNegativeInt
    retries: NonNegativeInt
    rampup_s: NonNegativeFloat
    arrived: Arrived | None = None
    """Where transactions arrived at a given rate; latencies are from the time each was due."""
    transactions: dict[str, Transaction] = Field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    """By table, where the tier counts its regions: of the whole run, the ramp-up included."""
    steadiness: tuple[Steadiness, ...] = ()
    """Empty of windows too short to judge."""
    orders_before: int | None = None
    """Orders that runs had added to the load when the window opened: the database's age."""
    time: TimeUse | None = None
    time_missing: str = ""
    """What of the users' time could not be seen, and what permits it."""
    server_io: ServerIo | None = None
    server_io_missing: str = ""
    """What the server does not count or show, and what version or permission does."""
    series: tuple[Second, ...] = ()

    @property
    def rate(self) -> float:
        """What arms are compared by: NOPM in TPC-C, else transactions a second."""
        return self.tpm / 60 if self.nopm is None else self.nopm


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
        """Seconds of all queries; too few where one did not finish."""
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


class RateTrial(Record):
    """A window in which transactions arrived at one rate."""

    rate_per_s: PositiveFloat
    reached_per_s: NonNegativeFloat
    missed: str
    """Why the rate does not hold; empty where it does."""
    latency_ms: Latency | None = None
    """From the time at which each transaction was due."""


class HighestRate(Record):
    """A search for the highest rate of transactions that meets the limits, in one arm."""

    repeat: PositiveInt
    limits: tuple[str, ...]
    users: PositiveInt
    rate_per_s: PositiveFloat | None = None
    """The highest that held; None where not even the lowest did."""
    failed_per_s: PositiveFloat
    """The lowest that did not, or what the users get done without pause."""
    trials: tuple[RateTrial, ...]

    @model_validator(mode="after")
    def _ends_are_in_order(self) -> Self:
        if self.rate_per_s is not None and self.rate_per_s > self.failed_per_s:
            raise ValueError(f"{self.rate_per_s}/s held, though {self.failed_per_s}/s did not")
        return self


class Arm(Record):
    name: ArmName
    workload: TimedWorkload = "tpcc"
    repeats: tuple[Repeat, ...] = ()
    """Of a curve over users, the windows with the most of them: all else in the document, factors
    too, is of these."""
    curve: tuple[Repeat, ...] = ()
    """A curve's windows with fewer users."""
    rates: tuple[HighestRate, ...] = ()

    @property
    def rate_per_s(self) -> float | None:
        """At which transactions arrived; None where users start one when the last is done."""
        return next((one.arrived.rate_per_s for one in self.repeats if one.arrived), None)

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

    @property
    def has_interval(self) -> bool:
        """One repeat whose seconds are not known, or too few, has no spread."""
        return self.ci_low != self.ci_high

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


class Verdict(Record):
    """A threshold of the experiment, and what was measured; None: nothing was."""

    threshold: str
    measured: float | None
    met: bool
    said: str
    """In words."""


class PredictedArm(Record):
    """TPC-C of an arm as it was predicted, and as it was measured: means of the repeats."""

    arm: ArmName
    users: PositiveInt
    hit_ratio: Share
    """Measured; 0 of the baseline, 1 of an arm without a cache."""
    measured_nopm: PositiveFloat
    predicted_nopm: NonNegativeFloat
    predicted_nopm_low: NonNegativeFloat
    predicted_nopm_high: NonNegativeFloat
    error: float
    """Of the prediction, by the measured NOPM."""
    in_range: bool
    """Whether the measured mean lies in the prediction's range."""


class Predictions(Record):
    """What an earlier run let predict of this one, so that each run tests the model."""

    learned_from: str
    """The earlier run."""
    arms: tuple[PredictedArm, ...]

    @property
    def mean_error(self) -> float:
        """Of the errors' sizes."""
        return fsum(abs(one.error) for one in self.arms) / len(self.arms)


class RunDocument(Record):
    schema_version: Literal[1, 2, 3, 4, 5, 6, 7, 8, 9] = SCHEMA_VERSION
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
    rate_factor: Factor | None = None
    """Of the highest rates that meet the experiment's limits: the factor that users feel."""
    thresholds: tuple[Verdict, ...] = ()
    predictions: Predictions | None = None
    """None where no earlier run could teach anything of this one."""
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

    @property
    def timed(self) -> TimedWorkload | None:
        """The workload of `arms`; None where the experiment has the 22 queries alone."""
        asked = (name for name in _TIMED if self.experiment.spec.get(name))
        measured = (arm.workload for arm in self.arms)
        return next(chain(asked, measured), None)

    def arm(self, name: ArmName) -> Arm | None:
        """The arm of that name if it has at least one repeat."""
        return next((arm for arm in self.arms if arm.name == name and arm.repeats), None)

    def power_arm(self, name: ArmName) -> PowerArm | None:
        """TPC-H's arm of that name if it has at least one repeat."""
        return next((arm for arm in self.power_arms if arm.name == name and arm.repeats), None)

    def factor(self, workload: Workload | None = None) -> Factor | None:
        """:param workload: None: that of `arms`."""
        wanted = workload or self.timed
        return self.factors.get(wanted) if wanted else None
