"""Targets on a disk's file system, and whether a device is in use."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.block import usage
from hotset.block.extents import Extent
from hotset.block.usage import InUseError, Mount
from hotset.core.errors import PrerequisiteError
from hotset.core.machines.base import Command, Result
from hotset.core.machines.dry_run import READS
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.warmup import resolve as targets
from hotset.warmup.resolve import MountedView, TargetError
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
    found = usage.mounts(machine())
    assert found[1] == Mount("253:3", PurePosixPath("/srv/my data"), "xfs")
    assert usage.mounted_at(machine(), DEVICE) == found[1:]


def test_who_has_a_device_is_named() -> None:
    usage.require_idle(machine(dmsetup_info="0\n"), DEVICE)
    with pytest.raises(InUseError, match=r"mounted on /srv/my data, and an offline"):
        usage.require_idle(machine(dmsetup_info="1\n"), DEVICE)
    bare = machine(dmsetup_info="1\n")
    bare.answers["cat /proc/self/mountinfo"] = MOUNTINFO.splitlines()[0]
    with pytest.raises(InUseError, match="a process has it open"):
        usage.require_idle(bare, DEVICE)
    bare.answers["ls /sys/dev/block/253:3/holders"] = "dm-7\n"
    with pytest.raises(InUseError, match="dm-7 is built on it"):
        usage.require_idle(bare, DEVICE)


class OnSysfs(FakeMachine):
    """Runs what counts on folders as sysfs has them."""

    def __init__(self, at: Path) -> None:
        super().__init__({"stat --dereference": "block special file\n"})
        self.at = at

    def execute(self, command: Command) -> Result:
        if command.argv[3:4] == (READS,):
            return Local().execute(replace(command, argv=(*command.argv[:4], str(self.at))))
        return super().execute(command)


def stat(folder: Path, written: int, rest: str = " 1 0 1 2 3 0 128 0 0 0") -> None:
    folder.mkdir(exist_ok=True)
    (folder / "stat").write_text(f"9 0 800 1 5 0 {written}{rest}\n")


def written_at(at: Path) -> int:
    number = {"stat --dereference '--format=%t": "fd 3\n"}
    there = OnSysfs(at)
    there.answers = {**number, **there.answers}
    return int(usage.written(there, DEVICE))


def test_sectors_written_and_discarded(tmp_path: Path) -> None:
    disk = tmp_path / "sda"
    stat(disk, 4096)
    assert written_at(disk) == 4224
    stat(disk, 4096, " 1 0 1 2")
    assert written_at(disk) == 4096, "kernels before 4.18 count no discards"


def test_what_a_partition_wrote_counts_also_after_its_table_was_read_anew(tmp_path: Path) -> None:
    disk = tmp_path / "sda"
    parts = [disk / "sda1", disk / "sda2"]
    for folder, written in ((disk, 500), (parts[0], 200), (parts[1], 300 - 128)):
        stat(folder, written)
    for part in parts:
        (part / "partition").write_text("1\n")
    assert written_at(parts[0]) == 328
    stat(parts[0], 0, " 1 0 1 2")
    assert written_at(parts[0]) == 328
    stat(disk, 508)
    assert written_at(parts[0]) == 336, "by the disk's name"
    (disk / "queue").mkdir()
    (disk / "queue/iostats").write_text("0\n")
    with pytest.raises(PrerequisiteError, match=r"queue/iostats is 0"):
        written_at(parts[0])


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
