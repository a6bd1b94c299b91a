"""Change points of series whose levels are known."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from hotset.reports.analysis.comparison import trend
from hotset.reports.analysis.comparison.trend import Sample, change_points
from hotset.reports.render import terminal

BEGUN = datetime(2026, 11, 1, tzinfo=UTC)


def samples(values: list[float], a_day: int = 1) -> list[Sample]:
    return [
        Sample(f"run-{place}", BEGUN + timedelta(days=place // a_day, hours=place % a_day), value)
        for place, value in enumerate(values)
    ]


def series(seed: int, *levels: tuple[int, float], noise: float = 0.02) -> list[float]:
    """So many runs at each level."""
    random = np.random.default_rng(seed)
    return [float(level * random.normal(1, noise)) for count, level in levels for _ in range(count)]


@pytest.mark.parametrize("seed", range(20))
def test_a_change_of_a_fifth_is_found_where_it_is(seed: int) -> None:
    assert change_points(series(seed, (10, 4200), (6, 3360))) == [10]
    assert change_points(series(seed, (8, 4200), (5, 5600), (5, 4200))) == [8, 13]


NIGHTS = 30
RANDOM = np.random.default_rng(20261129)
Nights = np.typing.NDArray[np.float64]


def scatter(spread: float = 0.03) -> Nights:
    return RANDOM.normal(0, spread, NIGHTS)


def two_modes(share: float) -> Nights:
    """10 % apart."""
    return np.where(RANDOM.random(NIGHTS) < share, -0.1, 0) + scatter(0.02)


def autocorrelated(rho: float) -> Nights:
    found = [RANDOM.normal(0, 0.03)]
    for fresh in RANDOM.normal(0, 0.03 * np.sqrt(1 - rho**2), NIGHTS - 1):
        found.append(rho * found[-1] + fresh)
    return np.asarray(found)


def good_and_bad_days(effect: float, a_day: int = 2) -> Nights:
    return np.repeat(RANDOM.normal(0, effect, NIGHTS // a_day), a_day) + scatter()


def with_a_step() -> Nights:
    return scatter() + np.where(np.arange(NIGHTS) >= 14, np.log(0.75), 0)


UNCHANGED: dict[str, Callable[[], Nights]] = {
    "independent": scatter,
    "8 %": lambda: scatter(0.08),
    "two modes": lambda: two_modes(0.5),
    "a rarer mode": lambda: two_modes(0.3),
    "autocorrelation 0.5": lambda: autocorrelated(0.5),
    "autocorrelation 0.8": lambda: autocorrelated(0.8),
    "days of 4 %": lambda: good_and_bad_days(0.04),
    "days of 8 %": lambda: good_and_bad_days(0.08),
}


@pytest.mark.parametrize("kind", UNCHANGED)
def test_thirty_nights_that_only_scatter_raise_no_alarm(kind: str) -> None:
    """Judged again each night, `--fail` fires in at most one series of twenty; with differences of
    neighbours for noise it did in half of those with two modes or an autocorrelation of 0.8."""
    false = sum(fires(UNCHANGED[kind]()) for _ in range(200))
    assert false <= 0.05 * 200


@pytest.mark.parametrize("a_day", [3, 6])
def test_one_bad_day_of_several_runs_raises_no_alarm(a_day: int) -> None:
    """Three in a row were all of one day: up to 13 % of the series fired."""
    false = sum(fires(good_and_bad_days(0.08, a_day), a_day) for _ in range(200))
    assert false <= 0.05 * 200


def fires(nights: Nights, a_day: int = 1) -> bool:
    values = [float(value) for value in 4200 * np.exp(nights)]
    return any(
        trend.find_trend("x", samples(values[:end], a_day), False).is_worse
        for end in range(trend.LEVEL_RUNS, NIGHTS + 1)
    )


def test_a_step_of_a_quarter_is_found() -> None:
    assert sum(fires(with_a_step()) for _ in range(100)) >= 80


def test_one_run_that_falls_out_is_no_change() -> None:
    values = series(1, (12, 4200))
    values[6] /= 2
    assert change_points(values) == []


@pytest.mark.parametrize("seed", range(5))
def test_the_unit_changes_nothing(seed: int) -> None:
    values = series(seed, (8, 100), (6, 70), (4, 100))
    assert change_points([one * 1024 for one in values]) == change_points(values)


@given(st.lists(st.floats(1e-3, 1e9), max_size=30))
def test_a_change_is_told_from_eight_runs_and_a_new_level_has_three(values: list[float]) -> None:
    found = change_points(values)
    assert not found or found[0] >= trend.LEVEL_RUNS
    ends = [*found, len(values)]
    assert all(after - before >= trend.NEW_RUNS for before, after in pairwise(ends))


@pytest.mark.parametrize(("lower_is_better", "worse"), [(False, True), (True, False)])
def test_a_fall_is_worse_unless_lower_is_better(lower_is_better: bool, worse: bool) -> None:
    found = trend.find_trend("x", samples(series(3, (8, 100), (6, 80))), lower_is_better)
    assert found.is_worse is worse
    (change,) = found.changes
    assert change.ratio == pytest.approx(0.8, rel=0.03)
    assert "fell by 2" in found.sentence(change)
    assert "with run run-8, 2026-11-09 00:00 UTC" in found.sentence(change)
    assert found.levels[:8] == (change.before,) * 8
    assert [row[4] for row in trend.rows(found)].count(None) == 13


def test_what_was_made_up_for_is_not_worse() -> None:
    assert not trend.find_trend(
        "x", samples(series(3, (8, 100), (5, 75), (5, 100))), False
    ).is_worse


def test_too_few_runs_have_no_change() -> None:
    for count in range(4):
        found = trend.find_trend("x", samples([100.0, 50, 25][:count]), False)
        assert (found.changes, len(found.levels)) == ((), count)


def test_the_table_has_a_bar_for_each_run_and_the_changes_below() -> None:
    used = Console(file=io.StringIO(), width=100)
    terminal.trend(
        trend.find_trend("nopm", samples(series(3, (8, 4200), (4, 3200))), False),
        [["hotset: 1 / 2"]],
        used,
    )
    assert isinstance(used.file, io.StringIO)
    lines = used.file.getvalue().splitlines()
    assert sum("█" in line for line in lines) == 12
    assert "• hotset: 1 / 2" in lines
    assert any(line.startswith("nopm fell by ") for line in lines)
    assert any(line.startswith("A change shows when 3 runs in a row, not all of") for line in lines)


def test_what_can_be_seen_is_told() -> None:
    few = trend.find_trend("x", samples(series(3, (5, 100))), False)
    assert few.outlook().startswith("Whether it changed shows once a level has 8 runs")
    enough = trend.find_trend("x", samples([100.0, 110.0] * 4), False)
    assert "lie below 91 or above 121" in enough.outlook()
