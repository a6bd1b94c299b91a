"""What was counted between readings: split by time and added up, not one request is lost or
invented; and which reading goes on from which."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.monitoring.history import amounts, readings
from hotset.monitoring.history.readings import Reading
from hotset.tier import kinds
from hotset.tier.base import Counting
from tests.observations import NOON, counters, device, disk

BEGIN_MS = 1000 * int(NOON)
GAINS = st.lists(
    st.tuples(st.integers(1, 40_000), st.integers(0, 2**31 - 1)), min_size=1, max_size=30
)


def reading(ms: int, hits: int, *, goes_on: bool = True, dirty: int = 0) -> Reading:
    values = hits, 0, 0, 0, None, *(hits,) * 6, None, None
    return Reading("u1", BEGIN_MS + ms, ms, goes_on, values, (dirty, 0, 100))


def starts(step: int) -> range:
    begin = int(NOON) - step
    return range(begin - begin % step, int(NOON) + 40 * 40, step)


@given(GAINS, st.integers(0, 2**32 - 1), st.sampled_from((1, 10, 60)))
def test_the_spans_add_up_to_what_was_counted(
    gained: list[tuple[int, int]], first: int, step: int
) -> None:
    """Also where 32 bits are not enough."""
    times = [0, *accumulate(ms for ms, _ in gained)]
    sums = [0, *accumulate(more for _, more in gained)]
    run = [reading(at, (first + more) % 2**32) for at, more in zip(times, sums, strict=True)]
    found = readings.spans(run, starts(step), Counting(32))
    whole = amounts.total([span.amounts for span in found.values()])
    assert (whole.known_ms, whole.read_hits, whole.read_io_ms) == (times[-1], sums[-1], sums[-1])
    assert whole.bypassed is None
    for span in found.values():
        assert 0 < span.amounts.known_ms <= 1000 * step
        assert span.amounts.read_hits >= 0
        assert span.start % step == 0


def test_a_reading_that_does_not_go_on_begins_another_run() -> None:
    run = [
        *(reading(0, 100), reading(10_000, 200)),
        *(
            reading(20_000, 5, goes_on=False),
            reading(30_000, 15),
            reading(40_000, 9, goes_on=False),
        ),
    ]
    found = readings.spans(run, starts(60))
    (whole,) = (span.amounts for span in found.values())
    assert (whole.known_ms, whole.read_hits) == (20_000, 110)


def test_what_a_counter_took_back_was_never_made() -> None:
    """Hits of bcache that turn out to be none; nor were those of the step before."""
    run = [reading(10_000 * place, hits) for place, hits in enumerate((0, 100, 95, 105))]
    found = readings.spans(run, starts(10), kinds.kind_of_name("bcache").counting)
    assert [span.amounts.read_hits for span in found.values()] == [95, 0, 10]


def test_levels_are_the_highest_of_a_span() -> None:
    run = [reading(10_000 * place, 0, dirty=dirty) for place, dirty in enumerate((9, 3, 7, 1))]
    (span,) = readings.spans(run, starts(60)).values()
    assert (span.dirty, span.size) == (7, 100), "what the first says lies before it"


ONE = disk(counters(1000, 100, 50))


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        (disk(counters(1000, 100, 50)), "goes on"),
        (disk(counters(1100, 100, 50)), "goes on"),
        (disk(counters(900, 900, 50)), "contradiction"),
        (disk(counters(1100, 100, 40)), "contradiction"),
        (replace(disk(counters(1100, 100, 50)), device=device(5)), "contradiction"),
        (replace(disk(counters(1100, 100, 50)), device=None), "unknown"),
        (disk(counters(1000 + 2**31, 100, 50)), "contradiction"),
        (disk(None), "unknown"),
        (disk(replace(counters(1100, 100, 50), stale=True)), "unknown"),
        (disk(counters(2**64 - 1, 100, 50)), "unknown"),
    ],
)
def test_which_reading_goes_on_from_another(later: readings.SeenDisk, expected: str) -> None:
    assert readings.course(ONE, later) == expected


def test_a_narrow_counter_that_wraps_around_goes_on() -> None:
    was, now = (disk(counters(hits)) for hits in (2**32 - 5, 7))
    was, now = replace(was, device=device(10)), replace(now, device=device(22))
    assert readings.course(was, now) == "goes on"
    assert readings.course(disk(counters(2**31 + 9)), disk(counters(0))) == "contradiction"
