"""An open load: when transactions are due, and what becomes of those that nobody takes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.load.arrivals import Arrivals


def dues(seed: int, rate_per_s: float, seconds: float) -> list[float]:
    arrivals = Arrivals(seed, 0, rate_per_s)
    arrivals.begin(100.0, 100.0 + seconds)
    found = []
    while (due := arrivals.take(100.0, lambda _: pytest.fail("none is late"))) is not None:
        found.append(due)
    return found


@given(st.integers(0, 10**6), st.floats(20, 500))
def test_arrivals_are_a_poisson_process(seed: int, rate_per_s: float) -> None:
    found = dues(seed, rate_per_s, 60.0)
    expected = rate_per_s * 60
    assert found == sorted(found)
    assert all(100 < due < 160 for due in found)
    # Six standard deviations; of the gaps, mean and deviation are equal.
    assert abs(len(found) - expected) < 6 * expected**0.5
    gaps = np.diff(found)
    assert gaps.std() / gaps.mean() == pytest.approx(1, abs=0.25)


@given(st.floats(0, 70), st.floats(0.5, 20))
def test_each_arrival_is_taken_or_skipped_once(late_s: float, patience_s: float) -> None:
    arrivals = Arrivals(7, 0, 50.0, patience_s)
    arrivals.begin(100.0, 160.0)
    skipped: list[float] = []
    taken = []
    now = 100.0 + late_s
    while (due := arrivals.take(now, skipped.append)) is not None:
        taken.append(due)
    assert sorted(skipped + taken) == dues(7, 50.0, 60.0)
    assert all(due < now - patience_s for due in skipped)
    assert all(due >= now - patience_s for due in taken)
