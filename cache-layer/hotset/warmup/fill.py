"""Fill a tier with blocks of its origin before anybody uses it, the fastest way that it has."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal

from hotset.block import extents, transfer
from hotset.block.extents import Run
from hotset.block.transfer import Progress
from hotset.core.units import Bytes
from hotset.tier.base import Tier, Warmup
from hotset.tier.filling import Filling

Method = Literal["fill", "read"]
"""``fill``: :func:`fill`; ``read``: :func:`fill_by_reading`, for comparison."""


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


def fill_by_reading(
    tier: Tier,
    runs: Sequence[Run],
    passes: int,
    on_progress: Callable[[Progress], None],
) -> Warmup:
    """Read the runs through the tier, ``passes`` times, and let its policy promote what it will."""
    begun = time.monotonic()
    machine, block = tier.machine, tier.spec.block
    device = tier.create()
    total = Bytes(extents.count(runs).bytes(block) * passes)
    origin_rate = transfer.sequential_rate(machine, device)
    progress = transfer.progress_of(total, on_progress)
    seconds, one_pass = 0.0, extents.count(runs).bytes(block)
    for number in range(passes):

        def on_bytes(done: Bytes, before: int = number * one_pass) -> None:
            progress(Bytes(before + done))

        seconds += transfer.read_runs(machine, runs, block, device, on_bytes)
    return Warmup("read", total, seconds, time.monotonic() - begun, origin_rate, 0, 0)
