"""Peak and knee of curves whose shape is known."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.reports.analysis.comparison import compare, curve
from hotset.reports.analysis.comparison.curve import Point, knee, peak
from hotset.reports.render import terminal
from tests import documents
from tests.test_terminal import console, text_of

USERS = (1, 2, 4, 8, 16, 32, 64)


def saturating(limit: float, per_user: float) -> list[Point]:
    """Each user adds the same until the server is full."""
    return [Point(users, min(limit, per_user * users)) for users in USERS]


@pytest.mark.parametrize("full_at", [4, 8, 16, 32])
def test_a_server_that_is_full_at_some_users_has_its_knee_and_peak_there(full_at: int) -> None:
    points = saturating(100.0 * full_at, 100.0)
    assert peak(points).users == full_at
    found = knee(points)
    assert found is not None
    assert found.users == full_at


@given(st.floats(0.1, 1e5), st.floats(0.1, 1e5))
def test_the_unit_of_the_rate_changes_nothing(limit: float, factor: float) -> None:
    points = [Point(users, limit * users / (users + 6)) for users in USERS]
    scaled = [Point(one.users, one.rate * factor) for one in points]
    first, second = knee(points), knee(scaled)
    assert first is not None
    assert second is not None
    assert first.users == second.users
    assert peak(points).users == peak(scaled).users


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=9))
def test_peak_and_knee_are_points_of_the_curve(rates: list[float]) -> None:
    points = [Point(2**number, rate) for number, rate in enumerate(rates)]
    assert peak(points) in points
    assert peak(points).rate >= 0.98 * max(rates)
    found = knee(points)
    assert found is None or (found in points and found.rate <= max(rates))


def test_what_grows_with_its_users_has_no_knee() -> None:
    assert knee([Point(users, 50.0 * users) for users in USERS]) is None
    assert knee([Point(1, 5), Point(2, 8)]) is None


@pytest.mark.parametrize(
    ("rates", "users"),
    [
        # A cache that warms up as the curve goes: twice the users got 2.6 times as much.
        ((432, 5508, 14544), None),
        ((100, 190, 340), None),
        ((100, 190, 270), 2),
        ((100, 190, 230), 2),
    ],
)
def test_beyond_a_knee_users_gain_less_than_half(rates: tuple[int, ...], users: int | None) -> None:
    found = knee([Point(2**at, rate) for at, rate in enumerate(rates)])
    assert (found.users if found else None) == users


def test_a_curve_of_a_cache_that_was_cold_says_so() -> None:
    """It was measured from a cold cache on: its first users were slow for that, not for being
    few."""
    cold = [Point(2**at, rate) for at, rate in enumerate((432, 5508, 14544))]
    assert (
        "from 1 to 2 users the throughput grew 12.8 times, more than the users did: a cache was"
        " cold" in curve.sentence(cold)
    )
    for warm in (saturating(800, 100), [Point(1, 0), Point(2, 50)], [Point(1, 100), Point(2, 215)]):
        assert curve.caveat(warm) is None
        assert "cold" not in curve.sentence(warm)


def test_a_runs_curve_has_every_arm_and_number_of_users() -> None:
    document = documents.with_curve()
    found = curve.read_curves(document)
    assert list(found) == ["baseline", "accelerated", "all-flash"]
    for points in found.values():
        assert [one.users for one in points] == [*documents.CURVE_USERS, 16]
        assert [len(one.arm.repeats) for one in points] == [2, 2, 2, 2, 3]
    assert peak([one.point for one in found["baseline"]]).users == 2
    assert peak([one.point for one in found["accelerated"]]).users in (8, 16)
    assert curve.read_curves(documents.complete()) == {}


def test_rows_have_a_ratio_with_its_interval_against_both_references() -> None:
    document = documents.with_curve()
    columns = curve.columns(document)
    by_column = [dict(zip(columns, row, strict=True)) for row in curve.rows(document)]
    assert len(by_column) == 3 * 5
    two = next(row for row in by_column if (row["arm"], row["users"]) == ("accelerated", "8"))
    assert re.fullmatch(r"[89]\.\d× \(–\)", two["of baseline"]), "two repeats"
    one = next(row for row in by_column if (row["arm"], row["users"]) == ("accelerated", "16"))
    assert re.fullmatch(r"[89]\.\d× \(\d+\.\d–\d+\.\d\)", one["of baseline"])
    assert re.fullmatch(r"[01]\.\d\d× \(0\.\d\d–1\.\d\d\)", one["of all-flash"])
    baseline = next(row for row in by_column if row["arm"] == "baseline")
    assert baseline["of baseline"] == "–"
    assert baseline["most time"] == "reading data 79 %"


def test_two_curves_are_compared_point_by_point() -> None:
    first = documents.with_curve()
    other = first.model_copy(update={"run": "second"})
    lines = compare.lines([first, other])
    assert [(one.arm, one.users) for one in lines] == [
        (arm, users)
        for arm in ("baseline", "accelerated", "all-flash")
        for users in (*documents.CURVE_USERS, 16)
    ]
    assert {one.speed_ratio for one in lines} == {1}
    used = console()
    terminal.comparison(lines, [], used)
    assert "accelerated, 1 user, NOPM" in text_of(used)
    without = documents.complete(30)
    assert {one.users for one in compare.lines([first, without])} == {None}
