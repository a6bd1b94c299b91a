"""Fill a tier with blocks of its origin before anybody uses it, the fastest way that it has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from hotset.block.extents import Run
from hotset.block.transfer import Progress
from hotset.core.units import Bytes
from hotset.tier.base import Tier, Warmup
from hotset.tier.filling import Filling

Method = Literal["fill", "read"]
"""``fill``: what :func:`fill` does; ``read``: read through the tier, for comparison."""


def fill(
    tier: Tier,
    runs: Sequence[Run],
    samples: int,
    on_progress: Callable[[Progress], None],
    rate: Bytes | None = None,
) -> Warmup:
    """Have the runs cached; the accelerated device is active afterwards.

    :param runs: in origin order, no more than the cache holds.
    :param samples: how many blocks to compare with the origin, where they are copied past the
        tier.
    :param rate: copy at most so many bytes a second.
    :raises WarmupFailedError: the fill cannot be trusted.
    """
    return tier.fill(Filling(runs, samples, on_progress, rate, way="offline"))
