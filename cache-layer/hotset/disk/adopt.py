"""``hotset tier scan`` and ``tier import``: flash devices by their labels, whatever /etc knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from hotset.block import devicemapper, devices
from hotset.block.devicemapper import PREFIX
from hotset.block.devices import Confirm, Device, DeviceRefusedError
from hotset.core.errors import Remedy
from hotset.core.machines.base import CommandError, CommandTimeoutError, Machine

from . import abandoned, lifecycle, prerequisites
from . import cache_device as cards
from .boot import startup, udev
from .cache_device import AttachedDisk, Card, CardError
from .identity import origin

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class LabelledDevice:
    """A flash device with a label. ``known_as``: this machine's name for the card, if it has it."""

    flash: PurePosixPath
    card: Card
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
    cards.need_root(machine)
    known = {card.uuid: card.name for card in cards.list_cards(machine) if card.uuid}
    labelled, unread = list[LabelledDevice](), list[Unread]()
    for device in devices.every(machine):
        try:
            card = cards.read_card(machine, device.node)
        except (CardError, CommandError, CommandTimeoutError) as error:
            unread.append(Unread(device.path, _why(error)))
            continue
        if card is not None:
            labelled.append(
                LabelledDevice(
                    device.path, card, cards.is_ours(machine, card), known.get(card.uuid)
                )
            )
    return labelled, unread


def _why(error: CardError | CommandError | CommandTimeoutError) -> str:
    """Describe why a card cannot be read; of a failed command only the last line."""
    if not isinstance(error, CommandError):
        return str(error)
    lines = error.result.stderr.strip().splitlines() or [f"code {error.result.rc}"]
    # dd has the error first, and then what it copied.
    word = next((line for line in lines if line.startswith("dd: ")), lines[-1])
    return f"it cannot be read: {word.removeprefix('dd: ')}"


def adopt(
    machine: Machine,
    flash: PurePosixPath,
    take_over: bool,
    say: Say,
    confirm: Confirm | None = None,
) -> Card:
    """Make a labelled flash device known to this machine; returns its card.

    :param take_over: it belongs to another machine, which does not use it any more.
    :param confirm: asked before that, with the device and whose it was until now.
    :raises DeviceRefusedError: no such device, or not named by id.
    :raises CardError: it has no label, is another machine's, has names that are taken here, or is a
        copy of a flash device that is in use or answers.
    """
    device = devices.inspect(machine, flash)
    devices.require_name_by_id(device, "flash", take_over)
    card = cards.read_card(machine, device.node)
    if card is None:
        raise CardError(
            f"{flash} has no label of hotset's",
            Remedy("see all labels", "tier scan"),
            field="flash",
        )
    _require_original(machine, card, device)
    if not cards.is_ours(machine, card):
        if not take_over:
            raise CardError(
                f"{flash} belongs to {cards.owner_in_words(machine, card)}; used by two servers,"
                " its data is destroyed",
                Remedy(
                    "make it this server's, once no other uses it",
                    parameters={"take_over": True},
                ),
                field="flash",
            )
        if device.uses:
            raise DeviceRefusedError(f"{flash} is in use: {'; '.join(device.uses)}")
        if confirm is not None:
            confirm(flash.name, f"the owner of {_owner_text(device, card)}")
        say(f"taken over from {card.host_name}: never connect it there again")
    others = [other for other in cards.list_cards(machine) if other.uuid != card.uuid]
    taken = {disk.name for other in others for disk in other.disks}
    clash = [disk.name for disk in card.disks if disk.name in taken]
    if clash:
        raise CardError(f"this machine has disks of these names already: {', '.join(clash)}")
    card = _without_abandoned(machine, card, say)
    card = cards.save(machine, _rename_card(machine, card, flash), take_over=True)
    for disk in card.disks:
        _look_at_origin(AttachedDisk(machine, card, disk), say)
    for kind in dict.fromkeys(disk.kind for disk in card.disks):
        lacks = "; ".join(prerequisites.lacking(machine, kind))
        if lacks:
            say(f"{machine.kind} lacks what a cache of kind {kind} needs: {lacks}")
    return card


def _require_original(machine: Machine, card: Card, device: Device) -> None:
    """:raises CardError: the label is that of another device as well, so one is a copy of the other
    (a mirror, or of dd's): what they hold differs with the first write."""
    known = next((other for other in cards.list_cards(machine) if other.uuid == card.uuid), None)
    # Where the root disk has lost it, by the name that it had: its disks may be up.
    former = known or card
    if origin.same(machine, former.flash, device.path):
        return
    up = [
        disk.name
        for disk in former.disks
        if lifecycle.is_up(AttachedDisk(machine, former, disk).tier)
    ]
    if up and not any(PREFIX in use for use in device.uses):
        raise CardError(
            f"{', '.join(up)} {'is' if len(up) == 1 else 'are'} active, on another flash device"
            f" than {device.path}, which is a copy of it: deactivate first, and disconnect the one"
            " that is not to count any more",
            field="flash",
        )
    if known is not None and _answers_as(machine, known):
        raise CardError(
            f"{known.flash} answers with the same label, so {device.path} is a copy of it, or it of"
            " that. To go on with the copy, disconnect the other, and what was written to it since"
            " is lost; to go on as before, disconnect the copy",
            field="flash",
        )


def _answers_as(machine: Machine, card: Card) -> bool:
    """True if a card's flash device has the card's label."""
    try:
        current = cards.read_card(machine, card.flash)
    except (CardError, CommandError, CommandTimeoutError):
        return False
    return current is not None and current.uuid == card.uuid


def _owner_text(device: Device, card: Card) -> str:
    disks = ", ".join(f"{disk.name} over {disk.origin}" for disk in card.disks) or "none"
    return f"{device.known_as}: it is card {card.name} of {card.host_name}, disks: {disks}"


def _rename_card(machine: Machine, card: Card, flash: PurePosixPath) -> Card:
    """The card under the name it has here, or one that is free."""
    same = [other.name for other in cards.list_cards(machine) if other.uuid == card.uuid]
    others = {other.name for other in cards.list_cards(machine) if other.uuid != card.uuid}
    name = card.name if card.name not in others else cards.new_name(machine)
    return replace(card, name=same[0] if same else name, flash=flash)


def _without_abandoned(machine: Machine, card: Card, say: Say) -> Card:
    """The card without disks that were detached while the flash could not be asked."""
    for disk in card.disks:
        attached = AttachedDisk(machine, card, disk)
        if abandoned.has(attached):
            if attached.tier.is_active():
                raise CardError(
                    f"disk {disk.name} is active, although it was about to be given up",
                    Remedy("end that", "tier detach", {"disk": disk.name, "flash_is_dead": True}),
                )
            say(
                f"disk {disk.name} is left out: it was detached as one whose flash is dead, and"
                f" {disk.origin} has gone on without what this flash holds of it"
            )
            devicemapper.wipe(machine, card.flash, disk.metadata)
            card = card.without(disk.name)
    return card


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
