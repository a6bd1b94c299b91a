"""On-line warm-up of dm-cache: the database stays up, and blocks are read through the tier, pass
after pass, until its policy has promoted them.

smq promotes a block when the stretch of the disk around it (up to 16 blocks) is high enough in its
queue of hot spots; a stretch rises by a few of 64 levels with the first miss of each second and no
further with those that follow at once (``update_hotspot_queue`` and ``end_hotspot_period``,
drivers/md/dm-cache-policy-smq.c). So a block must miss in many different seconds, some ten of them;
while the cache has room smq is eager, and when it is full hardly anything is promoted. The passes
go over what is still missing only, which gets less from pass to pass.
"""

from __future__ import annotations

import time
from pathlib import PurePosixPath
from typing import Protocol

from hotset.block import extents, transfer
from hotset.block.extents import difference
from hotset.core.units import Bytes

from ..base import Tier, Warmup
from ..filling import Filling
from .status import CacheStatus

_PATIENCE = 12
"""Passes without a promotion before it is given up: so often smq wants to see a block miss."""
_LEAST_PASS_S = 1.1
"""smq counts misses once a second; a pass that is over sooner waits."""


class ReadTier(Tier, Protocol):
    """Tier as far as an online warm-up needs it."""

    @property
    def path(self) -> PurePosixPath:
        """The accelerated device."""

    @property
    def origin(self) -> PurePosixPath:
        """The origin."""

    def status(self) -> CacheStatus:
        """Its status now."""


def fill(tier: ReadTier, wanted: Filling) -> Warmup:
    """Read what is missing through the tier until the share of the runs that is wanted is cached,
    or no pass gets any further."""
    begun = time.monotonic()
    runs, block, machine = wanted.runs, tier.spec.block, tier.machine
    origin_rate = transfer.sequential_rate(machine, tier.origin)
    allowed = int(extents.count(runs) * (1 - wanted.share))
    missing = difference(runs, tier.resident())
    at_first = int(extents.count(missing))
    progress = transfer.progress_of(Bytes(at_first * block), wanted.on_progress)
    seconds, idle = 0.0, 0
    while (left := int(extents.count(missing))) > allowed and idle < _PATIENCE:
        promoted = tier.status().promotions
        took = transfer.read_runs(machine, missing, block, tier.path, lambda _: None, wanted.rate)
        time.sleep(max(0.0, _LEAST_PASS_S - took))
        seconds += took
        promoted = (tier.status().promotions - promoted) % tier.counting.range
        # What is cached is known only by a pause of the tier: asked when it is worth it.
        if promoted * 8 >= left or promoted >= left - allowed:
            missing = difference(runs, tier.resident())
        now = min(left - promoted, int(extents.count(missing)))
        idle = 0 if promoted else idle + 1
        progress(Bytes((at_first - now) * block))
    missing = difference(runs, tier.resident())
    gained = Bytes((at_first - int(extents.count(missing))) * block)
    return Warmup("read", gained, seconds, time.monotonic() - begun, origin_rate, 0, 0)
