"""A tier of another size: the origin has grown, or the cache is to have more or less flash.

dm-cache takes both in while it works (``cache_preresume``, drivers/md/dm-cache-target.c). bcache
can do neither; it lets go of its cache, which begins empty afterwards, while the disk stays up.
"""

from __future__ import annotations

from dataclasses import replace

from hotset.cachelayer import bootunit, dmcache
from hotset.cachelayer import card as cards
from hotset.cachelayer.bcache import CACHE_MIN, Bcache
from hotset.cachelayer.card import Card, CardError, Disk
from hotset.cachelayer.dmcache import DmCache
from hotset.cachelayer.flash import UNIT, Part, device_size
from hotset.cachelayer.lifecycle import OnFlush, Say, TierRefusedError, active
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.units import Bytes


def resize(
    machine: Machine, card: Card, disk: Disk, cache: Bytes | None, may_flush: bool,
    progress: OnFlush, say: Say,
) -> None:  # fmt: skip
    """Follow an origin that has grown, and give the cache another size; it may stay mounted.

    :param may_flush: write back first what is dirty, where that must be.
    :raises TierRefusedError: the origin has shrunk, or blocks are dirty and may not be flushed.
    :raises CardError: the flash has no room for the new size.
    """
    tier = active(machine, card, disk)
    known, now = device_size(machine, disk.device), device_size(machine, disk.origin)
    if now < known:
        raise TierRefusedError(
            f"{disk.origin} has shrunk from {int(known):,} to {int(now):,} bytes: grow it again, or"
            " restore it; nothing was changed"
        )
    wanted = disk.spec.cache if cache is None else cache.align_up(max(UNIT, disk.spec.block))
    grows, before = now > known, disk
    disk = replace(disk, spec=replace(disk.spec, cache=wanted), cache=_parts(card, disk, wanted))
    if not grows and disk == before:
        say("the origin and the cache are as they were: nothing changed")
        return
    # dm-cache grows without a flush; a smaller cache and bcache begin with one.
    if isinstance(tier, Bcache) or wanted < before.spec.cache:
        dirty = tier.counters().dirty
        if dirty and not may_flush:
            raise TierRefusedError(
                f"{disk.device} has {int(dirty)} dirty blocks ({dirty.bytes(disk.spec.block)}),"
                " which that would drop: --flush writes them back first"
            )
    if isinstance(tier, Bcache):
        _bcache(machine, card, disk, tier, grows, progress)
        say("the cache begins empty: bcache changes neither size while it has one")
    else:
        _dm_cache(machine, card, before, disk, tier, grows, progress)
    if bootunit.installed(machine, disk):
        # An old one would take flash at the next boot that may be another's by then.
        bootunit.install(machine, card.with_disk(disk), disk)
    if grows:
        say(f"{disk.device} follows the origin to {now}; now enlarge its file system (resize2fs,"
            " xfs_growfs)")  # fmt: skip
    if wanted != before.spec.cache:
        say(f"cache {before.spec.cache} -> {wanted}")


def _bcache(
    machine: Machine, card: Card, disk: Disk, tier: Bcache, grows: bool, progress: OnFlush
) -> None:
    tier.flush(progress, going=True)
    tier.detach_cache()
    # Until it has a cache again, a repair may begin with an empty one.
    cards.save(machine, card.with_disk(replace(disk, clean=True)))
    if grows:
        tier.follow_origin()
    after = cards.built(machine, card.with_disk(disk), disk)
    assert isinstance(after, Bcache)
    after.format_cache()
    cards.save(machine, card.with_disk(disk))
    after.attach_cache()


def _dm_cache(
    machine: Machine, card: Card, before: Disk, disk: Disk, tier: DmCache, grows: bool,
    progress: OnFlush,
) -> None:  # fmt: skip
    old, new = before.spec.cache, disk.spec.cache
    if new > old:
        needs = dmcache.metadata_bytes(new, disk.spec.block)
        if needs > disk.spec.metadata:
            raise CardError(
                f"--cache {new} needs {needs} of metadata, there are {disk.spec.metadata}:"
                " detach the disk and create it again"
            )
    if grows:
        tier.follow_origin()
    if new == old:
        return
    after = DmCache(machine, disk.spec, card.place(disk))
    if new > old:
        # A larger slice harms nobody if this is cut short; the next activation takes it in.
        cards.save(machine, card.with_disk(disk))
        after.follow_cache(card.place(before))
    else:
        tier.flush(progress, going=True)
        after.follow_cache(card.place(before))
        cards.save(machine, card.with_disk(disk))


def _parts(card: Card, disk: Disk, size: Bytes) -> tuple[Part, ...]:
    """The parts of the flash for a CACHE of another size: more behind, or cut off from the end."""
    if disk.kind == "bcache" and size < CACHE_MIN:
        raise CardError(f"--cache {size}: bcache needs at least {CACHE_MIN}")
    if size < disk.spec.block or not size:
        raise CardError(f"--cache {size}: less than one block of {disk.spec.block}")
    more = size - disk.spec.cache
    if not more:
        return disk.cache
    if more > 0:
        return joined([*disk.cache, *cards.take(card.free(), Bytes(more), "more CACHE")])
    return cards.take(disk.cache, size, "CACHE")


def joined(parts: list[Part]) -> tuple[Part, ...]:
    """Neighbours put together, the order kept.

    >>> joined([Part(Bytes(0), Bytes(2)), Part(Bytes(2), Bytes(1))])
    (Part(start=Bytes(0), size=Bytes(3)),)
    """
    merged: list[Part] = []
    for part in parts:
        if merged and merged[-1].end == part.start:
            merged[-1] = Part(merged[-1].start, Bytes(merged[-1].size + part.size))
        else:
            merged.append(part)
    return tuple(merged)
