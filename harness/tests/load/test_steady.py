"""Steady state by SNIA's definition: bounds of excursion and slope, and what chance explains."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.load.samples import Recorder, RunLog
from hotset.load.steady import (
    EXCURSION,
    LEVEL_LEAST,
    LEVEL_MOST,
    SLOPE,
    Round,
    judge,
    judge_reads,
    level,
    spans,
)
from hotset.reports.model.windows import Steadiness
from hotset.tpcc.record import RunOptions
from hotset.tpcc.transactions import KINDS, Kind

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
    assert log.result().steadiness == ()


def counted(counts: "np.ndarray[Any, Any]") -> Steadiness:
    """The verdict on transactions per minute, six seconds a round."""
    return judge("all", "tpm", [Round(one * 10.0, one**0.5 * 10) for one in counts], STARTS)


def line(rise: float) -> list[float]:
    return [1 + rise * (place - 2) / 4 for place in range(5)]


HALVED = [1, 1, 0.5, 1, 1]


@pytest.mark.parametrize(
    ("per_round", "shape", "answer", "share"),
    [
        # Where the test cannot fail, it has no answer, unless much happens ...
        (73, line(0), None, 0.99),
        (73, line(0.3), None, 0.90),
        (1_000, line(0), None, 0.99),
        (1_000, line(0.3), False, 0.95),
        (450, HALVED, False, 0.99),
        # ... and where it can, what is within the bounds passes ...
        (1_800, line(0), True, 0.99),
        (1_800, line(0.08), True, 0.99),
        (20_000, line(0.08), True, 0.99),
        # ... and three times the bound never does, half as much again with more transactions.
        (1_440, line(0.3), False, 0.99),
        (1_800, line(0.3), False, 0.99),
        (20_000, line(0.15), False, 0.99),
        (1_800, HALVED, False, 0.99),
    ],
)
def test_how_often_counts_get_each_answer(
    per_round: int, shape: list[float], answer: bool | None, share: float
) -> None:
    """Poisson counts of transactions, constant or along a line that rises."""
    random = np.random.default_rng(per_round)
    found = [counted(random.poisson(per_round * np.array(shape))).steady for _ in range(1_000)]
    assert found.count(answer) >= share * len(found), Counter(found)


def test_a_window_without_transactions_is_not_steady() -> None:
    assert counted(np.zeros(5)).steady is None


def reads_of(
    random: np.random.Generator, means: list[float], per_second: float
) -> Steadiness | None:
    """Seconds of transactions of which one in 25 reads fifty times as much, as stock-level does."""
    counts = random.poisson(per_second, len(means))
    heavy = random.binomial(counts, 0.04)
    pages = [
        float(random.poisson(mean * (few + 50 * many) / 2.96))
        for mean, few, many in zip(means, counts - heavy, heavy, strict=True)
    ]
    return judge_reads(pages, [float(one) for one in counts])


@pytest.mark.parametrize(
    ("means", "per_second", "answer"),
    [
        ([16.0] * 60, 2_000, True),
        ([16.0] * 12, 30, None),
        ([32.0] * 15 + [16.0] * 45, 2_000, False),
        ([32.0] * 2 + [16.0] * 10, 1_000, False),
    ],
)
def test_reads_per_transaction_are_judged(
    means: list[float], per_second: float, answer: bool | None
) -> None:
    random = np.random.default_rng(7)
    found = [one for _ in range(300) if (one := reads_of(random, means, per_second))]
    assert [one.steady for one in found].count(answer) >= 0.95 * 300


def test_reads_that_halve_in_mid_window_are_never_steady() -> None:
    """Filling buffers of a slow server: the step lies within a round."""
    random = np.random.default_rng(7)
    found = [reads_of(random, [32.0] * 3 + [16.0] * 9, rate) for rate in (30, 300, 3000) * 100]
    assert True not in {one.steady for one in found if one}


def test_what_memory_serves_has_no_reads_to_judge() -> None:
    assert judge_reads([3.0] * 12, [100.0] * 12) is None
    assert judge_reads([30.0] * 4, [1.0] * 4) is None
    assert judge_reads([30.0] * 12, [0.0] * 12) is None


def test_a_window_is_as_steady_as_its_throughput_and_reads_are_known_to_be() -> None:
    """A latency of too few transactions leaves the window steady, one that turned does not."""
    log, recorder = run_log(30)
    random = np.random.default_rng(1)
    for at in np.arange(0, 30, 0.001):
        recorder.commit(Kind.NEW_ORDER, float(at), float(at + random.exponential(0.001)))
    log.add(recorder.collect())
    result = log.result()
    assert result.steady
    few = judge("stock_level", "latency_ms", [Round(10, 9)] * 5, STARTS)
    reads = judge("all", "reads", [Round(16, 9)] * 5, STARTS)
    turned = judge("stock_level", "latency_ms", exact([1, 1, 1, 9, 9]), STARTS)
    for more, expected in (([few], True), ([reads], None), ([reads, turned], False)):
        judged = result.model_copy(update={"steadiness": (*result.steadiness, *more)})
        assert judged.steady is expected
    assert result.model_copy(update={"steadiness": ()}).steady is None


FILLING = [959, 990, 936, 555, 527, 520]
"""Reads per second of a published baseline, whose buffers became full in the fourth second."""
FILLED = [582, 467, 546, 602, 662, 681, 719, 701, 586]
"""Another one's, from there on."""


