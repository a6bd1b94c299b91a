"""Targets that no path stands for: heat, and what is pinned while it cannot be looked up."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import NoReturn

import pytest

from hotset.block.extents import Extent, Run, count
from hotset.core.errors import of_command_line
from hotset.core.units import Blocks, Bytes
from hotset.databases.base import TargetError
from hotset.disk.flash_devices import Disk
from hotset.hitratio import heatstore
from hotset.hitratio.attribution import Owner
from hotset.tier.base import TierSpec
from hotset.tier.pins import Preferences, PreferencesError, read_preferences, save
from hotset.warmup import plan as planner
from hotset.warmup import plan as planning
from hotset.warmup.plan import Request, _Maker
from hotset.warmup.snapshot import Snapshot, SnapshotError, keep_allocated, parse, take
from hotset.warmup.targets import MountedView
from hotset.warmup.targets import parse as parse_target
from tests.fake_machine import FakeMachine

BLOCK = Bytes(65536)
DEVICE = PurePosixPath("/dev/mapper/hotset-pg")
SPEC = TierSpec("writeback", "smq", BLOCK, Bytes(2**20), Bytes(2**26), Bytes(0))
DISK = Disk("pg", "dm-cache", "oltp", PurePosixPath("/dev/origin"), SPEC, (), ())
UUID = "11111111-2222-3333-4444-555555555555"


def run(start: int, number: int) -> Run:
    return Run(Blocks(start), Blocks(number))


def nobody() -> NoReturn:
    raise AssertionError("no database is asked")


def inspect(free: str = "", uuid: str = UUID) -> MountedView:
    """At a file system of 64 MiB that is not mounted; ``free`` as dumpe2fs lists it."""
    machine = FakeMachine(
        {
            "blkid --probe --match-tag UUID": f"{uuid}\n",
            "dumpe2fs": f"Block size:               4096\n  Free blocks: {free}\n",
        }
    )
    return MountedView(machine, DEVICE, None, "ext4", BLOCK, Bytes(2**26))


def maker(notes: list[str]) -> _Maker:
    return _Maker("vm", DISK, inspect(), nobody, notes)


def test_what_is_hot_comes_first_and_fills_what_room_there_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    regions = [(run(16 * at, 16), 100.0 - at) for at in (9, 3, 7, 1)]
    ranked = sorted(regions, key=lambda one: -one[1])
    asked: list[tuple[str, str, Bytes]] = []

    def hottest(machine: str, disk: str, identity: str, block: Bytes) -> list[tuple[Run, float]]:
        assert identity == ""
        asked.append((machine, disk, block))
        return ranked

    monkeypatch.setattr(heatstore, "hottest", hottest)
    wish = maker([]).wish(parse_target("heat"))
    assert asked == [("vm", "pg", BLOCK)]
    plan = planner.build_plan([wish], [], [], BLOCK, Blocks(40))
    assert plan.runs == [run(16, 16), run(48, 16), run(112, 8)]


@pytest.mark.night
def test_ten_thousand_regions_keep_their_order_roughly(monkeypatch: pytest.MonkeyPatch) -> None:
    ranked = [(run(2 * at, 1), float(10_000 - at)) for at in range(10_000)]
    monkeypatch.setattr(heatstore, "hottest", lambda *_: ranked)
    wish = maker([]).wish(parse_target("heat"))
    assert len(wish.layers) <= 64
    plan = planner.build_plan([wish], [], [], BLOCK, Blocks(5_000))
    assert max(run.start for run in plan.runs) < 2 * 5_200
    assert count(plan.runs) == 5_000


def test_no_heat_yet_says_what_begins_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heatstore, "hottest", lambda *_: [])
    with pytest.raises(TargetError, match="nothing was counted on this disk yet") as refused:
        maker([]).wish(parse_target("heat"))
    assert "`hotset heat start" in of_command_line(refused.value)


def test_what_is_pinned_and_cannot_be_looked_up_is_told_and_left_out() -> None:
    notes: list[str] = []
    assert maker(notes).prefer(["/srv/pg/a", "/srv/pg/b"], ["/srv/pg/b"], "pinned") == []
    (note,) = notes
    assert note.startswith("pinned, but left out this time: /dev/mapper/hotset-pg is not mounted")


def test_a_name_without_a_server_to_ask() -> None:
    with (
        planning._server(Request("vm", ("table:orders",))) as server,
        pytest.raises(TargetError, match="where table:orders is") as refused,
    ):
        server()
    assert "--dsn" in of_command_line(refused.value)


def test_preferences_are_kept_on_the_machine() -> None:
    machine = FakeMachine({"test -e": 1})
    assert read_preferences(machine, "pg") == Preferences()
    wanted = Preferences().having("pinned", "/a").having("excluded", "/b").having("pinned", "/b")
    assert wanted == Preferences(("/a", "/b"), ())
    save(machine, "pg", wanted.having("excluded", "/c"))
    written = machine.files["/etc/hotset/warmup/pg.json"][0]
    again = FakeMachine({"cat /etc/hotset/warmup/pg.json": written})
    assert read_preferences(again, "pg") == Preferences(("/a", "/b"), ("/c",))
    with pytest.raises(PreferencesError, match=r"/etc/hotset/warmup/pg.json on vm is not a list"):
        read_preferences(FakeMachine({"cat": "{}"}), "pg")
    earlier = {"schema_version": 1, "pinned": ["/a"], "excluded": []}
    with pytest.raises(PreferencesError, match=r"pg.json on vm is not a list .*'shares'"):
        read_preferences(FakeMachine({"cat": json.dumps(earlier)}), "pg")
    for change in ({"schema_version": 2}, {"schema_version": 0}, {"hereafter": []}):
        later = FakeMachine({"cat": json.dumps({**json.loads(written), **change})})
        refused = r"pg.json on vm was written by another version.*and pin and share again"
        with pytest.raises(PreferencesError, match=refused):
            read_preferences(later, "pg")


def extent(start: int, pages: int) -> Extent:
    return Extent(Bytes(start * 4096), Bytes(pages * 4096))


def saved() -> Snapshot:
    """Blocks 4 to 11, of two levels; file one has their first pages, file two the rest."""
    files = [
        Owner("/srv/one", (extent(64, 40),)),
        Owner("/srv/two", (extent(104, 100),)),
        Owner("/srv/not-cached", (extent(800, 16),)),
    ]
    return take("pg", "2026-11-21", inspect(), {5: [run(4, 4)], 63: [run(8, 4)]}, files)


def test_a_snapshot_reads_back_the_hottest_first() -> None:
    snapshot = saved()
    assert parse(snapshot.render()) == snapshot
    assert [layer.level for layer in snapshot.layers] == [63, 5]
    assert [file.name for file in snapshot.files] == ["/srv/one", "/srv/two"]
    assert snapshot.files[1].extents == (extent(104, 88),), "what of it is cached"
    assert keep_allocated(snapshot, inspect()).layers == ([run(8, 4)], [run(4, 4)])


def test_what_lies_in_free_space_is_skipped_and_its_file_named() -> None:
    # File one is gone; its last block is shared with file two.
    left = keep_allocated(saved(), inspect(free="64-103"))
    assert left.deleted == ("/srv/one",)
    assert left.layers == ([run(8, 4)], [run(6, 2)])
    assert keep_allocated(saved(), inspect(free="64-102")).deleted == ()


def test_a_snapshot_of_another_disk_is_refused() -> None:
    with pytest.raises(SnapshotError, match=f"{UUID} .64 MiB.*has other"):
        keep_allocated(saved(), inspect(uuid="other"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema_version": 2}', '{"schema_version": 1}'])
def test_what_is_no_snapshot(text: str) -> None:
    with pytest.raises(SnapshotError, match=r"not (a snapshot|of schema_version)"):
        parse(text)
