"""Parts of a cache as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.core.units import Blocks, Bytes
from hotset.warmup.division import part_of

BLOCK = 64 * 1024


@given(st.integers(1, 2**31), st.floats(0, 100), st.sampled_from([4096, 65536, 2**20]))
def test_a_part_is_never_more_than_the_cache(total: int, percent: float, block: int) -> None:
    part = part_of(f"{percent:.2f}%", Blocks(total), Bytes(block))
    assert 0 <= part <= total
    assert part_of("100%", Blocks(total), Bytes(block)) == total
    assert part_of("99999TiB", Blocks(total), Bytes(block)) == total


@pytest.mark.parametrize("text", ["101%", "-1%", "half", "", "%", "10 % "])
def test_what_is_no_part_of_a_cache_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="write"):
        part_of(text, Blocks(100), Bytes(BLOCK))
