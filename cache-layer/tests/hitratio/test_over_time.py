"""What reports say of the time between two readings, whatever becomes of counters and clocks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from hotset.hitratio import heatstore
from hotset.hitratio.heatstore import Store, open_store
from hotset.hitratio.hit_report import _samples
from hotset.tier import kinds
from hotset.tier.base import Hits, hits_over
from tests.counter_models import DAY_S, KINDS, NOTHING, Computer

BETWEEN = ("requests", "reading", "time", "flush begins", "flush ends", "reload", "cut", "set")


@contextmanager
def new_store() -> Iterator[Store]:
    with TemporaryDirectory() as folder, open_store(Path(folder) / "store") as store:
        yield store


@dataclass
class Kept:
    """A reading: when it really was, and how much had been requested."""

    at: float
    made: int
    cuts: int


@given(st.sampled_from(("dm-cache", "userspace")), st.integers(0, 2**32), st.integers(2, 60))
@settings(deadline=None, max_examples=150)
def test_no_report_says_more_than_was_requested_and_none_forgets_what_was_read(
    kind: str, seed: int, steps: int
) -> None:
    dice, computer = random.Random(seed), Computer()
    cache, counting = KINDS[kind](computer), kinds.kind_of_name(kind).counting
    made, cuts, now, kept = 0, 0, 0.0, list[Kept]()
    with new_store() as store:

        def read() -> None:
            at = store.now(computer.moment)
            if not cache.shown.stale:
                store.keep_sample(cache.shown, at)
                kept.append(Kept(now, made, cuts))

        read()
        for _ in range(steps):
            computer.passes(1)
            now += 1
            match dice.choice(BETWEEN):
                case "requests":
                    hits, misses = dice.randrange(1000), dice.randrange(1000)
                    # A flush's are counted late: none is made meanwhile.
                    if not cache.shown.stale:
                        cache.requested(hits, misses)
                        made += hits + misses
                case "reading":
                    read()
                case "time":
                    seconds = float(dice.randrange(int(2 * DAY_S)))
                    computer.passes(seconds)
                    now += seconds
                case "flush begins":
                    cache.flush_begins()
                case "flush ends":
                    cache.flush_ends()
                case "reload":
                    cache.is_reloaded()
                    cuts += kind == "userspace"
                case "cut":
                    cache.power_is_cut()
                    cuts += 1
                case "set":
                    computer.is_set(dice.randrange(-120, 121))
        cache.flush_ends()
        computer.passes(1)
        now += 1
        read()
        age = float(dice.randrange(int(now) + 1))
        at = store.now(computer.moment)
        found = store.samples(at - age)
    # The last reading before that time, and all after it, as they were taken.
    first = max((place for place, one in enumerate(kept) if now - one.at >= age), default=0)
    assert len(found) == len(kept) - first
    counted = hits_over([one for _, one in found], counting)
    assert _all(counted) <= made - kept[first].made
    sure = sum(
        later.made - earlier.made
        for earlier, later in zip(kept[first:], kept[first + 1 :], strict=False)
        if later.cuts == earlier.cuts
    )
    assert _all(counted) >= sure


def _all(counted: Hits) -> int:
    return counted.read_hits + counted.read_misses


def test_a_computer_that_was_started_again_goes_by_its_clock_unless_that_was_set_back() -> None:
    computer = Computer()
    with new_store() as store:
        before = store.now(computer.moment)
        computer.starts_again()
        computer.is_set(1)
        assert store.now(computer.moment) == before + DAY_S
        computer.starts_again()
        computer.is_set(-90)
        again = store.now(computer.moment)
        assert again == before + DAY_S
        assert store.wall(again) == computer.wall
        assert store.at(computer.wall - 60) == again - 60


def test_two_readers_that_keep_what_they_read_in_the_other_order_count_nothing_twice() -> None:
    counting = kinds.kind_of_name("userspace").counting
    read = [replace(NOTHING, read_hits=hits, begun=5.0) for hits in (10, 20, 15, 30)]
    assert hits_over(read, counting).read_hits == 20
    assert hits_over(read[:3][::-1], counting).read_hits == 0


def test_a_time_before_the_counters_began_counts_all_of_them_whenever_somebody_first_asked() -> (
    None
):
    """Of the last eight hours, a disk that was three hours old had 0 reads in all, and 61,754 of
    one table: the whole began at the first report, the tables at the disk's own start."""
    computer = Computer()
    counting = kinds.kind_of_name("userspace").counting
    with new_store() as store:
        began = computer.wall
        computer.passes(3 * 3600)
        read = replace(NOTHING, read_hits=61_754, begun=began)
        at = store.now(computer.moment)
        store.keep_sample(read, at)
        computer.passes(3)
        later = replace(read, read_hits=61_755)
        at = store.now(computer.moment)
        samples, wrong = _samples(store, computer.wall - 8 * 3600, (at, later), counting)
        assert ([at for at, _ in samples], wrong) == ([began, began + 3 * 3600], [])
        assert hits_over([*(one for _, one in samples), later], counting).read_hits == 61_755
        # Counters that began before it are of the time since a reading alone.
        samples, _ = _samples(store, computer.wall - 3600, (at, later), counting)
        assert [at for at, _ in samples] == [began + 3 * 3600]


def test_a_store_of_other_columns_has_another_version() -> None:
    """They are the fields of a record elsewhere: a store of before would end in an error of SQL."""
    columns = "reads writes read_hits read_misses write_hits write_misses bypassed"
    assert (1, tuple(columns.split())) == (heatstore._VERSION, heatstore._COLUMNS)
