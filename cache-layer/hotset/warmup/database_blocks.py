"""Which blocks of an origin hold a database: files → extents → blocks in origin order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from hotset.block import extents, filesystem
from hotset.block.devicemapper import device_size
from hotset.block.extents import Run
from hotset.core.units import Blocks
from hotset.tier import kinds
from hotset.tier.base import Tier, TierKind


def database_runs(
    tier: Tier,
    inspect: PurePosixPath,
    mount_point: PurePosixPath,
    folder: str,
    first: Sequence[str] = (),
    hottest: Iterable[Run] = (),
) -> list[Run]:
    """The origin's blocks that hold the files of a folder, as far as the cache has room; what is
    left of it takes free space, so that the files' growth hits as well.

    :param look: what :meth:`Tier.prepare` returned.
    :param first: folders in it whose files come before the others.
    :param hottest: blocks that come before all files, in that order.
    """
    machine, block = tier.machine, tier.spec.block
    capacity = fill_limit(tier.kind, tier.spec.cache.blocks(block))
    machine.run(["mkdir", "-p", str(mount_point)])
    kind = filesystem.kind_of(machine, inspect)
    machine.run(["mount", "-o", filesystem.LOOK_OPTIONS[kind], str(inspect), str(mount_point)])
    try:
        base = mount_point / folder
        size = device_size(machine, inspect)
        whole = [Run(Blocks(0), size.blocks(block))]
        kept = extents.intersection(extents.union(extents.first(hottest, capacity)), whole)
        for one in (*(base / name for name in first), base):
            found = extents.of_files(machine, extents.files_under(machine, one))
            if one == base:
                found += filesystem.own_extents(machine, inspect, kind)
            kept = extents.join_within(kept, extents.to_runs(found, block, size), capacity)
        free = filesystem.free_extents(machine, inspect, kind)
    finally:
        machine.run(["umount", str(mount_point)])
    return extents.with_room(
        kept, free, block, growth_limit(tier.kind, capacity, size.blocks(block))
    )


def fill_limit(kind: TierKind, capacity: Blocks) -> Blocks:
    """How much of a cache can be filled so that all of it stays."""
    return Blocks(int(capacity * kinds.of(kind).fillable))


def growth_limit(kind: TierKind, capacity: Blocks, origin: Blocks) -> Blocks:
    """How full of files and free space a cache may be made.

    A full smq gives up blocks at every miss until a quarter is free (``queue_demotion``), and
    those could be the files'. Only where the whole origin fits can nothing miss.
    """
    grown = kinds.of(kind).grown
    return capacity if grown and origin <= capacity else Blocks(int(capacity * grown))
