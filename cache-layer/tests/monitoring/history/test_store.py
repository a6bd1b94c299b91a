"""The file: readings are thinned out and nothing that they count is lost; it never grows without
bound."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from hotset.core.clock import Moment
from hotset.core.units import Bytes
from hotset.monitoring.history import amounts, opening, readings, store
from hotset.monitoring.history.observation import Event, Facts
from hotset.monitoring.history.readings import COUNTED, LEVELS, Reading
from hotset.monitoring.history.store import DAY_S, Store
from tests.observations import NOON

SHOP = Facts("u1", "shop", "dm-cache", "smq", "writeback", Bytes(9))
NOW = Moment(NOON + 10 * DAY_S, "boot", 10.0 * DAY_S)
"""The computer was started at noon."""
EVER = 10**12


@pytest.fixture
def kept() -> Iterator[Store]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(store.SCHEMA)
        yield Store(connection)


def reading(second: int, hits: int, disk: str = "u1", *, goes_on: bool = True) -> Reading:
    values = hits, hits, hits, hits, 0, *(10**6 * hits,) * 6, None, None
    values = values if disk else (0, 0, *[None] * 9, 0, 0)
    return Reading(disk, 1000 * second, 1000 * second, goes_on, values, (0, 2, 3))


def fill(kept: Store, first: int, last: int, step: int = 10, *disks: Facts) -> None:
    """A reading each step, with a hit a second."""
    rows = [
        reading(second, second, identity, goes_on=second > 0)
        for second in range(first, last, step)
        for identity in ("", "u1")
    ]
    kept.keep(NOW, rows, (), disks or (SHOP,))


def shown(kept: Store, now: Moment = NOW) -> list[Reading]:
    return kept.readings(0, EVER, now).get("u1", [])


def test_readings_are_thinned_out_and_count_the_same(kept: Store) -> None:
    for first in range(0, 40 * 3600, 600):
        fill(kept, first, first + 600)
    times = [one.ms // 1000 - int(NOON) for one in shown(kept)]
    apart = [later - earlier for earlier, later in pairwise(times)]
    assert set(apart) <= {10, 60, 300, *range(10, 600, 10)}
    assert [apart.count(step) for step in (10, 60)] == pytest.approx([720, 1440], abs=40)
    assert apart[:2] == [290, 300]
    found = readings.spans(shown(kept), range(int(NOON), int(NOON) + 40 * 3600, 3600))
    assert {span.amounts.read_hits for place, span in enumerate(found.values()) if place < 39} == {
        3600,
    } | {found[int(NOON)].amounts.read_hits}
    whole = amounts.total([span.amounts for span in found.values()])
    assert whole.read_hits == times[-1] - times[0]


def test_a_level_is_the_highest_since_the_reading_before(kept: Store) -> None:
    rows = [
        replace(reading(10 * place, 0, goes_on=place > 0), levels=(level, 1, 1))
        for place, level in enumerate((1, 9, 2, 3, 4, 5, 6, 7))
    ]
    kept.keep(NOW, rows, (), (SHOP,))
    fill(kept, 80, 4 * 3600)
    assert shown(kept)[1].levels[0] == 9
    found = readings.spans(shown(kept), range(int(NOON), int(NOON) + 300, 300))
    assert found[int(NOON)].dirty >= 9


def test_where_counters_began_anew_the_readings_around_it_stay(kept: Store) -> None:
    kept.keep(NOW, [reading(0, 5000, goes_on=False), reading(7, 5070)], (), (SHOP,))
    kept.keep(NOW, [reading(17, 1, goes_on=False), reading(27, 11)], (), (SHOP,))
    fill(kept, 40, 5 * 3600)
    assert [one.values[0] for one in shown(kept)[:3]] == [5000, 5070, 1]


def test_a_reading_that_nothing_goes_on_from_is_of_no_use(kept: Store) -> None:
    kept.keep(NOW, [reading(0, 5, goes_on=False), reading(10, 9, goes_on=False)], (), (SHOP,))
    kept.keep(NOW, [reading(20, 3, goes_on=False)], (), (SHOP,))
    fill(kept, 30, 3 * 3600)
    assert 9 not in [one.values[0] for one in shown(kept)[:3]]


def test_a_week_of_a_disk_takes_half_a_megabyte(tmp_path: Path) -> None:
    """The figure in docs/console-and-api.md is from here."""
    file = tmp_path / "history.sqlite"
    with opening.writing(file) as kept:
        for first in range(0, 9 * DAY_S - 3 * 3600, 4 * 3600):
            fill(kept, first, first + 4 * 3600, 60)
        fill(kept, 9 * DAY_S - 3 * 3600, 9 * DAY_S)
        found = [one.ms // 1000 - int(NOON) for one in shown(kept)]
    assert found[-1] - found[0] == pytest.approx(8 * DAY_S, rel=0.01)
    assert 300_000 < file.stat().st_size < 700_000


def test_age_is_of_the_time_that_was_watched(kept: Store) -> None:
    """A clock in a wrong year, or a console that runs now and then, deletes nothing."""
    fill(kept, 0, 1000)
    rows = [replace(reading(10, 10), watched_ms=10**6 + 1, goes_on=False)]
    kept.keep(Moment(NOON + 10 * 365 * DAY_S, "another", 10), rows, (), (SHOP,))
    assert len(shown(kept)) == 101


def test_readings_of_a_start_lie_before_those_of_the_next(kept: Store) -> None:
    """Its clock was two months ahead, and nobody set it right."""
    ahead = Moment(NOON + 60 * DAY_S, "first", 0)
    kept.keep(ahead, [reading(0, 0), reading(10, 10)], (), (SHOP,))
    later = [replace(reading(5, 15), watched_ms=11_000, goes_on=False)]
    kept.keep(Moment(NOON + 100, "second", 5), later, (), (SHOP,))
    times = [one.ms for one in shown(kept, Moment(NOON + 100, "second", 5))]
    assert times == sorted(times)
    assert times[1] == times[2] == 1000 * (int(NOON) + 100)


def test_however_often_nothing_was_known_the_file_is_bounded(
    kept: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"place > {store.READINGS_KEPT}" in store._BEYOND
    monkeypatch.setattr(store, "_BEYOND", store._BEYOND.replace(str(store.READINGS_KEPT), "100"))
    rows = [reading(10 * place, place, goes_on=place % 2 == 1) for place in range(400)]
    kept.keep(NOW, rows, (), (SHOP,))
    assert len(shown(kept)) == 100


def test_events_are_bounded_kind_by_kind(kept: Store) -> None:
    """Someone who calls again and again does not push out that the counters restarted."""
    rare = Event("rare", 1.0, "reset", "shop: its counters restarted")
    kept.keep(NOW, (), [rare, *(Event(f"n{n}", 2.0 + n, "warm-up", "x") for n in range(2000))])
    found = kept.events(0, EVER, NOW)
    assert len(found) == 1 + store.EVENTS_KEPT
    assert found[0] == rare.later(NOON)
    assert found[-1].key == "n1999"


def test_an_event_that_is_kept_again_gets_its_end(kept: Store) -> None:
    kept.keep(NOW, (), [Event("k", 100.0, "down", "shop")])
    assert kept.events(NOON + 150, NOON + 200, NOW) == [], "one whose end is unknown has begun"
    kept.keep(NOW, (), [Event("k", 100.0, "down", "shop", until=160.0)])
    assert [one.until for one in kept.events(NOON + 150, NOON + 200, NOW)] == [NOON + 160.0]


def test_a_long_text_is_cut(kept: Store) -> None:
    kept.keep(NOW, (), [Event("k", 1.0, "console", "x" * 10_000)])
    assert len(kept.events(0, EVER, NOW)[0].text) == 301


def test_a_disk_that_is_gone_is_forgotten_with_its_last_reading(kept: Store) -> None:
    gone, other = replace(SHOP, present=False), replace(SHOP, identity="u2")
    kept.keep(NOW, [reading(0, 0), reading(10, 9)], (), (gone, other))
    assert set(kept.disks()) == {"u1", "u2"}
    kept.keep(NOW, [reading(9 * DAY_S, 0, ""), reading(9 * DAY_S + 10, 0, "")])
    assert set(kept.disks()) == {"u2"}


def test_columns_are_what_is_counted(kept: Store) -> None:
    names = [row[1] for row in kept._execute("PRAGMA table_info(reading)")]
    assert names == ["disk", "watched_ms", "boot", "ms", "goes_on", *COUNTED, *LEVELS]
