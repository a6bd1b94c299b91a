"""Measurements of a window: throughput, latency, use of time, traffic of devices."""

from __future__ import annotations

from collections.abc import Iterable
from math import exp, fsum, log
from typing import Annotated, Literal, Self, get_args

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from hotset.core.sql import TimeClass

from .base import Record, Share, UtcTime

# How far a stated hit ratio may lie from hits / (hits + misses) of the same window: rounding only.
HIT_RATIO_TOLERANCE = 0.005
# How far shares of time may be from 1 in sum: rounding only.
TIME_TOLERANCE = 0.01
DUE_LEAST = 10
"""So many are due where none came: chance alone leaves them out once in 22,000 (Poisson)."""
Measure = Literal["tpm", "latency_ms", "reads"]


_NOT_DURABLE = (
    ("fsync", "off"),
    ("synchronous_commit", "off"),
    ("full_page_writes", "off"),
    ("delayed durability", "FORCED"),
)


def geometric_mean(seconds: Iterable[float]) -> float:
    """Compute the geometric mean of positive times; zero counts as 1 µs (the clock's resolution).

    >>> round(geometric_mean([1, 100]), 6)
    10.0
    """
    logs = [log(max(second, 1e-6)) for second in seconds]
    return exp(fsum(logs) / len(logs))


class Latency(Record):
    """Latencies of committed transactions, from sending to commit; in a run with a rate from the
    time they were due. Attempts that had to be repeated, and the pauses between, are included; what
    did not end counts with its age.
    Values are good to 0.1 % or a microsecond; None: the driver does not tell."""

    mean: NonNegativeFloat | None = None
    p50: NonNegativeFloat | None = None
    p90: NonNegativeFloat | None = None
    p95: NonNegativeFloat | None = None
    p99: NonNegativeFloat | None = None
    p99_9: NonNegativeFloat | None = None
    p99_99: NonNegativeFloat | None = None
    max: NonNegativeFloat | None = None
    histogram: str | None = Field(default=None, repr=False)
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
    """Counters of the database server itself over a while; None: it does not count that. Reads are
    of data pages that its buffers did not hold; the log is separate."""

    seconds: PositiveFloat
    reads: NonNegativeInt | None = None
    read_bytes: NonNegativeInt | None = None
    read_ms: NonNegativeInt | None = None
    """Time that readers waited."""
    writes: NonNegativeInt | None = None
    write_bytes: NonNegativeInt | None = None
    write_ms: NonNegativeInt | None = None
    fsyncs: NonNegativeInt | None = None
    """Syncs of data files."""
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
    """Traffic of a device over a while."""

    name: str
    """Role for the database: ``origin``, ``flash cache``, ``flash volume``, ``log``, …"""
    counted_by: Literal["engine", "kernel"]
    read: DirectionUse
    write: DirectionUse
    utilisation: Share
    """Share of the time with at least one request under way."""

    @property
    def is_cache(self) -> bool:
        """True if it is the part of the flash that caches."""
        return self.name == "flash cache"

    @property
    def queue(self) -> float:
        """Reads and writes under way, on average."""
        return self.read.queue + self.write.queue


class Transaction(Record):
    """One kind of transaction in one window."""

    committed: NonNegativeInt
    rolled_back: NonNegativeInt = 0  # by specification (TPC-C's 1 % of new orders)
    retries: NonNegativeInt = 0
    retry_causes: dict[str, NonNegativeInt] = Field(default_factory=dict)
    """Cause → how many."""
    failed: dict[str, NonNegativeInt] = Field(default_factory=dict)
    """Given up, by cause, in the server's words."""
    latency_ms: Latency | None = None
    """Latency of those that began in the window, whenever they ended; None: none was committed."""
    unfinished: NonNegativeInt = 0
    """Number of those that began in the window and had not ended when the users were stopped."""

    @property
    def completed(self) -> int:
        """Transactions that did what they were to do."""
        return self.committed + self.rolled_back

    @property
    def attempted(self) -> int:
        """All of them."""
        return self.completed + sum(self.failed.values()) + self.unfinished


