"""Warm-ups that failed, came late, are not enabled, or did not fit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hotset.core import errors
from hotset.core.units import Bytes
from hotset.disk.flash_devices import AttachedDisk
from hotset.health.findings import Ask
from hotset.health.warm_ups import warm_ups
from hotset.warmup import plan_store, schedule
from hotset.warmup.plan_store import SavedPlan
from hotset.warmup.schedule_request import Add
from tests.fake_machine import FakeMachine
from tests.support.hit_counters import DISK, FLASH

ASK = Ask("local", "erp", "warm-ups")
TIMED = Add(targets=["/a"], at="07:00")
SHOWN = """\
Id=hotset-warmup-erp-timed.service
ActiveState={state}
Result={result}
ExecMainStartTimestampMonotonic={begun}
ExecMainExitTimestampMonotonic={ended}
ExecMainExitTimestamp=Mon 2026-11-23 07:00:09 UTC

Id=hotset-warmup-erp-timed.timer
ActiveState={timer}
"""
HOUR_US = 3600 * 10**6


def machine(
    state: str = "inactive",
    result: str = "success",
    begun: int = HOUR_US,
    ended: int = 2 * HOUR_US,
    timer: str = "active",
) -> FakeMachine:
    """Up for ten hours."""
    units = schedule.units(TIMED, "erp", "/usr/bin/hotset")
    shown = SHOWN.format(state=state, result=result, begun=begun, ended=ended, timer=timer)
    return FakeMachine(
        {
            "ls /etc/systemd/system": "\n".join(unit.name for unit in units),
            **{f"cat {unit.path}": unit.text for unit in units},
            "systemctl show": shown,
            "cat /proc/uptime": "36000.00 1.0\n",
        }
    )


def without_systemd() -> FakeMachine:
    """It ran when the schedule was made."""
    found = machine()
    found.answers["test -d /run/systemd/system"] = 1
    return found


@pytest.mark.parametrize(
    ("there", "state", "says"),
    [
        (machine(), "ok", "done"),
        (machine("failed", "exit-code"), "warning", "systemctl start hotset-warmup-erp-timed"),
        (machine(ended=4 * HOUR_US), "warning", "took 3 h"),
        (machine("activating", begun=3 * HOUR_US, ended=0), "warning", "has run 7 h"),
        (machine("activating", begun=9 * HOUR_US, ended=8 * HOUR_US), "ok", "running"),
        (machine(timer="inactive"), "warning", "not enabled"),
        (machine(begun=0, ended=0), "unknown", "has not run since"),
        (without_systemd(), "warning", "does not run: this machine is run without systemd"),
        (FakeMachine({"test -d": 1}), "ok", "none is scheduled"),
    ],
    ids=[
        *("done", "failed", "late", "at work", "just begun", "disabled", "not yet", "no systemd"),
        "none",
    ],
)
def test_each_schedule(there: FakeMachine, state: str, says: str) -> None:
    (found,) = warm_ups(ASK, AttachedDisk(there, FLASH, DISK))
    assert found.state == state, found
    assert says in found.text


PLAN = SavedPlan(
    "20261126-0700-erp",
    "2026-11-26T07:00:00",
    "local",
    "erp",
    "/dev/o",
    ("table:a",),
    Bytes(65536),
    (),
    "read",
    0,
    1.0,
    None,
    Bytes(0),
    "done",
)


@pytest.mark.parametrize(
    ("plan", "state", "helps"),
    [
        (PLAN, "ok", ""),
        (replace(PLAN, state="failed"), "warning", f"warmup run --resume {PLAN.id}"),
        (replace(PLAN, state="interrupted"), "warning", f"warmup run --resume {PLAN.id}"),
        (replace(PLAN, left_out=Bytes(1 << 30)), "warning", "whatif flash erp"),
    ],
    ids=["done", "failed", "interrupted", "did not fit"],
)
def test_the_last_plan(own_folders: Path, plan: SavedPlan, state: str, helps: str) -> None:
    (own_folders / "XDG_DATA_HOME/hotset").mkdir(parents=True)
    plan_store.save(replace(PLAN, id="1", created="2026-11-20", state="failed"))
    plan_store.save(replace(PLAN, id="2", created="2026-11-27", disk="other", state="failed"))
    plan_store.save(plan)
    (found,) = warm_ups(ASK, AttachedDisk(FakeMachine({"test -d": 1}), FLASH, DISK))
    assert found.state == state
    assert [errors.command(one) for one in found.remedies] == [f"`hotset {helps}`"] * bool(helps)
