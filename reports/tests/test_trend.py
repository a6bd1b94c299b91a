"""Change points of series whose levels are known."""

from __future__ import annotations

import io
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


def samples(values: list[float]) -> list[Sample]:
    return [
        Sample(f"run-{place}", BEGUN + timedelta(days=place), value)
        for place, value in enumerate(values)
    ]


def series(seed: int, *levels: tuple[int, float], noise: float = 0.02) -> list[float]:
    """So many runs at each level."""
    random = np.random.default_rng(seed)
    return [float(level * random.normal(1, noise)) for count, level in levels for _ in range(count)]


@pytest.mark.parametrize("seed", range(20))
def test_a_change_of_a_tenth_is_found_where_it_is(seed: int) -> None:
    assert change_points(series(seed, (10, 4200), (6, 3400))) == [10]
    assert change_points(series(seed, (5, 4200), (5, 5200), (5, 4200))) == [5, 10]


def test_runs_that_only_scatter_have_few_changes() -> None:
    """Of 200 series without a change at most one in twenty shows one."""
    false = sum(bool(change_points(series(seed, (16, 4200), noise=0.05))) for seed in range(200))
    assert false <= 10


def test_one_run_that_falls_out_is_no_change() -> None:
    values = series(1, (12, 4200))
    values[6] /= 2
    assert change_points(values) == []


@pytest.mark.parametrize("seed", range(5))
def test_the_unit_changes_nothing(seed: int) -> None:
    values = series(seed, (7, 100), (6, 80), (4, 90))
    assert change_points([one * 1024 for one in values]) == change_points(values)


@given(st.lists(st.floats(1e-3, 1e9), max_size=20))
def test_every_level_has_two_runs(values: list[float]) -> None:
    found = change_points(values)
    assert all(after - before >= 2 for before, after in pairwise([0, *found, len(values)]) if found)


@pytest.mark.parametrize(("lower_is_better", "worse"), [(False, True), (True, False)])
def test_a_fall_is_worse_unless_lower_is_better(lower_is_better: bool, worse: bool) -> None:
    found = trend.find_trend("x", samples(series(3, (6, 100), (6, 80))), lower_is_better)
    assert found.is_worse is worse
    (change,) = found.changes
    assert change.ratio == pytest.approx(0.8, rel=0.03)
    assert "fell by 2" in found.sentence(change)
    assert "with run run-6, 2026-11-07 00:00 UTC" in found.sentence(change)
    assert found.levels[:6] == (change.before,) * 6
    assert [row[4] for row in trend.rows(found)].count(None) == 11


def test_what_was_made_up_for_is_not_worse() -> None:
    assert not trend.find_trend(
        "x", samples(series(3, (5, 100), (5, 80), (5, 100))), False
    ).is_worse


def test_too_few_runs_have_no_change() -> None:
    for count in range(trend.LEAST_RUNS):
        found = trend.find_trend("x", samples([100.0, 50, 25][:count]), False)
        assert (found.changes, len(found.levels)) == ((), count)


def test_the_table_has_a_bar_for_each_run_and_the_changes_below() -> None:
    used = Console(file=io.StringIO(), width=100)
    terminal.trend(
        trend.find_trend("nopm", samples(series(3, (4, 4200), (4, 3400))), False),
        [["hotset: 1 / 2"]],
        used,
    )
    assert isinstance(used.file, io.StringIO)
    lines = used.file.getvalue().splitlines()
    assert sum("█" in line for line in lines) == 8
    assert "• hotset: 1 / 2" in lines
    assert any(line.startswith("nopm fell by ") for line in lines)
