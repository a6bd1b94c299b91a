"""Steady state by SNIA's definition: bounds of excursion and slope, and what chance explains."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.tpcc.transactions import Kind
from hotset.tpcc.window.record import RunOptions
from hotset.tpcc.window.samples import Recorder, RunLog
from hotset.tpcc.window.steady import EXCURSION, SLOPE, Round, judge, spans
from hotset.tpcc.workload import KINDS

STARTS = [0, 6, 12, 18, 24]
values = st.lists(st.floats(1, 1e6), min_size=5, max_size=5)


def exact(rounds: list[float]) -> list[Round]:
    return [Round(one, 0.0) for one in rounds]


@given(values)
def test_the_verdict_is_the_definition_s(rounds: list[float]) -> None:
    found = judge("all", "tpm", exact(rounds), STARTS)
    average = np.mean(rounds)
    excursion = (max(rounds) - min(rounds)) / average
    slope = np.polyfit(range(5), rounds, 1)[0] * 4 / average
    assert found.excursion == pytest.approx(excursion, abs=1e-9)
    assert found.slope == pytest.approx(slope, abs=1e-6)
    margin = 1e-6
    if abs(excursion - EXCURSION) > margin and abs(abs(slope) - SLOPE) > margin:
        assert found.steady == (excursion <= EXCURSION and abs(slope) <= SLOPE)


@given(values, st.floats(0.001, 1000))
def test_the_unit_changes_nothing(rounds: list[float], factor: float) -> None:
    found, scaled = (
        judge("all", "tpm", exact([one * by for one in rounds]), STARTS) for by in (1, factor)
    )
    assert scaled.excursion == pytest.approx(found.excursion, rel=1e-6, abs=1e-9)
    assert scaled.slope == pytest.approx(found.slope, rel=1e-6, abs=1e-6)
    assert scaled.second == found.second


def test_what_stands_out_is_named_by_its_second() -> None:
    found = judge("stock_level", "latency_ms", exact([2, 2, 2, 50, 2]), STARTS)
    assert (found.steady, found.second) == (False, 18)


@given(st.integers(0, 2**32))
def test_chance_alone_is_no_excursion(seed: int) -> None:
    """Five means of 40 exponential latencies differ by more than 20 % nearly always."""
    random = np.random.default_rng(seed)
    samples = random.exponential(5.0, (5, 40))
    rounds = [Round(float(one.mean()), float(one.std() / 40**0.5)) for one in samples]
    assert judge("delivery", "latency_ms", rounds, STARTS).excursion < 0.35


@given(st.integers(10, 5000))
def test_rounds_cover_the_window(seconds: int) -> None:
    found = spans(seconds)
    assert [second for one in found for second in one] == list(range(seconds))
    assert max(map(len, found)) - min(map(len, found)) <= 1


def run_log(duration_s: float) -> tuple[RunLog, Recorder]:
    options = RunOptions(users=1, warehouses=1, rampup_s=0, duration_s=duration_s)
    recorder = Recorder(len(KINDS))
    recorder.begin(0.0, duration_s)
    return RunLog(options, KINDS, 0.0, 0.0), recorder


def test_a_plan_that_turns_is_found_in_its_kind() -> None:
    """Stock-level goes from 2 to 51 ms at second 20 of 30; new-order stays as it is."""
    log, recorder = run_log(30)
    random = np.random.default_rng(1)
    for at in np.arange(0, 30, 0.01):
        recorder.commit(Kind.NEW_ORDER, float(at), float(at + random.exponential(0.001)))
    for at in np.arange(0, 30, 0.1):
        mean_s = 0.002 if at < 20 else 0.051
        recorder.commit(Kind.STOCK_LEVEL, float(at), float(at + random.exponential(mean_s)))
    log.add(recorder.collect())
    result = log.result()
    assert [one.of for one in result.steadiness] == ["all", "new_order", "stock_level"]
    (found,) = result.not_steady
    assert (found.of, found.measure) == ("stock_level", "latency_ms")
    assert found.second in (18, 24)
    assert found.slope > 1


def test_a_short_window_is_not_judged() -> None:
    log, recorder = run_log(9)
    recorder.commit(Kind.NEW_ORDER, 1.0, 1.001)
    log.add(recorder.collect())
    assert log.result().steadiness == []
