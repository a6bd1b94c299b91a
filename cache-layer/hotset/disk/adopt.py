"""``hotset tier scan`` and ``tier import``: flash devices by their labels, whatever /etc knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from hotset.block import devicemapper, devices, programs
from hotset.block.devicemapper import PREFIX
from hotset.block.devices import Confirm, Device, DeviceRefusedError
from hotset.core.errors import Remedy
from hotset.core.machines.base import CommandError, CommandTimeoutError, Machine

from . import abandoned, flash_devices, lifecycle, prerequisites
from .boot import startup, udev
from .flash_devices import AttachedDisk, FlashDevice, FlashError
from .identity import origin

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LabelledDevice:
    """A flash device with a label. ``known_as``: this machine's name for it, if it knows it."""

    path: PurePosixPath
    flash: FlashDevice
    ours: bool
    known_as: str | None


@dataclass(frozen=True, slots=True)
class Unread:
    """A device of which it is not known whether it has a label, and why."""

    device: PurePosixPath
    why: str


def scan(machine: Machine) -> tuple[list[LabelledDevice], list[Unread]]:
    """Every flash device with a label that the machine can see, and what could not be read.

    :raises PrerequisiteMissingError: hotset is not root, and can read none.
    """
    flash_devices.need_root(machine)
    known = {flash.uuid: flash.name for flash in flash_devices.list_all(machine) if flash.uuid}
    labelled, unread = list[LabelledDevice](), list[Unread]()
    for device in devices.every(machine):
        try:
            flash = flash_devices.read_flash(machine, device.node)
        except (FlashError, CommandError, CommandTimeoutError) as error:
            unread.append(Unread(device.path, _why(error)))
            continue
        if flash is not None:
            labelled.append(
                LabelledDevice(
                    device.path, flash, flash_devices.is_ours(machine, flash), known.get(flash.uuid)
                )
            )
    return labelled, unread


def _why(error: FlashError | CommandError | CommandTimeoutError) -> str:
    """Describe why a device cannot be read; of a failed command only the last line."""
    if not isinstance(error, CommandError):
        return str(error)
    lines = error.result.stderr.strip().splitlines() or [f"code {error.result.rc}"]
    # dd has the error first, and then what it copied.
    word = next((line for line in lines if line.startswith("dd: ")), lines[-1])
    return f"it cannot be read: {word.removeprefix('dd: ')}"


def adopt(
    machine: Machine,
    path: PurePosixPath,
    take_over: bool,
    say: Say,
    confirm: Confirm | None = None,
) -> FlashDevice:
    """Make a labelled flash device known to this machine; returns it as it is known then.

    :param take_over: it belongs to another machine, which does not use it any more.
    :param confirm: asked before that, with the device and whose it was until now.
    :raises DeviceRefusedError: no such device, or not named by id.
    :raises InUseError: somebody uses one that another machine had.
    :raises FlashError: it has no label, is another machine's, has names that are taken here,
        or is a copy of one that is in use or answers.
    """
    device = devices.inspect(machine, path)
    devices.require_name_by_id(device, "flash", take_over)
    flash = flash_devices.read_flash(machine, device.node)
    if flash is None:
        raise FlashError(
            f"{path} has no label of hotset's",
            Remedy("see all labels", "tier scan"),
            field="flash",
        )
    _require_original(machine, flash, device)
    if not flash_devices.is_ours(machine, flash):
        if not take_over:
            raise FlashError(
                f"{path} belongs to {flash_devices.owner_in_words(machine, flash)}; used by two"
                " servers, its data is destroyed",
                Remedy(
                    "make it this server's, once no other uses it",
                    parameters={"take_over": True},
                ),
                field="flash",
            )
        programs.require_unused(machine, device.node, field="flash")
        if confirm is not None:
            confirm(flash.name, f"the owner of {_owner_text(device, flash)}")
        say(f"taken over from {flash.host_name}: never connect it there again")
    others = [other for other in flash_devices.list_all(machine) if other.uuid != flash.uuid]
    taken = {disk.name for other in others for disk in other.disks}
    clash = [disk.name for disk in flash.disks if disk.name in taken]
    if clash:
        raise FlashError(f"this machine has disks of these names already: {', '.join(clash)}")
    flash = _without_abandoned(machine, flash, say)
    flash = flash_devices.save(machine, _named_here(machine, flash, path), take_over=True)
    for disk in flash.disks:
        _look_at_origin(AttachedDisk(machine, flash, disk), say)
    for kind in dict.fromkeys(disk.kind for disk in flash.disks):
        lacks = "; ".join(prerequisites.lacking(machine, kind))
        if lacks:
            say(f"{machine.kind} lacks what a cache of kind {kind} needs: {lacks}")
    return flash


