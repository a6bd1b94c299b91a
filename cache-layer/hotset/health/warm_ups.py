"""Findings on a disk's warm-ups: whether they failed, came late, or left out what did not fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hotset.core.machines.base import Machine
from hotset.core.words import duration
from hotset.disk.boot import schedules, systemd_unit
from hotset.disk.flash_devices import AttachedDisk
from hotset.warmup import plan_store
from hotset.warmup.plan_store import SavedPlan

from . import thresholds as limits
from .findings import Ask, Finding


def warm_ups(ask: Ask, attached: AttachedDisk) -> list[Finding]:
    """The last run of each schedule, and the last plan."""
    findings = [*_schedules(ask, attached.machine), *_plans(ask)]
    return findings or [ask.say("ok", "none is scheduled, and none was begun from here")]


def _schedules(ask: Ask, machine: Machine) -> Iterator[Finding]:
    starts = systemd_unit.runs(machine)
    for timer, run in schedules.runs_of_disk(machine, ask.disk):
        unit = f"{schedules.PREFIX}{timer.name}"
        if not starts:
            yield ask.say(
                "warning",
                f"{timer.name} ({timer.when}) does not run: this machine is run without systemd",
                ask.remedy("remove it", "warmup schedule remove", name=timer.name),
            )
        elif timer.last == "failed":
            yield ask.say(
                "warning",
                f"{timer.name} ({timer.when}) failed: `journalctl --unit {unit}` there says why,"
                f" and `systemctl start {unit}` runs it again",
                ask.remedy("see how it is called", "warmup schedule list"),
            )
        elif run is not None and run.seconds >= limits.WARMUP_LATE_S:
            words = "has run" if timer.last == "running" else "took"
            yield ask.say(
                "warning",
                f"{timer.name} ({timer.when}) {words} {duration(run.seconds)}: begin earlier, or"
                " warm up less",
                ask.remedy("see how it is called", "warmup schedule list"),
            )
        elif run is not None and not run.waits:
            yield ask.say(
                "warning",
                f"{timer.name} ({timer.when}) is not enabled: `systemctl enable --now {unit}.timer`"
                " there has it run",
            )
        elif timer.last:
            yield ask.say("ok", f"{timer.name} ({timer.when}): {timer.last} {timer.ended}".rstrip())
        else:
            yield ask.unknown(
                f"{timer.name} ({timer.when}) has not run since the machine started, and of before"
                " nothing is known"
            )


def _plans(ask: Ask) -> Iterator[Finding]:
    mine = [
        plan for plan in plan_store.every() if plan.machine == ask.machine and plan.disk == ask.disk
    ]
    if mine:
        yield _plan(ask, _last(mine))


def _last(plans: Sequence[SavedPlan]) -> SavedPlan:
    return max(plans, key=lambda plan: (plan.created, plan.id))


def _plan(ask: Ask, plan: SavedPlan) -> Finding:
    what = " ".join(plan.targets)
    if plan.state in ("failed", "interrupted"):
        text = f"the last warm-up ({what}) {_was(plan)}"
        resume = ask.remedy("fetch what is missing", "warmup run", resume=plan.id)
        return ask.say("warning", text, resume)
    if plan.left_out:
        return ask.say(
            "warning",
            f"{plan.left_out} of the last warm-up ({what}) did not fit into the cache",
            ask.remedy("see how much flash it takes", "whatif flash"),
        )
    return ask.say("ok", f"the last one ({what}): {plan.state}, and all of it fits")


def _was(plan: SavedPlan) -> str:
    reason = f": {plan.message}" if plan.message else ""
    return f"{'failed' if plan.state == 'failed' else 'was interrupted'}{reason}"
