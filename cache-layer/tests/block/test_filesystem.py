"""File systems: which one it is, and where its own blocks lie."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from hotset.block import filesystem
from hotset.block.extents import Extent
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from tests.fake_machine import FakeMachine

DEVICE = PurePosixPath("/dev/disk")
JOURNAL_MAGIC = bytes.fromhex("c03b3998")


@pytest.mark.parametrize("block", [4096, 1024])
def test_the_journal_of_a_real_file_system(tmp_path: Path, block: int) -> None:
    local, disk = Local(), tmp_path / "disk"
    if not (local.which("mke2fs") and local.which("debugfs")):
        pytest.skip("mke2fs and debugfs (e2fsprogs) are not installed")
    local.run(["truncate", "-s", "64M", str(disk)])
    local.run(["mke2fs", "-q", "-F", "-t", "ext4", "-b", str(block), str(disk)])
    head, *journal = filesystem.own_extents(local, PurePosixPath(disk), "ext4")
    assert head == Extent(Bytes(0), Bytes(16 * 1024**2))
    assert sum(extent.length for extent in journal) == 4 * 1024**2
    with disk.open("rb") as file:
        file.seek(journal[0].start)
        assert file.read(4) == JOURNAL_MAGIC


def test_the_room_of_a_real_file_system(tmp_path: Path) -> None:
    local, disk = Local(), tmp_path / "disk"
    if not (local.which("mke2fs") and local.which("dumpe2fs")):
        pytest.skip("mke2fs and dumpe2fs (e2fsprogs) are not installed")
    local.run(["truncate", "-s", "256M", str(disk)])
    local.run(["mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", str(disk)])
    room = filesystem.free_extents(local, PurePosixPath(disk), "ext4")
    said = local.run(["dumpe2fs", "-h", str(disk)]).stdout
    free = next(line.split()[-1] for line in said.splitlines() if line.startswith("Free blocks:"))
    assert sum(extent.length for extent in room) == int(free) * 4096
    assert room == sorted(room)


XFS = """blocksize = 4096
agblocks = 65536
agcount = 4
agblklog = 16
logstart = 131078
logblocks = 16384
"""


def test_groups_and_log_of_an_xfs() -> None:
    machine = FakeMachine({"xfs_db -r": XFS})
    *heads, log = filesystem.own_extents(machine, DEVICE, "xfs")
    group = 65536 * 4096
    assert heads == [Extent(Bytes(number * group), Bytes(1024**2)) for number in range(4)]
    # 131078 is block 6 of group 2.
    assert log == Extent(Bytes(2 * group + 6 * 4096), Bytes(16384 * 4096))


def test_the_room_of_an_xfs() -> None:
    listing = "   1        6      100\n   3      512       10\n   from      to extents  blocks\n"
    machine = FakeMachine({"xfs_db -r -c 'sb 0'": XFS, "xfs_db -r -c 'freesp": listing})
    group = 65536 * 4096
    assert filesystem.free_extents(machine, DEVICE, "xfs") == [
        Extent(Bytes(group + 6 * 4096), Bytes(100 * 4096)),
        Extent(Bytes(3 * group + 512 * 4096), Bytes(10 * 4096)),
    ]


def test_what_is_no_xfs_is_named() -> None:
    machine = FakeMachine({"xfs_db -r": "blocksize = 4096\n"})
    with pytest.raises(ValueError, match=r"does not report agblocks, .* of /dev/disk"):
        filesystem.own_extents(machine, DEVICE, "xfs")


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_a_known_file_system(kind: str) -> None:
    assert filesystem.kind_of(FakeMachine({"blkid": f"{kind}\n"}), DEVICE) == kind


@pytest.mark.parametrize(("said", "shown"), [("btrfs\n", "btrfs"), ("", "no known file system")])
def test_a_file_system_that_is_not_known(said: str, shown: str) -> None:
    with pytest.raises(ValueError, match=f"/dev/disk holds {shown}, not ext4 or xfs"):
        filesystem.kind_of(FakeMachine({"blkid": said}), DEVICE)
