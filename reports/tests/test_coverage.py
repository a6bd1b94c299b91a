"""How often the 95 % interval holds the true ratio: in 95 % of the cases, or the name is wrong.

The spreads between repeats are those of the published runs (`reports/published`): of one set-up run
again and again, in memory and on disks. Windows of one repeat share the state of machine and
database, so a repeat is one value.
"""

import math

import numpy as np
import pytest

from hotset.reports.analysis import stats

TRIALS = 800
SPREADS = {
    "little in both arms": (0.05, 0.05),
    "the demo's arms on flash": (0.046, 0.11),
    "both arms alike": (0.10, 0.10),
    "in memory": (0.08, 0.08),
    "fresh copies": (0.16, 0.27),
    "a steady baseline": (0.02, 0.10),
}
ALLOWANCE = 3 * math.sqrt(0.05 * 0.95 / TRIALS)
"""Of a simulation of so many trials, three standard errors."""


def coverage(spreads: tuple[float, float], repeats: tuple[int, int]) -> float:
    """The share of trials whose interval holds the true ratio, 4."""
    random = np.random.default_rng(20251120)
    held = 0
    for _ in range(TRIALS):
        above, below = (
            level * np.exp(random.normal(0, spread, count))
            for level, spread, count in zip((4.0, 1.0), spreads, repeats, strict=True)
        )
        _, low, high = stats.ratio_of_means(list(above), list(below))
        held += low <= 4 <= high
    return held / TRIALS


@pytest.mark.parametrize("name", SPREADS)
@pytest.mark.parametrize(
    "repeats",
    [(3, 3), *(pytest.param(one, marks=pytest.mark.night) for one in [(5, 5), (3, 5)])],
    ids=str,
)
def test_the_interval_covers(name: str, repeats: tuple[int, int]) -> None:
    found = coverage(SPREADS[name], repeats)
    assert 0.93 - ALLOWANCE <= found <= 0.975 + ALLOWANCE, f"{found:.1%}"
