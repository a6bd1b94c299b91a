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
from hotset.core.units import Bytes
from hotset.tier.disk_tier import DiskTier, OnFlush, Resized

from . import flash_devices, lifecycle, room
from .boot import proof, systemd_unit
from .flash_devices import AttachedDisk, Disk, FlashError
from .identity import origin
from .identity.origin import OriginId
from .lifecycle import Say, TierRefusedError, active


def resize(
    attached: AttachedDisk,
    cache: Bytes | None,
    may_flush: bool,
    progress: OnFlush,
    say: Say,
) -> None:
    """Follow an origin that has grown, and give the cache another size; it may stay mounted.

    :param may_flush: write back first what is dirty, where that must be.
    :raises TierRefusedError: the origin has shrunk, or blocks are dirty and may not be flushed.
    :raises FlashError: the flash has no room for the new size.
    """
    machine, tier = attached.machine, active(attached)
    flash_devices.require_ours(machine, attached.flash)
    tier.settle()
    known = device_size(machine, attached.disk.device)
    now = device_size(machine, attached.disk.origin)
    if now < known:
        raise TierRefusedError(
            f"{attached.disk.origin} has shrunk from {int(known):,} to {int(now):,} bytes: grow it"
            " again, or restore it; nothing was changed"
        )
    attached = _with_size(attached)
    proof.warn(attached, say)
    grows, before = now > known, attached.disk
    wanted = before.spec.cache if cache is None else cache.align_up(max(UNIT, before.spec.block))
    disk = replace(
        before, spec=replace(before.spec, cache=wanted), cache=_parts(attached, tier, wanted)
    )
    if not grows and disk == before:
        # A resize may have been cut short just before this.
        systemd_unit.renew(attached)
        say("the origin and the cache are as they were: nothing changed")
        return
    if wanted > before.spec.cache:
        node = machine.run(["readlink", "-f", str(attached.flash.path)]).stdout.strip()
        room.reserve(machine, PurePosixPath(node or attached.flash.path), disk.cache, False, say)
        room.check_memory(machine, disk.kind, disk.spec, now, True, say)
    if not may_flush:
        _check_dirty(tier, before, wanted)
    _check_metadata(tier, disk)
    changed = attached.with_disk(disk)
    counted = lifecycle.read_counters(tier)
    lost = tier.resize(_result_of(changed, grows), progress, say)
    if lost:
        say(lost)
    systemd_unit.renew(changed)
    _say_sizes(before, disk, now if grows else None, say)
    lifecycle.say_if_counters_restarted(changed, counted, say)


def _say_sizes(before: Disk, disk: Disk, grown: Bytes | None, say: Say) -> None:
    """:param grown: the origin's size, where it has grown."""
    if grown is not None:
        say(
            f"{disk.device} follows the origin to {grown}; now enlarge its file system (resize2fs,"
            " xfs_growfs)"
        )
    if disk.spec.cache != before.spec.cache:
        say(f"cache {before.spec.cache} -> {disk.spec.cache}")


def _check_dirty(tier: DiskTier, disk: Disk, wanted: Bytes) -> None:
    """:raises TierRefusedError: it would drop dirty blocks."""
    if tier.resize_drops_dirty(wanted) and (dirty := tier.counters().dirty):
        raise TierRefusedError(
            f"{disk.device} has {int(dirty)} dirty blocks ({dirty.bytes(disk.spec.block)}),"
            " which that would drop",
            Remedy("write them back first", parameters={"flush": True}),
            field="flush",
        )


def _with_size(attached: AttachedDisk) -> AttachedDisk:
    """The disk, its origin known with the size that it has by now."""
    machine, disk = attached.machine, attached.disk
    known, current = disk.origin_id, origin.identify(machine, disk.origin)
    if known == current:
        return attached
    if known is not None:
        origin.require_same(machine, disk.name, disk.origin, replace(known, size=Bytes(0)))
        if known.is_nameless:
            # Nothing proves that the numbers which are seen by now are its own.
            current = OriginId(current.size)
    return attached.with_disk(replace(disk, origin_id=current)).save()


def _result_of(changed: AttachedDisk, grows: bool) -> Resized:
    spec = changed.disk.spec
    return Resized(spec, changed.place, grows, changed.save, lambda: _free(changed))


def _free(changed: AttachedDisk) -> None:
    """Put the new size on record; not before no boot uses the flash that becomes free."""
    systemd_unit.renew(changed)
    changed.save()


def _check_metadata(tier: DiskTier, disk: Disk) -> None:
    """:raises FlashError: the metadata has no room for the cache's blocks."""
    needs = tier.metadata_needed(disk.spec.cache)
    if needs > disk.spec.metadata:
        raise FlashError(
            f"a cache of {disk.spec.cache} needs {needs} of metadata, and there are"
            f" {disk.spec.metadata}: detach the disk and create it again",
            field="cache",
        )


def _parts(attached: AttachedDisk, tier: DiskTier, size: Bytes) -> tuple[Part, ...]:
    """The parts of the flash for a CACHE of another size: more behind, or cut off from the end."""
    disk = attached.disk
    if size < tier.cache_min:
        raise FlashError(
            f"a cache of {size} is too small: {disk.kind} needs at least {tier.cache_min}",
            field="cache",
        )
    if size < disk.spec.block or not size:
        raise FlashError(
            f"a cache of {size} is smaller than one block of {disk.spec.block}", field="cache"
        )
    more = size - disk.spec.cache
    if not more:
        return disk.cache
    if more > 0:
        added = flash_devices.take(attached.flash.free(), Bytes(more), "additional cache", "cache")
        return join_neighbours([*disk.cache, *added])
    return flash_devices.take(disk.cache, size, "a cache", "cache")


def join_neighbours(parts: list[Part]) -> tuple[Part, ...]:
    """Neighbours put together, the order kept.

    >>> join_neighbours([Part(Bytes(0), Bytes(2)), Part(Bytes(2), Bytes(1))])
    (Part(start=Bytes(0), size=Bytes(3)),)
    """
    merged: list[Part] = []
    for part in parts:
        if merged and merged[-1].end == part.start:
            merged[-1] = Part(merged[-1].start, Bytes(merged[-1].size + part.size))
        else:
            merged.append(part)
    return tuple(merged)
