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
from collections.abc import Callable, Sequence

from hotset.block import extents, transfer
from hotset.block.extents import Run, difference
from hotset.block.transfer import Progress
from hotset.core.units import Bytes
from hotset.tier.base import Warmup
from hotset.tier.dmcache.tier import DmCache

_PATIENCE = 12
"""Passes without a promotion before it is given up: so often smq wants to see a block miss."""
_LEAST_PASS_S = 1.1
"""smq counts misses once a second; a pass that is over sooner waits."""


def fill(
    tier: DmCache,
    runs: Sequence[Run],
    share: float,
    on_progress: Callable[[Progress], None],
    rate: Bytes | None = None,
) -> Warmup:
    """Read what is missing through the tier until so much of the runs is cached, or no pass gets
    any further.

    :param share: of the runs' blocks, 0 to 1.
    :param rate: read at most so many bytes a second.
    """
    begun = time.monotonic()
    block, machine = tier.spec.block, tier.machine
    origin_rate = transfer.sequential_rate(machine, tier.origin)
    allowed = int(extents.count(runs) * (1 - share))
    missing = difference(runs, tier.resident())
    at_first = int(extents.count(missing))
    progress = transfer.progress_of(Bytes(at_first * block), on_progress)
    seconds, idle = 0.0, 0
    while (left := int(extents.count(missing))) > allowed and idle < _PATIENCE:
        promoted = tier.status().promotions
        took = transfer.read_runs(machine, missing, block, tier.path, lambda _: None, rate)
        time.sleep(max(0.0, _LEAST_PASS_S - took))
        seconds += took
        promoted = (tier.status().promotions - promoted) % (1 << tier.counter_bits)
        # What is cached is known only by a pause of the tier: asked when it is worth it.
        if promoted * 8 >= left or promoted >= left - allowed:
            missing = difference(runs, tier.resident())
        now = min(left - promoted, int(extents.count(missing)))
        idle = 0 if promoted else idle + 1
        progress(Bytes((at_first - now) * block))
    missing = difference(runs, tier.resident())
    gained = Bytes((at_first - int(extents.count(missing))) * block)
    return Warmup("read", gained, seconds, time.monotonic() - begun, origin_rate, 0, 0)
