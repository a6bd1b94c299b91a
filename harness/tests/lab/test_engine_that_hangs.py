"""One engine that hangs keeps nobody from seeing the other disks, nor from taking one down."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from hotset.block import programs
from hotset.core.machines import names as connect
from hotset.core.operation import Context
from hotset.core.units import Bytes
from hotset.disk import create as creation
from hotset.disk import flash_devices, lifecycle
from hotset.disk.create import CreateRequest
from hotset.health.findings import Health
from hotset.operations import table
from tests.enclosed import Enclosed, enclosed
from tests.support.marks import needs_root

pytestmark = [pytest.mark.lab, needs_root]
# Whoever waits for the engine waits for ever: far more than any look takes, on any computer.
PATIENCE_S = 200
SAID = "has not answered within 2 s"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Enclosed]:
    """This computer with disks `shop`, whose engine does not go on, and `two`, on one flash."""
    for name in ("flash", "origin", "second"):
        (tmp_path / name).write_bytes(b"")
        os.truncate(tmp_path / name, 192 << 20)
    flash = PurePosixPath(tmp_path / "flash")
    with enclosed() as there:
        monkeypatch.setattr(connect, "open_machine", lambda *_: nullcontext(there))
        stopped: int | None = None
        try:
            for disk, origin in (("shop", "origin"), ("two", "second")):
                wanted = CreateRequest(
                    disk,
                    flash,
                    PurePosixPath(tmp_path / origin),
                    "userspace",
                    "oltp",
                    Bytes(32 << 20),
                    Bytes(0),
                )
                creation.create(there, wanted, False, print)
            stopped = int(there.run(["cat", "/run/hotset/engine/shop/pid"]).stdout)
            os.kill(stopped, signal.SIGSTOP)
            yield there
        finally:
            if stopped is not None:
                os.kill(stopped, signal.SIGCONT)
            for flash in flash_devices.inventory(there).flash_devices:
                lifecycle.destroy(there, flash, True, lambda _: lambda _: None, print)


def asked(name: str, **values: object) -> Any:  # noqa: ANN401 - as the operation has it
    found = table.find(name)
    return found.function(found.parse(values), Context())


def test_an_engine_that_hangs_hides_no_other_disk(machine: Enclosed, tmp_path: Path) -> None:
    begun = time.monotonic()
    rows = {row["disk"]: row for row in asked("tier status").document()["disks"]}
    assert (rows["two"]["state"], rows["two"]["notes"]) == ("active", [])
    assert rows["shop"]["state"] == "failed"
    assert any(SAID in note for note in rows["shop"]["notes"]), rows["shop"]
    text = "\n".join(asked("report metrics").lines)
    assert 'hotset_tier_up{disk="two",tier="userspace"} 1' in text
    assert 'hotset_tier_up{disk="shop",tier="userspace"} 0' in text
    assert 'hotset_tier_state{disk="shop",tier="userspace",state="failed"} 1' in text
    health: Health = asked("tier health").to_record()
    of = {(one.disk, one.subject): one for one in health.findings}
    assert of["two", "state"].state == "ok"
    assert SAID in of["shop", "state"].text
    # What looks at files and devices asks nothing of that engine's, and reads through no other.
    counted = flash_devices.find(machine, "two").tier.counters()
    assert asked("tier scan").document()
    assert asked("programs list").document()["copies"]
    assert flash_devices.find(machine, "two").tier.counters() == counted
    (tmp_path / "of two names").hardlink_to(tmp_path / "second")
    second = PurePosixPath(tmp_path / "second")
    assert programs.users(machine, second, "loops") == ""
    shown = machine.run(["losetup", "--find", "--show", str(tmp_path / "of two names")])
    try:
        assert f"second is behind {shown.stdout.strip()}" in programs.users(
            machine, second, "loops"
        )
    finally:
        machine.run(["losetup", "--detach", shown.stdout.strip()])
    two = flash_devices.find(machine, "two")
    lifecycle.deactivate(two, print)
    assert not two.tier.is_active()
    lifecycle.activate(two, print)
    assert two.tier.is_active()
    assert time.monotonic() - begun < PATIENCE_S
