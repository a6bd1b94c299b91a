"""Random streams and distributions of clauses 2.1.6 and 4.3.2."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.load.streams import stream, vector_stream
from hotset.tpcc.data.nurand import (
    C_LAST_LOAD,
    C_LAST_RUN,
    LAST_NAMES,
    Constants,
    nurand,
    nurand_vector,
)


@pytest.mark.parametrize(
    ("number", "name"),
    [(0, "BARBARBAR"), (371, "PRICALLYOUGHT"), (40, "BARPRESBAR"), (999, "EINGEINGEING")],
)
def test_golden_last_names(number: int, name: str) -> None:
    assert LAST_NAMES[number] == name


def test_last_names_are_a_thousand_and_fit_their_column() -> None:
    assert len(set(LAST_NAMES)) == 1000
    assert max(map(len, LAST_NAMES)) <= 16


def test_run_constant_keeps_its_distance_from_the_load() -> None:
    deltas = {abs(c - C_LAST_LOAD) for c in C_LAST_RUN}
    assert deltas
    assert deltas <= set(range(65, 120)) - {96, 112}


@given(
    seed=st.integers(0, 2**32),
    a=st.sampled_from([255, 1023, 8191]),
    c=st.integers(0, 8191),
    low=st.integers(0, 10),
    span=st.integers(1, 100_000),
)
def test_nurand_stays_in_range(seed: int, a: int, c: int, low: int, span: int) -> None:
    random = stream(seed).random
    for _ in range(20):
        assert low <= nurand(random, a, c, low, low + span) <= low + span
    vector = nurand_vector(vector_stream(seed), a, c, low, low + span, 20)
    assert vector.min() >= low
    assert vector.max() <= low + span


def _expected(a: int, c: int, low: int, high: int) -> dict[int, float]:
    """The exact distribution, by counting all pairs of the two uniform numbers."""
    counts = Counter(
        ((x | y) + c) % (high - low + 1) + low for x in range(a + 1) for y in range(low, high + 1)
    )
    total = (a + 1) * (high - low + 1)
    return {value: n / total for value, n in counts.items()}


@pytest.mark.parametrize("vector", [False, True])
def test_nurand_has_the_skew_of_the_formula(vector: bool) -> None:
    a, c, low, high, draws = 63, 17, 1, 300, 60_000
    if vector:
        drawn = nurand_vector(vector_stream(3), a, c, low, high, draws).tolist()
    else:
        random = stream(3).random
        drawn = [nurand(random, a, c, low, high) for _ in range(draws)]
    found = Counter(drawn)
    expected = _expected(a, c, low, high)
    assert found.keys() <= expected.keys()
    chi_square = sum((found[v] - draws * p) ** 2 / (draws * p) for v, p in expected.items())
    # Mean: degrees of freedom; standard deviation: sqrt(2 × that). Five of them is never.
    freedom = len(expected) - 1
    assert abs(chi_square - freedom) < 5 * (2 * freedom) ** 0.5
    assert max(expected.values()) > 3 * min(expected.values())


def test_streams_are_reproducible_and_independent() -> None:
    assert stream(1, "user", 2).random() == stream(1, "user", 2).random()
    firsts = {stream(seed, "user", n).random() for seed in range(20) for n in range(20)}
    assert len(firsts) == 400
    assert vector_stream(1, 2).random() == vector_stream(1, 2).random()
    assert vector_stream(1, 2).random() != vector_stream(1, 2, 0).random()


def test_constants_depend_on_the_seed_alone() -> None:
    assert Constants.for_run(5) == Constants.for_run(5)
    assert len({Constants.for_run(seed) for seed in range(50)}) == 50
