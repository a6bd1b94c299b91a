"""A tier of another size: the origin has grown, or the cache is to have more or less flash.

dm-cache takes both in while it works (``cache_preresume``, drivers/md/dm-cache-target.c), and so
does the engine in user space. bcache
can do neither; it lets go of its cache, which begins empty afterwards, while the disk stays up.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from hotset.block.devicemapper import UNIT, Part, device_size
from hotset.core.errors import Remedy
from hotset.core.machines.base import Machine
from hotset.core.units import Bytes
from hotset.tier.base import Tier
from hotset.tier.bcache.tier import CACHE_MIN, Bcache
from hotset.tier.dmcache import tier as dmcache
from hotset.tier.dmcache.tier import DmCache
from hotset.tier.engine.tier import Userspace

from . import cache_device as cards
from . import room
from .boot import proof, systemd_unit
from .cache_device import Card, CardError, Disk
from .identity import origin
from .identity.origin import OriginId
from .lifecycle import OnFlush, Say, TierRefusedError, active


def resize(
    machine: Machine,
    card: Card,
    disk: Disk,
    cache: Bytes | None,
    may_flush: bool,
    progress: OnFlush,
    say: Say,
) -> None:
    """Follow an origin that has grown, and give the cache another size; it may stay mounted.

    :param may_flush: write back first what is dirty, where that must be.
    :raises TierRefusedError: the origin has shrunk, or blocks are dirty and may not be flushed.
    :raises CardError: the flash has no room for the new size.
    """
    tier = active(machine, card, disk)
    cards.require_ours(machine, card)
    tier.settle()
    known, now = device_size(machine, disk.device), device_size(machine, disk.origin)
    if now < known:
        raise TierRefusedError(
            f"{disk.origin} has shrunk from {int(known):,} to {int(now):,} bytes: grow it again, or"
            " restore it; nothing was changed"
        )
    card, disk = _with_size(machine, card, disk)
    proof.warn(machine, disk, say)
    wanted = disk.spec.cache if cache is None else cache.align_up(max(UNIT, disk.spec.block))
    grows, before = now > known, disk
    disk = replace(disk, spec=replace(disk.spec, cache=wanted), cache=_parts(card, disk, wanted))
    if not grows and disk == before:
        # A resize may have been cut short just before this.
        systemd_unit.renew(machine, card, disk)
        say("the origin and the cache are as they were: nothing changed")
        return
    if wanted > before.spec.cache:
        node = machine.run(["readlink", "-f", str(card.flash)]).stdout.strip()
        room.reserve(machine, PurePosixPath(node or card.flash), disk.cache, False, say)
    if not may_flush:
        _check_dirty(tier, before, wanted)
    if isinstance(tier, Bcache):
        _bcache(machine, card, disk, tier, grows, progress, say)
        say("the cache begins empty: bcache changes neither size while it has one")
    elif isinstance(tier, Userspace):
        _userspace(machine, card, before, disk, tier, grows)
    else:
        _dm_cache(machine, card, before, disk, tier, grows, progress, say)
    systemd_unit.renew(machine, card.with_disk(disk), disk)
    if grows:
        say(
            f"{disk.device} follows the origin to {now}; now enlarge its file system (resize2fs,"
            " xfs_growfs)"
        )
    if wanted != before.spec.cache:
        say(f"cache {before.spec.cache} -> {wanted}")


def _check_dirty(tier: Tier, disk: Disk, wanted: Bytes) -> None:
    """dm-cache grows without a flush; a smaller cache and bcache begin with one. The engine in user
    space writes back by itself.

    :raises TierRefusedError: it would drop dirty blocks.
    """
    flushes = isinstance(tier, Bcache) or (isinstance(tier, DmCache) and wanted < disk.spec.cache)
    if flushes and (dirty := tier.counters().dirty):
        raise TierRefusedError(
            f"{disk.device} has {int(dirty)} dirty blocks ({dirty.bytes(disk.spec.block)}),"
            " which that would drop",
            Remedy("write them back first", parameters={"flush": True}),
            field="flush",
        )


def _with_size(machine: Machine, card: Card, disk: Disk) -> tuple[Card, Disk]:
    """The disk, its origin known with the size that it has by now."""
    known, found = disk.origin_id, origin.identify(machine, disk.origin)
    if known == found:
        return card, disk
    if known is not None:
        origin.require_same(machine, disk.name, disk.origin, replace(known, size=Bytes(0)))
        if known.is_nameless:
            # Nothing proves that the numbers which are seen by now are its own.
            found = OriginId(found.size)
    disk = replace(disk, origin_id=found)
    return cards.save(machine, card.with_disk(disk)), disk


def _bcache(
    machine: Machine, card: Card, disk: Disk, tier: Bcache, grows: bool, progress: OnFlush, say: Say
) -> None:
    tier.flush(progress, final=True, warn=say)
    # Cut short from here on, the tier has no cache; the next `activate` gives it one again.
    tier.detach_cache()
    _free(machine, card, disk)
    if grows:
        tier.follow_origin()
    after = cards.tier_for(machine, card.with_disk(disk), disk)
    assert isinstance(after, Bcache)
    after.format_cache()
    after.attach_cache()


def _dm_cache(
    machine: Machine,
    card: Card,
    before: Disk,
    disk: Disk,
    tier: DmCache,
    grows: bool,
    progress: OnFlush,
    say: Say,
) -> None:
    old, new = before.spec.cache, disk.spec.cache
    _check_metadata(disk)
    if grows:
        tier.follow_origin()
    if new == old:
        return
    after = DmCache(machine, disk.spec, card.place(disk))
    # Cut short, the card names more flash than the kernel uses: that harms nobody, and the next
    # `activate` takes it in.
    if new > old:
        cards.save(machine, card.with_disk(disk))
        after.follow_cache()
    else:
        tier.flush(progress, final=True, warn=say)
        after.follow_cache()
        _free(machine, card, disk)


def _free(machine: Machine, card: Card, disk: Disk) -> None:
    """Put the new size on record; not before no boot uses the flash that becomes free."""
    after = card.with_disk(disk)
    systemd_unit.renew(machine, after, disk)
    cards.save(machine, after)


def _check_metadata(disk: Disk) -> None:
    """:raises CardError: the metadata has no room for the cache's blocks."""
    needs = dmcache.metadata_bytes(disk.spec.cache, disk.spec.block)
    if needs > disk.spec.metadata:
        raise CardError(
            f"a cache of {disk.spec.cache} needs {needs} of metadata, and there are"
            f" {disk.spec.metadata}: detach the disk and create it again",
            field="cache",
        )


