"""Whether a hit ratio fell: no alarm by chance alone, one where a table outgrows the cache, and no
word where too little is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hotset.health.comparison import Comparison, TooLittleError, compare, hours_of
from hotset.monitoring.history.amounts import Amounts
from tests.observations import NOON
from tests.simulated_days import Ratio, Shop, outgrown, steady

END = int(NOON)
END_H = END // 3600


def hour_of(ratio: float, requests: int = 100_000) -> Amounts:
    hits = round(ratio * requests)
    return Amounts(3_600_000, hits, requests - hits)


def week(shop: Shop, ratio: Ratio) -> Comparison:
    hours = shop.hours(ratio, END_H)
    return compare({number: hour_of(share, asked) for number, asked, share in hours}, END_H)


def test_hours_are_added_up_from_what_a_history_keeps() -> None:
    whole = compare(hours_of(Shop(5).spans(steady, END)), END_H)
    plain = week(Shop(5), steady)
    assert whole.days == plain.days == 7
    assert (whole.now, whole.before) == pytest.approx((plain.now, plain.before), abs=1e-3)


@pytest.mark.parametrize("weekend", [0.0, 0.03], ids=["every day alike", "with weekends"])
def test_a_hundred_quiet_weeks_raise_no_alarm(weekend: float) -> None:
    fell = [seed for seed in range(100) if week(Shop(seed, weekend=weekend), steady).fell]
    assert fell == []


def test_a_table_that_outgrows_the_cache_is_told_in_every_week() -> None:
    missed = [seed for seed in range(40) if not week(Shop(seed), outgrown).fell]
    assert missed == []


def week_of(today: float, before: float) -> dict[int, Amounts]:
    known = {END_H - back: hour_of(before) for back in range(25, 8 * 24 + 1)}
    return known | {END_H - back: hour_of(today) for back in range(1, 25)}


def test_a_drop_that_nobody_feels_is_none_however_sure_it_is() -> None:
    assert not compare(week_of(0.94, 0.95), END_H).fell
    found = compare(week_of(0.92, 0.95), END_H)
    assert found.fell
    assert (found.days, found.now) == (7, 0.92)


def test_a_day_as_low_as_another_one_is_no_fall() -> None:
    """Days differ: what was so on one of the last seven is no news."""
    known = week_of(0.90, 0.95) | {END_H - back: hour_of(0.91) for back in range(49, 73)}
    found = compare(known, END_H)
    assert (found.fell, found.lowest) == (False, pytest.approx(0.91))


def test_a_rise_is_no_fall() -> None:
    assert not compare(week_of(0.99, 0.95), END_H).fell


def test_a_busy_night_is_compared_with_nights() -> None:
    """By day 95 % hit and at night 60 %; last night had ten times the requests of others, so that
    the day as a whole hit less, and every hour hit as ever."""
    known = {}
    for back in range(1, 8 * 24 + 1):
        is_night = (END_H - back) % 24 < 6
        busy = 10 if back <= 24 and is_night else 1
        known[END_H - back] = hour_of(0.6 if is_night else 0.95, 10_000 * busy)
    found = compare(known, END_H)
    assert found.now < 0.75
    assert found.before == pytest.approx(found.now)
    assert not found.fell


@pytest.mark.parametrize(
    ("hours", "says"),
    [
        ({}, "0 of the last 24 hours are recorded"),
        ({END_H - back: hour_of(0.9) for back in range(1, 12)}, "11 of the last 24 hours"),
        ({END_H - back: hour_of(0.9, 90) for back in range(1, 193)}, "0 requests of the last day"),
        ({END_H - back: hour_of(0.9, 300) for back in range(1, 193)}, "7,200 requests of the last"),
        ({END_H - back: hour_of(0.9) for back in range(1, 4 * 24 + 1)}, "3 earlier days"),
    ],
    ids=["nothing", "half a day", "idle", "a few", "three days"],
)
def test_too_little_is_no_answer(hours: dict[int, Amounts], says: str) -> None:
    with pytest.raises(TooLittleError, match=says):
        compare(hours, END_H)


def test_days_that_were_watched_for_a_few_hours_do_not_count() -> None:
    known = week_of(0.95, 0.95)
    for number, hour in known.items():
        if (END_H - number - 1) // 24 in (2, 4) and number % 24 > 8:
            known[number] = replace(hour, known_ms=1_000_000)
    assert compare(known, END_H).days == 5
