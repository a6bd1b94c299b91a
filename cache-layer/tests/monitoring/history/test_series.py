"""What is drawn of a history: added counts, gaps where nothing is known, each disk by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotset.core.units import Bytes
from hotset.monitoring.history import opening, series
from hotset.monitoring.history.amounts import Amounts, Levels, Load
from hotset.monitoring.history.observation import Event, Facts
from hotset.monitoring.history.series import CHOICES, Choice, Series
from hotset.monitoring.history.store import RESOLUTIONS, Batch, KnownDisk, Store
from tests.observations import NOON

QUARTER, HOUR, _, DAY, WEEK = CHOICES
LEVELS = Levels(Bytes(1), Bytes(2), Bytes(3))
BEGIN = int(NOON)


@pytest.fixture
def kept(tmp_path: Path) -> Store:
    return opening.open_to_write(tmp_path / "history.sqlite")


def known(identity: str, name: str, present: bool = True) -> KnownDisk:
    return KnownDisk(Facts(identity, name, "dm-cache", "smq", "writeback"), present)


def span(hits: int, misses: int) -> Amounts:
    return Amounts(10_000, hits, misses, 0, 0, 0)


def keep(store: Store, counted: dict[int, tuple[int, int]], identity: str = "u1") -> None:
    """Hits and misses by how many seconds after noon their span begins."""
    store.keep(
        Batch(
            {(BEGIN + at, identity): (span(*amounts), LEVELS) for at, amounts in counted.items()},
            {BEGIN + at: (10_000, Load(0, 0)) for at in counted},
            disks={identity: known(identity, "shop")},
        )
    )


def shown(store: Store, choice: Choice, after_s: float, disk: str | None = None) -> Series:
    return series.load(store, choice, NOON + after_s, disk)


def ratios(found: Series, number: int = 0) -> list[float | None]:
    return [None if one is None else one.amounts.ratio for one in found.disks[number].spans]


def test_what_was_not_recorded_is_a_gap_and_no_zero(kept: Store) -> None:
    keep(kept, {0: (1, 1), 10: (3, 1), 40: (0, 1)})
    found = shown(kept, QUARTER, 60)
    assert ratios(found)[-7:] == [0.5, 0.75, None, None, 0.0, None, None]
    assert found.starts[-7] == BEGIN
    assert found.unknown == [(NOON - 840, NOON), (NOON + 20, NOON + 40)]
    assert found.known_s == 30


def test_what_is_not_over_yet_is_not_called_unknown(kept: Store) -> None:
    """A span is written once it is over: the right end of a chart that is whole has no shade."""
    keep(kept, {10 * n: (1, 1) for n in range(90)})
    for now in range(900, 910):
        assert shown(kept, QUARTER, now).unknown == []


def test_a_ratio_of_a_long_step_is_of_the_added_counts(kept: Store) -> None:
    keep(kept, {0: (990, 10), 300: (0, 1), 600: (1, 0)})
    found = shown(kept, WEEK, 900)
    assert [one for one in ratios(found) if one is not None] == [991 / 1002]
    assert found.disks[0].total.ratio == 991 / 1002


def test_a_step_in_which_only_a_part_was_watched_has_the_rate_of_that_part(kept: Store) -> None:
    keep(kept, {20: (80, 20)})
    (one,) = [one for one in shown(kept, DAY, 300).disks[0].spans if one is not None]
    assert one.amounts.reads == 10


def test_no_request_is_a_rate_of_zero_and_no_ratio(kept: Store) -> None:
    keep(kept, {0: (0, 0)})
    (one,) = [one for one in shown(kept, QUARTER, 30).disks[0].spans if one is not None]
    assert (one.amounts.reads, one.amounts.ratio) == (0, None)


def test_disks_of_one_name_are_not_one(kept: Store) -> None:
    keep(kept, {0: (1, 0)}, "old")
    kept.keep(Batch(disks={"old": known("old", "shop", present=False)}))
    keep(kept, {10: (0, 1)}, "new")
    found = shown(kept, QUARTER, 60)
    assert [(one.identity, one.present) for one in found.disks] == [("new", True), ("old", False)]
    (alone,) = shown(kept, QUARTER, 60, "shop").disks
    assert (alone.identity, alone.total.ratio) == ("new", 0.0), "the old one's is not shown as its"


def test_a_page_of_a_disk_has_its_events_and_the_machines(kept: Store) -> None:
    keep(kept, {0: (1, 0)})
    events = [
        Event("a", NOON, "reset", "shop: its counters began anew", disk="u1"),
        Event("b", NOON, "reset", "other: its counters began anew", disk="u2"),
        Event("c", NOON, "console", "this console started"),
    ]
    kept.keep(Batch(events={one.key: one for one in events}))
    assert [one.key for one in shown(kept, QUARTER, 60, "shop").events] == ["a", "c"]
    assert [one.key for one in shown(kept, QUARTER, 60).events] == ["a", "b", "c"]


def test_before_the_first_record_all_is_unknown() -> None:
    found = series.load(None, HOUR, NOON)
    assert found.unknown == [(NOON - 3600, NOON)]
    assert (found.disks, found.known_s) == ([], 0)
    assert set(found.loads) == {None}


def test_every_choice_is_kept_for_as_long_as_it_shows() -> None:
    for one in CHOICES:
        fine = [(step, kept) for step, kept in RESOLUTIONS if one.step_s % step == 0]
        assert max(fine)[1] >= one.length_s, one
        assert one.length_s % one.step_s == 0


@pytest.mark.parametrize("key", ["", "15m", "1 day", "7D", "<script>"])
def test_an_unknown_span_is_the_shortest(key: str) -> None:
    assert series.find_choice(key) is QUARTER


def test_a_week_has_points_that_a_screen_can_show() -> None:
    assert all(one.length_s / one.step_s <= 700 for one in CHOICES)


def test_a_stretch_is_shown_in_the_finest_steps_that_still_have_most_of_it(kept: Store) -> None:
    """Of a job of this hour there are steps of ten seconds, of one of the morning of a minute."""
    length_s = 3 * 3600
    keep(kept, dict.fromkeys(range(0, length_s, 10), (9, 1)))
    late = series.load_stretch(kept, NOON + length_s - 605, NOON + length_s)
    early = series.load_stretch(kept, NOON, NOON + 600)
    never = series.load_stretch(kept, NOON - 7200, NOON - 3600)
    assert (late.choice.step_s, early.choice.step_s, never.disks) == (10, 60, [])
    for found, spans in ((late, 60), (early, 10)):
        (shop,) = found.disks
        assert sum(span is not None for span in shop.spans) >= spans
        assert shop.total.ratio == 0.9
