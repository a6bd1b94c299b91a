"""Heat as people see it: the hottest first, the disk as a strip, and a file explained."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import ClassVar, cast

import pytest

from hotset.block import extents
from hotset.block.extents import Extent, Run
from hotset.core import clock
from hotset.core.machines.local import Local
from hotset.core.operation import Context
from hotset.core.record import document_of
from hotset.core.units import Blocks, Bytes
from hotset.disk import flash_devices
from hotset.disk.flash_devices import Disk, FlashDevice
from hotset.hitratio import attribution, hit_report, region_counters
from hotset.hitratio.attribution import FILE_SYSTEM, SHARED, UNOWNED, Owner
from hotset.hitratio.heat import Grid, Reading, Tally
from hotset.hitratio.heatstore import open_store
from hotset.hitratio.hit_report import Target
from hotset.hitratio.tracepoints import NotCountedError
from hotset.monitoring import explain, heat_view
from hotset.monitoring.commands import heat
from hotset.monitoring.explain import NoSuchOwnerError
from hotset.monitoring.heat_view import HeatMap, HeatRanking
from hotset.tier import pins
from hotset.tier.base import Counters, TierSpec
from hotset.tier.disk_tier import Contents
from hotset.tier.division import Owner as Kept
from hotset.tier.division import Owners
from hotset.tier.pins import Preferences

MIB = 1024**2
GRID = Grid(Bytes(10 * MIB), Bytes(MIB))
BLOCK = Bytes(65536)
SPEC = TierSpec("writeback", "smq", BLOCK, Bytes(MIB), Bytes(64 * MIB), Bytes(MIB))
DISK = Disk("erp", "dm-cache", "oltp", PurePosixPath("/dev/slow"), SPEC, (), ())


def mib(start: float, length: float) -> Extent:
    return Extent(Bytes(int(start * MIB)), Bytes(int(length * MIB)))


STOCK, ORDERS = "/d/base/5/16384", "/d/base/5/16385"
FOUND = [
    Owner(STOCK, (mib(0, 2), mib(4, 0.5))),
    Owner(ORDERS, (mib(4.5, 1.5),)),
    Owner(FILE_SYSTEM, (mib(9, 1),)),
]
HEATS = {0: 100.0, 1: 20.0, 4: 40.0, 5: 30.0, 7: 10.0}
CACHED = [mib(0, 1), mib(5.5, 0.5)]


def test_owners_by_heat() -> None:
    rows = heat_view.by_owner(HEATS, GRID, FOUND, CACHED)
    assert [(row.name, row.heat) for row in rows] == [
        (STOCK, 120.0),
        (SHARED, 40.0),
        (ORDERS, 30.0),
        (UNOWNED, 10.0),
    ]
    assert sum(row.share for row in rows) == pytest.approx(1)
    stock, shared, orders, _ = rows
    assert (stock.bytes, stock.heat_per_mib, stock.resident) == (2.5 * MIB, 48.0, 0.4)
    assert (shared.bytes, shared.heat_per_mib, shared.resident) == (0, None, None)
    assert orders.resident == pytest.approx(1 / 3)
    assert heat_view.by_owner(HEATS, GRID, FOUND, None)[0].resident is None


def test_extents_by_heat() -> None:
    rows = heat_view.by_extent(HEATS, GRID, CACHED)
    assert [row.name for row in rows[:2]] == ["0 B + 1 MiB", "4 MiB + 1 MiB"]
    assert [row.resident for row in rows[:2]] == [1.0, 0.0]
    assert [row.target for row in rows[:2]] == ["region:0+1MiB", "region:4MiB+1MiB"]


def test_the_strip_holds_all_heat_and_the_whole_disk() -> None:
    for cells in (1, 3, 7, 10, 500):
        strip = heat_view.strip(HEATS, GRID, CACHED, cells)
        assert len(strip) <= min(cells, GRID.count)
        assert sum(cell.bytes for cell in strip) == GRID.disk
        assert sum(cell.heat for cell in strip) == sum(HEATS.values())
    (whole,) = heat_view.strip(HEATS, GRID, CACHED, 1)
    assert whole.resident == pytest.approx(0.15)


def test_the_map_as_text() -> None:
    strip = HeatMap(tuple(heat_view.strip({0: 1000.0, 1: 1.0, 7: 30.0}, GRID, CACHED, 10)))
    lines = heat_view.map_text(strip, 5).splitlines()
    assert lines == [
        "       0 B █▁   ",
        "    cached █    ",
        "     5 MiB   ▄  ",
        "    cached ▒    ",
        "one character is 1 MiB; heat from none (▁: a little) to 1,000.0 requests a MiB (█)",
    ]
    unasked = HeatMap(tuple(heat_view.strip(HEATS, GRID, None, 10)))
    assert "cached" not in heat_view.map_text(unasked, 99)
    cold = heat_view.map_text(HeatMap(tuple(heat_view.strip({}, GRID, None, 10))), 99)
    assert cold.splitlines()[0].strip() == "0 B"
    plain = document_of(strip)
    assert (plain["schema_version"], plain["cells"][0]["heat_per_mib"]) == (1, 1000.0)
    assert strip.csv().splitlines()[0] == "start,bytes,heat,heat_per_mib,resident"


def test_top_as_text() -> None:
    found = HeatRanking("file", tuple(heat_view.by_owner(HEATS, GRID, FOUND, CACHED)))
    lines = found.to_text().splitlines()
    assert lines[0].split() == ["file", "heat", "of", "all", "size", "heat/MiB", "in", "cache"]
    assert lines[1].split() == [STOCK, "120.0", "60.0", "%", "2.5", "MiB", "48.00", "40.0", "%"]
    assert document_of(found)["rows"][0]["name"] == STOCK
    assert found.csv().splitlines()[2].startswith("(several),40.0,")


# explain


@dataclass(frozen=True)
class Divided:
    """A cache that keeps to pins by itself."""

    kept: Owners

    def owners(self) -> Owners:
        return self.kept


class FakeTier:
    kind, spec = "dm-cache", SPEC
    dirty: ClassVar[list[Extent] | None] = []

    def divisible(self) -> Divided | None:
        return None

    def counters(self) -> Counters:
        dirty = Blocks(0 if self.dirty == [] else 8)
        return Counters(0, 0, 0, 0, 0, 0, dirty, Blocks(1024), Blocks(1024))

    def contents(self) -> Contents:
        runs = [Run(Blocks(0), Blocks(16)), Run(Blocks(88), Blocks(8))]
        return Contents(extents.of_runs(runs, self.spec.block), self.dirty)


class FakeCounter:
    reading: Reading | None = None

    def read(self) -> Reading:
        if self.reading is None:
            raise NotCountedError("heat of disk erp is not counted: begin with `hotset heat start`")
        return self.reading


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> FakeCounter:
    fake = FakeCounter()
    monkeypatch.setattr(flash_devices.AttachedDisk, "tier", FakeTier())
    monkeypatch.setattr(region_counters, "find_counters", lambda *_: fake)
    monkeypatch.setattr(attribution, "files", lambda *_: FOUND)
    monkeypatch.setattr(attribution, "newer", lambda *_: set())
    monkeypatch.setattr(
        pins, "read_preferences", lambda *_: Preferences(("/d/base", "table:stock"), (ORDERS,))
    )
    return fake


FLASH = FlashDevice("main", PurePosixPath("/dev/f"), Bytes(1), (), (DISK,))
TARGET = Target("local", flash_devices.AttachedDisk(Local(), FLASH, DISK))


def reads(hits: int, misses: int) -> Tally:
    return Tally(hits + misses, 0, hits, misses, 0, 0, None)


def test_a_file_explained(counter: FakeCounter) -> None:
    counter.reading = Reading(GRID, "a", 0.0, {0: reads(80, 0), 1: reads(0, 20), 4: reads(9, 9)})
    found = explain.explain(TARGET, STOCK, None)
    assert (found.name, found.bytes, found.resident) == (STOCK, 2.5 * MIB, 0.4)
    assert (found.read_hit_ratio, found.write_hit_ratio) == (0.8, None)
    assert found.heat is not None
    assert found.times_average is not None
    text = found.to_text()
    assert f"{STOCK} on disk erp (dm-cache)" in text
    assert "40.0 % of its bytes" in text
    assert "The cache is full" in text
    assert "It shares some regions" in text
    assert document_of(found)["resident"] == 0.4


def test_heat_of_a_part_of_a_region_is_that_part(counter: FakeCounter) -> None:
    counter.reading = Reading(GRID, "a", 0.0, {4: reads(100, 0), 0: reads(300, 0), 5: reads(1, 0)})
    stock = explain.explain(TARGET, STOCK, None)
    orders = explain.explain(TARGET, ORDERS, None)
    assert stock.heat is not None
    assert orders.heat is not None
    # A half of region 4 each; all of region 0 is the stock's, all of region 5 the orders'.
    assert stock.heat / orders.heat == pytest.approx((50 + 300) / (50 + 1), rel=0.01)
    # 350 on 2.5 MiB, where the disk has 401 on 10.
    assert stock.times_average == pytest.approx((350 / 2.5) / (401 / 10), rel=0.01)


@pytest.mark.parametrize(
    ("dirty", "share", "words"),
    [
        ([], 0.0, "dirty           none"),
        ([Extent(Bytes(0), Bytes(MIB // 4))], 0.1, "10.0 % of its bytes are on the flash only"),
        (None, None, "dm-cache does not say which"),
    ],
)
def test_what_is_dirty_of_a_file(
    counter: FakeCounter,
    monkeypatch: pytest.MonkeyPatch,
    dirty: list[Extent] | None,
    share: float | None,
    words: str,
) -> None:
    assert counter.reading is None
    monkeypatch.setattr(FakeTier, "dirty", dirty)
    found = explain.explain(TARGET, STOCK, None)
    assert found.dirty == share
    assert words in found.to_text()


def test_what_its_warmups_were_told_of_a_file(counter: FakeCounter) -> None:
    assert counter.reading is None
    assert explain.explain(TARGET, STOCK, None).preference == "pinned"
    orders = explain.explain(TARGET, ORDERS, None)
    assert orders.preference == "excluded"
    assert "preference      excluded, which only warm-ups keep to" in orders.to_text()


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ([Run(Blocks(0), Blocks(80))], "It is pinned: what is cached of it is never evicted"),
        ([Run(Blocks(400), Blocks(40))], "It is pinned, but only 0.0 % of it lies where"),
    ],
)
def test_a_pin_is_of_blocks_which_may_be_another_files_by_now(
    counter: FakeCounter, monkeypatch: pytest.MonkeyPatch, kept: list[Run], words: str
) -> None:
    """After VACUUM FULL nothing of a pinned table was kept, and it said that all was."""
    assert counter.reading is None
    owners = Owners((Kept("/d/base", tuple(kept)),))
    monkeypatch.setattr(FakeTier, "divisible", lambda _: Divided(owners))
    assert words in explain.explain(TARGET, STOCK, None).to_text()


def test_without_counting_the_rest_is_still_said(counter: FakeCounter) -> None:
    assert counter.reading is None
    found = explain.explain(TARGET, "16385", None)
    assert (found.name, found.heat, found.read_hit_ratio) == (ORDERS, None, None)
    assert found.resident == pytest.approx(1 / 3)
    assert "hotset heat start" in found.to_text()


def test_what_came_to_be_since_heat_was_counted_may_have_that_of_others(
    counter: FakeCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VACUUM FULL: the hottest table on the list was the one whose blocks another had."""
    now = clock.moment().wall
    counter.reading = Reading(GRID, "a", now - 100, {0: reads(80, 0), 5: reads(1, 0)})
    asked: list[float] = []

    def newer(*given: object) -> set[str]:
        asked.append(cast("float", given[2]))
        return {ORDERS}

    monkeypatch.setattr(attribution, "newer", newer)
    monkeypatch.setattr(hit_report, "target_of", lambda *_: nullcontext(TARGET))
    said: list[str] = []
    heat.top(heat.Top(disk="erp"), Context(message=said.append))
    assert [ORDERS in one and "came to be after" in one for one in said] == [True]
    assert STOCK not in said[0]
    assert ORDERS in explain.explain(TARGET, ORDERS, None).to_text().partition("came to be")[0]
    assert "came to be" not in explain.explain(TARGET, STOCK, None).to_text()
    assert all(one == pytest.approx(now - 100, abs=30) for one in asked)


