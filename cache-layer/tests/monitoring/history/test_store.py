"""The file: what is added to it comes out of every resolution, and it never grows without bound."""

from __future__ import annotations

import sqlite3
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.core.units import Bytes
from hotset.monitoring.history import amounts, opening, store
from hotset.monitoring.history.amounts import NAMES, Amounts, Levels, Load
from hotset.monitoring.history.observation import Event, Facts
from hotset.monitoring.history.store import Batch, KnownDisk, Store
from tests.observations import NOON

LEVELS = Levels(Bytes(1), Bytes(2), Bytes(3))
SHOP = {"u1": KnownDisk(Facts("u1", "shop", "dm-cache", "smq", "writeback", Bytes(9)), True)}
counts = st.integers(0, 10**9)
BEGIN = int(NOON)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "history.sqlite"


def span(hits: int, misses: int = 0) -> Amounts:
    return Amounts(10_000, hits, misses, 1, 1, 0, 1, 1, 1, 1, 1, 1)


def in_memory() -> Store:
    connection = sqlite3.connect(":memory:")
    connection.executescript(store.SCHEMA)
    return Store(connection)


@given(
    st.lists(st.tuples(st.integers(0, 700), counts, counts), min_size=1, max_size=40),
    st.integers(1, 5),
)
def test_every_resolution_adds_up_to_the_same(
    found: list[tuple[int, int, int]], batches: int
) -> None:
    """In batches of any size, and with spans that are added to later."""
    kept = in_memory()
    for number in range(batches):
        batch = Batch(disks=dict(SHOP))
        for place, hits, misses in found[number::batches]:
            key = BEGIN + 10 * place, "u1"
            old = batch.spans.get(key, (Amounts(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), LEVELS))[0]
            batch.spans[key] = amounts.total([old, span(hits, misses)]), LEVELS
        kept.keep(batch)
    sums = {
        step: amounts.total([one.amounts for one in kept.spans(step, BEGIN, BEGIN + 10**5)["u1"]])
        for step, _ in store.RESOLUTIONS
    }
    assert {one.read_hits for one in sums.values()} == {sum(hits for _, hits, _ in found)}
    assert {one.read_misses for one in sums.values()} == {sum(misses for *_, misses in found)}
    assert len(set(sums.values())) == 1


def test_a_span_of_resolutions_is_a_multiple_of_the_one_before() -> None:
    steps = [step for step, _ in store.RESOLUTIONS]
    assert all(long % short == 0 for short, long in pairwise(steps))
    assert store.RESOLUTIONS[-1][1] >= 7 * store.DAY_S


def test_a_level_of_a_long_span_is_its_highest_and_the_size_its_last(file: Path) -> None:
    kept = opening.open_to_write(file)
    for place, dirty, size in ((0, 5, 100), (1, 3, 200)):
        levels = Levels(Bytes(dirty), Bytes(1), Bytes(size))
        kept.keep(Batch({(BEGIN + 10 * place, "u1"): (span(1), levels)}, disks=dict(SHOP)))
    (minute,) = kept.spans(60, BEGIN, BEGIN + 60)["u1"]
    assert minute.levels == Levels(Bytes(5), Bytes(1), Bytes(200))


def fill(kept: Store, spans: int, first: int = 0) -> None:
    batch = Batch(disks=dict(SHOP))
    for place in range(first, first + spans):
        batch.spans[BEGIN + 10 * place, "u1"] = span(10**9, 10**9), LEVELS
        batch.machine[BEGIN + 10 * place] = 10_000, Load(1.5, 10_000)
    kept.keep(batch)


def test_a_finest_span_goes_after_two_hours_and_what_it_counted_stays() -> None:
    kept = in_memory()
    fill(kept, 1000)
    fine, minutes = (kept.spans(step, 0, 10**12)["u1"] for step in (10, 60))
    assert len(fine) == 720
    assert fine[-1].start == BEGIN + 9990
    assert amounts.total([one.amounts for one in minutes]).read_hits == 1000 * 10**9
    assert len(kept.machine(10, 0, 10**12)) == 720


