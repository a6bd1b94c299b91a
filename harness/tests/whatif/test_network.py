"""The solver against closed forms, against the chain it stands for, and against laws that hold for
any network."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.whatif.network import Station, solve

RATES = st.floats(0.01, 1000)
STATIONS = st.lists(st.lists(RATES, min_size=1, max_size=6).map(tuple), min_size=1, max_size=3).map(
    lambda every: [Station(str(number), rates) for number, rates in enumerate(every)]
)


def test_users_that_share_nothing_do_not_wait() -> None:
    assert solve([], 0.25, 40).throughput == pytest.approx(160)


def test_erlangs_loss_formula_is_behind_a_repairman() -> None:
    """One server and N users who think: the throughput is known (the machine repairman)."""
    rate, think, users = 5.0, 0.7, 12
    weights = [
        math.factorial(users) / math.factorial(users - n) / (rate * think) ** n
        for n in range(users + 1)
    ]
    busy = 1 - weights[0] / sum(weights)
    found = solve([Station("cpu", (rate,))], think, users)
    assert found.throughput == pytest.approx(rate * busy)
    assert found.loads[0].busy == pytest.approx(busy)


def chain(stations: list[Station], delay_s: float, users: int) -> float:
    """The throughput, from the Markov chain itself: every user goes round from the delay to each
    station in turn."""
    places = len(stations) + 1
    states = [
        state for state in itertools.product(range(users + 1), repeat=places) if sum(state) == users
    ]
    index = {state: number for number, state in enumerate(states)}
    flow = np.zeros((len(states), len(states)))
    for state in states:
        for place, present in enumerate(state):
            if not present:
                continue
            if place == 0:
                rate = present / delay_s
            else:
                rates = stations[place - 1].rates
                rate = rates[min(present, len(rates)) - 1]
            after = list(state)
            after[place] -= 1
            after[(place + 1) % places] += 1
            flow[index[state], index[tuple(after)]] += rate
            flow[index[state], index[state]] -= rate
    system = np.vstack([flow.T, np.ones(len(states))])
    shares = np.linalg.lstsq(system, np.array([0.0] * len(states) + [1.0]), rcond=None)[0]
    return float(
        sum(share * state[0] / delay_s for share, state in zip(shares, states, strict=True))
    )


def test_it_is_the_chain_it_stands_for() -> None:
    stations = [Station("cpu", (3.0, 6.0)), Station("disk", (1.0, 1.7, 2.2))]
    for users in (1, 2, 5):
        assert solve(stations, 0.4, users).throughput == pytest.approx(chain(stations, 0.4, users))


@given(STATIONS, st.floats(0, 10), st.integers(1, 60))
def test_laws_of_any_network(stations: list[Station], delay_s: float, users: int) -> None:
    found = solve(stations, delay_s, users)
    # Everybody is somewhere.
    present = sum(load.present for load in found.loads) + found.throughput * delay_s
    assert present == pytest.approx(users, rel=1e-6)
    # Nobody is faster than alone at the best of rates, nor a station than it can be.
    fastest = delay_s + sum(1 / max(one.rates) for one in stations)
    limits = [max(one.rates[:users]) for one in stations]
    assert found.throughput <= min([*limits, users / fastest]) * (1 + 1e-9)
    assert all(-1e-9 <= load.busy <= 1 + 1e-9 for load in found.loads)


def test_a_hundred_thousand_to_one_and_a_thousand_users_lose_no_digits() -> None:
    found = solve([Station("cpu", (1e5,)), Station("disk", (1.0,))], 1e-6, 1000)
    assert found.throughput == pytest.approx(1.0)


def test_without_anybody_there_is_nothing_to_say() -> None:
    with pytest.raises(ValueError, match="0 users"):
        solve([], 1.0, 0)
    with pytest.raises(ValueError, match="no station"):
        solve([], 0.0, 5)