def test_heat_began_where_less_than_a_hundredth_is_left_of_what_was_before(tmp_path: Path) -> None:
    with open_store(tmp_path / "heat") as store:
        assert store.begun(50.0) == 50.0
        store.fold(Reading(GRID, "a", 0.0, {0: reads(1, 0)}), 10.0)
        day = store.half_life_s
        assert store.begun(day) == 0.0
        assert store.begun(100 * day) == 93 * day


def test_a_table_by_its_short_name(counter: FakeCounter) -> None:
    del counter
    names = {STOCK: "public.stock", ORDERS: "sales.orders"}
    found = explain.explain(TARGET, "stock", names.__getitem__)
    assert found.name == "public.stock"
    with pytest.raises(NoSuchOwnerError, match=r"'none' has no blocks.*public\.stock"):
        explain.explain(TARGET, "none", names.__getitem__)


def test_an_end_of_several_names_is_refused(
    counter: FakeCounter, monkeypatch: pytest.MonkeyPatch
) -> None:
    del counter
    more = [*FOUND, replace(FOUND[0], name="/d/other/16384")]
    monkeypatch.setattr(attribution, "files", lambda *_: more)
    with pytest.raises(NoSuchOwnerError, match="several names"):
        explain.explain(TARGET, "16384", None)
