"""Flash devices by their labels: what cannot be looked at is told, and is not "no label"."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from hotset.block import devices
from hotset.block.devices import Device
from hotset.core.machines.base import CommandError, Machine, Result
from hotset.core.units import Bytes
from hotset.disk import adopt, flash_devices
from hotset.disk.adopt import Unread
from tests.fake_machine import FakeMachine
from tests.support.flash_devices import FLASH

GOOD, BAD = PurePosixPath("/dev/disk/by-id/flash"), PurePosixPath("/dev/vda")
SAID = (
    "dd: error reading '/dev/vda': Input/output error\n"
    "0+0 records in\n0+0 records out\n0 bytes copied, 0.0004 s, 0.0 kB/s\n"
)


def test_a_device_that_cannot_be_read_is_told_in_its_last_words_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def read(machine: Machine, device: PurePosixPath) -> flash_devices.FlashDevice:
        if device == BAD:
            argv = ("dd", f"if={device}", "bs=4096", "count=2", "iflag=direct")
            raise CommandError(machine.kind, Result(argv, 1, "", SAID, 0.1))
        return FLASH

    machine = FakeMachine({"cat /etc/machine-id": "this\n", "id -u": "0\n"})
    found = [Device(one, one, (), Bytes(1 << 30), (), (), (), True, False) for one in (GOOD, BAD)]
    monkeypatch.setattr(devices, "every", lambda _: found)
    monkeypatch.setattr(flash_devices, "read_flash", read)
    monkeypatch.setattr(flash_devices, "list_all", lambda _: [])
    labelled, unread = adopt.scan(machine)
    assert [one.path for one in labelled] == [GOOD]
    assert unread == [
        Unread(BAD, "it cannot be read: error reading '/dev/vda': Input/output error")
    ]
