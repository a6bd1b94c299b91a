"""The estimate of a flush, against flushes whose end is known."""

from __future__ import annotations

import pytest

from hotset.core import progress
from hotset.core.progress import Reporter
from hotset.core.units import Blocks, Bytes
from hotset.tier.stalled import FlushWatch

BLOCK = Bytes(64 * 1024)


def estimates(
    monkeypatch: pytest.MonkeyPatch, dirty: list[int], every_s: float = 0.5
) -> list[tuple[float, float]]:
    """What a watch says of so many dirty blocks at each look: (seconds since the first, rest)."""
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    watch = FlushWatch(Reporter(quiet=True), BLOCK)
    for left in dirty:
        watch(Blocks(left))
        clock[0] += every_s
    return watch.estimates


@pytest.mark.parametrize("batch", [1, 64, 700])
@pytest.mark.parametrize("wait", [0, 10])
def test_a_steady_flush_is_foretold_within_a_fifth(
    monkeypatch: pytest.MonkeyPatch, batch: int, wait: int
) -> None:
    """32 blocks a look, counted in batches; the kernel may take some looks to begin."""
    first = 5600
    steady = [first - done * 32 // batch * batch for done in range(first // 32 + 1)]
    dirty = [first] * wait + steady
    end = 0.5 * (len(dirty) - 1)
    said = estimates(monkeypatch, dirty)
    assert len(said) > 3
    for at, rest in said[:-1]:
        assert (at + rest) == pytest.approx(end, rel=0.2)


def test_nothing_is_said_before_anything_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    assert estimates(monkeypatch, [100] * 20) == []
    # At the first drop nothing tells waiting from working.
    assert estimates(monkeypatch, [100, 100, 90]) == []
