"""Steady or not, as SNIA's Solid State Storage Performance Test Specification defines it.

PTS 2.0.2, 2.1.24 ("Steady State"): over five rounds, no value lies further from another than 20 %
of the average (excursion), and the best straight line through them changes by no more than 10 % of
it (slope). The rounds here are fifths of the window; the values are transactions per minute, the
pages read per transaction (buffers that are still filling show there first), and the mean latency
of each kind of transaction (a plan that turned shows there first).

Means of few transactions differ by chance: three standard errors are taken off what is compared.
Where these alone exceed a bound, nothing within it could have been seen, and whether the window was
steady is not known. So `steady` has three answers, and None is never as good as True.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from hotset.reports.model.windows import Measure, Steadiness

ROUNDS = 5
EXCURSION = 0.20
SLOPE = 0.10
LEAST_S = 10.0
"""Shorter windows are not judged."""
READS_COUNT = 0.1
"""Fewer reads per transaction are not judged: memory serves the workload."""
_ERRORS = 3.0
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
    apart, apart_by_chance = high.value - low.value, _ERRORS * math.hypot(high.error, low.error)
    change, change_by_chance = _line(rounds)
    excursion, slope = max(0.0, apart - apart_by_chance), max(0.0, abs(change) - change_by_chance)
    furthest = max(range(len(values)), key=lambda place: abs(values[place] - average))
    scale = average or 1.0
    steady: bool | None = True
    if excursion > EXCURSION * average or slope > SLOPE * average:
        steady = False
    elif not average or (
        apart_by_chance > EXCURSION * average or change_by_chance > SLOPE * average
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
    scatter = _scatter([list(zip(reads[span], transactions[span], strict=True)) for span in each])
    rounds = [
        Round(read / count, read / count * math.sqrt(max(scatter, 1.0, count / read) / count))
        for read, count in sums
    ]
    return judge("all", "reads", rounds, [first + span.start for span in each])


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


def _scatter(rounds: Sequence[Sequence[tuple[float, float]]]) -> float:
    """The variance of one transaction's reads by their mean's square, as far as the seconds within
    a round tell it: transactions differ a lot (stock-level reads hundreds of pages)."""
    scatter = freedom = 0.0
    for seconds in rounds:
        read, count = (sum(column) for column in zip(*seconds, strict=True))
        mean = read / count
        scatter += sum((amount - mean * number) ** 2 for amount, number in seconds) / (
            mean**2 * count
        )
        freedom += 1 - 1 / len(seconds)
    return scatter / freedom if freedom else 0.0


def _value(round_: Round) -> float:
    return round_.value


def _line(rounds: Sequence[Round]) -> tuple[float, float]:
    """Return the change of the least-squares line from the first round to the last, and how much of
    that chance explains."""
    steps = len(rounds) - 1
    places = [place - steps / 2 for place in range(len(rounds))]
    squares = sum(place**2 for place in places)
    weights = [place / squares * steps for place in places]
    change = sum(weight * round_.value for weight, round_ in zip(weights, rounds, strict=True))
    errors = (weight * round_.error for weight, round_ in zip(weights, rounds, strict=True))
    return change, _ERRORS * math.hypot(*errors)
