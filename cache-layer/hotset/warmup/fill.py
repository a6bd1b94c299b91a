"""Fill a tier with blocks of its origin, the fastest way that its kind has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from hotset.block.extents import Run
from hotset.block.transfer import Progress
from hotset.core.units import Bytes
from hotset.tier.base import InsertingTier, Tier, Warmup
from hotset.tier.bcache.tier import Bcache
from hotset.tier.dmcache.tier import DmCache
from hotset.tier.engine.tier import Userspace

from . import offline, reading

Method = Literal["fill", "read"]
"""``fill``: what :func:`fill` does; ``read``: read through the tier, for comparison."""


def fill(
    tier: Tier | DmCache | Bcache | Userspace,
    runs: Sequence[Run],
    samples: int,
    on_progress: Callable[[Progress], None],
    rate: Bytes | None = None,
) -> Warmup:
    """Have the runs cached; the accelerated device is active afterwards.

    :param runs: in origin order, no more than the cache holds.
    :param samples: how many blocks to compare with the origin, where they are copied past the
        tier (bcache reads every block through the tier itself).
    :param rate: copy at most so many bytes a second (the kernel's tiers).
    :raises WarmupFailedError: the fill cannot be trusted.
    """
    if isinstance(tier, DmCache):
        return offline.fill(tier, runs, samples, on_progress, rate)
    if isinstance(tier, Userspace):
        return tier.insert(runs, samples, on_progress, rate)
    if isinstance(tier, Bcache):
        return reading.fill_bcache(tier, runs, on_progress, rate)
    assert isinstance(tier, InsertingTier), f"no way to fill a tier of kind {tier.kind}"
    return tier.insert(runs, samples, on_progress)
