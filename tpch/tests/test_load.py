"""Scales that can be loaded, without a server."""

import pytest

from hotset.tpch.load import require_scale


@pytest.mark.parametrize("scale", [0.01, 0.02, 0.03, 0.1, 0.25, 1, 1.5, 10, 300, 100_000])
def test_these_can_be(scale: float) -> None:
    require_scale(scale)


@pytest.mark.parametrize("scale", [0.012, 0.015, 0.021])
def test_a_part_would_get_the_same_supplier_twice(scale: float) -> None:
    with pytest.raises(ValueError, match="the same one twice"):
        require_scale(scale)


def test_from_three_hundredths_on_all_can_be() -> None:
    for hundredths in range(3, 2000):
        require_scale(hundredths / 100)
