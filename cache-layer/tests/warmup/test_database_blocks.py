"""The off-line fill: the copy's table, the metadata, and the checks before it is believed."""

from __future__ import annotations

import base64
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.block import programs
from hotset.block.extents import Run, count
from hotset.block.transfer import Progress
from hotset.core.machines import locks
from hotset.core.machines.base import Command, Result
from hotset.core.machines.local import Local, search_path
from hotset.core.units import Blocks, Bytes
from hotset.tier.base import TierKind, TierSpec, Warmup, WarmupFailedError
from hotset.tier.dmcache import offline
from hotset.tier.dmcache.metadata import Slots
from hotset.tier.dmcache.tier import DmCache
from hotset.warmup import plan as database_blocks
from hotset.warmup.fill import fill, fill_by_reading
from tests.fake_machine import FakeMachine, dm_cache, place

BLOCK = Bytes(64 * 1024)
MIB = 2**20
SPEC = TierSpec("writeback", "smq", BLOCK, Bytes(5 * MIB), Bytes(4 * MIB), Bytes(MIB))
RUNS = [Run(Blocks(0), Blocks(2)), Run(Blocks(7), Blocks(3)), Run(Blocks(40), Blocks(1))]
ORIGIN_BLOCKS = [0, 1, 7, 8, 9, 40]
ORIGIN = PurePosixPath("/dev/origin")

# What `hotset-engine copy` prints.
COPIED = 'copied 65536\ncopied 393216\n{"seconds": 4.0}'


@st.composite
def run_lists(draw: st.DrawFn) -> list[Run]:
    at, runs = 0, []
    for gap, length in draw(st.lists(st.tuples(st.integers(1, 99), st.integers(1, 9)))):
        at += gap
        runs.append(Run(Blocks(at), Blocks(length)))
        at += length
    return runs


def packed(runs: list[Run], capacity: int) -> Slots:
    """The runs in the first slots, one behind the other."""
    slots = Slots(Blocks(capacity))
    slots.fill(slots.places(runs))
    return slots


def metadata_xml(runs: list[Run], capacity: int) -> str:
    return "".join(packed(runs, capacity).xml(BLOCK, "smq"))


@given(run_lists())
def test_metadata_names_every_block_once_and_hottest(runs: list[Run]) -> None:
    capacity = Blocks(count(runs) + 5)
    top = ET.fromstring(metadata_xml(runs, capacity))  # noqa: S314 - our own text
    assert top.tag == "superblock"
    assert top.attrib == {
        "uuid": "",
        "block_size": "128",
        "nr_cache_blocks": str(int(capacity)),
        "policy": "smq",
        "hint_width": "4",
    }
    mappings, hints = top
    expected = [block for run in runs for block in range(run.start, run.start + run.count)]
    assert [entry.attrib for entry in mappings] == [
        {"cache_block": str(at), "origin_block": str(block), "dirty": "false"}
        for at, block in enumerate(expected)
    ]
    assert [entry.get("cache_block") for entry in hints] == [str(at) for at in range(len(expected))]
    for entry in hints:
        assert int.from_bytes(base64.b64decode(entry.attrib["data"]), "little") == 63
    assert {entry.tag for entry in mappings} <= {"mapping"}
    assert {entry.tag for entry in hints} <= {"hint"}


@pytest.mark.parametrize("blocks", [ORIGIN_BLOCKS, []])
def test_the_real_cache_restore_takes_the_metadata(tmp_path: Path, blocks: list[int]) -> None:
    local = Local()
    tools = ("cache_restore", "cache_check", "cache_dump")
    if any(local.which(tool) is None for tool in tools):
        pytest.skip("cache_restore, cache_check, cache_dump (thin-provisioning-tools) are missing")
    xml, metadata = tmp_path / "cache.xml", tmp_path / "metadata"
    xml.write_text(metadata_xml(RUNS if blocks else [], 64))
    with metadata.open("wb") as file:
        file.truncate(SPEC.metadata)

    def tool(*argv: str) -> str:
        return subprocess.run(
            argv,
            check=True,
            capture_output=True,
            text=True,
            env={"PATH": search_path()},
            timeout=20,
        ).stdout

    tool("cache_restore", "--quiet", "-i", str(xml), "-o", str(metadata))
    tool("cache_check", "--quiet", str(metadata))
    top = ET.fromstring(tool("cache_dump", str(metadata)))  # noqa: S314
    assert (top.get("block_size"), top.get("nr_cache_blocks")) == ("128", "64")
    assert top.get("policy") == "smq"
    mapped = top.find("mappings")
    assert mapped is not None
    found = [
        (int(one.attrib["cache_block"]), int(one.attrib["origin_block"]), one.attrib["dirty"])
        for one in mapped
    ]
    assert found == [(at, block, "false") for at, block in enumerate(blocks)]
    hints = top.find("hints")
    assert [one.attrib["data"] for one in hints or ()] == ["PwAAAA=="] * len(blocks)


