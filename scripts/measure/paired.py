"""Sides that take turns, and the ratio of one to the other."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from hotset.reports.analysis.stats import student

T = TypeVar("T")


class Ratio(NamedTuple):
    """The mean of the pairs' ratios, and its 95 % interval."""

    mean: float
    low: float
    high: float

    def __format__(self, spec: str) -> str:
        return f"{self.mean:{spec}} ({self.low:{spec}} to {self.high:{spec}})"


def turns(
    sides: Mapping[str, Callable[[int], T]], rounds: int, shown: Callable[[T], str] = str
) -> dict[str, list[T]]:
    """Measure every side once a round, the order changing from round to round (ABBA).

    :param sides: the function that measures each; it gets the round's number, from 1.
    """
    results: dict[str, list[T]] = {name: [] for name in sides}
    for number in range(1, rounds + 1):
        for name in [*sides][:: 1 if number % 2 else -1]:
            results[name].append(sides[name](number))
            say(f"{name}, round {number} of {rounds}: {shown(results[name][-1])}")
    return results


def ratio(sides: Sequence[float], bases: Sequence[float]) -> Ratio:
    """Compute the ratio of a side to its base, measured in the same rounds: Student's t of the
    logarithms of the pairs' ratios.

    >>> f"{ratio([2.0, 4.2], [1.0, 2.0]):.2f}"
    '2.05 (1.50 to 2.79)'

    :raises statistics.StatisticsError: fewer than two rounds have no interval.
    """
    logs = [math.log(side / base) for side, base in zip(sides, bases, strict=True)]
    mean = statistics.fmean(logs)
    reach = statistics.stdev(logs) / math.sqrt(len(logs)) * student(len(logs) - 1)
    return Ratio(math.exp(mean), math.exp(mean - reach), math.exp(mean + reach))


def say(text: str) -> None:
    """To standard error."""
    print(f"bench: {text}", file=sys.stderr, flush=True)