def test_reads_of_buffers_that_become_full_are_not_level() -> None:
    assert level(FILLING) is False
    assert level([*FILLING, 617, 574, 515, 587, 673, 500]) is None


def test_few_seconds_are_not_known_to_be_level() -> None:
    assert level([]) is None
    assert level([500, 500, 500]) is None
    assert level([500.0] * (LEVEL_LEAST - 1)) is None
    assert level([500.0] * LEVEL_LEAST) is True
    assert level(FILLING[:3]) is None, "alike, and too few"


def test_a_change_that_chance_may_be_is_not_known_to_be_none() -> None:
    assert level(FILLED) is None
    assert level([500, 510, 490, 505, 495, 500, 505, 495, 490, 510]) is True


def test_what_was_long_ago_does_not_count() -> None:
    assert level([*FILLING, *[500.0] * LEVEL_MOST]) is True
    assert level([*[500.0] * LEVEL_MOST, *FILLING]) is not True


@pytest.mark.parametrize(
    ("before", "after", "answer", "least", "most"),
    [
        (1.0, 1.0, True, 0.75, 1.0),
        # Just beyond the bound, as seldom as two standard errors say; and what halves, never.
        (1.1, 0.9, True, 0.0, 0.04),
        (1.3, 0.7, True, 0.0, 0.0),
        (1.3, 0.7, False, 0.95, 1.0),
    ],
)
def test_how_often_reads_get_each_answer(
    before: float, after: float, answer: bool, least: float, most: float
) -> None:
    """Seconds that scatter by 10 %, as a slow disk's do."""
    random = np.random.default_rng(5)
    means = [before] * 8 + [after] * 8
    found = [level([float(one) for one in random.normal(means, 0.1)]) for _ in range(2_000)]
    assert least <= found.count(answer) / len(found) <= most, Counter(found)


def test_reads_per_transaction_of_filling_buffers_are_not_level() -> None:
    """Of the published baseline: what is too little to tell by its transactions is told by time."""
    assert level(FILLING, [28, 28, 32, 27, 31, 27]) is False
    assert level([500.0] * 16, [30.0] * 8 + [20.0] * 8) is False
    assert level([500.0] * 16, [30.0, 15.0] * 8) is None
    assert level([600.0, 300.0] * 8, [30.0, 15.0] * 8) is True
    assert level([500.0] * 16, [0.0] * 8 + [20.0] * 8) is None


def test_nothing_read_is_level() -> None:
    assert level([0.0] * LEVEL_LEAST) is True
