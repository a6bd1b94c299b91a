"""Which devices are refused, and what is said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

import pytest

from hotset.block import devices, label
from hotset.block.devices import Device, DeviceRefusedError, Role
from hotset.core.machines.base import CommandTimeoutError, Result
from tests.fake_machine import FakeMachine

BY_ID = "/dev/disk/by-id/virtio-x"


def machine(
    tree: dict[str, Any] | None = None, signatures: tuple[str, ...] = (), ids: str = BY_ID
) -> FakeMachine:
    found = {"name": "vdb", "type": "disk", "size": 2**30, "mountpoints": [], **(tree or {})}
    listed = [{"device": "vdb", "offset": "0x438", "type": one} for one in signatures]
    return FakeMachine(
        {
            "readlink -f": "/dev/vdb\n",
            "lsblk": json.dumps({"blockdevices": [found]}),
            "find -L /dev/disk/by-id": ids + "\n",
            "wipefs --json": json.dumps({"signatures": listed}) if listed else "",
        }
    )


def inspect(there: FakeMachine, path: str = BY_ID) -> Device:
    return devices.inspect(there, PurePosixPath(path))


def check(there: FakeMachine, role: Role, yes: bool, path: str = BY_ID) -> None:
    devices.check(there, inspect(there, path), role, yes)


def child(name: str, kind: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"name": name, "type": kind, "size": 1, "mountpoints": [], **more}


def test_an_empty_disk_is_flash_and_one_with_a_file_system_an_origin() -> None:
    for there, role in ((machine(), "flash"), (machine(signatures=("ext4",)), "origin")):
        check(there, "flash" if role == "flash" else "origin", yes=False)
        assert inspect(there).size == 2**30
        changing = ("wipefs --all", "dd of", "dd if=/dev/zero", "dmsetup create")
        assert not [line for line in there.commands if line.startswith(changing)]


def test_a_device_with_a_label_is_not_empty() -> None:
    there = machine()
    label.write(there, PurePosixPath("/dev/vdb"), label.Label(1, "{}"))
    assert inspect(there).signatures == ("hotset",)
    with pytest.raises(DeviceRefusedError, match="is not empty: hotset on it"):
        check(there, "flash", yes=False)


def test_a_device_is_ours_where_every_holder_is() -> None:
    mounted = child("hotset-erp-ssd", "dm", mountpoints=["/srv"])
    other = child("vg-data", "lvm")
    for holders, expected in (
        ([], True),
        ([mounted], True),
        ([mounted, child("hotset-shop-ssd", "dm")], True),
        ([mounted, other], False),
        ([other, mounted], False),
    ):
        assert devices.ours(inspect(machine({"children": holders}))) is expected, holders
    assert not devices.ours(inspect(machine({"mountpoints": ["/srv"]})))


def test_a_device_that_does_not_answer_is_no_traceback() -> None:
    class Hung(FakeMachine):
        def run(self, argv: Sequence[str], **more: Any) -> Result:  # noqa: ANN401
            if argv[0] == "dd":
                raise CommandTimeoutError(self.kind, argv, 20)
            return super().run(argv, **more)

    assert not devices.answers(Hung(), PurePosixPath("/dev/vdb"))


@pytest.mark.parametrize("role", ["flash", "origin"])
@pytest.mark.parametrize("yes", [False, True])
@pytest.mark.parametrize(
    ("tree", "said"),
    [
        ({"mountpoints": ["/srv/db"]}, "vdb is mounted on /srv/db"),
        ({"mountpoints": ["[SWAP]"]}, "vdb is swap space"),
        ({"children": [child("vdb1", "part", mountpoints=["/boot"])]}, "vdb1 is mounted on /boot"),
        ({"children": [child("vg-lv", "lvm")]}, r"held by vg-lv \(lvm\)"),
        (
            {"children": [child("vdb1", "part", children=[child("md0", "raid1")])]},
            r"vdb1 is held by md0 \(raid1\)",
        ),
    ],
)
def test_what_is_in_use_is_refused_whatever_is_said(
    role: Role, yes: bool, tree: dict[str, Any], said: str
) -> None:
    with pytest.raises(DeviceRefusedError, match=said):
        check(machine(tree), role, yes)


@pytest.mark.parametrize(
    ("role", "tree", "signatures", "said"),
    [
        ("flash", {}, ("xfs",), "is not empty: xfs on it"),
        ("flash", {"children": [child("vdb1", "part")]}, (), "is not empty: partitions"),
        (
            "origin",
            {"children": [child("vdb1", "part")]},
            ("gpt", "PMBR"),
            "partition table .*vdb1.*name the partition",
        ),
        ("origin", {}, ("LVM2_member",), "LVM2_member, not a file system"),
        ("origin", {}, ("bcache",), "bcache, not a file system"),
    ],
)
def test_what_lies_on_it_is_refused_unless_given_up(
    role: Role, tree: dict[str, Any], signatures: tuple[str, ...], said: str
) -> None:
    there = machine(tree, signatures)
    with pytest.raises(DeviceRefusedError, match=said) as refused:
        check(there, role, yes=False)
    assert refused.value.field == role
    assert [dict(one.parameters) for one in refused.value.remedies] == [{"yes": True}]
    check(there, role, yes=True)


def test_another_name_is_refused_with_the_one_to_write() -> None:
    ids = "/dev/disk/by-id/wwn-0x5\n/dev/disk/by-id/ata-DISK_1\n"
    for yes in (False, True):
        with pytest.raises(DeviceRefusedError, match=r"use /dev/disk/by-id/ata-DISK_1$"):
            check(machine(ids=ids), "flash", yes, "/dev/vdb")
    nameless = machine(ids="")
    with pytest.raises(DeviceRefusedError, match=r"no name in /dev/disk/by-id: it may be another"):
        check(nameless, "flash", False, "/dev/loop3")
    check(nameless, "flash", True, "/dev/loop3")


NVME = "/dev/disk/by-id/nvme-ACME_9_S123"
EUI = "/dev/disk/by-id/nvme-eui.0025385b71b0a1c2"


@pytest.mark.parametrize(
    ("ids", "best"),
    [
        ((NVME, f"{NVME}_1", EUI), f"{NVME}_1"),
        ((f"{NVME}-part2", f"{NVME}_1-part2", f"{EUI}-part2"), f"{NVME}_1-part2"),
        ((NVME, EUI), EUI),
        ((NVME, "/dev/disk/by-id/wwn-eui.0025385b71b0a1c2"), "wwn-eui.0025385b71b0a1c2"),
        ((NVME,), NVME),
        (("/dev/disk/by-id/wwn-0x5", "/dev/disk/by-id/ata-DISK_1"), "ata-DISK_1"),
        (("/dev/disk/by-id/dm-uuid-LVM-x", "/dev/disk/by-id/dm-name-vg-lv"), "dm-name-vg-lv"),
    ],
)
def test_a_name_that_moves_between_namespaces_is_not_recommended(
    ids: tuple[str, ...], best: str
) -> None:
    there = machine(ids="\n".join(ids))
    with pytest.raises(DeviceRefusedError, match=rf"reboot: use \S*{best}$"):
        check(there, "flash", True, "/dev/nvme0n1")


def test_no_such_device() -> None:
    with pytest.raises(DeviceRefusedError, match="/dev/nope: no such block device on vm"):
        inspect(FakeMachine({"test -b": 1}), "/dev/nope")


def test_a_disk_that_cannot_be_read() -> None:
    there = machine()
    there.answers["wipefs --json"] = 1
    with pytest.raises(DeviceRefusedError, match="cannot be read"):
        check(there, "flash", yes=True)


@pytest.mark.parametrize("role", ["origin", "flash"])
def test_what_takes_no_writes_is_refused_whatever_is_said(role: Role) -> None:
    """A write-protected LUN: what is on the flash alone could never be written back to it."""
    with pytest.raises(DeviceRefusedError, match="is read-only"):
        check(machine({"ro": True}), role, yes=True)
