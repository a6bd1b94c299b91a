"""Steady or not, as SNIA's Solid State Storage Performance Test Specification defines it.

PTS 2.0.2, 2.1.24 ("Steady State"): over five rounds, no value lies further from another than 20 %
of the average (excursion), and the best straight line through them changes by no more than 10 % of
it (slope). The rounds here are fifths of the window; the values are transactions per minute, the
pages read per transaction (buffers that are still filling show there first), and the mean latency
of each kind of transaction (a plan that turned shows there first).

Means of few transactions differ by chance, and those of few seconds that resemble one another do so
far more: how the seconds of a round scatter, and how alike those are that follow each other, give
the standard error of its mean. A window is not steady where it is beyond a bound even with three of
them taken off; it is where it keeps to the bounds and three of them are less than a bound, or it
could not have failed. All between is not known: `steady` has three answers, and None is never as
good as True.

Simulated (``harness/tests/load/test_steady.py``): of stationary windows whose seconds scatter by
10 %, with an autocorrelation of 0, 0.5 or 0.8, at most 5 % are called not steady; of windows that
drift by 20 % at most 5 % are called steady, and at least 80 % not steady where they are long.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from statistics import fmean
from typing import TypeAlias

from hotset.reports.model.windows import Measure, Steadiness

ROUNDS = 5
EXCURSION = 0.20
SLOPE = 0.10
LEAST_S = 10.0
"""Shorter windows are not judged."""
READS_COUNT = 0.1
"""Fewer reads per transaction are not judged: memory serves the workload."""
_ERRORS = 3.0
_ALIKE_LEAST_S, _ALIKE = 25, 0.5
"""A shorter window does not tell how alike its seconds are: so much is assumed."""
_ALIKES = [step / 20 for step in range(1, 20)]
_CALMER = 1.3
"""How much less the four calmest of five rounds scatter than all, as a variance."""
LEVEL_LEAST = 8
"""Seconds below which reads are not known to be level: two standard errors are then no more than
95 % by Student's t, too."""
LEVEL_MOST = 20
"""Older seconds do not count."""
_LEVEL_ERRORS = 2.0
_LEVEL_ENDS = 2


@dataclass(frozen=True, slots=True)
class Round:
    """A value and its standard error."""

    value: float
    error: float


Seconds: TypeAlias = Sequence[tuple[float, float]]
"""Amount and count of each: what is judged is the one by the other."""


def spans(seconds: int) -> list[range]:
    """The window's rounds as seconds, of equal length within one.

    >>> [len(one) for one in spans(12)]
    [2, 3, 2, 3, 2]
    """
    edges = [round(number * seconds / ROUNDS) for number in range(ROUNDS + 1)]
    return [range(start, end) for start, end in pairwise(edges)]


def judge(of: str, measure: Measure, rounds: Sequence[Round], starts: Sequence[int]) -> Steadiness:
    """Judge if some rounds are steady; `starts` are the seconds where they begin."""
    values = [round_.value for round_ in rounds]
    average = fmean(values)
    high, low = max(rounds, key=_value), min(rounds, key=_value)
    apart, apart_error = high.value - low.value, math.hypot(high.error, low.error)
    change, change_error = _line(rounds)
    excursion = max(0.0, apart - _ERRORS * apart_error)
    slope = max(0.0, abs(change) - _ERRORS * change_error)
    furthest = max(range(len(values)), key=lambda place: abs(values[place] - average))
    scale = average or 1.0
    steady: bool | None = True
    if excursion > EXCURSION * average or slope > SLOPE * average:
        steady = False
    elif not average or (
        max(apart, _ERRORS * apart_error) > EXCURSION * average
        or max(abs(change), _ERRORS * change_error) > SLOPE * average
    ):
        steady = None
    return Steadiness(
        of=of,
        measure=measure,
        rounds=tuple(values),
        excursion=excursion / scale,
        slope=math.copysign(slope, change) / scale,
        second=starts[furthest],
        steady=steady,
    )


def judge_rate(counts: Sequence[float]) -> Steadiness:
    """Judge if the throughput is steady.

    :param counts: of what was done in each second; of what happens by itself it varies as a Poisson
        process's does.
    """
    sums = [sum(counts[span.start : span.stop]) for span in spans(len(counts))]
    rounds = _rounds(
        [(count * 60, 1.0) for count in counts], [math.sqrt(count) / (count or 1) for count in sums]
    )
    return judge("all", "tpm", rounds, _starts(counts))


def judge_latency(of: str, seconds: Seconds, alone: Sequence[float]) -> Steadiness:
    """Judge if a kind's mean latency is steady.

    :param seconds: sum and number of its latencies.
    :param alone: of each round the standard error by its mean, if transactions had nothing to do
        with one another.
    """
    return judge(of, "latency_ms", _rounds(seconds, alone), _starts(seconds))


def judge_reads(
    reads: Sequence[float], transactions: Sequence[float], first: int = 0
) -> Steadiness | None:
    """Judge if reads per transaction are level.

    :param reads: in each second.
    :param transactions: in the same seconds.
    :param first: the second in which they begin.
    :return: None where there is nothing to judge: fewer seconds than rounds, hardly a read, or a
        whole round without one or without a transaction.
    """
    if len(reads) < ROUNDS or sum(reads) <= READS_COUNT * sum(transactions):
        return None
    each = [slice(span.start, span.stop) for span in spans(len(reads))]
    sums = [(sum(reads[span]), sum(transactions[span])) for span in each]
    if not all(read and count for read, count in sums):
        return None
    # Transactions differ a lot in what they read: stock-level reads hundreds of pages.
    alone = [math.sqrt(max(1.0, count / read) / count) for read, count in sums]
    rounds = _rounds(list(zip(reads, transactions, strict=True)), alone)
    return judge("all", "reads", rounds, [first + start for start in _starts(reads)])


