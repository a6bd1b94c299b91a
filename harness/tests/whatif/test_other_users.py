"""Other numbers of users: the published curve, each of its points learned from every other one.

Nothing of the points that are predicted goes into the prediction: it is learned from a document
that has one number of users alone.
"""

from __future__ import annotations

from functools import cache
from statistics import mean

import pytest

from hotset.reports.model.document import PredictedArm
from hotset.whatif.checking import Devices, check
from hotset.whatif.demands import FLASH, LOCKS, Demands, SetUp, active_users, solve_network
from hotset.whatif.doubt import doubt_of
from hotset.whatif.prediction import predict, rates

from .published import CARD, NAS, of_users, published

pytestmark = pytest.mark.night

USERS = (1, 2, 4, 8, 16, 32, 64)
CURVE = published("20261122-215748-curve")


@cache
def predicted(by: int) -> tuple[PredictedArm, ...]:
    """Every point, learned from the one with so many users."""
    return check(CURVE, of_users(CURVE, by), NAS, Devices(NAS, CARD))


def others(arm: str, by: int) -> list[PredictedArm]:
    return [one for one in predicted(by) if one.arm == arm and one.users != by]


def error(found: list[PredictedArm]) -> float:
    return mean(abs(one.error) for one in found)


@pytest.mark.parametrize("arm", ["accelerated", "all-flash"])
def test_from_sixteen_users_the_rest_of_the_curve(arm: str) -> None:
    assert len(others(arm, 16)) == 6
    assert error(others(arm, 16)) <= 0.1


@pytest.mark.parametrize(("arm", "most"), [("accelerated", 0.1), ("all-flash", 0.1)])
def test_from_any_one_point_all_others(arm: str, most: float) -> None:
    assert mean(error(others(arm, by)) for by in USERS) <= most
    # One user does not show how much the cores can do; with 64 a transaction takes more CPU.
    for by in USERS:
        assert error(others(arm, by)) <= 0.16, by


def test_without_a_cache_where_the_buffers_were_full() -> None:
    """With 1 and 2 users the windows were over before the database's buffers were full: nothing had
    to be written back, so a transaction took a third less of the disk than with more users."""
    full = [by for by in USERS if by > 2]
    found = [one for by in full for one in others("baseline", by) if one.users in full]
    assert error(found) <= 0.12
    early = [one for one in others("baseline", 16) if one.users <= 2]
    assert all(one.error < -0.15 for one in early)


def test_the_ranges_are_as_wide_as_the_errors() -> None:
    found = [one for by in USERS for one in predicted(by) if one.users != by]
    assert len(found) == 126
    most = doubt_of("users").factor
    assert mean(1 / most <= 1 + one.error <= most for one in found) >= 0.9
    half = 1 + (most - 1) / 2
    each: dict[tuple[str, int], list[float]] = {}
    for one in found:
        each.setdefault((one.arm, one.users), []).append(1 + one.error)
    whole = [all(1 / half <= off <= half for off in window) for window in each.values()]
    assert len(whole) == 21
    assert mean(whole) < 0.9, "too wide"
    assert mean(one.in_range for one in found) >= 0.9


def test_a_point_is_predicted_from_itself_as_it_was() -> None:
    for by in USERS:
        for one in predicted(by):
            if one.users == by:
                assert abs(one.error) <= 0.15 if one.arm == "baseline" else 0.01, one


def test_a_curve_is_learned_from_where_it_comes_nearest() -> None:
    for users, near in ((1, 1), (3, 4), (16, 16), (40, 32), (1000, 64)):
        assert predict(CURVE, NAS, [1.0], flash=CARD, users=users).learned_users == near


def test_without_the_flash_at_rest_the_rest_of_the_time_is_a_delay() -> None:
    """Which is right for the users that were measured, and for no others."""
    by = of_users(CURVE, 16)
    known = predict(by, NAS, [1.0], flash=CARD).lines[0]
    unknown = predict(by, NAS, [1.0]).lines[0]
    assert unknown.nopm == pytest.approx(known.nopm, rel=0.01)
    assert unknown.most_time == FLASH
    few = predict(by, NAS, [1.0], users=1).lines[0]
    assert few.nopm < 0.3 * predict(by, NAS, [1.0], users=1, flash=CARD).lines[0].nopm


def test_locks_block_more_the_more_users_there_are() -> None:
    demands = Demands(1e-3, 1.0, 1e-3, 1e4, 10.0, 10.0, 0.005, 0.0)
    assert active_users(demands, 1) == 1
    assert active_users(demands, 11) == pytest.approx(11 * 0.95)
    assert active_users(demands, 1000) == pytest.approx(100), "never all of them"
    found = solve_network(demands, SetUp(11, 2, rates(NAS, 11)), 1.0)
    assert {one.name: one.present for one in found.loads}[LOCKS] == pytest.approx(0.55)
    assert sum(one.present for one in found.loads) == pytest.approx(11, abs=0.5)


def test_nobody_waits_for_the_limit_of_a_flash_alone() -> None:
    alone = SetUp(1, 2, rates(NAS, 1))
    slow = Demands(2e-3, 1.0, 1e-6, 100.0, 10.0, 10.0, 0.0, 0.0)
    assert solve_network(slow, alone, 1.0).throughput == pytest.approx(1 / 2.001e-3)
    held = solve_network(
        Demands(2e-6, 1.0, 1e-3, 2000.0, 10.0, 10.0, 0.0, 0.0), SetUp(50, 2, rates(NAS, 50)), 1.0
    )
    assert held.throughput == pytest.approx(2000, rel=0.01)
