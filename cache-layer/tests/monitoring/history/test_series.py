"""What is drawn of a history: differences of readings, gaps where nothing is known, each disk by
itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise

import pytest

from hotset.core.clock import Moment
from hotset.monitoring.history import series, store
from hotset.monitoring.history.observation import Event, Facts
from hotset.monitoring.history.readings import Reading
from hotset.monitoring.history.series import CHOICES, Choice, Series
from hotset.monitoring.history.store import RESOLUTIONS, Store
from tests.observations import NOON

QUARTER, HOUR, _, DAY, WEEK = CHOICES
BEGIN = int(NOON)
STARTED = 10_000.0
"""Seconds that the computer had been running at noon."""
SHOP = Facts("u1", "shop", "dm-cache", "smq", "writeback")


@pytest.fixture
def kept() -> Iterator[Store]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(store.SCHEMA)
        yield Store(connection)


def moment(after_s: float) -> Moment:
    return Moment(NOON + after_s, "boot", STARTED + after_s)


def keep(kept: Store, known: Iterable[tuple[int, int, int, int]], facts: Facts = SHOP) -> None:
    """From when to when, in seconds after noon, so much was hit and missed."""
    rows, hits, misses, last = [], 0, 0, None
    for begin, end, hit, missed in known:
        for at, more, less in ((begin, 0, 0), (end, hit, missed)):
            hits, misses = hits + more, misses + less
            if at == last:
                continue
            ms = round(1000 * (STARTED + at))
            values = hits, misses, 0, 0, 0, *[None] * 8
            one = Reading(facts.identity, ms, ms, at == end, values, (1, 2, 3))
            rows += [one, replace(one, disk="")]
            last = at
    kept.keep(moment(0), rows, (), (facts,))


def shown(store: Store, choice: Choice, after_s: float, disk: str | None = None) -> Series:
    return series.load(store, choice, moment(after_s), disk)


def ratios(found: Series, number: int = 0) -> list[float | None]:
    return [None if one is None else one.amounts.ratio for one in found.disks[number].spans]


def test_what_was_not_recorded_is_a_gap_and_no_zero(kept: Store) -> None:
    keep(kept, [(0, 10, 1, 1), (10, 20, 3, 1), (40, 50, 0, 1)])
    found = shown(kept, QUARTER, 100)
    assert ratios(found)[-11:-4] == [0.5, 0.75, None, None, 0.0, None, None]
    assert found.starts[-11] == BEGIN
    assert found.unknown == [(NOON - 800, NOON), (NOON + 20, NOON + 40), (NOON + 50, NOON + 50)][:2]
    assert found.known_s == 30


def test_what_is_not_over_yet_is_not_called_unknown(kept: Store) -> None:
    """A reading may still come that tells it: the right end of a chart has no shade."""
    keep(kept, [(10 * n, 10 * n + 10, 1, 1) for n in range(90)])
    for now in range(900, 940):
        assert shown(kept, QUARTER, now).unknown == []


def test_a_ratio_of_a_long_step_is_of_the_added_counts(kept: Store) -> None:
    keep(kept, [(0, 10, 990, 10), (300, 310, 0, 1), (600, 610, 1, 0)])
    found = shown(kept, WEEK, 900)
    assert [one for one in ratios(found) if one is not None] == [991 / 1002]
    assert found.disks[0].total.ratio == 991 / 1002


def test_a_step_in_which_only_a_part_was_watched_has_the_rate_of_that_part(kept: Store) -> None:
    keep(kept, [(20, 30, 80, 20)])
    (one,) = [one for one in shown(kept, DAY, 300).disks[0].spans if one is not None]
    assert one.amounts.reads == 10


def test_no_request_is_a_rate_of_zero_and_no_ratio(kept: Store) -> None:
    keep(kept, [(0, 10, 0, 0)])
    (one,) = [one for one in shown(kept, QUARTER, 30).disks[0].spans if one is not None]
    assert (one.amounts.reads, one.amounts.ratio) == (0, None)


def test_disks_of_one_name_are_not_one(kept: Store) -> None:
    keep(kept, [(0, 10, 1, 0)], replace(SHOP, identity="old", present=False))
    keep(kept, [(10, 20, 0, 1)], replace(SHOP, identity="new"))
    found = shown(kept, QUARTER, 60)
    assert [(one.identity, one.present) for one in found.disks] == [("new", True), ("old", False)]
    (alone,) = shown(kept, QUARTER, 60, "shop").disks
    assert (alone.identity, alone.total.ratio) == ("new", 0.0), "the old one's is not shown as its"


def test_a_page_of_a_disk_has_its_events_and_the_machines(kept: Store) -> None:
    keep(kept, [(0, 10, 1, 0)])
    events = [
        Event("a", STARTED, "reset", "shop: its counters restarted", disk="u1"),
        Event("b", STARTED, "reset", "other: its counters restarted", disk="u2"),
        Event("c", STARTED, "console", "this console started"),
    ]
    kept.keep(moment(0), (), events)
    assert [one.key for one in shown(kept, QUARTER, 60, "shop").events] == ["a", "c"]
    assert [one.key for one in shown(kept, QUARTER, 60).events] == ["a", "b", "c"]


def test_before_the_first_record_all_is_unknown() -> None:
    found = series.load(None, HOUR, moment(0))
    assert found.unknown == [(NOON - 3600, NOON)]
    assert (found.disks, found.known_s) == ([], 0)
    assert set(found.machine) == {None}


def test_every_choice_is_kept_for_as_long_as_it_shows() -> None:
    for one in CHOICES:
        fine = [(step, kept) for step, kept in RESOLUTIONS if one.step_s % step == 0]
        assert max(fine)[1] >= one.length_s, one
        assert one.length_s % one.step_s == 0
    assert all(long % short == 0 for (short, _), (long, _) in pairwise(RESOLUTIONS))


@pytest.mark.parametrize("key", ["", "15m", "1 day", "7D", "<script>"])
def test_an_unknown_span_is_the_shortest(key: str) -> None:
    assert series.find_choice(key) is QUARTER


def test_a_week_has_points_that_a_screen_can_show() -> None:
    assert all(one.length_s / one.step_s <= 700 for one in CHOICES)


def test_a_stretch_is_shown_in_the_finest_steps_that_are_still_kept(kept: Store) -> None:
    """Of a job of this hour there are steps of ten seconds, of one of the morning of a minute."""
    length_s = 3 * 3600
    keep(kept, [(at, at + 10, 9, 1) for at in range(0, length_s, 10)])
    now = moment(length_s)
    late = series.load_stretch(kept, NOON + length_s - 605, NOON + length_s, now)
    early = series.load_stretch(kept, NOON, NOON + 600, now)
    never = series.load_stretch(kept, NOON - 7200, NOON - 3600, now)
    assert (late.choice.step_s, early.choice.step_s, never.disks) == (10, 60, [])
    for found, spans in ((late, 60), (early, 10)):
        (shop,) = found.disks
        assert sum(span is not None for span in shop.spans) >= spans
        assert shop.total.ratio == 0.9
