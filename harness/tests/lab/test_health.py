"""What is to be done about a disk of hotset's own engine, on this computer's kernel: nothing, then
what was done to it. Its other looks are tested on what they read."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from hotset.core import errors
from hotset.core.operation import Context
from hotset.core.units import Bytes
from hotset.health.findings import Finding, Health
from hotset.operations import table
from hotset.warmup import plan_store
from hotset.warmup.commands import pins
from hotset.warmup.plan_store import SavedPlan
from tests.lab.test_division import Disk, disk
from tests.support.marks import needs_root

__all__ = ["disk"]
pytestmark = [pytest.mark.lab, needs_root]


def examined(**values: object) -> Health:
    found = table.find("tier health")
    result = found.function(found.parse(values), Context())
    health: Health = result.to_record()
    assert json.loads(json.dumps(result.document()))["disks"] == ["pg"]
    return health


def by_subject(health: Health) -> dict[str, Finding]:
    return {one.subject: one for one in health.findings}


def code(health: Health) -> int:
    failure = health.failure()
    return 0 if failure is None else failure.exit_code  # type: ignore[attr-defined]


def test_what_is_not_known_is_said_and_what_is_broken_comes_with_its_command(disk: Disk) -> None:
    disk.write("orders", 6)
    found = examined()
    fresh = by_subject(found)
    assert {one.state for one in found.findings} == {"ok", "unknown"}
    # On a file, and with no console that recorded anything.
    for subject in ("hit ratio", "hot data", "dirty data", "flash wear", "thin pools"):
        assert fresh[subject].state == "unknown", fresh[subject]
    for subject in ("state", "metadata", "pins and shares", "warm-ups"):
        assert fresh[subject].state == "ok", fresh[subject]
    assert code(found) == 3
    text = found.to_text()
    assert "pg, flash wear: " in text

    disk.prefer(pins.pin_targets, "orders")
    assert by_subject(examined())["pins and shares"].state == "ok"
    failed = SavedPlan(
        "20261126-070000-pg", datetime.now(UTC).isoformat(), "local", "pg", "/o", ("/a",),
        Bytes(65536), (), "read", 0, 1.0, None, Bytes(0), "failed", "no route to host",
    )  # fmt: skip
    plan_store.save(failed)
    told = by_subject(examined(disk="pg"))["warm-ups"]
    assert (told.state, errors.command(told.remedies[0])) == (
        "warning",
        f"`hotset warmup run --resume {failed.id}`",
    )

    disk.machine.run(["umount", str(disk.folder / "mounted")])
    off = table.find("tier deactivate")
    off.function(off.parse({"disk": "pg"}), disk.context)
    down = examined()
    state = by_subject(down)["state"]
    assert (state.state, errors.command(state.remedies[0])) == (
        "warning",
        "`hotset tier activate pg`",
    )
    assert code(down) == 5
    # What nobody can look at now is not taken for what it was.
    for subject in ("metadata", "hot data", "size and policy", "pins and shares"):
        assert by_subject(down)[subject].state == "unknown"
