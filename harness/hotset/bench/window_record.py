"""What windows of any workload hold beside their results, as records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Protocol, TypeVar

from hotset.block.io_counters import IoUse
from hotset.hitratio.sampler import Window
from hotset.load.record import Latency, WindowResult
from hotset.load.search import FoundRate, Trial
from hotset.reports.analysis.comparison import curve
from hotset.reports.model.windows import DeviceUse, ServerIo, TimeUse

from .server.sampled import ServerUse
from .thresholds import ThresholdVerdict
from .window import Outcome, Result, Warned, WindowTime

Rate = Callable[[Result], float]
"""What a curve draws: a throughput."""
State = Literal["complete", "failed", "interrupted"]
Measured_co = TypeVar("Measured_co", bound=WindowResult, covariant=True)


class HasResult(Protocol[Measured_co]):
    """A run; None: it has nothing that was measured."""

    @property
    def result(self) -> Measured_co | None: ...


Points = Sequence[HasResult[Result]]
"""The runs of a curve, or one."""


@dataclass(frozen=True, slots=True)
class ServerWindow:
    """The server's CPU, as shares of all cores' time, and what went through its devices."""

    cpu: float
    user: float
    system: float
    iowait: float
    steal: float
    devices: tuple[DeviceUse, ...]

    @classmethod
    def of(cls, window: Window) -> ServerWindow:
        shares = (window.cpu, window.user, window.system, window.iowait, window.steal)
        return cls(*shares, tuple(map(device_record, window.devices)))


@dataclass(frozen=True, slots=True)
class Sampled:
    """The server over a window and second by second; None: a second that was not seen."""

    window: ServerWindow
    series: tuple[ServerWindow | None, ...]

    @classmethod
    def of(cls, use: ServerUse) -> Sampled:
        series = (None if second is None else ServerWindow.of(second) for second in use.seconds)
        return cls(ServerWindow.of(use.window), tuple(series))


@dataclass(frozen=True, slots=True)
class UsersTime:
    """Where the users' time went, over a window and second by second, and the server's I/O;
    ``missing`` and ``server_io_missing`` say what could not be seen."""

    window: TimeUse | None
    series: tuple[TimeUse | None, ...]
    missing: str
    server_io: ServerIo | None
    server_io_missing: str

    @classmethod
    def of(cls, time: WindowTime) -> UsersTime:
        return cls(time.window, time.series, time.missing, time.io, time.io_missing)


@dataclass(frozen=True, slots=True)
class TriedRate:
    """A rate that was tried. ``missed``: why it does not hold, empty where it does."""

    rate_per_s: float
    reached_per_s: float
    seed: int
    holds: bool
    missed: str
    latency_ms: Latency

    @classmethod
    def of(cls, trial: Trial[Any]) -> TriedRate:
        options, latency = trial.result.options, trial.result.latency_ms
        rates = (trial.rate_per_s, trial.reached_per_s)
        return cls(*rates, options.seed, trial.holds, trial.missed, latency)


@dataclass(frozen=True, slots=True)
class RateSearch:
    """The highest rate that holds (None: not even the lowest does), what users without pause get
    done, and all that were tried."""

    rate_per_s: float | None
    highest_per_s: float
    trials: tuple[TriedRate, ...]

    @classmethod
    def of(cls, found: FoundRate[Any]) -> RateSearch:
        highest = found.highest.rate_per_s if found.highest else None
        return cls(highest, found.highest_per_s, tuple(map(TriedRate.of, found.trials)))


@dataclass(frozen=True, slots=True)
class WindowRun:
    """What a run has of any workload."""

    state: State
    cause: str | None
    thresholds: tuple[ThresholdVerdict, ...]
    find_rate: RateSearch | None
    time: UsersTime | None
    sampled: Sampled | None
    warnings: tuple[Warned, ...]

    @classmethod
    def of(cls, outcome: Outcome[Any], warnings: Sequence[Warned]) -> WindowRun:
        return cls(
            outcome.state,
            outcome.cause,
            tuple(verdict.recorded() for verdict in outcome.verdicts),
            RateSearch.of(outcome.found) if outcome.found else None,
            UsersTime.of(outcome.time_use) if outcome.time_use else None,
            Sampled.of(outcome.server) if outcome.server else None,
            tuple(warnings),
        )


class Point(HasResult[Measured_co], Protocol[Measured_co]):
    """A run as texts are made of it: what `WindowRun` has, and its result."""

    @property
    def cause(self) -> str | None: ...

    @property
    def thresholds(self) -> Sequence[ThresholdVerdict]: ...

    @property
    def find_rate(self) -> RateSearch | None: ...

    @property
    def time(self) -> UsersTime | None: ...

    @property
    def sampled(self) -> Sampled | None: ...

    @property
    def warnings(self) -> Sequence[Warned]: ...


@dataclass(frozen=True, slots=True)
class WindowCurve:
    """Peak and knee of a curve, as numbers of users; None where there is none."""

    peak_users: int | None
    knee_users: int | None

    @classmethod
    def of(cls, points: Points[Result], rate: Rate[Result]) -> WindowCurve:
        drawn = points_of(points, rate)
        knee = curve.knee(drawn)
        return cls(curve.peak(drawn).users if drawn else None, knee.users if knee else None)


def points_of(points: Points[Result], rate: Rate[Result]) -> list[curve.Point]:
    """Those that have a result, as a curve draws them."""
    results = [outcome.result for outcome in points if outcome.result is not None]
    return [curve.Point(result.options.users, rate(result)) for result in results]


def device_record(use: IoUse) -> DeviceUse:
    """As the result document has it."""
    return DeviceUse.model_validate(asdict(use))
