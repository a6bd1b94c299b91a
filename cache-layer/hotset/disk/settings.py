"""``hotset tier set``: another policy or write mode, while the disk is in use.

What a crash in between leaves must be on the safe side. So the label says write-back before the
first write is held back, and write-through only after the last one was written to the origin.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath

from hotset.block import devices, programs
from hotset.block.devices import DeviceRefusedError
from hotset.core.errors import Remedy
from hotset.core.machines.base import CommandError, CommandTimeoutError
from hotset.core.units import Bytes
from hotset.tier import kinds
from hotset.tier.base import WriteMode
from hotset.tier.disk_tier import OnFlush

from . import flash_devices, lifecycle, state
from .boot import program, proof, startup, systemd_unit, udev
from .flash_devices import AttachedDisk, Disk, FlashError
from .identity import origin as origins
from .identity.origin import Compared, OriginId
from .lifecycle import Say, active


def retune(
    attached: AttachedDisk,
    policy: str | None,
    mode: WriteMode | None,
    progress: OnFlush,
    say: Say,
) -> Disk:
    """Change what is named; returns the disk as it is then.

    :raises FlashError: the kind of tier has no such policy.
    :raises FlushStalledError: dirty data cannot be written back, so it stays in write-back.
    """
    machine, disk, tier = attached.machine, attached.disk, active(attached)
    flash_devices.require_ours(machine, attached.flash)
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
    lifecycle.say_if_counters_restarted(changed, counted, say)
    return changed.disk


def _check_policy(disk: Disk, policy: str) -> None:
    choice = kinds.kind_of_name(disk.kind).policies
    known = choice or (disk.spec.policy,)
    if policy not in known:
        other = Remedy("have a choice of policies", "tier create", {"kind": "userspace"})
        raise FlashError(
            f"{disk.kind} has no policy {policy!r}: give {' or '.join(known)}",
            *([] if choice else [other]),
            field="policy",
        )


_FIELD = "origin"


def rename_origin(
    attached: AttachedDisk,
    origin: PurePosixPath,
    say: Callable[[str], None],
) -> Disk:
    """Have a disk that is down find its origin under another name; returns it as it is then.

    :raises DeviceRefusedError: no such device, or nothing proves that it is the same disk.
    :raises InUseError: somebody has mounted it or writes to it, or nobody can tell.
    :raises FlashError: the disk is active, or another one has that origin.
    """
    machine, disk = attached.machine, attached.disk
    flash_devices.require_ours(machine, attached.flash)
    if disk.phase != "ready" or attached.tier.is_active():
        raise FlashError(
            f"disk {disk.name} is {'active' if disk.phase == 'ready' else disk.phase}: its origin's"
            " name is changed while it is down",
            Remedy("take it down", "tier deactivate", {"disk": disk.name}),
            field=_FIELD,
        )
    device = devices.inspect(machine, origin)
    devices.require_name_by_id(device, _FIELD, False)
    programs.require_unused(machine, device.node, "writers", field=_FIELD)
    for other in (attached.disk for attached in flash_devices.list_disks(machine)):
        if other.name != disk.name and origins.same(machine, origin, other.origin):
            raise FlashError(f"{origin} is the origin of disk {other.name}", field=_FIELD)
    origin_id = _prove(attached, origin)
    renamed = attached.with_disk(replace(disk, origin=origin, origin_id=origin_id)).save()
    udev.hide_origin(renamed)
    systemd_unit.renew(renamed)
    startup.warn(renamed, say)
    say(f"disk {disk.name}: its origin is {origin} from now on")
    return renamed.disk


def _prove(attached: AttachedDisk, origin: PurePosixPath) -> OriginId:
    """Return the origin's identity from now on.

    :raises DeviceRefusedError: it is another disk, or that is not known.
    """
    disk = attached.disk
    known, current = (
        disk.origin_id or OriginId(Bytes(0)),
        origins.identify(attached.machine, origin),
    )
    compared = known.compare(current)
    if disk.origin_id is not None and known.is_nameless and compared.answer == "unknown":
        # As a boot knows one without numbers.
        compared = _by_content(attached, origin) or compared
        # A copy made later has that, too: numbers which are seen by now may be another disk's.
        current = OriginId(current.size)
    if compared.answer == "same":
        return current
    if compared.answer == "other":
        raise DeviceRefusedError(
            f"{origin} is not the origin of disk {disk.name}: {compared.why}; nothing was changed",
            field=_FIELD,
        )
    raise DeviceRefusedError(
        f"nothing proves that {origin} is the origin of disk {disk.name} ({compared.why}): have it"
        f" under its old name again, {disk.origin}, for which a symbolic link does; nothing was"
        " changed",
        field=_FIELD,
    )


def _by_content(attached: AttachedDisk, origin: PurePosixPath) -> Compared | None:
    """Compare by the UUID of the contents; None: none was known, or a dry run cannot ask.

    :raises DeviceRefusedError: the origin may be another disk that is there, too.
    """
    had = state.content(attached)
    has = program.content(attached.machine, origin) if had else None
    if has is None:
        return None
    if has != had:
        return Compared("other", f"what lies on it had the UUID {had}, and has {has or 'none'}")
    _require_alone(attached, origin, had)
    return Compared("same")


def _require_alone(attached: AttachedDisk, origin: PurePosixPath, had: str) -> None:
    """See that no other disk may be the origin: a snapshot or clone of the storage has the UUID of
    what it is a copy of, and nothing tells which of the two is which.

    :raises DeviceRefusedError: another has that UUID, or nobody can tell.
    """
    machine, disk = attached.machine, attached.disk
    least = disk.origin_id.size if disk.origin_id else Bytes(0)
    others = [device.path for device in devices.every(machine) if device.size >= least]
    if devices.type_of(machine, disk.origin) is not None:
        others.insert(0, disk.origin)
    for other in others:
        if origins.same(machine, origin, other):
            continue
        is_ = f"its old name, {other}," if other == disk.origin else str(other)
        try:
            has = program.content(machine, other)
        except (CommandError, CommandTimeoutError) as error:
            why = f"whether {is_} has the UUID {had}, too, is not known ({error})"
            raise _one_of_two(disk, origin, why) from error
        if has == had:
            raise _one_of_two(disk, origin, f"{is_} has the UUID {had}, too")


def _one_of_two(disk: Disk, origin: PurePosixPath, why: str) -> DeviceRefusedError:
    return DeviceRefusedError(
        f"{origin} may be a copy of the origin of disk {disk.name}, such as a snapshot: {why}. On"
        " the wrong one, what the flash holds destroys data, and is missing on the right one."
        f" Disconnect the one that is not to count: without {origin} the disk goes on as before;"
        " without the other, what was written to that one alone is lost. Nothing was changed",
        field=_FIELD,
    )
