"""Steady or not, as SNIA's Solid State Storage Performance Test Specification defines it.

PTS 2.0.2, 2.1.24 ("Steady State"): over five rounds, no value lies further from another than 20 %
of the average (excursion), and the best straight line through them changes by no more than 10 % of
it (slope). The rounds here are fifths of the window; the values are transactions per minute, and
the mean latency of each kind of transaction: a plan that turned shows there first.

Means of few transactions differ by chance. Three standard errors are taken off what is compared.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Literal

ROUNDS = 5
EXCURSION = 0.20
SLOPE = 0.10
LEAST_S = 10.0
"""Shorter windows are not judged."""
_ERRORS = 3.0

Measure = Literal["tpm", "latency_ms"]


@dataclass(frozen=True, slots=True)
class Steadiness:
    """The verdict on one series of rounds. Shares are of the average.

    of         "all", or a kind of transaction
    measure    transactions per minute, or mean latency in milliseconds
    rounds     the values, one per fifth of the window
    excursion  the greatest difference between two rounds, what chance explains taken off
    slope      what the best straight line changes by over the rounds, likewise
    second     where the round begins that lies furthest from the average
    """

    of: str
    measure: Measure
    rounds: list[float]
    excursion: float
    slope: float
    second: int
    steady: bool


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
    """Whether some rounds are steady; `starts` are the seconds where they begin."""
    values = [one.value for one in rounds]
    average = fmean(values)
    high, low = max(rounds, key=_value), min(rounds, key=_value)
    chance = _ERRORS * math.hypot(high.error, low.error)
    excursion = max(0.0, high.value - low.value - chance)
    slope = _slope(rounds)
    furthest = max(range(len(values)), key=lambda place: abs(values[place] - average))
    scale = average or 1.0
    return Steadiness(
        of=of,
        measure=measure,
        rounds=values,
        excursion=excursion / scale,
        slope=slope / scale,
        second=starts[furthest],
        steady=excursion <= EXCURSION * average and abs(slope) <= SLOPE * average,
    )


def _value(one: Round) -> float:
    return one.value


def _slope(rounds: Sequence[Round]) -> float:
    """What the least-squares line changes by from the first round to the last, less what chance
    explains."""
    steps = len(rounds) - 1
    places = [place - steps / 2 for place in range(len(rounds))]
    squares = sum(place**2 for place in places)
    weights = [place / squares * steps for place in places]
    change = sum(weight * one.value for weight, one in zip(weights, rounds, strict=True))
    chance = _ERRORS * math.hypot(
        *(weight * one.error for weight, one in zip(weights, rounds, strict=True))
    )
    return math.copysign(max(0.0, abs(change) - chance), change)
