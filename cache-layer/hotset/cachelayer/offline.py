"""Off-line fill of dm-cache: the cache is written while the tier is down, then switched on.

Blocks in origin order → one sequential copy onto the cache device → metadata that says so
(``cache_restore``) → activate. Nothing may write to the origin between the copy and the
activation, and the origin must not be mounted while it runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from hotset.cachelayer import extents, warmup
from hotset.cachelayer.extents import Run, origin_blocks
from hotset.cachelayer.machine import put_text
from hotset.cachelayer.tier import Progress, Warmup, WarmupFailedError, sample
from hotset.cachelayer.units import Blocks, Bytes

if TYPE_CHECKING:
    from hotset.cachelayer.dmcache import DmCache

# The little-endian level of smq's hottest queue (63 of 0-63), as cache_restore takes it.
_HOTTEST = "PwAAAA=="
_XML = PurePosixPath("/run/hotset/cache.xml")


def fill(
    tier: DmCache, runs: Sequence[Run], samples: int, on_progress: Callable[[Progress], None]
) -> Warmup:
    """Copy the runs onto the cache device, write the metadata and activate the tier.

    :raises WarmupFailedError: a sampled block differs between origin and cache.
    """
    begun = time.monotonic()
    origin_rate = warmup.sequential_rate(tier.machine, tier.origin)
    total = extents.count(runs).bytes(tier.spec.block)
    progress = warmup.progress_of(total, on_progress)
    seconds = warmup.copy_runs(tier.machine, runs, tier.spec.block, tier.origin, tier.cache,
                               progress)  # fmt: skip
    sampled, differing = compare(tier, runs, samples)
    if differing:
        raise WarmupFailedError(
            f"{differing} of {sampled} sampled blocks differ between origin and cache after the"
            " fill: something wrote to the origin; the cache was not activated"
        )
    xml = metadata_xml(runs, tier.spec.block, tier.capacity, tier.spec.policy)
    _restore_metadata(tier, xml)
    tier.create()
    spent = time.monotonic() - begun
    return Warmup("offline", total, seconds, spent, origin_rate, sampled, differing)


def _restore_metadata(tier: DmCache, xml: str) -> None:
    # A file, not standard input: cache_restore wants to know its size.
    tier.machine.run(["mkdir", "-p", str(_XML.parent)])
    put_text(tier.machine, xml, _XML)
    tier.machine.run(["cache_restore", "--quiet", "-i", str(_XML), "-o", str(tier.metadata)])
    tier.machine.run(["rm", "-f", str(_XML)])


def metadata_xml(runs: Sequence[Run], block: Bytes, capacity: Blocks, policy: str) -> str:
    """What ``cache_restore`` takes (thin-provisioning-tools): every block clean and hottest."""
    blocks = list(enumerate(origin_blocks(runs)))
    head = (
        f'<superblock uuid="" block_size="{int(block.sectors)}" nr_cache_blocks="{int(capacity)}"'
        f' policy="{policy}" hint_width="4">'
    )
    mappings = (
        f'<mapping cache_block="{at}" origin_block="{origin}" dirty="false"/>'
        for at, origin in blocks
    )
    hints = (f'<hint cache_block="{at}" data="{_HOTTEST}"/>' for at, _ in blocks)
    lines = (head, "<mappings>", *mappings, "</mappings>", "<hints>", *hints, "</hints>",
             "</superblock>")  # fmt: skip
    return "\n".join(lines) + "\n"


def compare(tier: DmCache, runs: Sequence[Run], samples: int) -> tuple[int, int]:
    """Compare sampled blocks of origin and cache; returns how many were sampled and differ."""
    chosen = sample(runs, samples)
    block = int(tier.spec.block)
    for device in (tier.cache, tier.origin):
        tier.machine.run(["blockdev", "--flushbufs", str(device)])
    differing = 0
    for cache_block, origin_block in chosen:
        skip = f"--ignore-initial={cache_block * block}:{origin_block * block}"
        argv = ["cmp", "--quiet", f"--bytes={block}", skip, str(tier.cache), str(tier.origin)]
        differing += tier.machine.run(argv, check=False).rc != 0
    return len(chosen), differing
