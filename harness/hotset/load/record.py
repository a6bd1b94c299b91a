"""Output of a run: records for the observer, the result, and its errors."""

from dataclasses import dataclass
from typing import Literal

from hotset.core.errors import HotsetError
from hotset.reports.model.windows import Repeat

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


class RunFailed(HotsetError):
    """A run that has no result. `partial` is what the window held, None before it opened."""

    def __init__(self, cause: str, partial: Repeat | None) -> None:
        super().__init__(cause)
        self.args = (cause, partial)
        self.cause = cause
        self.partial = partial

    def __str__(self) -> str:
        return self.cause


class NotServed(RunFailed):
    """The server was there to the end, but did not do what was due: see `served.shortfall`."""

    partial: Repeat


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C in a run. `partial` is what the window held so far, None before it opened."""

    def __init__(self, partial: Repeat | None) -> None:
        super().__init__()
        self.partial = partial
