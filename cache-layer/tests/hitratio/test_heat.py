"""Regions, their counters, their decay, and the store that folds readings."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.block.extents import Extent, Run
from hotset.core.units import Blocks, Bytes
from hotset.hitratio.heat import (
    NOTHING,
    Grid,
    Reading,
    Tally,
    cacheable_requests,
    decay,
    difference,
    grid_of,
    spread,
    total,
)
from hotset.hitratio.heatstore import KEPT_S, StoreError, hottest, open_store, store_path
from hotset.tier.base import Counters

KIB = 1024
MIB = 1024**2
DAY = 86400.0
GRID = Grid(Bytes(1024 * MIB), Bytes(MIB))


def dm(read_hits: int, read_misses: int = 0, write_hits: int = 0, write_misses: int = 0) -> Tally:
    return Tally(
        read_hits + read_misses,
        write_hits + write_misses,
        read_hits,
        read_misses,
        write_hits,
        write_misses,
        None,
    )


def reading(tallies: dict[int, Tally], epoch: str = "a", dropped: int = 0) -> Reading:
    return Reading(GRID, epoch, 1000.0, tallies, dropped)


# Tallies


def test_ratios_name_what_they_are_a_share_of() -> None:
    tally = dm(30, 10, 5, 5)
    assert (tally.ratio, tally.read_ratio, tally.write_ratio) == (0.7, 0.75, 0.5)
    assert tally.denominator == "requests: read hits + read misses + write hits + write misses"
    bcache = Tally(50, 40, 30, 10, None, None, 15)
    assert (bcache.ratio, bcache.read_ratio, bcache.write_ratio) == (0.75, 0.75, None)
    assert bcache.denominator == (
        "requests: read hits + read misses, bypassed requests left out, writes are not in the ratio"
        " (bcache counts no hits of writes)"
    )
    assert NOTHING.ratio is None


def test_a_figure_that_is_not_counted_stays_so_in_sums() -> None:
    added = total([Tally(1, 2, 1, 0, None, None, 3), Tally(1, 2, 0, 1, None, None, 4)])
    assert added == Tally(2, 4, 1, 1, None, None, 7)
    assert total([]) == NOTHING


def test_bypassed_requests_heat_nothing() -> None:
    assert cacheable_requests(Tally(10, 5, 4, 2, None, None, 6)) == 9
    assert cacheable_requests(dm(1, 2, 3, 4)) == 10


def test_counters_that_shrink_are_no_difference() -> None:
    assert difference({3: dm(5)}, {3: dm(7), 4: dm(1), 5: dm(0)}) == {3: dm(2), 4: dm(1)}
    with pytest.raises(ValueError, match="region 3 shrank"):
        difference({3: dm(5)}, {3: dm(4)})


# Regions


@given(
    disk=st.integers(1, 2**46),
    block=st.sampled_from([64 * KIB, 96 * KIB, 1024 * KIB]),
    shift=st.sampled_from([0, 8 * KIB, MIB]),
    regions=st.integers(1, 500),
)
def test_a_grid_covers_its_disk_without_gap_or_overlap(
    disk: int, block: int, shift: int, regions: int
) -> None:
    grid = grid_of(Bytes(disk), Bytes(block), Bytes(shift), regions)
    assert grid.count <= regions
    assert grid.region % block == 0
    at, blocks = 0, 0
    for number in range(grid.count):
        extent = grid.extent(number)
        assert extent.start == at or extent.length == 0
        at = max(at, extent.start + extent.length)
        if extent.length:
            assert grid.numbers(extent) == range(number, number + 1)
        run = grid.run(number, Bytes(block))
        assert run.start >= blocks or run.count == 0
        blocks = max(blocks, run.start + run.count)
    assert at == disk
    assert blocks == -(-disk // block)


def test_regions_are_as_small_as_the_table_allows() -> None:
    assert grid_of(Bytes(1024 * MIB), Bytes(64 * KIB)).region == 64 * KIB
    assert grid_of(Bytes(100 * 1024 * MIB), Bytes(64 * KIB)).region == 50 * 64 * KIB


def test_an_extent_touches_the_regions_it_lies_in() -> None:
    grid = Grid(Bytes(10 * MIB), Bytes(MIB), Bytes(8 * KIB))
    assert grid.extent(0) == Extent(Bytes(0), Bytes(MIB - 8 * KIB))
    assert grid.numbers(Extent(Bytes(MIB - 8 * KIB - 1), Bytes(2))) == range(2)
    assert grid.numbers(Extent(Bytes(5), Bytes(0))) == range(0)


# Decay


@given(
    st.floats(0, 1e9), st.floats(0, 1e7), st.floats(0, 1e7), st.sampled_from([3600.0, DAY, 9 * DAY])
)
def test_two_decays_are_one(heat: float, first: float, second: float, half: float) -> None:
    twice = decay(decay(heat, first, half), second, half)
    assert twice == pytest.approx(decay(heat, first + second, half), abs=1e-6)


@given(st.integers(0, 10**9), st.floats(1, 1e6), st.sampled_from([3600.0, DAY]))
def test_how_often_it_is_read_does_not_change_heat(
    requests: int, seconds: float, half: float
) -> None:
    """An even load of one interval is as hot as that of its two halves."""
    first = decay(spread(requests / 2, seconds / 2, half), seconds / 2, half)
    two = first + spread(requests / 2, seconds / 2, half)
    assert two == pytest.approx(spread(requests, seconds, half), rel=1e-6, abs=1e-6)


# The store


def test_readings_fold_into_differences(tmp_path: Path) -> None:
    with open_store(tmp_path / "heat.sqlite") as store:
        assert store.grid is None
        assert store.since(0) is None
        first = store.fold(reading({1: dm(10), 2: dm(0, 4)}), 1100.0)
        assert (first.begun, first.at) == (1000.0, 1100.0)
        assert first.total == dm(10, 4)
    with open_store(tmp_path / "heat.sqlite") as store:
        second = store.fold(reading({1: dm(11), 2: dm(0, 4), 7: dm(2)}, dropped=3), 1200.0)
        assert second.tallies == {1: dm(1), 7: dm(2)}
        assert (second.begun, second.at, second.dropped) == (1100.0, 1200.0, 3)
        both = store.since(1050.0)
        assert both is not None
        assert both.tallies == {1: dm(11), 2: dm(0, 4), 7: dm(2)}
        last = store.since(1100.0)
        assert last is not None
        assert (last.total, last.dropped) == (dm(3), 3)
        assert store.since(1200.0) is None


def test_a_new_counting_begins_at_zero(tmp_path: Path) -> None:
    with open_store(tmp_path / "heat.sqlite") as store:
        store.fold(reading({1: dm(100)}, dropped=9), 1100.0)
        after = store.fold(Reading(GRID, "b", 1150.0, {1: dm(4)}, 2), 1200.0)
        assert (after.total, after.begun, after.dropped) == (dm(4), 1150.0, 2)
        whole = store.since(0)
        assert whole is not None
        assert (whole.total, whole.dropped) == (dm(104), 11)


def test_counters_that_shrink_change_nothing(tmp_path: Path) -> None:
    with open_store(tmp_path / "heat.sqlite") as store:
        store.fold(reading({1: dm(100)}), 1100.0)
        with pytest.raises(StoreError, match="shrank"):
            store.fold(reading({1: dm(99)}), 1200.0)
        whole = store.since(0)
        assert whole is not None
        assert (whole.at, whole.total) == (1100.0, dm(100))


def test_what_is_not_counted_stays_so_in_the_store(tmp_path: Path) -> None:
    with open_store(tmp_path / "heat.sqlite") as store:
        store.fold(reading({1: Tally(5, 5, 3, 2, None, None, 1)}), 1100.0)
        store.fold(reading({1: Tally(9, 5, 7, 2, None, None, 1)}), 1200.0)
        whole = store.since(0)
        assert whole is not None
        assert whole.total == Tally(9, 5, 7, 2, None, None, 1)


def test_heat_halves_in_a_half_life_and_the_hottest_come_first(tmp_path: Path) -> None:
    with open_store(tmp_path / "heat.sqlite") as store:
        store.fold(reading({3: dm(160), 9: dm(1600)}), 1000.0)
        assert store.heats(1000.0) == {3: 160.0, 9: 1600.0}
        assert store.heats(1000.0 + DAY) == {3: 80.0, 9: 800.0}
        # A day later only region 3 is in use.
        later = {3: dm(160 + 3200), 9: dm(1600)}
        store.fold(reading(later), 1000.0 + DAY)
        ranked = store.hottest(Bytes(64 * KIB), 1000.0 + DAY)
        assert [run for run, _ in ranked] == [
            Run(Blocks(48), Blocks(16)),
            Run(Blocks(144), Blocks(16)),
        ]
        assert ranked[0][1] == pytest.approx((80 + spread(3200, DAY, DAY)) / 16)
        assert ranked[1][1] == pytest.approx(800 / 16)


def test_a_half_life_of_ones_own(tmp_path: Path) -> None:
    with open_store(tmp_path / "heat.sqlite") as store:
        store.fold(reading({3: dm(160)}), 1000.0, half_life_s=100.0)
        assert store.heats(1100.0) == {3: 80.0}
        store.fold(reading({3: dm(160)}), 1100.0)
        assert store.half_life_s == 100.0


def test_a_disk_that_was_resized_begins_anew(tmp_path: Path) -> None:
    with open_store(tmp_path / "heat.sqlite") as store:
        store.fold(reading({3: dm(160)}), 1100.0)
        grid = Grid(Bytes(2048 * MIB), Bytes(2 * MIB))
        gained = store.fold(Reading(grid, "a", 1000.0, {1: dm(1)}), 1200.0)
        assert gained.total == dm(1)
        assert store.heats(1200.0).keys() == {1}
        assert store.grid == grid


def test_old_readings_go_and_heat_stays(tmp_path: Path) -> None:
    with open_store(tmp_path / "heat.sqlite") as store:
        store.fold(reading({3: dm(160)}), 1100.0)
        store.fold(reading({3: dm(161)}), 1101.0 + KEPT_S)
        whole = store.since(0)
        assert whole is not None
        assert whole.total == dm(1)
        assert store.heats(1101.0 + KEPT_S)[3] > 0


def test_plans_ask_by_machine_and_disk(own_folders: Path) -> None:
    server, block = "ssh://dba@db1:2222", Bytes(64 * KIB)
    assert hottest("local", "erp", "", block) == []
    path = store_path(server, "erp", "")
    assert path.is_relative_to(own_folders)
    assert path.name == "ssh-dba-db1-2222-erp.sqlite"
    with open_store(path) as store:
        store.fold(reading({3: dm(160)}), time.time())
    ((run, heat),) = hottest(server, "erp", "", block)
    assert (run, heat > 0) == (Run(Blocks(48), Blocks(16)), True)


def test_a_disk_that_is_made_again_has_nothing_of_the_one_before(own_folders: Path) -> None:
    first, second = "0d5c-1", "77aa-2"
    path = store_path("local", "erp", first)
    assert path.is_relative_to(own_folders)
    with open_store(path) as store:
        store.fold(reading({3: dm(160)}), time.time())
    assert hottest("local", "erp", first, Bytes(64 * KIB))
    assert hottest("local", "erp", second, Bytes(64 * KIB)) == []


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, and long enough to be looked at " * 40)
    with pytest.raises(StoreError, match="is not a heat store"), open_store(tmp_path / "text"):
        pass


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("user_version = 2", "format 2, this one reads 1"),
        # As stores of before the first release are, whatever their number.
        ("application_id = 0", "format 1 of before the first release, this one reads 1"),
    ],
    ids=["later", "earlier"],
)
def test_a_store_of_another_version_is_refused_and_stays(
    tmp_path: Path, change: str, words: str
) -> None:
    with open_store(tmp_path / "heat"):
        pass
    with closing(sqlite3.connect(tmp_path / "heat")) as connection:
        connection.execute(f"PRAGMA {change}")
    before = (tmp_path / "heat").read_bytes()
    refused = rf"another version .*{words}.*move .* away, and count again"
    with pytest.raises(StoreError, match=refused), open_store(tmp_path / "heat"):
        pass
    assert (tmp_path / "heat").read_bytes() == before


def test_a_sample_of_a_later_version_is_refused_with_both_ways_out(tmp_path: Path) -> None:
    """A figure more was a TypeError in a traceback."""
    with open_store(tmp_path / "heat") as store:
        store.keep_sample(Counters(1, 2, 3, 4, 5, 6, Blocks(1), Blocks(2), Blocks(3)), 1.0)
    with closing(sqlite3.connect(tmp_path / "heat")) as connection, connection:
        (text,) = connection.execute("SELECT counters FROM sample").fetchone()
        later = json.dumps({**json.loads(text), "hereafter": 1})
        connection.execute("UPDATE sample SET counters = ?", (later,))
    with (
        pytest.raises(StoreError, match=r"another version.*hereafter.*move .* away"),
        open_store(tmp_path / "heat") as store,
    ):
        store.samples()