def _require_original(machine: Machine, flash: FlashDevice, device: Device) -> None:
    """:raises FlashError: another device has that label as well, so one is a copy of the other (a
    mirror, or of dd's): what they hold differs with the first write."""
    known = next(
        (other for other in flash_devices.list_all(machine) if other.uuid == flash.uuid), None
    )
    # Where the root disk has lost it, by the name that it had: its disks may be up.
    former = known or flash
    if origin.same(machine, former.path, device.path):
        return
    up = [
        disk.name
        for disk in former.disks
        if lifecycle.is_up(AttachedDisk(machine, former, disk).tier)
    ]
    if up and not any(PREFIX in use for use in device.uses):
        raise FlashError(
            f"{', '.join(up)} {'is' if len(up) == 1 else 'are'} active, on another flash device"
            f" than {device.path}, which is a copy of it: deactivate first, and disconnect the one"
            " that is not to count any more",
            field="flash",
        )
    if known is not None and _answers_as(machine, known):
        raise FlashError(
            f"{known.path} answers with the same label, so {device.path} is a copy of it, or it of"
            " that. To go on with the copy, disconnect the other, and what was written to it since"
            " is lost; to go on as before, disconnect the copy",
            field="flash",
        )


def _answers_as(machine: Machine, flash: FlashDevice) -> bool:
    """True if the device that is to be a known one still has its label."""
    try:
        current = flash_devices.read_flash(machine, flash.path)
    except (FlashError, CommandError, CommandTimeoutError):
        return False
    return current is not None and current.uuid == flash.uuid


def _owner_text(device: Device, flash: FlashDevice) -> str:
    disks = ", ".join(f"{disk.name} over {disk.origin}" for disk in flash.disks) or "none"
    return (
        f"{device.known_as}: it is flash device {flash.name} of {flash.host_name}, disks: {disks}"
    )


def _named_here(machine: Machine, flash: FlashDevice, path: PurePosixPath) -> FlashDevice:
    """The flash device under the name it has here, or one that is free."""
    same = [other.name for other in flash_devices.list_all(machine) if other.uuid == flash.uuid]
    others = {other.name for other in flash_devices.list_all(machine) if other.uuid != flash.uuid}
    name = flash.name if flash.name not in others else flash_devices.new_name(machine)
    return replace(flash, name=same[0] if same else name, path=path)


def _without_abandoned(machine: Machine, flash: FlashDevice, say: Say) -> FlashDevice:
    """The flash device without disks that were detached while it could not be asked."""
    for disk in flash.disks:
        attached = AttachedDisk(machine, flash, disk)
        if abandoned.has(attached):
            if attached.tier.is_active():
                raise FlashError(
                    f"disk {disk.name} is active, although it was about to be given up",
                    Remedy("end that", "tier detach", {"disk": disk.name, "flash_is_dead": True}),
                )
            say(
                f"disk {disk.name} is left out: it was detached as one whose flash is dead, and"
                f" {disk.origin} has gone on without what this flash holds of it"
            )
            devicemapper.wipe(machine, flash.path, disk.metadata)
            flash = flash.without(disk.name)
    return flash


def _look_at_origin(attached: AttachedDisk, say: Say) -> None:
    """Have nobody mount the origin, which may lack what the flash holds; say what has to be done
    before the disk can be activated."""
    disk = attached.disk
    if disk.origin_id is None:
        return
    try:
        origin.require_same(attached.machine, disk.name, disk.origin, disk.origin_id)
    except DeviceRefusedError as error:
        say(str(error))
        return
    udev.hide_origin(attached)
    startup.warn(attached, say)
