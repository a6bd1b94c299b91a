"""Warm-up jobs: a plan that was made, kept on disk until it is done.

A job holds what is to be cached as runs of blocks, and how. What of it is done already is never
kept: the cache itself says so, each time it goes on.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from hotset.cachelayer import flash, idle, offline, online
from hotset.cachelayer.bcache import Bcache
from hotset.cachelayer.card import Card, Disk, KernelTier, built
from hotset.cachelayer.dmcache import DmCache
from hotset.cachelayer.extents import Run, count, difference
from hotset.cachelayer.idle import InUseError
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.paths import data_dir, write_whole
from hotset.cachelayer.tier import TierFailedError, Warmup, WarmupFailedError
from hotset.cachelayer.units import Blocks, Bytes
from hotset.harness.progress import Reporter

SCHEMA_VERSION = 1
Method = Literal["auto", "offline", "online"]
State = Literal["planned", "running", "failed", "interrupted", "done"]


class NoSuchJobError(ValueError):
    """No job of that name; the message names those there are."""


@dataclass(frozen=True, slots=True)
class Job:
    """What to have cached on which disk; ``targets`` are only for reading."""

    id: str
    created: str
    machine: str
    disk: str
    origin: str
    targets: tuple[str, ...]
    block: Bytes
    runs: tuple[Run, ...]
    method: Method
    samples: int
    share: float
    rate: Bytes | None
    state: State = "planned"
    said: str = ""

    @property
    def bytes(self) -> Bytes:
        return count(self.runs).bytes(self.block)


def new_id(disk: str, now: datetime) -> str:
    """A name nobody has yet."""
    base = f"{now:%Y%m%d-%H%M%S}-{disk}"
    taken = {path.stem for path in _folder().glob("*.json")}
    return next(
        name for number in range(1000)
        if (name := f"{base}-{number}" if number else base) not in taken
    )  # fmt: skip


def save(job: Job) -> None:
    """Keep a job; whole or not at all."""
    fields = asdict(job) | {"runs": [[int(run.start), int(run.count)] for run in job.runs]}
    text = json.dumps({"schema_version": SCHEMA_VERSION, **fields}) + "\n"
    write_whole(_folder() / f"{job.id}.json", text)


def every() -> list[Job]:
    """All jobs that are kept, the oldest first."""
    return [_read(path) for path in sorted(_folder().glob("*.json"))]


def find(name: str) -> Job:
    """A job by its name; ``last`` is the newest.

    :raises NoSuchJobError: there is none.
    """
    paths = sorted(_folder().glob("*.json"))
    found = [path for path in paths if path.stem == name] if name != "last" else paths[-1:]
    if not found:
        known = ", ".join(path.stem for path in paths[-5:]) or "none"
        raise NoSuchJobError(f"JOB {name!r}: there is no such warm-up job; the latest: {known}")
    return _read(found[0])


def remove(job: Job) -> None:
    (_folder() / f"{job.id}.json").unlink(missing_ok=True)


def perform(machine: Machine, card: Card, disk: Disk, job: Job, report: Reporter) -> Warmup:
    """Do a job, or what is left of it; its state is kept up to date.

    :raises InUseError: off line, and the accelerated device is in use.
    :raises WarmupFailedError: nothing of it can be trusted, or the disk is another one by now.
    """
    tier = built(machine, card, disk)
    _check(job, disk, tier)
    remedy = f"`hotset warmup run --resume {job.id}` goes on with what is missing"
    save(replace(job, state="running", said=""))
    try:
        done = _done(tier, job, report)
    except InUseError as error:
        # Nothing was begun: it waits.
        save(replace(job, state="planned", said=str(error)))
        error.add_note(remedy)
        raise
    except BaseException as error:
        broken = isinstance(error, KeyboardInterrupt)
        save(replace(job, state="interrupted" if broken else "failed", said=str(error)))
        if broken:
            report.say(remedy)
        error.add_note(remedy)
        raise
    save(replace(job, state="done", said=""))
    return done


def missing(machine: Machine, card: Card, disk: Disk, runs: Sequence[Run]) -> list[Run]:
    """Those of the blocks that are not cached now."""
    return difference(runs, built(machine, card, disk).resident())


def _check(job: Job, disk: Disk, tier: KernelTier) -> None:
    # A fill that was killed leaves the parts of the flash; after a reboot nothing stands.
    there = flash.standing(tier.machine)
    if not {tier.path.name, tier.place.slice("cache").name} & there:
        raise TierFailedError(f"disk {disk.name} is down: activate it first (`hotset tier"
                              f" activate {disk.name}`)")  # fmt: skip
    if (str(disk.origin), disk.spec.block) != (job.origin, job.block):
        raise WarmupFailedError(
            f"job {job.id} was planned for {job.origin} in blocks of {job.block}; disk {disk.name}"
            f" is {disk.origin} in blocks of {disk.spec.block} now: plan it again"
        )


def _done(tier: KernelTier, job: Job, report: Reporter) -> Warmup:
    if isinstance(tier, Bcache):
        left = difference(job.runs, tier.resident())
        return tier.warm(left, job.samples, report.on_warmup, job.rate)
    if _method(tier, job.method, report) == "online":
        return online.fill(tier, job.runs, job.share, report.on_warmup, job.rate)
    return offline.fill(tier, job.runs, job.samples, report.on_warmup, job.rate)


def _method(tier: DmCache, wanted: Method, report: Reporter) -> Method:
    """``auto`` is off line while nobody uses the device, else on line."""
    if wanted != "auto" or not tier.stands():
        return "online" if wanted == "online" else "offline"
    try:
        idle.require_idle(tier.machine, tier.path)
    except InUseError:
        report.say(
            f"{tier.path} is in use: on line, as fast as the policy promotes (idle, it would be"
            " filled off line at the origin's full rate)"
        )
        return "online"
    return "offline"


def _folder() -> Path:
    folder = data_dir() / "warmups"
    folder.mkdir(exist_ok=True)
    return folder


def _read(path: Path) -> Job:
    fields: dict[str, Any] = json.loads(path.read_text())
    if fields.pop("schema_version", None) != SCHEMA_VERSION:
        raise NoSuchJobError(f"{path} is of another version of hotset: remove it and plan again")
    runs = tuple(Run(Blocks(start), Blocks(number)) for start, number in fields.pop("runs"))
    rate = fields.pop("rate")
    return Job(
        **{**fields, "targets": tuple(fields["targets"]), "block": Bytes(fields["block"])},
        runs=runs,
        rate=None if rate is None else Bytes(rate),
    )
