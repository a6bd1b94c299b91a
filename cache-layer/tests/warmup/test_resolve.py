"""Targets on a disk's file system, and whether a device is in use."""

from __future__ import annotations

from contextlib import suppress
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.block import filesystem, programs
from hotset.block.extents import Extent
from hotset.block.filesystem import Mount
from hotset.block.programs import InUseError
from hotset.core.units import Bytes
from hotset.databases.base import TargetError
from hotset.warmup import targets
from hotset.warmup.targets import MountedView
from tests.fake_machine import FakeMachine

DEVICE = PurePosixPath("/dev/mapper/hotset-pg")
BLOCK = Bytes(65536)
# proc_pid_mountinfo(5), as a kernel of ours writes it.
MOUNTINFO = (
    "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "31 22 253:3 / /srv/my\\040data rw,noatime shared:7 master:2 - xfs /dev/mapper/hotset-pg rw\n"
)
ANSWERS = {
    "stat --dereference '--format=%t %T' /dev/mapper/hotset-pg": "fd 3\n",
    "cat /proc/self/mountinfo": MOUNTINFO,
    "blkid": "ext4\n",
    "blockdev --getsize64": str(2**26),
}


def machine(**more: str | int) -> FakeMachine:
    return FakeMachine({**{name.replace("_", " "): said for name, said in more.items()}, **ANSWERS})


def test_mounts_are_read_by_device_and_folder() -> None:
    found = filesystem.mounts(machine())
    assert found[1] == Mount("253:3", PurePosixPath("/srv/my data"), "xfs")
    assert filesystem.mounts_of(machine(), DEVICE) == found[1:]


def test_who_has_a_device_is_named() -> None:
    programs.require_idle(machine(), DEVICE)
    used = "/dev/mapper/hotset-pg is in use: dm-3 is mounted on /srv/my data: unmount it first"
    there = machine()
    there.answers["hotset-boot users"] = f"{used}\n"
    with pytest.raises(InUseError, match=f"needs it idle: {used}$"):
        programs.require_idle(there, DEVICE)


def test_what_is_mounted_is_looked_at_where_it_is() -> None:
    there = machine()
    with targets.inspect(there, DEVICE, BLOCK, PurePosixPath("/srv/pg")) as inspect:
        assert inspect == MountedView(
            there, DEVICE, PurePosixPath("/srv/my data"), "ext4", BLOCK, Bytes(2**26)
        )
    assert not [line for line in there.commands if line.startswith(("mount", "umount"))]


def test_what_is_not_mounted_is_mounted_read_only_for_the_look() -> None:
    there = machine()
    there.answers["cat /proc/self/mountinfo"] = MOUNTINFO.splitlines()[0]
    with (
        suppress(TargetError),
        targets.inspect(there, DEVICE, BLOCK, PurePosixPath("/srv/pg")) as inspect,
    ):
        assert there.commands[-1] == f"mount -o ro,noload {DEVICE} /srv/pg"
        there.answers = {"stat --dereference '--format=%d": 1, **there.answers}
        inspect.wish("/srv/pg/none", ["/srv/pg/none"])
    assert there.commands[-1] == "umount /srv/pg"
    with (
        pytest.raises(TargetError, match="something else is mounted on /"),
        targets.inspect(there, DEVICE, BLOCK, PurePosixPath("/")),
    ):
        pass
    with targets.inspect(there, DEVICE, BLOCK, None) as inspect:
        assert inspect.folder is None
        with pytest.raises(TargetError, match="not mounted, so the path /srv/x cannot"):
            inspect.wish("/srv/x", ["/srv/x"])


def test_a_file_elsewhere_is_refused() -> None:
    there = machine()
    there.answers["stat --dereference '--format=%d %F'"] = "64512 regular file\n"
    there.answers["stat '--format=%d %F'"] = "64512 regular file\n"
    inspect = MountedView(there, DEVICE, PurePosixPath("/srv"), "ext4", BLOCK, Bytes(2**26))
    with pytest.raises(TargetError, match="/etc/passwd is not on"):
        inspect.wish("x", ["/etc/passwd"])
    there.answers["stat --dereference '--format=%d %F'"] = "64771 regular file\n"
    assert inspect.files(["/srv/a"]) == ["/srv/a"]


@given(st.integers(0, 2**50), st.integers(1, 2**50))
def test_a_region_is_named_to_the_byte(start: int, length: int) -> None:
    part = Extent(Bytes(start), Bytes(length))
    assert targets.region_of(targets.region_name(part)) == part


def test_a_region_lies_on_the_disk() -> None:
    view = MountedView(machine(), DEVICE, None, None, BLOCK, Bytes(2**26))
    assert view.region("region:63MiB+1MiB") == Extent(Bytes(63 * 2**20), Bytes(2**20))
    with pytest.raises(TargetError, match=r"ends at 64.0 MiB, beyond the end of .*67108864 bytes"):
        view.region("region:63MiB+1048577")


def test_a_disk_without_a_file_system_has_regions_alone() -> None:
    there = machine()
    there.answers["blkid"] = "LVM2_member\n"
    there.answers["cat /proc/self/mountinfo"] = MOUNTINFO.splitlines()[0]
    with targets.inspect(there, DEVICE, BLOCK, PurePosixPath("/srv/pg")) as view:
        assert (view.own().layers, view.free()) == (([],), [])
        with pytest.raises(TargetError, match=r"no file system of kind ext4 or xfs, .*region:"):
            view.files(["/srv/x"])
    assert not [line for line in there.commands if line.startswith("mount")]
