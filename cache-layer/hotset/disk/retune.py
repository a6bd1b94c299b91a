"""``hotset tier set``: another policy or write mode, while the disk is in use.

What a crash in between leaves must be on the safe side. So a card says write-back before the first
write is held back, and write-through only after the last one was written to the origin.
"""

from __future__ import annotations

from dataclasses import replace

from hotset.core.errors import Remedy
from hotset.tier import kinds
from hotset.tier.base import WriteMode
from hotset.tier.disk_tier import OnFlush

from . import cache_device as cards
from . import lifecycle
from .boot import proof, systemd_unit
from .cache_device import AttachedDisk, CardError, Disk
from .lifecycle import Say, active


def retune(
    attached: AttachedDisk,
    policy: str | None,
    mode: WriteMode | None,
    progress: OnFlush,
    say: Say,
) -> Disk:
    """Change what is named; returns the disk as it is then.

    :raises CardError: the kind of tier has no such policy.
    :raises FlushStalledError: what is dirty cannot be written back, so it stays in write-back.
    """
    machine, disk, tier = attached.machine, attached.disk, active(attached)
    cards.require_ours(machine, attached.card)
    before = disk.spec
    wanted = replace(before, policy=policy or before.policy, mode=mode or before.mode)
    _check_policy(disk, wanted.policy)
    if wanted == before:
        # The change may have been cut short just before this.
        systemd_unit.renew(attached)
        say(f"{disk.device} has policy {wanted.policy} and mode {wanted.mode}: nothing changed")
        return disk
    if mode == "writeback" != before.mode:
        proof.require(machine, disk.origin, "write-back", "mode", say, recorded=disk.origin_id)
    # An engine of another version refuses before anything of the change is written.
    tier.settle()
    changed = attached.with_disk(replace(disk, spec=wanted))
    # Wherever it is cut short, what a boot does fits writes that are on the flash alone.
    if wanted.mode == "writeback":
        systemd_unit.renew(changed)
        changed.save()
    elif before.mode == "writeback":
        flushed = tier.flush(progress, final=False, warn=say)
        say(f"{flushed} blocks were dirty and have been written back")
    counted = lifecycle.read_counters(tier)
    tier = changed.tier
    tier.retune()
    if wanted.mode != "writeback":
        # After a crash a write-through cache begins empty: nothing may be on the flash alone.
        tier.make_durable()
        systemd_unit.renew(changed)
        changed.save()
    say(f"{disk.device}: policy {wanted.policy}, mode {wanted.mode}")
    lifecycle.say_if_counters_began_anew(changed, counted, say)
    return changed.disk


def _check_policy(disk: Disk, policy: str) -> None:
    choice = kinds.of(disk.kind).policies
    known = choice or (disk.spec.policy,)
    if policy not in known:
        other = Remedy("have a choice of policies", "tier create", {"kind": "userspace"})
        raise CardError(
            f"{disk.kind} has no policy {policy!r}: give {' or '.join(known)}",
            *([] if choice else [other]),
            field="policy",
        )
