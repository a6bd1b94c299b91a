"""An origin that has another name now: after an update of udev, with multipath, on another
controller. It is taken only as the very same disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath

from ..block import devices
from ..block.devices import DeviceRefusedError
from ..common.errors import Remedy
from ..common.units import Bytes
from ..hosts.base import Machine
from . import cache_device as cards
from . import state
from .boot import program, startup, systemd_unit, udev
from .cache_device import Card, CardError, Disk
from .identity import origin as origins
from .identity.origin import Compared, OriginId

_FIELD = "origin"


def rename_origin(
    machine: Machine,
    card: Card,
    disk: Disk,
    origin: PurePosixPath,
    say: Callable[[str], None],
) -> Disk:
    """Have a disk that is down find its origin under another name; returns it as it is then.

    :raises DeviceRefusedError: no such device, in use, or nothing proves that it is the same disk.
    :raises CardError: the disk is active, or another one has that origin.
    """
    cards.require_ours(machine, card)
    if disk.phase != "ready" or cards.tier_for(machine, card, disk).is_active():
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
    for _, other in cards.pairs(machine):
        if other.name != disk.name and origins.same(machine, origin, other.origin):
            raise CardError(f"{origin} is the origin of disk {other.name}", field=_FIELD)
    found = origins.identify(machine, origin)
    _require_proof(machine, card, disk, origin, found)
    disk = replace(disk, origin=origin, origin_id=found)
    card = cards.save(machine, card.with_disk(disk))
    udev.hide_origin(machine, disk)
    systemd_unit.renew(machine, card, disk)
    startup.warn(machine, disk, say)
    say(f"disk {disk.name}: its origin is {origin} from now on")
    return disk


def _require_proof(
    machine: Machine, card: Card, disk: Disk, origin: PurePosixPath, found: OriginId
) -> None:
    """:raises DeviceRefusedError: it is another disk, or nobody knows."""
    known = disk.origin_id or OriginId(Bytes(0))
    compared = known.compare(found)
    if disk.origin_id is not None and known.is_nameless and compared.answer == "unknown":
        # As a boot knows one without numbers.
        compared = _by_content(machine, card, disk, origin) or compared
    if compared.answer == "same":
        return
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


def _by_content(machine: Machine, card: Card, disk: Disk, origin: PurePosixPath) -> Compared | None:
    """What the UUID of what lies there says; None: nothing, since none was known."""
    had = state.content(machine, card, disk)
    if not had:
        return None
    has = program.content(machine, origin)
    if has == had:
        return Compared("same")
    return Compared("other", f"what lies on it had the UUID {had}, and has {has or 'none'}")