def _userspace(
    machine: Machine, card: Card, before: Disk, disk: Disk, tier: Userspace, grows: bool
) -> None:
    _check_metadata(disk)
    if grows:
        tier.follow_origin()
    old, new = before.spec.cache, disk.spec.cache
    if new == old:
        return
    after = Userspace(machine, disk.spec, card.place(disk), disk.identity)
    # Cut short, the card names at least the flash that the engine uses, whose metadata say which
    # part of it is the cache.
    if new > old:
        cards.save(machine, card.with_disk(disk))
        after.follow_cache()
    else:
        after.follow_cache()
        _free(machine, card, disk)


def _parts(card: Card, disk: Disk, size: Bytes) -> tuple[Part, ...]:
    """The parts of the flash for a CACHE of another size: more behind, or cut off from the end."""
    if disk.kind == "bcache" and size < CACHE_MIN:
        raise CardError(
            f"a cache of {size} is too small: bcache needs at least {CACHE_MIN}", field="cache"
        )
    if size < disk.spec.block or not size:
        raise CardError(
            f"a cache of {size} is smaller than one block of {disk.spec.block}", field="cache"
        )
    more = size - disk.spec.cache
    if not more:
        return disk.cache
    if more > 0:
        added = cards.take(card.free(), Bytes(more), "additional cache", "cache")
        return joined([*disk.cache, *added])
    return cards.take(disk.cache, size, "a cache", "cache")


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
