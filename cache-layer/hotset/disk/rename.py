"""An origin that has another name now: after an update of udev, with multipath, on another
controller. It is taken only as the very same disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath

from hotset.block import devices
from hotset.block.devices import DeviceRefusedError
from hotset.core.errors import Remedy
from hotset.core.machines.base import CommandError, CommandTimeoutError
from hotset.core.units import Bytes

from . import cache_device as cards
from . import state
from .boot import program, startup, systemd_unit, udev
from .cache_device import AttachedDisk, CardError, Disk
from .identity import origin as origins
from .identity.origin import Compared, OriginId

_FIELD = "origin"


def rename_origin(
    attached: AttachedDisk,
    origin: PurePosixPath,
    say: Callable[[str], None],
) -> Disk:
    """Have a disk that is down find its origin under another name; returns it as it is then.

    :raises DeviceRefusedError: no such device, in use, or nothing proves that it is the same disk.
    :raises CardError: the disk is active, or another one has that origin.
    """
    machine, disk = attached.machine, attached.disk
    cards.require_ours(machine, attached.card)
    if disk.phase != "ready" or attached.tier.is_active():
        raise CardError(
            f"disk {disk.name} is {'active' if disk.phase == 'ready' else disk.phase}: its origin's"
            " name is changed while it is down",
            Remedy("take it down", "tier deactivate", {"disk": disk.name}),
            field=_FIELD,
        )
    device = devices.inspect(machine, origin)
    devices.named_by_id(device, _FIELD, False)
    if device.uses:
        raise DeviceRefusedError(f"{origin} is in use: {'; '.join(device.uses)}", field=_FIELD)
    for other in (one.disk for one in cards.attached_disks(machine)):
        if other.name != disk.name and origins.same(machine, origin, other.origin):
            raise CardError(f"{origin} is the origin of disk {other.name}", field=_FIELD)
    found = _proved(attached, origin)
    renamed = attached.with_disk(replace(disk, origin=origin, origin_id=found)).save()
    udev.hide_origin(renamed)
    systemd_unit.renew(renamed)
    startup.warn(renamed, say)
    say(f"disk {disk.name}: its origin is {origin} from now on")
    return renamed.disk


def _proved(attached: AttachedDisk, origin: PurePosixPath) -> OriginId:
    """What is known of the origin from now on.

    :raises DeviceRefusedError: it is another disk, or nobody knows.
    """
    disk = attached.disk
    known, found = disk.origin_id or OriginId(Bytes(0)), origins.identify(attached.machine, origin)
    compared = known.compare(found)
    if disk.origin_id is not None and known.is_nameless and compared.answer == "unknown":
        # As a boot knows one without numbers.
        compared = _by_content(attached, origin) or compared
        # A copy made later has that, too: numbers which are seen by now may be another disk's.
        found = OriginId(found.size)
    if compared.answer == "same":
        return found
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
    """What the UUID of what lies there says; None: nothing, since none was known.

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
    others = [one.path for one in devices.every(machine) if one.size >= least]
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