def test_a_week_of_a_disk_takes_half_a_megabyte(file: Path) -> None:
    """The figure in docs/console-and-api.md is from here."""
    kept = opening.open_to_write(file)
    spans = 60  # ten minutes: it is written more often than that
    for number in range(9 * store.DAY_S // 600):
        fill(kept, spans, number * spans)
    weeks = [len(kept.spans(step, 0, 10**12)["u1"]) for step, _ in store.RESOLUTIONS]
    assert weeks == [720, 1560, 2304]
    kept.close()
    assert 300_000 < file.stat().st_size < 600_000


def test_a_clock_in_a_wrong_year_deletes_nothing_at_once() -> None:
    kept = in_memory()
    fill(kept, 500)
    later = BEGIN + 10 * 365 * store.DAY_S
    kept.keep(Batch({(later, "u1"): (span(1), LEVELS)}, {later: (10_000, Load(0, 0))}))
    assert len(kept.spans(10, 0, 10**12)["u1"]) == 501


def test_a_clock_that_was_ahead_takes_no_place_of_what_follows() -> None:
    """Hours a year ahead, then put right: what is recorded from then on is kept."""
    kept = in_memory()
    year = 365 * store.DAY_S // 10
    fill(kept, 800, year)
    for place in range(200):
        at = BEGIN + 10 * place
        now = Batch({(at, "u1"): (span(1), LEVELS)}, {at: (10_000, Load(0, 0))}, at=at + 10.0)
        kept.keep(now)
    starts = [one.start for one in kept.spans(10, 0, 10**12)["u1"]]
    assert starts[:200] == [BEGIN + 10 * place for place in range(200)]
    assert 720 <= len(starts) - 200 <= 721, "what was ahead is bounded, too"


def test_events_are_bounded_kind_by_kind() -> None:
    """Someone who calls again and again does not push out that the counters began anew."""
    kept = in_memory()
    rare = Event("rare", 1.0, "reset", "shop: its counters began anew")
    many = {f"n{n}": Event(f"n{n}", 2.0 + n, "warm-up", "warmup run") for n in range(2000)}
    kept.keep(Batch(events={"rare": rare, **many}))
    found = kept.events(0, 10**12)
    assert len(found) == 1 + store.EVENTS_KEPT
    assert found[0] == rare
    assert found[-1].key == "n1999"


def test_an_event_that_is_kept_again_gets_its_end() -> None:
    kept = in_memory()
    kept.keep(Batch(events={"k": Event("k", 100.0, "down", "shop")}))
    assert kept.events(150, 200) == [], "one whose end is unknown is at its beginning"
    kept.keep(Batch(events={"k": Event("k", 100.0, "down", "shop", until=160.0)}))
    assert [one.until for one in kept.events(150, 200)] == [160.0], "it went on into that time"


def test_a_long_text_is_cut() -> None:
    kept = in_memory()
    kept.keep(Batch(events={"k": Event("k", 1.0, "console", "x" * 10_000)}))
    assert len(kept.events(0, 2)[0].text) == 301


def test_a_disk_that_is_gone_is_forgotten_with_its_last_span() -> None:
    kept = in_memory()
    gone = KnownDisk(SHOP["u1"].facts, False)
    kept.keep(Batch({(BEGIN, "u1"): (span(1), LEVELS)}, disks={"u1": gone}))
    assert "u1" in kept.disks()
    other = KnownDisk(Facts("u2", "shop", "dm-cache", "smq", "writeback"), True)
    batch = Batch(disks={"u1": gone, "u2": other})
    for place in range(1, 20_000):
        batch.machine[BEGIN + 300 * place] = 10_000, Load(0, 0)
    kept.keep(batch)
    assert set(kept.disks()) == {"u2"}


def test_columns_are_the_amounts() -> None:
    names = [row[1] for row in in_memory()._execute("PRAGMA table_info(span)")]
    assert names == ["step", "start", "disk", *NAMES, "dirty", "used", "size"]
