"""Warm-up by reading: blocks are read through the tier, and its policy promotes what it will."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from hotset.block import extents, transfer
from hotset.block.extents import Run
from hotset.block.transfer import Progress
from hotset.core.units import Bytes
from hotset.tier.base import Tier, Warmup


def fill(
    tier: Tier,
    runs: Sequence[Run],
    passes: int,
    on_progress: Callable[[Progress], None],
) -> Warmup:
    """Read the runs through the tier, ``passes`` times, and let the policy promote them."""
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
