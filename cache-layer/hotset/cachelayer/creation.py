"""``hotset tier create``: a tier over an origin whose data stay where they are.

Everything is looked at before anything is written; then the card's file comes first, so that what
a killed creation left is known to the next one, which starts over.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from hotset.cachelayer import card as cards
from hotset.cachelayer import choice, devices, flash
from hotset.cachelayer.card import Card, CardError, Disk
from hotset.cachelayer.choice import Choice, DatabaseKind, KernelKind
from hotset.cachelayer.devices import Device, DeviceRefusedError
from hotset.cachelayer.flash import UNIT
from hotset.cachelayer.machine import EnvironmentLacksError, Machine
from hotset.cachelayer.tier import WriteMode
from hotset.cachelayer.units import Bytes

Say = Callable[[str], None]
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
_TAKEN = re.compile(r"volume(-.*)?|flat|.*-(meta|cache|backing)")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asks for; None leaves it to the kind of database (``volume``: to the card)."""

    disk: str
    flash: PurePosixPath
    origin: PurePosixPath
    kind: KernelKind
    database: DatabaseKind
    cache: Bytes
    volume: Bytes | None = None
    mode: WriteMode | None = None
    block: Bytes | None = None


def need_root(machine: Machine) -> None:
    """:raises EnvironmentLacksError: hotset is not root there."""
    if machine.run(["id", "-u"]).stdout.strip() not in ("0", ""):
        raise EnvironmentLacksError(
            f"a tier is root's work: use sudo here, or --machine ssh://root@host ({machine.kind})"
        )


def create(machine: Machine, wanted: Wanted, yes: bool, say: Say) -> Disk:
    """Make the tier; returns its disk. Idempotent: one that stands as asked for is left alone.

    :param yes: give up what lies on the flash, and take devices without a name by id.
    :param say: told what was chosen and why.
    :raises DeviceRefusedError: a device is in use, not empty, or misnamed.
    :raises CardError: the card has no room, or something else under that name.
    """
    need_root(machine)
    _check_name(wanted.disk)
    origin, device = (devices.look(machine, one) for one in (wanted.origin, wanted.flash))
    if origin.node == device.node:
        raise DeviceRefusedError(f"--flash and --origin are the same device: {origin.node}")
    card = _card_of(machine, device)
    there = _standing(machine, card, wanted)
    if there is not None and card is not None:
        stands = cards.built(machine, card, there).stands()
        say(f"{there.device} stands as asked for: nothing changed" if stands else
            f"DISK {there.name} is there as asked for, but down: `hotset tier activate"
            f" {there.name}`; nothing changed")  # fmt: skip
        return there
    card = _after_a_cut(machine, card, wanted.disk)
    devices.check(origin, "origin", yes)
    if card is None:
        devices.check(device, "flash", yes)
    elif not devices.ours(device):
        raise DeviceRefusedError(f"--flash {device.path} is in use: {'; '.join(device.uses)}")
    chosen = _choose(wanted, card, device, origin)
    for reason in chosen.reasons:
        say(reason)
    new = card is None
    card, disk = _allocated(machine, card, wanted, chosen, device)
    if new:
        _empty(machine, device, say)
    return _make(machine, card, disk, say)


def _make(machine: Machine, card: Card, disk: Disk, say: Say) -> Disk:
    cards.save(machine, card.with_disk(replace(disk, made=False)))
    tier = cards.built(machine, card, disk)
    try:
        tier.prepare()
        tier.create()
    except BaseException as error:
        try:
            tier.discard()
            _give_back(machine, card, disk)
        except Exception as other:
            error.add_note(f"clean-up failed as well: {other}; the next create starts over")
        raise
    cards.save(machine, card.with_disk(disk))
    say(f"{disk.device} stands: the origin's data are on it as they were; from now on use it"
        f" instead of {disk.origin}, also in /etc/fstab")  # fmt: skip
    return disk


def _give_back(machine: Machine, card: Card, disk: Disk) -> None:
    """The card as it was before the disk; one that was made for it goes altogether."""
    card = card.without(disk.name)
    if not card.disks:
        flash.remove(machine, [card.volume_slice.name])
        card = replace(card, volume=())
    cards.save(machine, card)


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or _TAKEN.fullmatch(name):
        raise CardError(
            f"DISK {name!r}: up to 32 small letters, digits and dashes, not `volume` and not ending"
            " in -meta, -cache or -backing"
        )