class Second(Record):
    """One second of the window; every second is present, idle ones with zeros."""

    second: NonNegativeInt  # since the window began
    nopm: NonNegativeFloat | None = None  # new orders of this second × 60; None but in TPC-C
    tpm: NonNegativeFloat
    failed: NonNegativeInt = 0
    late: NonNegativeInt = 0  # of those due in it, as are the skipped: see `Arrived`
    skipped: NonNegativeInt = 0
    latency_ms_mean: NonNegativeFloat | None = None
    latency_ms_p50: NonNegativeFloat | None = None
    latency_ms_p95: NonNegativeFloat | None = None
    latency_ms_p99: NonNegativeFloat | None = None
    hit_ratio: Share | None = None
    server_cpu: Share | None = None
    time: TimeUse | None = None
    dirty_bytes: NonNegativeInt | None = None
    devices: tuple[DeviceUse, ...] = ()

    @property
    def rate(self) -> float:
        """Throughput in the unit of `Repeat.rate`."""
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
    """Steadiness of a series over the fifths of a window, as SNIA's PTS defines it: from round to
    round 20 % of the average, the fitted line 10 %. Shares are of the average."""

    of: str
    """``all``, or a kind of transaction."""
    measure: Measure
    """``reads``: of pages, per transaction."""
    rounds: tuple[NonNegativeFloat, ...]
    """The values, one per fifth of the window."""
    excursion: NonNegativeFloat
    """The greatest difference between two rounds, what chance explains taken off."""
    slope: float
    """Change of the best straight line over the rounds, likewise."""
    second: NonNegativeInt
    """Where the round begins that lies furthest from the average."""
    steady: bool | None
    """None: not known, as chance alone would explain more than what is asked. Before version 11
    this counted as steady."""


class Window(Record):
    """Activity of the machine and the tier while one arm was measured."""

    repeat: PositiveInt = 1
    opened_at: UtcTime | None = None
    hit_ratio: Share | None = None
    read_hit_ratio: Share | None = None
    write_hit_ratio: Share | None = None
    server_cpu: Share | None = None
    """This and the wait for I/O are None where the server was not sampled, as a measurement of a
    database need not do."""
    server_user: Share | None = None
    server_system: Share | None = None
    server_iowait: Share | None = None
    server_steal: Share = 0  # what a hypervisor gave to others; server_cpu counts it as busy
    others_cpu: Share = 0  # of this computer's CPU, busy before the arm was set up
    duration_s: PositiveFloat
    counters: Counters | None = None
    devices: tuple[DeviceUse, ...] = ()

    @property
    def span(self) -> tuple[float, float]:
        """When it began and ended, in seconds since 1970, as its driver told."""
        assert self.opened_at is not None
        opened = self.opened_at.timestamp()
        return opened, opened + self.duration_s

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
    text: str
    """In words."""
    users: PositiveInt | None = None
    """Number of users, for a window of a curve over users."""


class ServerRate(Record):
    """Transactions that the whole server committed and rolled back, per minute, in the interval
    until `at` (seconds since 1970)."""

    at: NonNegativeFloat
    tpm: NonNegativeInt


class ServerErrors(Record):
    """Errors that the server itself counted in a run; a driver may not have seen all of them."""

    deadlocks: NonNegativeInt
    """In this database; of the instance on SQL Server."""
    errors: NonNegativeInt
    """Rollbacks of this database on PostgreSQL (a clean run has few, those of clause 2.4.1.4 not
    among them where a procedure rolls back by itself); errors sent to users by the instance on SQL
    Server."""


class Condition(Record):
    """One of TPC-C's twelve consistency conditions: how many keys violate it, and the first of them
    with the differing values."""

    number: PositiveInt
    title: str
    holds: bool
    violations: NonNegativeInt
    examples: tuple[tuple[int | float | str | None, ...], ...] = ()

    def __str__(self) -> str:
        """One line, with an example where there is one."""
        if self.holds:
            return f"condition {self.number} holds ({self.title})"
        example = ", ".join(map(str, self.examples[0]))
        times = f"{self.violations:,} violation{'s' if self.violations > 1 else ''}"
        return f"condition {self.number} ({self.title}): {times}, such as ({example})"


class PlanChange(Record):
    """A statement whose plan is another one than before the run."""

    kind: str
    what: str
    before: str
    after: str
    latency_ms: tuple[NonNegativeFloat, NonNegativeFloat] | None = None
    """Its kind's mean latency in the first and the last fifth of the window; None where the window
    was too short to tell."""


class Arrived(Record):
    """Outcome of the transactions that were due in a window with a given rate."""

    rate_per_s: PositiveFloat
    due: NonNegativeInt
    late: NonNegativeInt
    """Started more than a millisecond after they were due, as no user was free."""
    skipped: NonNegativeInt
    """Given up without a start."""
    growth: float | None = None
    """By how many those that waited or were under way grew over the window, by the best line
    through their number at each second's end."""


class Unfinished(Record):
    """Transactions that had not ended when the users were sent home, long after the window."""

    count: PositiveInt
    """All of them, those of the ramp-up too."""
    oldest_s: float
    """For how long the oldest had been under way when the window closed."""


