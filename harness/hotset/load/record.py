"""What a run leaves: records for the observer, the result, and how it fails."""

from dataclasses import dataclass, field
from typing import Literal

from hotset.core.errors import HotsetError

from .steady import Steadiness

HIGHEST_RATE_PER_S = 100_000
DRAIN_S = 10.0
"""How long transactions under way at the end may take to finish; what was due in the window may
wait for a user before that."""
PATIENCE_S = 10.0
"""One that waited for so long for a free user is given up: skipped."""
PhaseName = Literal["rampup", "measure", "done"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowOptions:
    """How to run a workload, whatever it does. Times are in seconds; fractions are allowed.

    users       virtual users, each with a connection of its own
    rampup_s    unmeasured time before the window
    duration_s  the measured window
    seed        of every random choice; equal seeds heat the same rows
    rate_per_s  transactions of all kinds a second that are due, at random times (a Poisson
                process); a free user takes the next. None: a user starts the next when the
                last is done
    patience_s  a transaction that is due and waited for so long for a free user is given up
    stall_s     the run fails when nothing commits for so long
    max_errors  the run fails when more transactions fail, ramp-up included; None: however many
    """

    users: int
    rampup_s: float
    duration_s: float
    seed: int = 1
    rate_per_s: float | None = None
    patience_s: float = PATIENCE_S
    stall_s: float = 60.0
    max_errors: int | None = None

    def __post_init__(self) -> None:
        """Refuse numbers that make no run, naming the field."""
        # Workers report every second: a shorter stall could not be told from none.
        for name, low in (("users", 1), ("rampup_s", 0), ("stall_s", 2)):
            if getattr(self, name) < low:
                raise ValueError(f"{name} must be at least {low}, not {getattr(self, name)}")
        if self.duration_s <= 0:
            raise ValueError(f"duration_s must be above 0, not {self.duration_s}")
        if self.rate_per_s is None:
            return
        if not 0 < self.rate_per_s <= HIGHEST_RATE_PER_S:
            raise ValueError(
                f"rate_per_s must be above 0 and at most {HIGHEST_RATE_PER_S:,},"
                f" not {self.rate_per_s:g}"
            )


@dataclass(frozen=True, slots=True)
class Phase:
    """A boundary of the run, reported as it is crossed: start, window opens, window closes."""

    name: PhaseName


@dataclass(frozen=True, slots=True)
class Tick:
    """One second of a run, ramp-up included, counted from its start.

    Reported some tenths of a second after its end; what is known only later is told with the next
    second, or, after the last, in the result alone. Latencies, in milliseconds, are of
    committed transactions; None when there were none. ``new_orders`` is None but in TPC-C.
    """

    second: int
    phase: PhaseName
    new_orders: int | None
    transactions: int
    failed: int
    latency_ms_mean: float | None
    latency_ms_p95: float | None
    latency_ms_p50: float | None = None
    latency_ms_p99: float | None = None


@dataclass(frozen=True, slots=True)
class Second:
    """One second of the window, counted from its start; the last may be a fraction of one.

    new_orders     None but in TPC-C
    late, skipped  of the transactions due in it, see `Arrived`
    """

    second: int
    new_orders: int | None
    transactions: int
    failed: int
    latency_ms_mean: float | None
    latency_ms_p95: float | None
    late: int = 0
    skipped: int = 0
    latency_ms_p50: float | None = None
    latency_ms_p99: float | None = None


@dataclass(frozen=True, slots=True)
class Latency:
    """Latencies of committed transactions in milliseconds, from sending to commit; in a run with a
    rate from the time they were due.

    Attempts that had to be repeated, and the pauses between, are included. Values are good to
    0.1 % or a microsecond. All are None when nothing committed, one of them when the driver does
    not tell it.

    histogram  of microseconds, in HdrHistogram's own text format (V2, deflated, base64)
    """

    mean: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    p99_9: float | None
    p99_99: float | None
    max: float | None
    histogram: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Arrived:
    """What became of the transactions that were due in the window of a run with a rate.

    due      all of them
    late     started more than a millisecond after they were due, as no user was free
    skipped  given up without a start: no user was free in time (`WindowOptions.patience_s`)
    growth   by how many those that waited or were under way grew over the window, by the best line
             through their number at each second's end
    """

    due: int
    late: int
    skipped: int
    growth: float = 0.0


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Transactions still under way when the users were sent home, long after the window.

    count     all of them, those of the ramp-up too
    oldest_s  for how long the oldest had been under way when the window closed
    """

    count: int
    oldest_s: float


@dataclass(frozen=True, slots=True)
class KindResult:
    """One kind of transaction within the window.

    committed    transactions that took effect
    rolled_back  new-orders rolled back as intended (clause 2.4.1.4)
    retries      repeated attempts, by cause
    failed       transactions given up, by cause, in the server's words
    latency_ms   of those that began in the window, whenever they ended
    unfinished   of these, how many had not ended when the users were sent home
    """

    committed: int
    rolled_back: int
    retries: dict[str, int]
    failed: dict[str, int]
    latency_ms: Latency
    unfinished: int = 0

    @property
    def got_through(self) -> int:
        """Those that did what they were to do."""
        return self.committed + self.rolled_back

    @property
    def asked(self) -> int:
        """All of them."""
        return self.got_through + sum(self.failed.values()) + self.unfinished


@dataclass(frozen=True, slots=True)
class ServerRate:
    """What the whole server committed and rolled back, per minute, in the interval until `at`.

    at  seconds since 1970
    """

    at: float
    tpm: int


@dataclass(frozen=True, slots=True)
class ServerErrors:
    """What the server itself counted during a run; a driver may not have seen all of it.

    deadlocks  in this database; of the instance on SQL Server
    errors     rollbacks of this database on PostgreSQL (a clean run has few, those of clause
               2.4.1.4 not among them where a procedure rolls back by itself); errors sent to
               users by the instance on SQL Server
    """

    deadlocks: int
    errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowResult:
    """The window of a run, of whatever workload; `dataclasses.asdict` makes it JSON.

    window_start, window_end  seconds since 1970
    tpm         transactions of all kinds committed per minute
    kinds       by the kinds' names
    latency_ms  over all kinds; of the transactions that began in the window (were sent, or due),
                also where they ended after it
    failed      transactions given up, all kinds and causes
    series      second by second; its sums are the totals
    arrived     of a run with a rate
    unfinished  what never ended
    """

    options: WindowOptions
    window_start: float
    window_end: float
    tpm: float
    kinds: dict[str, KindResult]
    latency_ms: Latency
    failed: int
    series: list[Second] = field(repr=False)
    arrived: Arrived | None = None
    unfinished: Unfinished | None = None
    steadiness: list[Steadiness] = field(repr=False, default_factory=list)

    @property
    def not_steady(self) -> list[Steadiness]:
        """What of it did not stay steady."""
        return [one for one in self.steadiness if one.steady is False]

    @property
    def not_known(self) -> list[Steadiness]:
        """Of throughput and reads, what cannot be told to be steady."""
        rates = [one for one in self.steadiness if one.measure != "latency_ms"]
        return [rate for rate in rates if rate.steady is None]

    @property
    def steady(self) -> bool | None:
        """Of the window: throughput and reads are, and no latency is known not to be. None: not
        known, or not judged."""
        if self.not_steady:
            return False
        return True if self.steadiness and not self.not_known else None


class RunFailed(HotsetError):
    """A run that has no result. `partial` is what the window held, None before it opened."""

    def __init__(self, cause: str, partial: WindowResult | None) -> None:
        super().__init__(cause)
        self.args = (cause, partial)
        self.cause = cause
        self.partial = partial

    def __str__(self) -> str:
        return self.cause


class NotServed(RunFailed):
    """The server was there to the end, but did not do what was due: see `served.shortfall`."""


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C in a run. `partial` is what the window held so far, None before it opened."""

    def __init__(self, partial: WindowResult | None) -> None:
        super().__init__()
        self.partial = partial
