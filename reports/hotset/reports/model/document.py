"""The result document: one run of one experiment. `hotset runs show --format json` prints it.

Units are the last word of a name. Ratios and shares run from 0 to 1. Rates are wall-clock rates of
the machine the run was made on.

A phase that did not happen leaves `None` or an empty list, never zeros.
"""

from __future__ import annotations

from itertools import chain
from math import fsum
from typing import Annotated, Literal, Self, get_args

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from hotset.core import words
from hotset.core.record import SCHEMA_VERSION

from .base import ArmName, PolicyArm, Record, Share, TimedWorkload, UtcTime
from .disks import DiskResults
from .measurement import Measurement
from .setup import Database, Experiment, Machine, Prices, Storage, Tier
from .windows import Caveat, HighestRate, PowerRun, Repeat, ThroughputRun, Verdict

# Above this share of busy time the server's CPU, not its storage, set the pace.
CPU_BOUND_SHARE = 0.85
POLICY_ARMS: tuple[PolicyArm, ...] = get_args(PolicyArm)
CACHED_ARMS: tuple[ArmName, ...] = ("accelerated", *POLICY_ARMS)
WarmupOrder = Literal["disk", "heat"]
State = Literal["complete", "failed", "interrupted", "running"]
"""``running`` is never kept: a run that is under way is kept as what a kill would make of it."""
_TIMED: tuple[TimedWorkload, ...] = get_args(TimedWorkload)
Workload = Literal["tpcc", "tpch", "sql"]


def _is_busy(cpu: float | None) -> bool:
    """True if it is known to set the pace."""
    return cpu is not None and cpu > CPU_BOUND_SHARE


class Cost(Record):
    """Cost of an arm, and its gain for that; None: not known, or no gain. For your own SQL, NOPM
    here means transactions a second."""

    arm: ArmName
    flash_bytes: NonNegativeInt
    price: PositiveFloat | None = None
    price_per_nopm: PositiveFloat | None = None
    gained_nopm_per_flash_gb: PositiveFloat | None = None
    """NOPM above the baseline's for each GB of flash."""
    price_per_gained_nopm: PositiveFloat | None = None
    """Cost above the baseline for each NOPM above the baseline's."""


class Failure(Record):
    """Why a run that is not complete stopped."""

    phase: str
    text: str


class Phase(Record):
    name: str
    state: Literal["done", "failed", "interrupted", "skipped", "running"]
    seconds: NonNegativeFloat


class PowerArm(Record):
    """One arm of TPC-H."""

    name: ArmName
    repeats: tuple[PowerRun, ...] = ()
    throughput: ThroughputRun | None = None
    """After the last of them."""

    @property
    def complete(self) -> bool:
        return bool(self.repeats) and all(run.complete for run in self.repeats)

    @property
    def cpu_bound(self) -> bool:
        return any(_is_busy(run.server_cpu) for run in self.repeats)


class Arm(Record):
    name: ArmName
    workload: TimedWorkload = "tpcc"
    repeats: tuple[Repeat, ...] = ()
    """Repeats; of a curve over users, the windows with the most of them: all else in the document,
    factors too, is of these."""
    curve: tuple[Repeat, ...] = ()
    """A curve's windows with fewer users."""
    rates: tuple[HighestRate, ...] = ()

    @property
    def rate_per_s(self) -> float | None:
        """At which transactions arrived; None where users start one when the last is done."""
        return next((repeat.arrived.rate_per_s for repeat in self.repeats if repeat.arrived), None)

    @property
    def cpu_bound(self) -> bool:
        """True if the server's CPU, not its storage, set the pace in any repeat."""
        return any(_is_busy(repeat.server_cpu) for repeat in self.repeats)


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
        """Fewer than three repeats have none, nor have repeats that do not differ."""
        return self.verdict != "not known"

    @property
    def verdict(self) -> str:
        return words.verdict(self.ratio, self.ci_low, self.ci_high)

    @property
    def doubt(self) -> str | None:
        return words.doubt(self.ratio, self.ci_low, self.ci_high)

    @model_validator(mode="after")
    def _interval_agrees_with_verdict(self) -> Self:
        if not self.ci_low <= self.ratio <= self.ci_high:
            raise ValueError(f"ratio {self.ratio} outside {self.ci_low}–{self.ci_high}")
        if self.significant and self.ci_low <= 1 <= self.ci_high:
            raise ValueError(f"significant, though {self.ci_low}–{self.ci_high} contains 1")
        return self


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
    """Error of the prediction, relative to the measured NOPM."""
    in_range: bool
    """True if the measured mean lies in the prediction's range."""


class Predictions(Record):
    """Predictions of this run from an earlier one, so that each run tests the model."""

    learned_from: str
    """The earlier run."""
    arms: tuple[PredictedArm, ...]

    @property
    def mean_error(self) -> float:
        """Mean size of the errors."""
        return fsum(abs(arm.error) for arm in self.arms) / len(self.arms)


class RunDocument(Record):
    schema_version: Literal[1] = SCHEMA_VERSION
    hotset_version: str = ""
    hotset_commit: str = ""
    """Commit of the checkout that it ran from, without what was changed since; empty: not known."""
    run: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    command: tuple[str, ...]
    """Command that made it, empty where that is not known; the experiment's file is
    `experiment.spec` with every default filled in."""
    state: State
    failure: Failure | None = None
    started_at: UtcTime
    seconds: NonNegativeFloat
    experiment: Experiment
    measurement: Measurement | None = None
    """Where it is no experiment but a measurement of a database as it was found."""
    phases: tuple[Phase, ...] = ()
    tier: Tier | None = None
    storage: Storage | None = None
    machine: Machine | None = None
    database: Database | None = None
    arms: tuple[Arm, ...] = ()
    power_arms: tuple[PowerArm, ...] = ()
    disks: DiskResults | None = None
    """Results on modelled disks, or a benchmark of a disk: neither has arms or a database."""
    warmup: WarmUp | None = None
    factors: dict[Workload, Factor | None] = Field(default_factory=dict)
    rate_factor: Factor | None = None
    """Factor of the highest rates that meet the experiment's limits: the factor that users feel."""
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
    def under_way(self) -> str | None:
        """Step that the run was at when it was saved; None where it is known to have ended. Only
        the archive can tell if it still goes on."""
        if self.state not in ("interrupted", "running") or self.failure is not None:
            return None
        if self.measurement is not None:
            return self.measurement.of
        last = self.phases[-1] if self.phases else None
        return "the next phase" if last is None or last.state == "done" else last.name

    def as_running(self) -> Self:
        """Return the document of the run while it goes on."""
        running: dict[str, object] = {"state": "running"}
        phases = tuple(
            phase if phase.state == "done" else phase.model_copy(update=running)
            for phase in self.phases
        )
        return self.model_copy(update={**running, "phases": phases})

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