def _card_of(machine: Machine, device: Device) -> Card | None:
    """The card that this flash device is, if it is one."""
    for card in cards.standing(machine):
        node = machine.run(["readlink", "-f", str(card.flash)], check=False).stdout.strip()
        if card.flash == device.path or PurePosixPath(node) == device.node:
            return card
    return None


def _standing(machine: Machine, card: Card | None, wanted: Wanted) -> Disk | None:
    """The disk of that name, if it is what is asked for.

    :raises CardError: another disk has the name or the origin.
    """
    for other in cards.standing(machine):
        for disk in other.disks:
            if disk.name == wanted.disk and disk.made:
                cache = wanted.cache.align_up(UNIT)
                same = (disk.origin, disk.kind, disk.database, disk.spec.cache) == (
                    wanted.origin, wanted.kind, wanted.database, cache)  # fmt: skip
                if same and card == other and disk.spec.mode == (wanted.mode or disk.spec.mode):
                    return disk
                raise CardError(
                    f"DISK {disk.name}: there is one already ({disk.kind} over {disk.origin} on"
                    f" {other.flash}), not as asked for: take another name, or `hotset tier"
                    f" detach {disk.name}` first"
                )
            if disk.origin == wanted.origin and disk.name != wanted.disk:
                raise CardError(
                    f"--origin {wanted.origin} is accelerated already: DISK {disk.name}"
                )
    return None


def _after_a_cut(machine: Machine, card: Card | None, name: str) -> Card | None:
    """The card without what a creation that was cut short left of this disk."""
    left = next((one for one in card.disks if one.name == name), None) if card else None
    if card is None or left is None:
        return card
    cards.built(machine, card, left).discard()
    _give_back(machine, card, left)
    card = card.without(name)
    return card if card.disks else None


def _choose(wanted: Wanted, card: Card | None, device: Device, origin: Device) -> Choice:
    size = card.size if card else device.size
    volume = flash.total(card.volume) if card else (wanted.volume or Bytes(0)).align_up(UNIT)
    if card and wanted.volume is not None and wanted.volume.align_up(UNIT) != volume:
        raise CardError(
            f"--volume {wanted.volume}: the card's volume stands with {volume}, for all its disks;"
            " leave --volume out"
        )
    cache = wanted.cache.align_up(UNIT)
    chosen = choice.choose(wanted.kind, wanted.database, cache, volume, size, wanted.mode,
                           wanted.block)  # fmt: skip
    if origin.size < chosen.spec.block:
        raise DeviceRefusedError(
            f"--origin {origin.path} ({origin.size}) is smaller than one block of"
            f" {chosen.spec.block}"
        )
    return chosen


def _allocated(
    machine: Machine, card: Card | None, wanted: Wanted, chosen: Choice, device: Device
) -> tuple[Card, Disk]:
    """The card with the volume, and the disk with its parts of the flash; nothing is written."""
    spec = chosen.spec
    if card is None:
        names = {one.name for one in cards.standing(machine)}
        name = next(one for one in cards.names() if one not in names)
        card = Card(name, device.path, device.size, ())
        card = replace(card, volume=cards.take(card.free(), spec.volume, "VOLUME"))
    metadata = cards.take(card.free(), spec.metadata, "METADATA")
    disk = Disk(wanted.disk, wanted.kind, wanted.database, wanted.origin, spec, metadata, ())
    cache = cards.take(card.with_disk(disk).free(), spec.cache, "CACHE")
    identity = str(uuid.uuid4()) if wanted.kind == "bcache" else ""
    return card, replace(disk, cache=cache, identity=identity)


def _empty(machine: Machine, device: Device, say: Say) -> None:
    """Blank a flash device that becomes a card; what is given up was agreed to."""
    if device.signatures:
        say(f"{device.path}: giving up {', '.join(device.signatures)}")
        machine.run(["wipefs", "--all", "--force", str(device.node)])
    flash.wipe(machine, device.path, [flash.Part(Bytes(0), UNIT)])
