"""How much flash a heat asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.core.units import Bytes
from hotset.hitratio.heat import Grid
from hotset.whatif.flash import needs

REGION = 1024
HEATS = st.dictionaries(st.integers(0, 31), st.floats(0.001, 1000), min_size=1)


@given(HEATS, st.lists(st.floats(0, 1), min_size=1, max_size=5).map(sorted))
def test_no_choice_of_regions_holds_more(heats: dict[int, float], ratios: list[float]) -> None:
    grid = Grid(Bytes(32 * REGION), Bytes(REGION))
    found = needs(heats, grid, ratios)
    assert [one.flash_bytes for one in found] == sorted(one.flash_bytes for one in found)
    for one in found:
        whole, rest = divmod(int(one.flash_bytes), REGION)
        hottest = sorted(heats.values(), reverse=True)
        held = sum(hottest[:whole]) + sum(hottest[whole : whole + 1]) * rest / REGION
        assert held >= one.hit_ratio * sum(heats.values()) * (1 - 1e-9)
        # A byte less would not do; but for the byte that is rounded up.
        assert held <= one.hit_ratio * sum(heats.values()) + max(hottest) / REGION * (1 + 1e-9)
    assert needs(heats, grid, [1.0])[0].disk_share == pytest.approx(len(heats) / 32)


def test_a_region_at_the_disks_end_counts_as_long_as_it_is() -> None:
    grid = Grid(Bytes(REGION + 100), Bytes(REGION))
    (one,) = needs({1: 5.0}, grid, [1.0])
    assert int(one.flash_bytes) == 100