class FileMachine(Local):
    """This computer, with files in place of block devices: nothing to flush."""

    def execute(self, command: Command) -> Result:
        if command.argv[0] == "blockdev":
            return Result(command.argv, 0, "", "", 0.0)
        return super().execute(command)


class FileTier(DmCache):
    """A tier whose CACHE slice is a file."""

    @property
    def cache(self) -> PurePosixPath:
        return PurePosixPath(str(self.origin) + ".cache")


@pytest.mark.parametrize(
    ("spoiled", "samples", "expected"),
    [
        ([], 100, (6, 0)),
        ([0, 3], 100, (6, 2)),
        ([5], 1, (None, 1)),  # the last block is always looked at
        ([0], 1, (None, 1)),  # so is the first
    ],
)
def test_sampled_blocks_are_compared_byte_for_byte(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spoiled: list[int],
    samples: int,
    expected: tuple[int | None, int],
) -> None:
    monkeypatch.setattr(locks, "RUNTIME", PurePosixPath(tmp_path))
    origin = bytearray(b"".join(bytes([block]) * BLOCK for block in range(41)))
    cached = bytearray().join(
        origin[block * BLOCK : (block + 1) * BLOCK] for block in ORIGIN_BLOCKS
    )
    for block in spoiled:
        cached[(block + 1) * BLOCK - 1] ^= 1
    (tmp_path / "origin").write_bytes(origin)
    (tmp_path / "origin.cache").write_bytes(cached)
    tier = FileTier(FileMachine(), SPEC, place(SPEC, str(tmp_path / "origin")))
    sampled, differing = offline.compare(tier, Slots(Blocks(64)).places(RUNS), samples)
    assert differing == expected[1]
    if expected[0] is not None:
        assert sampled == expected[0]


def test_nothing_to_compare() -> None:
    machine = FakeMachine()
    tier = dm_cache(machine, SPEC)
    assert offline.compare(tier, [], 10) == (0, 0)
    assert not [line for line in machine.commands if "compare" in line]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    program = tmp_path / "hotset-engine"
    program.touch()
    program.with_name(programs.BOOT).symlink_to(programs.find_boot())
    monkeypatch.setenv("HOTSET_FLASHDEV", str(program.with_name("flashdev")))
    return FakeMachine(
        {
            "blockdev --getsize64": str(1536 * MIB),
            "dmsetup ls": "hotset-data-meta\t(254:0)\nhotset-data-cache\t(254:1)\n",
            "hotset-engine copy --from /dev/origin --bytes": '{"seconds": 0.5}',
            "hotset-engine compare": '{"runs": 5, "differing": 0}',
            "stat --dereference": "8 10\n",
            "hotset-engine copy --from /dev/origin --to": COPIED,
            "hotset-engine copy --from /dev/mapper/hotset-data --bytes": '{"seconds": 0.5}',
            "hotset-engine copy --from /dev/mapper/hotset-data --piece": COPIED,
        }
    )


def filled(machine: FakeMachine, seen: list[Progress]) -> Warmup:
    tier = dm_cache(machine, SPEC)
    return fill(tier, RUNS, 3, seen.append)


def test_the_fill_in_its_order(machine: FakeMachine) -> None:
    seen: list[Progress] = []
    done = filled(machine, seen)
    steps = (
        "hotset-engine copy --from /dev/origin --bytes 50331648",
        "hotset-engine copy --from /dev/origin --to /dev/mapper/hotset-data-cache --exclusive"
        " --runs /run/hotset/runs",
        "hotset-engine compare /dev/origin /dev/mapper/hotset-data-cache"
        " --runs /run/hotset/samples",
        "cache_restore --quiet -i /run/hotset/cache.xml -o /dev/mapper/hotset-data-meta",
        "dmsetup create hotset-data",
    )
    at = [
        next(n for n, line in enumerate(machine.commands) if line.startswith(step))
        for step in steps
    ]
    assert at == sorted(at)
    assert machine.files["/run/hotset/cache.xml"][0] == metadata_xml(RUNS, 64)
    assert machine.files["/run/hotset/runs"][0] == (
        "0 131072 0\n458752 196608 131072\n2621440 65536 327680\n"
    )
    assert (done.method, done.bytes, done.seconds) == ("offline", 6 * BLOCK, 4.0)
    assert done.mb_per_s == pytest.approx(6 * BLOCK / 1e6 / 4)
    assert done.origin_mb_per_s == pytest.approx(48 * MIB / 1e6 / 0.5)
    assert done.sampled_blocks >= 3
    assert done.differing_blocks == 0
    assert [(one.done, one.total) for one in seen] == [(65536, 6 * BLOCK), (393216, 6 * BLOCK)]