def _starts(seconds: Sequence[object]) -> list[int]:
    return [span.start for span in spans(len(seconds))]


def _rounds(seconds: Seconds, alone: Sequence[float]) -> list[Round]:
    """The rounds of a window; the error of each is by how its seconds scatter about its mean.

    :param alone: the least error of each, by its mean.
    """
    means, off = list[float](), list[list[float]]()
    for span in spans(len(seconds)):
        of_round = seconds[span.start : span.stop]
        amount, count = (sum(column) for column in zip(*of_round, strict=True))
        mean = amount / count if count else 0.0
        means.append(mean)
        each = amount / len(of_round) or 1.0
        off.append([(amount - mean * number) / each for amount, number in of_round])
    alike, variance = _scatter(off, assumed=len(seconds) < _ALIKE_LEAST_S)
    return [
        Round(mean, mean * max(least, math.sqrt(variance * _of_mean(len(each), alike))))
        for mean, least, each in zip(means, alone, off, strict=True)
    ]


def _scatter(off: Sequence[Sequence[float]], assumed: bool) -> tuple[float, float]:
    """How alike seconds are that follow each other, and the variance of one, as an autoregressive
    process of the first order that scatters so within its rounds. Where these tell it, the one that
    scatters most is left out: a step amid it is none of that.

    :param off: of each round, how far its seconds are off its mean.
    :param assumed: they do not tell how alike they are.
    """
    if not assumed:
        off = sorted(off, key=_variance)[:-1]
    squares = math.fsum(error * error for each in off for error in each)
    products = math.fsum(error * after for each in off for error, after in pairwise(each))
    if not squares:
        return 0.0, 0.0
    lengths = [len(each) for each in off]
    if assumed:
        return _ALIKE, squares / _within(lengths, _ALIKE)[0]
    likeness, within = 0.0, _within(lengths, 0.0)
    for alike in _ALIKES:
        more = _within(lengths, alike)
        if more[1] / more[0] > products / squares:
            break
        likeness, within = alike, more
    return likeness, squares / within[0] * _CALMER


def _variance(off: Sequence[float]) -> float:
    return math.fsum(error * error for error in off) / len(off)


def _within(lengths: Sequence[int], alike: float) -> tuple[float, float]:
    """Sums of the squares, and of the products of neighbours, of a process of variance 1, each
    round about its own mean."""
    each = [_within_one(number, alike) for number in lengths]
    squares, products = (math.fsum(column) for column in zip(*each, strict=True))
    return squares, products


@cache
def _within_one(number: int, alike: float) -> tuple[float, float]:
    of_mean = _of_mean(number, alike)
    with_mean = sum(alike**apart for apart in range(number)) / number
    products = (number - 1) * alike - (number + 1) * of_mean + 2 * with_mean
    return number * (1 - of_mean), products


@cache
def _of_mean(number: int, alike: float) -> float:
    """The variance of the mean of so many seconds, by that of one."""
    more = sum((number - apart) * alike**apart for apart in range(1, number))
    return (number + 2 * more) / number**2


def level(reads: Sequence[float], transactions: Sequence[float] | None = None) -> bool | None:
    """True if reads have stopped changing, by the last seconds of a ramp-up.

    Their two halves are compared. They are level where the halves differ by `EXCURSION` of the
    average at most even if chance (two standard errors, by how the seconds of a half scatter) hid
    some of it; they are not where they differ by more even without chance. The rounds of a window
    are too short for that within a ramp-up's seconds.

    >>> level([959, 990, 936, 555, 527, 520])
    False

    :param reads: in each second.
    :param transactions: in the same seconds, for reads per transaction; None: per second.
    :return: None: not known.
    """
    each = [1.0] * len(reads) if transactions is None else transactions
    last = list(zip(reads, each, strict=True))[-LEVEL_MOST:]
    half = len(last) // 2
    if half < _LEVEL_ENDS:
        return None
    halves = last[len(last) - 2 * half : -half], last[-half:]
    if not all(sum(count for _, count in half) for half in halves):
        return None
    before, after = map(_ratio, halves)
    bound = EXCURSION * fmean((before.value, after.value))
    apart = abs(before.value - after.value)
    chance = _LEVEL_ERRORS * math.hypot(before.error, after.error)
    if apart - chance > bound:
        return False
    return True if len(last) >= LEVEL_LEAST and apart + chance <= bound else None


def _ratio(seconds: Sequence[tuple[float, float]]) -> Round:
    """Reads by transactions, and by how the seconds scatter about it."""
    read, count = (sum(column) for column in zip(*seconds, strict=True))
    mean, number = read / count, len(seconds)
    apart = sum((amount - mean * done) ** 2 for amount, done in seconds)
    return Round(mean, math.sqrt(apart * number / (number - 1)) / count)


def _value(round_: Round) -> float:
    return round_.value


def _line(rounds: Sequence[Round]) -> tuple[float, float]:
    """Return the change of the least-squares line from the first round to the last, and its
    standard error."""
    steps = len(rounds) - 1
    places = [place - steps / 2 for place in range(len(rounds))]
    squares = sum(place**2 for place in places)
    weights = [place / squares * steps for place in places]
    change = sum(weight * round_.value for weight, round_ in zip(weights, rounds, strict=True))
    errors = (weight * round_.error for weight, round_ in zip(weights, rounds, strict=True))
    return change, math.hypot(*errors)
