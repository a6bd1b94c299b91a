"""Whose regions they are, and that the parts add up to the whole."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.block import extents
from hotset.block.extents import Extent, Run
from hotset.core.machines.base import CommandError
from hotset.core.units import Blocks, Bytes
from hotset.hitratio import attribution
from hotset.hitratio.attribution import FILE_SYSTEM, SHARED, UNOWNED, NotMountedError, Owner
from hotset.hitratio.heat import Grid, Tally, total
from tests.fake_machine import FakeMachine

GRID = Grid(Bytes(1000), Bytes(100))
DEVICE = PurePosixPath("/dev/mapper/hotset-erp")
FILEFRAG = """\
Filesystem type is: ef53
File size of /data/base/5/16384 is 8192 (2 blocks of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..       1:         10..        11:      2:             last,eof
/data/base/5/16384: 1 extent found
File size of /data/with space is 4096 (1 block of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..       0:        100..       100:      1:             last,eof
/data/with space: 1 extent found
File size of /data/sparse is 4096 (1 block of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..       0:        200..       200:      1:             last,unwritten,eof
/data/sparse: 1 extent found
"""
MOUNTS = (
    "30 1 253:1 / / rw - ext4 /dev/vda rw\n"
    "31 30 253:8 / /elsewhere rw - ext4 /dev/mapper/other rw\n"
    "32 30 253:7 / /acc\\040data rw,noatime shared:1 - ext4 /dev/mapper/hotset-erp rw\n"
)
HERE: dict[str, str | int] = {
    "stat": "fd 7\n",
    "cat /proc/self/mountinfo": MOUNTS,
}


def extent(start: int, length: int) -> Extent:
    return Extent(Bytes(start), Bytes(length))


def reads(hits: int, misses: int = 0) -> Tally:
    return Tally(hits + misses, 0, hits, misses, 0, 0, None)


def test_files_are_told_apart() -> None:
    assert attribution.per_file(FILEFRAG) == {
        "/data/base/5/16384": [extent(40960, 8192)],
        "/data/with space": [extent(409600, 4096)],
    }


def test_where_a_disk_is_mounted() -> None:
    assert attribution.mount_point(FakeMachine(HERE), DEVICE) == PurePosixPath("/acc data")
    elsewhere = {**HERE, "cat /proc/self/mountinfo": MOUNTS.replace("253:7", "253:9")}
    with pytest.raises(NotMountedError, match="hotset-erp is not mounted"):
        attribution.mount_point(FakeMachine(elsewhere), DEVICE)


def test_files_of_a_mounted_disk() -> None:
    machine = FakeMachine(
        {
            **HERE,
            "find": "/acc data/a\0/acc data/gone\0",
            "filefrag": FILEFRAG,
            "blkid": "ext4\n",
            "debugfs -R 'show_super_stats -h'": "Block size:               4096\n",
        }
    )
    found = attribution.files(machine, DEVICE)
    assert [owner.name for owner in found] == [
        "/data/base/5/16384",
        "/data/with space",
        FILE_SYSTEM,
    ]
    machine.answers["filefrag"] = 1
    with pytest.raises(CommandError):
        attribution.files(machine, DEVICE)


def test_a_region_of_one_owner_is_its_own_and_others_have_lines_of_their_own() -> None:
    found = [
        Owner("a", (extent(0, 250), extent(900, 100))),
        Owner("b", (extent(250, 60),)),
        Owner(FILE_SYSTEM, (extent(380, 30),)),
    ]
    whose = attribution.of_regions(GRID, found)
    assert whose == {0: "a", 1: "a", 2: SHARED, 3: "b", 4: FILE_SYSTEM, 9: "a"}
    tallies = {
        0: reads(5),
        2: reads(2, 1),
        3: reads(0, 4),
        4: reads(1),
        7: reads(0, 2),
        9: reads(2),
    }
    assert attribution.split(tallies, GRID, found) == [
        ("a", reads(7)),
        ("b", reads(0, 4)),
        (SHARED, reads(2, 1)),
        (UNOWNED, reads(0, 2)),
        (FILE_SYSTEM, reads(1)),
    ]


def test_files_of_one_database_do_not_share_a_region() -> None:
    found = [
        Owner("/d/x.1", (extent(0, 50),)),
        Owner("/d/x.2", (extent(50, 50),)),
        Owner(FILE_SYSTEM, (extent(0, 10),)),
    ]
    assert attribution.of_regions(GRID, found) == {0: SHARED}
    grouped = attribution.group_by(found, lambda path: path.split(".")[0])
    assert attribution.of_regions(GRID, grouped) == {0: "/d/x"}
    assert [owner.name for owner in grouped] == ["/d/x", FILE_SYSTEM]


EXTENTS = st.lists(
    st.tuples(st.integers(0, 990), st.integers(1, 200)).map(lambda pair: extent(*pair)), max_size=6
)


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c", FILE_SYSTEM]), EXTENTS),
    st.dictionaries(st.integers(0, 9), st.builds(reads, st.integers(0, 99), st.integers(0, 99))),
)
def test_the_rows_add_up_to_the_total(
    parts: dict[str, list[Extent]], tallies: dict[int, Tally]
) -> None:
    found = [Owner(name, tuple(where)) for name, where in parts.items()]
    rows = attribution.split(tallies, GRID, found)
    assert total(tally for _, tally in rows) == total(tallies.values())
    assert len({name for name, _ in rows}) == len(rows)


def test_blocks_of_runs_are_bytes() -> None:
    runs = [Run(Blocks(2), Blocks(3)), Run(Blocks(9), Blocks(1))]
    assert extents.of_runs(runs, Bytes(10)) == [extent(20, 30), extent(90, 10)]


@given(EXTENTS, EXTENTS)
def test_what_is_common_is_what_single_bytes_say(some: list[Extent], others: list[Extent]) -> None:
    def single(extents: list[Extent]) -> set[int]:
        return {at for one in extents for at in range(one.start, one.start + one.length)}

    mine, theirs = extents.merge(some), extents.merge(others)
    assert single(mine) == single(some)
    assert extents.length(mine) == len(single(some))
    assert single(extents.common(mine, theirs)) == single(some) & single(others)
    assert extents.length(extents.common(mine, theirs)) == len(single(some) & single(others))