def test_a_difference_stops_the_fill_before_it_is_used(machine: FakeMachine) -> None:
    machine.answers["hotset-engine compare"] = '{"runs": 5, "differing": 1}'
    with pytest.raises(WarmupFailedError, match="1 of 5 sampled blocks differ"):
        filled(machine, [])
    assert machine.files["/run/hotset/cache.xml"][0] == metadata_xml([], 64)
    assert not [line for line in machine.commands if line.startswith("dmsetup create")]


def test_a_failed_copy_is_not_activated(machine: FakeMachine) -> None:
    machine.answers["hotset-engine copy --from /dev/origin --to"] = 1
    with pytest.raises(Exception, match="failed with code 1"):
        filled(machine, [])
    assert machine.files["/run/hotset/cache.xml"][0] == metadata_xml([], 64)
    assert not [line for line in machine.commands if line.startswith("dmsetup create")]


def test_filling_by_reading_goes_through_the_tier(machine: FakeMachine) -> None:
    tier, seen = dm_cache(machine, SPEC), list[Progress]()
    done = fill_by_reading(tier, RUNS, 3, seen.append)
    reads = [
        line
        for line in machine.commands
        if line.startswith("hotset-engine copy") and "runs" in line
    ]
    copy = (
        "hotset-engine copy --from /dev/mapper/hotset-data --piece 1048576 --runs /run/hotset/runs"
    )
    assert reads == [copy] * 3
    assert not [line for line in machine.commands if "--to" in line or "cache_restore" in line]
    assert (done.method, done.bytes, done.seconds) == ("read", 18 * BLOCK, 12.0)
    assert [one.done for one in seen][-1] == 12 * BLOCK + 393216
    assert {one.total for one in seen} == {18 * BLOCK}


def test_the_database_is_looked_for_on_a_read_only_origin(machine: FakeMachine) -> None:
    machine.answers |= {
        "blkid": "ext4\n",
        "debugfs": "Block size: 4096\n",
        "dumpe2fs": "Block size: 4096\n",
        "find": "/look/cluster/1\0",
        "filefrag": "File size of 1 is 65536 (16 blocks of 4096 bytes)\n"
        "   0:        0..      15:    8192..    8207:     16:             last,eof\n",
    }
    tier = dm_cache(machine, SPEC)
    runs = database_blocks.database_runs(tier, ORIGIN, PurePosixPath("/look"), "cluster")
    # 16 MiB at the head of the file system are 256 blocks: more than the 64 of this cache.
    assert runs == [Run(Blocks(0), Blocks(64))]
    assert "mount -o ro,noload /dev/origin /look" in machine.commands
    assert machine.commands.index("umount /look") > machine.commands.index(
        "filefrag -v -s /look/cluster/1"
    )


def test_what_is_hot_comes_before_all_files(machine: FakeMachine) -> None:
    machine.answers |= {
        "blkid": "ext4\n",
        "debugfs": "Block size: 4096\n",
        "dumpe2fs": "Block size: 4096\n",
    }
    tier, inspect = dm_cache(machine, SPEC), PurePosixPath("/look")
    hot = [
        Run(Blocks(9_000), Blocks(40)),
        Run(Blocks(5_000), Blocks(20)),
        Run(Blocks(7_000), Blocks(50)),
    ]
    runs = database_blocks.database_runs(tier, ORIGIN, inspect, "cluster", (), hot)
    # The last one has room for four of its blocks; nothing is left for the file system's head.
    assert runs == [
        Run(Blocks(5_000), Blocks(20)),
        Run(Blocks(7_000), Blocks(4)),
        Run(Blocks(9_000), Blocks(40)),
    ]
    runs = database_blocks.database_runs(tier, ORIGIN, inspect, "cluster", (), hot[:1])
    assert runs == [Run(Blocks(0), Blocks(24)), Run(Blocks(9_000), Blocks(40))]


def test_the_origin_is_unmounted_also_when_looking_fails(machine: FakeMachine) -> None:
    machine.answers |= {"find": 1, "blkid": "ext4\n"}
    tier = dm_cache(machine, SPEC)
    with pytest.raises(Exception, match="failed with code 1"):
        database_blocks.database_runs(tier, ORIGIN, PurePosixPath("/look"), "cluster")
    assert machine.commands[-1] == "umount /look"


def test_bcache_is_not_filled_to_the_brim() -> None:
    assert database_blocks.fill_limit("bcache", Blocks(160)) == 150
    assert database_blocks.fill_limit("dm-cache", Blocks(160)) == 160


@pytest.mark.parametrize(
    ("kind", "capacity", "origin", "limit"),
    [
        ("dm-cache", 100, 100, 100),
        ("dm-cache", 100, 80, 100),
        ("dm-cache", 100, 101, 75),
        ("bcache", 100, 80, 0),
    ],
)
def test_free_space_never_fills_a_cache_that_can_miss(
    kind: TierKind, capacity: int, origin: int, limit: int
) -> None:
    assert database_blocks.growth_limit(kind, Blocks(capacity), Blocks(origin)) == limit