class Preparation(Record):
    """The load that ran on an arm's server before the first of its windows, the same in every arm:
    until what its devices read was level, or for as long as was allowed."""

    users: PositiveInt
    seconds: PositiveFloat
    limit_s: PositiveFloat
    level: bool | None = None
    """True if reads per transaction were level (per second, where the transactions are too few to
    tell), once the server had read as much as its buffers hold. False also where it had not; None:
    not known."""
    read_bytes: NonNegativeInt | None = None
    """By the server; None: not counted."""
    reads_per_s: tuple[NonNegativeFloat | None, ...] = ()
    """Reads of all devices, in each second; None: not seen."""
    transactions_per_s: tuple[NonNegativeFloat, ...] = ()
    """In the same seconds."""


class Repeat(Window):
    """One measured window in one arm, after its ramp-up.

    HammerDB tells less, and more of its own. `nopm` is what it says then; `tpm` is worked out from
    it by the mix of all calls, which include the ramp-up, and so are the counts in `transactions`;
    latencies are of ramp-up and window together; `series` is empty, and instead there are the
    figures of the server.
    """

    users: PositiveInt | None = None
    """None in documents before version 6: the database record's."""
    partial: bool = False
    """It ended before its time."""
    nopm: NonNegativeFloat | None = None
    """New-orders committed per minute; None but in TPC-C."""
    nopm_by_district: float | None = None
    """Change of sum(d_next_o_id) per minute, which is how HammerDB counts: a cross-check by the
    server, apart from `nopm` by the orders under way at the edges of the window."""
    tpm: NonNegativeFloat
    """Transactions of all kinds committed per minute, the same on every engine."""
    server_tpm: NonNegativeFloat | None = None
    """HammerDB's TPM: the server's own commits and rollbacks, of all clients."""
    server_series: tuple[ServerRate, ...] = ()
    """The same by interval, ramp-up included."""
    server_errors: ServerErrors | None = None
    """With HammerDB, ramp-up included."""
    latency_ms: Latency | None = None
    failed: NonNegativeInt
    retries: NonNegativeInt
    rampup_s: NonNegativeFloat
    rampup_read_bytes: NonNegativeInt | None = None
    """Bytes that the server read in the ramp-up; None: not counted."""
    preparation: Preparation | None = None
    """Before that; None: not on record."""
    arrived: Arrived | None = None
    """Where transactions arrived at a given rate; latencies are from the time each was due."""
    unfinished: Unfinished | None = None
    transactions: dict[str, Transaction] = Field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    """By table, where the tier counts its regions: of the whole run, the ramp-up included."""
    steadiness: tuple[Steadiness, ...] = ()
    """Empty of windows too short to judge."""
    plan_changes: tuple[PlanChange, ...] = ()
    conditions: tuple[Condition, ...] | None = None
    """TPC-C's, after it; None: they were not checked."""
    warnings: tuple[Caveat, ...] = ()
    """Messages of the database or its server that make its values doubtful."""
    items: Literal["nurand", "uniform"] | None = None
    """How items and customers were drawn; this, isolation and seed are None in documents before
    version 12, and but in TPC-C."""
    hottest_fifth: Share | None = None
    """Share of the accesses to STOCK that its hottest 20 % of blocks of 64 KiB got by that draw."""
    isolation: str | None = None
    """The level of the users' sessions, as the server says; None also where it does not."""
    seed: int | None = None
    """None also where the driver takes none."""
    settings: dict[str, str] | None = None
    """The server's that decide what a commit costs, as the run began; None: it does not tell."""
    orders_before: int | None = None
    """Orders that runs had added to the load when the window opened: the database's age."""
    time: TimeUse | None = None
    time_missing: str = ""
    """Part of the users' time that could not be seen, and what permits it."""
    server_io: ServerIo | None = None
    server_io_missing: str = ""
    """Counters that the server lacks or hides, and the version or permission they need."""
    series: tuple[Second, ...] = ()

    @property
    def rate(self) -> float:
        """Throughput by which arms are compared: NOPM in TPC-C, else transactions a second."""
        return self.tpm / 60 if self.nopm is None else self.nopm

    @property
    def loses_commits(self) -> list[str]:
        """Settings by which a crash of the server loses what was committed."""
        held = self.settings or {}
        return [f"{name} = {value}" for name, value in _NOT_DURABLE if held.get(name) == value]

    @property
    def idle_seconds(self) -> list[int]:
        """Whole seconds without a commit, where chance alone leaves none: `DUE_LEAST` a second or
        more are committed on average."""
        if self.tpm < DUE_LEAST * 60:
            return []
        whole = self.series[: int(self.duration_s)]
        return [point.second for point in whole if not point.tpm]

    @property
    def not_steady(self) -> list[Steadiness]:
        """Series that did not stay steady."""
        return [verdict for verdict in self.steadiness if verdict.steady is False]

    @property
    def not_known(self) -> list[Steadiness]:
        """Series of throughput and reads that cannot be shown to be steady."""
        rates = [verdict for verdict in self.steadiness if verdict.measure != "latency_ms"]
        return [rate for rate in rates if rate.steady is None]

    @property
    def steady(self) -> bool | None:
        """True if throughput and reads are steady, and no latency is known not to be. None: not
        known, or not judged."""
        if self.not_steady:
            return False
        return True if self.steadiness and not self.not_known else None


