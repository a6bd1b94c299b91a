"""dm-cache, before there is a disk of it."""

from __future__ import annotations

from hotset.block import devicemapper
from hotset.core.machines.base import Machine

from ..base import TierSpec
from ..choice import Choice, DatabaseKind, Sizes, Wanted, block_of
from ..disk_tier import metadata_bytes
from ..kind import Kind
from .tier import BLOCK_MAX, COUNTING, DmCache, check_block

_POLICY = "smq"
_SCANS: dict[DatabaseKind, str] = {
    "oltp": "keep reports and backups short, or warm up again after them",
    "warehouse": "bcache sends long scans past the cache",
}


def _choose(wanted: Wanted) -> Choice:
    size, why = block_of(wanted, check_block, BLOCK_MAX)
    scans = "a scan that is larger than the cache may push hot blocks out"
    reasons = (
        why,
        f"policy {_POLICY}: the kernel's own; it promotes by heat, of reads and writes alike",
        f"bypass none: dm-cache has no sequential bypass; {scans}: {_SCANS[wanted.database]}",
    )
    # Its size cannot be changed later.
    metadata = metadata_bytes(wanted.flash, size)
    spec = TierSpec(wanted.mode, _POLICY, size, metadata, wanted.cache, wanted.volume)
    return Choice(spec, reasons)


def _spec(sizes: Sizes) -> TierSpec:
    return sizes.in_blocks(_POLICY)


def _check_policy(policy: str) -> None:
    if policy != _POLICY:
        raise ValueError(f"dm-cache has only {_POLICY!r}; the others need tier.kind = 'userspace'")


def _modules(machine: Machine) -> None:
    devicemapper.load(machine, "dm-cache", "dm-cache-smq")


DM_CACHE = Kind(
    name="dm-cache",
    in_kernel=True,
    made_by="mapper",
    takes_files=False,
    keeps_sectors=False,
    # What the kernel's part asks for itself (dmsetup, modprobe) tells of its own lack.
    programs=("cache_check", "cache_dump", "cache_repair", "cache_restore", "flock"),
    looks=(devicemapper.require, _modules),
    tier=DmCache,
    choose=_choose,
    spec=_spec,
    check_block=check_block,
    check_policy=_check_policy,
    divides=False,
    pauses=True,
    is_told_to_count=True,
    counting=COUNTING,
    counted_by="kernel",
    counted_since="since the cache was made",
)
