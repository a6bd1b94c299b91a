"""Saved plans: what a warm-up is to cache, kept on disk until it is done.

A plan holds what is to be cached as runs of blocks, and how. What of it is done already is never
kept: the cache itself says so, each time the plan is resumed.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from hotset.block.extents import Run, count, difference
from hotset.block.programs import InUseError
from hotset.core import record
from hotset.core.errors import HotsetError, NotFoundError, Remedy
from hotset.core.paths import data_dir, write_whole
from hotset.core.progress import Reporter
from hotset.core.sql import EngineName
from hotset.core.units import Blocks, Bytes
from hotset.disk import lifecycle
from hotset.disk.flash_devices import AttachedDisk, Disk
from hotset.tier.base import Warmup, WarmupFailedError
from hotset.tier.disk_tier import DiskTier
from hotset.tier.filling import Filling, Way

from . import plan as planning

SCHEMA_VERSION = 1
State = Literal["planned", "running", "failed", "interrupted", "done"]


class NoSuchPlanError(NotFoundError):
    """No plan of that name; the message names the latest ones."""


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """Plan of what to cache on which disk, and what it was looked up from.

    :ivar runs: where the targets lay at ``looked_up``; empty: when it was ``created``.
    :ivar left_out: requested data that had no room.
    """

    id: str
    created: str
    machine: str
    disk: str
    origin: str
    targets: tuple[str, ...]
    block: Bytes
    runs: tuple[Run, ...]
    method: Way
    samples: int
    share: float
    rate: Bytes | None
    left_out: Bytes
    state: State = "planned"
    said: str = ""
    pin: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    mount_point: str | None = None
    engine: EngineName = "postgres"
    dsn: str | None = None
    looked_up: str = ""

    @property
    def bytes(self) -> Bytes:
        return count(self.runs).bytes(self.block)


def new_id(disk: str, now: datetime) -> str:
    """A name nobody has yet."""
    base = f"{now:%Y%m%d-%H%M%S}-{disk}"
    taken = {path.stem for path in _folder().glob("*.json")}
    return next(
        name
        for number in range(1000)
        if (name := f"{base}-{number}" if number else base) not in taken
    )


def save(plan: SavedPlan) -> None:
    """Save a plan, atomically."""
    fields = asdict(plan) | {"runs": [[int(run.start), int(run.count)] for run in plan.runs]}
    text = json.dumps({"schema_version": SCHEMA_VERSION, **fields}) + "\n"
    write_whole(_folder() / f"{plan.id}.json", text)


def every() -> list[SavedPlan]:
    """All saved plans, the oldest first."""
    return [_read(path) for path in sorted(_folder().glob("*.json"))]


def find(name: str) -> SavedPlan:
    """A saved plan by its name; ``last`` is the newest.

    :raises NoSuchPlanError: there is none.
    """
    paths = sorted(_folder().glob("*.json"))
    matching = [path for path in paths if path.stem == name] if name != "last" else paths[-1:]
    if not matching:
        known = ", ".join(path.stem for path in paths[-5:]) or "none"
        raise NoSuchPlanError(
            f"there is no saved plan {name!r}; the latest: {known}", field="resume"
        )
    return _read(matching[0])


def perform(attached: AttachedDisk, plan: SavedPlan, report: Reporter) -> Warmup:
    """Carry out a plan, or what is left of it; its state is kept up to date.

    :raises InUseError: off line, and the accelerated device is in use.
    :raises WarmupFailedError: nothing of it can be trusted, or the disk is another one by now.
    """
    tier = attached.tier
    _check(plan, attached.disk, tier)
    save(replace(plan, state="running", said=""))
    try:
        done = tier.fill(_filling(plan, report, lifecycle.FillRecords(attached)))
    except InUseError as error:
        # Nothing was begun: it waits.
        save(replace(plan, state="planned", said=str(error)))
        _say_how_it_goes_on(error, plan, report)
        raise
    except BaseException as error:
        broken = isinstance(error, KeyboardInterrupt)
        save(replace(plan, state="interrupted" if broken else "failed", said=str(error)))
        _say_how_it_goes_on(error, plan, report)
        raise
    save(replace(plan, state="done", said=""))
    return done


def _say_how_it_goes_on(error: BaseException, plan: SavedPlan, report: Reporter) -> None:
    if isinstance(error, HotsetError):
        resume = Remedy("continue with what is missing", "warmup run", {"resume": plan.id})
        error.remedies = (*error.remedies, resume)
        return
    words = f"plan {plan.id} can be resumed, which continues with what is missing"
    if isinstance(error, KeyboardInterrupt):
        report.say(words)
    error.add_note(words)


def look_again(
    attached: AttachedDisk, plan: SavedPlan, request: planning.Request
) -> tuple[SavedPlan, list[str]]:
    """A plan whose targets are looked up once more, saved, and what is worth saying about it.

    :raises WarmupFailedError: the disk is another one by now.
    :raises TargetGoneError: all its targets are gone.
    :raises RequestError, DatabaseError: the places cannot be looked up; nothing has changed.
    """
    _check(plan, attached.disk, attached.tier)
    whole, notes = planning.plan_request(attached, request)
    gone = count(difference(plan.runs, whole.runs)).bytes(plan.block)
    new = count(difference(whole.runs, plan.runs)).bytes(plan.block)
    if gone or new:
        notes.append(
            f"plan {plan.id} is of other blocks than at {plan.looked_up or plan.created}: {gone}"
            f" belong to its targets no more, and {new} have come in their place"
        )
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    plan = replace(plan, runs=tuple(whole.runs), left_out=whole.left_out, looked_up=now)
    save(plan)
    return plan, notes


def missing(attached: AttachedDisk, runs: Sequence[Run]) -> list[Run]:
    """List the blocks that are not cached now."""
    return difference(runs, attached.tier.resident())


def _check(plan: SavedPlan, disk: Disk, tier: DiskTier) -> None:
    if not tier.may_be_filled():
        raise lifecycle.not_active(disk)
    if (str(disk.origin), disk.spec.block) != (plan.origin, plan.block):
        raise WarmupFailedError(
            f"plan {plan.id} was made for {plan.origin} in blocks of {plan.block}; disk {disk.name}"
            f" is {disk.origin} in blocks of {disk.spec.block} now: plan it again"
        )


def _filling(plan: SavedPlan, report: Reporter, records: lifecycle.FillRecords) -> Filling:
    return Filling(
        plan.runs,
        plan.samples,
        report.on_step,
        plan.rate,
        plan.method,
        plan.share,
        records,
        report.say,
    )


def _folder() -> Path:
    folder = data_dir() / "warmups"
    folder.mkdir(exist_ok=True)
    return folder


def _read(path: Path) -> SavedPlan:
    fields: dict[str, Any] = json.loads(path.read_text())
    version = fields.pop("schema_version", None)
    if version != SCHEMA_VERSION:
        raise _of_another(path, record.expected_version(version, SCHEMA_VERSION))
    if strange := record.strange(fields, [field.name for field in dataclasses.fields(SavedPlan)]):
        raise _of_another(path, strange)
    try:
        return _plan(fields)
    except (KeyError, TypeError, ValueError) as error:
        raise _of_another(path, f"{type(error).__name__}: {error}") from None


def _of_another(path: Path, what: str) -> NoSuchPlanError:
    return NoSuchPlanError(record.unknown(path, what, "and plan again"))


def _plan(fields: dict[str, Any]) -> SavedPlan:
    runs = tuple(Run(Blocks(start), Blocks(number)) for start, number in fields.pop("runs"))
    rate, left_out = fields.pop("rate"), fields.pop("left_out")
    lists = {name: tuple(fields[name]) for name in ("targets", "pin", "exclude")}
    return SavedPlan(
        **{**fields, **lists, "block": Bytes(fields["block"])},
        runs=runs,
        rate=None if rate is None else Bytes(rate),
        left_out=Bytes(left_out),
    )
