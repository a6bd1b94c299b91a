"""Predictions held against what another run measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from statistics import mean

from hotset.core.errors import HotsetError, RequestError
from hotset.core.record import Versioned
from hotset.core.words import text_table
from hotset.reports.archive import Archive
from hotset.reports.model.base import ArmName
from hotset.reports.model.document import (
    CACHED_ARMS,
    POLICY_ARMS,
    Arm,
    PredictedArm,
    Predictions,
    RunDocument,
)
from hotset.reports.model.windows import Repeat

from .demands import FlashPromise, SetUp
from .doubt import Kind
from .prediction import FAST, PredictedLine, Taught, predict_by, rates, taught_users, teach, windows
from .storage import own_flash, own_iops
from .traffic import Traffic, kind_of

_ARMS: tuple[ArmName, ...] = ("baseline", *CACHED_ARMS, "all-flash")
_ANOTHER: tuple[Kind, ...] = ("another run",)
_TEACHERS_MAX = 50
"""Runs of the archive that are looked at, the newest first."""


@dataclass(frozen=True)
class PredictionCheck(Versioned):
    """Predictions of a run beside what it measured; learned from the run ``by``."""

    csv_rows = "arms"

    run: str
    by: str
    arms: tuple[PredictedArm, ...]

    @property
    def predictions(self) -> Predictions:
        return Predictions(learned_from=self.by, arms=self.arms)

    def to_text(self) -> str:
        from hotset.reports.analysis import predicted

        table = text_table(predicted.COLUMNS, map(predicted.row, self.arms))
        return f"{table}\n\n{predicted.sentence(self.predictions)}"


def of_an_earlier_run(archive: Archive, run: RunDocument) -> Predictions | None:
    """Predict this run from the newest earlier one on the same computer and database; users, cores,
    slow storage and cache may be others. None where there is none."""
    rows = (row for row in archive.listing() if row.state == "complete" and row.run < run.run)
    for row in islice(rows, _TEACHERS_MAX):
        by = archive.load(row.run)
        if _same_server(run, by):
            # Of a run that teaches nothing, or a measured one without TPC-C.
            try:
                return Predictions(
                    learned_from=by.run, arms=check(run, by, own_iops(run), devices_of(by))
                )
            except HotsetError:
                continue
    return None


@dataclass(frozen=True, slots=True)
class Devices:
    """Devices of the run that is learned from: its slow storage's random reads a second by queue
    depth, and its flash (None: not known)."""

    iops: Mapping[int, float]
    flash: FlashPromise | None


def devices_of(by: RunDocument) -> Devices:
    """Return the devices of a run, as their models promise."""
    return Devices(own_iops(by), own_flash(by))


def check(
    run: RunDocument, by: RunDocument, run_iops: Mapping[int, float], devices: Devices
) -> tuple[PredictedArm, ...]:
    """Compare what a run measured with what another lets predict of its users, cores and storage.

    All-flash is learned from all-flash where the other run has it, so that the cache's own cost is
    not in it.

    :param run_iops: of the run's slow storage by queue depth.
    :param devices: of the other one.
    :raises RequestError: it is the same run, has no TPC-C, or the other one teaches nothing.
    """
    if run.run == by.run:
        raise RequestError(
            f"run {run.run} would be held against what was learned from itself: name another",
            field="by",
        )
    arms = [arm for name in _ARMS if (arm := run.arm(name)) and all(r.nopm for r in arm.repeats)]
    if not arms or run.database is None or run.machine is None:
        raise RequestError(f"run {run.run} did not measure TPC-C", field="run")
    checked = []
    for arm in arms:
        fast: ArmName | None = arm.name if arm.name in FAST and by.arm(arm.name) else None
        taught: dict[int, Taught] = {}
        for users, measured in sorted(windows(arm, run).items()):
            near = taught_users(by, users, fast)
            if near not in taught:
                taught[near] = teach(by, devices.iops, devices.flash, near, fast)
            asked = SetUp(
                users, run.machine.cores, rates(run_iops, users), _traffic(run, arm, taught[near])
            )
            ratio = _hit_ratio(arm, measured)
            predicted = predict_by(taught[near], asked, [ratio], also=_ANOTHER)
            checked.append(_beside(arm, users, measured, predicted.lines[0]))
    return tuple(checked)


def _beside(arm: Arm, users: int, measured: list[Repeat], line: PredictedLine) -> PredictedArm:
    nopm = mean(repeat.rate for repeat in measured)
    return PredictedArm(
        arm=arm.name,
        users=users,
        hit_ratio=line.hit_ratio,
        measured_nopm=nopm,
        predicted_nopm=line.nopm,
        predicted_nopm_low=line.nopm_low,
        predicted_nopm_high=line.nopm_high,
        error=line.nopm / nopm - 1,
        in_range=line.nopm_low <= nopm <= line.nopm_high,
    )


def _traffic(run: RunDocument, arm: Arm, taught: Taught) -> Traffic | None:
    """Return the traffic of an arm's cache: the run's, or with the policy that names the arm."""
    kind = kind_of(run.tier)
    if kind is None or arm.name not in CACHED_ARMS:
        return None
    return taught.traffic_of(replace(kind, policy=arm.name) if arm.name in POLICY_ARMS else kind)


def _hit_ratio(arm: Arm, windows: list[Repeat]) -> float:
    if arm.name == "baseline":
        return 0.0
    return mean(1.0 if window.hit_ratio is None else window.hit_ratio for window in windows)


def _same_server(run: RunDocument, other: RunDocument) -> bool:
    return list(_server(run)) == list(_server(other))


def _server(run: RunDocument) -> Iterator[object]:
    """Yield what a transaction's demands depend on."""
    if run.machine is not None:
        yield from (run.machine.kind, run.machine.host.cpu)
    if run.database is not None:
        yield from (run.database.engine, run.database.warehouses, run.database.buffers_bytes)
    if run.tier is not None:
        yield run.tier.kind
