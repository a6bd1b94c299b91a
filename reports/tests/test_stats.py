from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotset.reports.analysis import stats
from hotset.reports.model.document import Arm
from hotset.reports.model.windows import Repeat, Second
from tests import documents

WINDOW_S = 60


def arm_of(levels: Sequence[float], noise: float = 0.1, seed: int = 0) -> Arm:
    random = np.random.default_rng(seed)
    repeats = []
    for number, level in enumerate(levels, start=1):
        rates = level * np.abs(random.normal(1, noise, WINDOW_S))
        repeats.append(repeat_of(number, [float(rate) for rate in rates]))
    return Arm(name="baseline", repeats=tuple(repeats))


def repeat_of(number: int, rates: Sequence[float]) -> Repeat:
    mean = sum(rates) / len(rates)
    return Repeat(
        repeat=number,
        nopm=mean,
        tpm=mean * 2,
        failed=0,
        retries=0,
        server_cpu=0.5,
        server_iowait=0.1,
        rampup_s=0,
        duration_s=len(rates),
        series=tuple(Second(second=s, nopm=rate, tpm=2 * rate) for s, rate in enumerate(rates)),
    )


def scaled(arm: Arm, by: float) -> Arm:
    return Arm(
        name=arm.name,
        repeats=tuple(
            repeat_of(each.repeat, [second.nopm * by for second in each.series])
            for each in arm.repeats
        ),
    )


levels = st.lists(st.floats(10, 10_000), min_size=1, max_size=4)


@settings(max_examples=25)
@given(levels, levels)
def test_the_interval_contains_the_ratio(above: list[float], below: list[float]) -> None:
    ratio, low, high = stats.ratio_with_interval(arm_of(above), arm_of(below))
    assert 0 < low <= ratio <= high
    if min(len(above), len(below)) < stats.LEAST_REPEATS:
        assert low == ratio == high


@settings(max_examples=20)
@given(levels, st.floats(0.1, 50), st.integers(0, 99))
def test_scaling_an_arm_scales_ratio_and_interval(above: list[float], by: float, seed: int) -> None:
    arm, other = arm_of(above, 0.2, seed), arm_of([100, 110], 0.2, seed + 1)
    plain = stats.ratio_with_interval(arm, other)
    assert stats.ratio_with_interval(scaled(arm, by), other) == pytest.approx(
        tuple(by * figure for figure in plain)
    )


def test_arms_of_the_same_speed_are_mostly_not_significant() -> None:
    significant = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        one, other = ([float(x) for x in random.normal(1000, 50, 3)] for _ in range(2))
        low, high = stats.ratio_of_means(one, other)[1:]
        significant += not low <= 1 <= high
    assert significant <= 18


@pytest.mark.parametrize("repeats", [1, 2])
def test_fewer_than_three_repeats_decide_nothing(repeats: int) -> None:
    """However far the arms lie apart, and whatever the seconds of their windows do."""
    few, many = arm_of([1000.0, 1010.0][:repeats]), arm_of([90, 100, 110])
    for fast, slow in ((few, many), (few, few)):
        factor = stats.factor(fast, slow)
        assert not factor.has_interval
        assert not factor.significant


def test_the_seconds_of_a_window_are_no_repeats() -> None:
    rough = stats.ratio_with_interval(arm_of([900, 1000, 1100], 0.5), arm_of([90, 100, 110], 0.5))
    smooth = stats.ratio_with_interval(arm_of([900, 1000, 1100], 0), arm_of([90, 100, 110], 0))
    assert rough[2] / rough[1] == pytest.approx(smooth[2] / smooth[1], rel=0.25)


def test_an_arm_against_itself_is_one() -> None:
    arm = arm_of([1000, 1020, 980])
    factor = stats.factor(arm, arm)
    assert factor.ratio == 1
    assert not factor.significant


def test_results_are_reproducible() -> None:
    document = documents.complete()
    baseline, accelerated, all_flash = document.arms
    again = [stats.factor(accelerated, baseline, all_flash) for _ in range(2)]
    assert again == [document.factor()] * 2


def test_more_spread_between_repeats_widens_the_interval() -> None:
    other = arm_of([100, 100, 100])
    narrow = stats.ratio_with_interval(arm_of([1000, 1000, 1000]), other)
    wide = stats.ratio_with_interval(arm_of([700, 1000, 1300]), other)
    assert wide[2] - wide[1] > 3 * (narrow[2] - narrow[1])


def test_cpu_bound_is_any_accelerated_repeat_above_the_limit() -> None:
    assert not stats.factor(documents.arm("accelerated"), documents.arm("baseline")).cpu_bound
    factor = documents.plain().factor()
    assert factor is not None
    assert factor.cpu_bound
    assert factor.of_all_flash is None


def test_arms_that_cannot_be_compared_say_why() -> None:
    arm = arm_of([1000])
    with pytest.raises(stats.NoFactor, match="accelerated arm has no repeats"):
        stats.factor(Arm(name="accelerated"), arm)
    with pytest.raises(stats.NoFactor, match="completed nothing"):
        stats.factor(arm, Arm(name="baseline", repeats=(repeat_of(1, [0.0] * 20),)))


def test_an_interval_is_not_narrower_than_counting_allows() -> None:
    """Once three windows of 67, 65 and 63 orders had 96.6 (90.5-103)."""

    def counted(name: str, *orders: int) -> Arm:
        repeats = [documents.repeat("baseline", at, 1000.0) for at in range(1, len(orders) + 1)]
        changed = [
            one.model_copy(update={"nopm": each * 5.0, "tpm": each * 11.0, "duration_s": 12.0})
            for one, each in zip(repeats, orders, strict=True)
        ]
        arm = documents.arm("baseline", 1)
        return arm.model_copy(update={"name": name, "repeats": tuple(changed)})

    slow, quick = counted("baseline", 67, 65, 63), counted("accelerated", 6300, 6250, 6280)
    ratio, low, high = stats.ratio_with_interval(quick, slow)
    assert ratio == pytest.approx(96.6, abs=0.1)
    # 1.96 standard errors of 195 orders are 14 % to either side.
    assert low < ratio * 0.87
    assert high > ratio * 1.15
