"""A closed queueing network: so many users, each with one transaction at a time.

A transaction needs time at stations that it shares with the others (CPU, slow storage), and time
that it shares with nobody (the delay). How fast a station works depends on how many are at it: a
CPU of four cores on up to four, a disk array faster the more requests it can choose from.

Solved exactly, by Buzen's convolution (CACM 16(9), 1973) for stations whose rate depends on their
load (Chandy, Herzog and Woo, IBM J. R&D 19(1), 1975), in logarithms: the normalisation constants
span more than a float holds. Mean value analysis would be shorter, but loses all digits with such
stations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Station:
    """``rates[n - 1]``: transactions a second that it completes while n are at it; with more than
    that, the last."""

    name: str
    rates: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Load:
    """How a station fares. ``busy``: the share of time in which somebody is there; ``present``: how
    many are there on average."""

    name: str
    busy: float
    present: float


@dataclass(frozen=True, slots=True)
class Solution:
    """``throughput``: transactions a second; ``response_s``: of each, the delay included."""

    throughput: float
    response_s: float
    loads: tuple[Load, ...]


def solve(stations: Sequence[Station], delay_s: float, users: int) -> Solution:
    """Solve the network in the long run, for any distribution of service times at stations that
    share fairly (exponential ones at those that serve one after the other).

    :raises ValueError: no users, or nothing that takes time.

    >>> one = solve([Station("disk", (10.0,))], 0.0, 3)
    >>> round(one.throughput, 9), round(one.response_s, 9)
    (10.0, 0.3)
    """
    factors = _factors(stations, delay_s, users)
    whole = _product(factors)
    loads = []
    for number, station in enumerate(stations, 1):
        others = _product([*factors[:number], *factors[number + 1 :]])
        share = np.exp(factors[number] + others[::-1] - whole[users])
        present = float(np.dot(np.arange(users + 1), share))
        loads.append(Load(station.name, float(1 - share[0]), present))
    rate = _rate(whole)
    return Solution(rate, users / rate, tuple(loads))


def throughput(stations: Sequence[Station], delay_s: float, users: int) -> float:
    """Compute the throughput of :func:`solve` alone, which takes half the work."""
    return _rate(_product(_factors(stations, delay_s, users)))


def _rate(whole: Floats) -> float:
    """G(N - 1) / G(N)."""
    return float(np.exp(whole[-2] - whole[-1]))


def _factors(stations: Sequence[Station], delay_s: float, users: int) -> list[Floats]:
    """The delay's and each station's."""
    if users < 1:
        raise ValueError(f"{users} users: there must be one or more")
    if delay_s <= 0 and not stations:
        raise ValueError("no station and no delay: transactions would take no time at all")
    return [_delay(delay_s, users), *(_station(station, users) for station in stations)]


def _delay(seconds: float, users: int) -> Floats:
    """Logarithms of Z^n / n!."""
    if seconds <= 0:
        return np.array([0.0, *[-np.inf] * users])
    steps = np.log(seconds) - np.log(np.arange(1, users + 1))
    return np.concatenate(([0.0], np.cumsum(steps)))


def _station(station: Station, users: int) -> Floats:
    """Logarithms of 1 / (rate(1) · … · rate(n))."""
    last = len(station.rates)
    rates = [station.rates[min(n, last) - 1] for n in range(1, users + 1)]
    return np.concatenate(([0.0], -np.cumsum(np.log(rates))))


def _product(factors: Sequence[Floats]) -> Floats:
    """Logarithms of the convolution."""
    whole = factors[0]
    places = np.subtract.outer(np.arange(len(whole)), np.arange(len(whole)))
    for factor in factors[1:]:
        terms = np.where(places >= 0, whole[places] + factor, -np.inf)
        whole = np.logaddexp.reduce(terms, axis=1)
    return whole
