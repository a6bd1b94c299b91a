"""Warm-up by reading: blocks are read through the tier until it has taken them in."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from hotset.block import extents, transfer, usage
from hotset.block.extents import Run, count, difference
from hotset.block.transfer import Progress
from hotset.core.units import SECTOR_BYTES, Blocks, Bytes
from hotset.tier.base import Tier, Warmup
from hotset.tier.bcache.tier import Bcache

_PASSES_MAX = 20
_VAIN_MAX = 4
_MISSING_MAX = 0.005
_PAUSE_S = 0.5
"""After a pass; twice as long after each that did not help: a busy computer frees slowly."""


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


def fill_bcache(
    tier: Bcache,
    runs: Sequence[Run],
    on_progress: Callable[[Progress], None],
    rate: Bytes | None = None,
) -> Warmup:
    """Reads with nothing bypassed: one pass, and further ones over what it left out.

    A miss is only inserted into buckets that are free at that moment (``bch_data_insert`` of a
    read does not wait); one in 1,024 is held free.
    """
    tier.create()
    begun = time.monotonic()
    total = count(runs).bytes(tier.spec.block)
    origin_rate = transfer.sequential_rate(tier.machine, tier.origin)
    progress = transfer.progress_of(total, on_progress)
    with tier.caching_every_read():
        seconds = _read_until_cached(tier, runs, progress, rate)
    return Warmup("read", total, seconds, time.monotonic() - begun, origin_rate, 0, 0)


def _read_until_cached(
    tier: Bcache, runs: Sequence[Run], progress: Callable[[Bytes], None], rate: Bytes | None
) -> float:
    """Pass after pass over what is missing, until nearly nothing is, or passes do not help;
    returns the seconds."""
    begun = time.monotonic()
    block, all_runs = tier.spec.block, count(runs)
    shown = tier.kernel.shows_keys()
    missing, left, vain = list(runs), all_runs, 0
    for _ in range(_PASSES_MAX):
        before = left

        def on_bytes(done: Bytes, there: int = Blocks(all_runs - before).bytes(block)) -> None:
            progress(Bytes(min(there + done, all_runs.bytes(block))))

        asked = usage.read(tier.machine, tier.origin)
        transfer.read_runs(
            tier.machine, missing, block, tier.path, on_bytes, rate, tier.kept_read_max
        )
        if shown:
            missing = difference(missing, tier.resident())
            left = count(missing)
        else:
            # Which ones were missing is not known, but how much the origin had to give is.
            gave = (usage.read(tier.machine, tier.origin) - asked) * SECTOR_BYTES
            left = Blocks(-(-gave // block))
        vain = 0 if left < before else vain + 1
        if left <= all_runs * _MISSING_MAX or vain == _VAIN_MAX:
            break
        # So that buckets become free.
        time.sleep(_PAUSE_S * 2**vain)
    return time.monotonic() - begun