RESPONSE_LIMITS_S = {
    **dict.fromkeys(("new_order", "payment", "order_status", "delivery"), 5),
    "stock_level": 20,
}
"""TPC-C's, clause 5.2.5.3: 90 % of each kind take at most so long."""


class RateTrial(Record):
    """A window in which transactions arrived at one rate."""

    rate_per_s: PositiveFloat
    reached_per_s: NonNegativeFloat
    missed: str
    """Why the rate does not hold; empty where it does."""
    seed: int | None = None
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
    unpaced_per_s: PositiveFloat | None = None
    """Rate of the users without pause; None: not on record."""
    trials: tuple[RateTrial, ...]

    @model_validator(mode="after")
    def _ends_are_in_order(self) -> Self:
        if self.rate_per_s is not None and self.rate_per_s > self.failed_per_s:
            raise ValueError(f"{self.rate_per_s}/s held, though {self.failed_per_s}/s did not")
        return self


class Query(Record):
    """One of the 22 queries; `seconds` of one that timed out is the time it was given."""

    number: Annotated[int, Field(ge=1, le=22)]
    seconds: NonNegativeFloat
    outcome: Literal["ok", "timed out", "failed"] = "ok"
    rows: NonNegativeInt | None = None
    checksum: str | None = None
    cause: str = ""


class PowerRun(Window):
    """One power run of TPC-H (clause 5.3.3) in one arm: the queries in the order they ran."""

    queries: tuple[Query, ...]
    scale: PositiveFloat | None = None
    """None in documents that have it in their experiment alone."""
    seed: int | None = None
    """Seed of the queries' parameters; None: the validation parameters."""
    refresh_s: tuple[NonNegativeFloat, NonNegativeFloat] | None = None
    """RF1 before the queries and RF2 after them (clause 2.5); None: not run."""
    cause: str = ""
    """Cause of its early end, in the server's words."""
    tproc_h_power: NonNegativeFloat | None = None
    """As clause 5.4.1; None: one of its 24 times is missing."""

    @property
    def complete(self) -> bool:
        """Every query finished, and nothing ended the run before that."""
        finished = all(query.outcome == "ok" for query in self.queries)
        return bool(self.queries) and finished and not self.cause

    @property
    def total_s(self) -> float:
        """Seconds of all queries; too few where one did not finish."""
        return fsum(query.seconds for query in self.queries)

    @property
    def geometric_mean_s(self) -> float | None:
        """Geometric mean of the queries' seconds; None unless it is complete."""
        return geometric_mean(query.seconds for query in self.queries) if self.complete else None


class QueryStream(Record):
    """One of the query streams of a throughput run."""

    number: PositiveInt
    opened_at: UtcTime
    duration_s: NonNegativeFloat
    queries: tuple[Query, ...]


class ThroughputRun(Record):
    """One throughput run of TPC-H (clause 5.3.4): query streams side by side, and beside them one
    refresh stream."""

    opened_at: UtcTime
    duration_s: PositiveFloat
    """The measurement interval (clause 5.3.6)."""
    streams: tuple[QueryStream, ...]
    refresh_s: tuple[tuple[NonNegativeFloat, NonNegativeFloat], ...] | None = None
    """A pair of RF1 and RF2 for each query stream; None: not run."""
    cause: str = ""
    """Cause of a stream's early end, in the server's words."""
    tproc_h_throughput: NonNegativeFloat | None = None
    """As clause 5.4.2; None: an answer or a refresh function is missing."""
    tproc_h_composite: NonNegativeFloat | None = None
    """As clause 5.4.3, of it and the power run before it."""

    @property
    def complete(self) -> bool:
        """Every query of every stream finished, and nothing ended one before that."""
        queries = (query for stream in self.streams for query in stream.queries)
        return not self.cause and all(query.outcome == "ok" for query in queries)
