"""``hotset tier create``: a tier over an origin whose data stay where they are.

Everything is looked at before anything is written; then the label comes first, so that what a
killed creation left is known to the next one, which starts over.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from hotset.block import devicemapper, devices, programs
from hotset.block.devicemapper import RESERVED, UNIT, Part, total
from hotset.block.devices import Confirm, Device, DeviceRefusedError
from hotset.core.errors import Remedy
from hotset.core.machines.base import Machine
from hotset.core.units import Bytes
from hotset.tier import kinds
from hotset.tier.base import TierKind, TierSpec, WriteMode
from hotset.tier.choice import Choice, DatabaseKind

from . import flash_devices, prerequisites, room, sizing
from .boot import fstab, program, proof, startup, systemd_unit, udev
from .flash_devices import AttachedDisk, Disk, FlashDevice, FlashError
from .identity import origin as origins
from .identity import reservation

Say = Callable[[str], None]
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
_TAKEN = re.compile(r"volume(-.*)?|flat|.*-(meta|cache|backing)")


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """Parameters of a creation; None leaves it to the kind of database (``volume``: to the flash).

    ``reserve``: keep other hosts from writing to the origin, where the storage can do that;
    ``break_reservation``: also if another host holds that right now.
    """

    disk: str
    flash: PurePosixPath
    origin: PurePosixPath
    kind: TierKind
    database: DatabaseKind
    cache: Bytes
    volume: Bytes | None = None
    mode: WriteMode | None = None
    block: Bytes | None = None
    reserve: bool = True
    break_reservation: bool = False
    policy: str | None = None
    database_size: Bytes | None = None


def create(
    machine: Machine, wanted: CreateRequest, yes: bool, say: Say, confirm: Confirm | None = None
) -> Disk:
    """Make the tier; returns its disk. Idempotent: one that exists as requested is left alone.

    :param yes: overwrite what lies on the flash, take devices without a name by id, and change
        /etc/fstab where it would mount the origin.
    :param say: told what was chosen and why.
    :param confirm: asked before something is overwritten, with the device and what lies on it.
    :raises DeviceRefusedError: a device is in use, not empty, or misnamed.
    :raises FlashError: the flash has no room, or something else under that name.
    """
    flash_devices.need_root(machine)
    _check_name(wanted.disk)
    origin, device = _inspect(machine, wanted)
    flash = _flash_of(machine, device)
    _check_kind(flash, wanted)
    existing = _existing(machine, flash, wanted)
    if existing is not None and flash is not None:
        return _keep_existing(AttachedDisk(machine, flash, existing), wanted, yes, say)
    if flash is not None:
        flash_devices.require_ours(machine, flash)
        disk = next((disk for disk in flash.disks if disk.name == wanted.disk), None)
        if disk is not None:
            left = AttachedDisk(machine, flash, disk)
            if _is_finished(left, say):
                ready = left.with_disk(replace(disk, phase="ready"))
                return _mount_if_active(ready, wanted, yes, say)
            flash = _undo(left)
            # What was left is gone now.
            origin, device = _inspect(machine, wanted)
    _check_means(machine, wanted.kind, flash, device, origin, yes, say)
    chosen = _choose(wanted, flash, device, origin)
    _explain(chosen, wanted, origin, say)
    room.check_memory(machine, wanted.kind, chosen.spec, origin.size, yes, say)
    entries = _entries(machine, wanted, yes, say)
    new = flash is None
    attached = _allocate(machine, flash, wanted, chosen, device, say)
    # Reservations are of disks.
    reserve = wanted.reserve and not origin.is_file
    attached = attached.with_disk(replace(attached.disk, reserve=reserve))
    if new:
        device = _agree(machine, device, yes, say, confirm)
    _reserve_room(attached, device, yes, say)
    with _reserved(attached, wanted, say):
        if new:
            _empty(machine, device)
        _make(attached, say)
    if entries:
        startup.set_up(flash_devices.find(machine, attached.disk.name), say)
    return attached.disk


def _entries(
    machine: Machine, wanted: CreateRequest, yes: bool, say: Say
) -> tuple[fstab.Entry, ...]:
    return startup.check(machine, wanted.disk, wanted.kind, wanted.origin, yes, say)


def _inspect(machine: Machine, wanted: CreateRequest) -> tuple[Device, Device]:
    """The origin and the flash device.

    :raises DeviceRefusedError: they are one.
    """
    origin, flash = (devices.inspect(machine, path) for path in (wanted.origin, wanted.flash))
    if origin.node == flash.node:
        raise DeviceRefusedError(
            f"flash and origin are the same device: {origin.node}", field="flash"
        )
    return origin, flash


def _keep_existing(attached: AttachedDisk, wanted: CreateRequest, yes: bool, say: Say) -> Disk:
    """A disk that exists as requested."""
    disk = _mount_if_active(attached, wanted, yes, say)
    if attached.tier.is_active():
        say(f"{disk.device} is active as requested: nothing changed")
    else:
        say(
            f"disk {disk.name} is set up as requested, but not active: activate it; nothing changed"
        )
    return disk


def _mount_if_active(attached: AttachedDisk, wanted: CreateRequest, yes: bool, say: Say) -> Disk:
    """The last step of a creation, which may have been cut short before it: /etc/fstab would still
    mount the origin."""
    if attached.tier.is_active() and _entries(attached.machine, wanted, yes, say):
        startup.set_up(attached, say)
    return attached.disk


def _check_kind(flash: FlashDevice | None, wanted: CreateRequest) -> None:
    """:raises FlashError: the flash device has tiers that are made by other means."""
    if flash is None or kinds.kind_of_name(wanted.kind).made_by == flash.devices:
        return
    others = "caches in user space" if flash.devices == "loop" else "caches of the kernel's"
    raise FlashError(
        f"{flash.path} (flash device {flash.name}) has {others}, and one has either those or the"
        " others: use the same kind, or another flash device",
        field="kind",
    )


def _explain(chosen: Choice, wanted: CreateRequest, origin: Device, say: Say) -> None:
    for reason in chosen.reasons:
        say(reason)
    if chosen.spec.cache > origin.size:
        say(
            f"the cache ({chosen.spec.cache}) is larger than {origin.path} ({origin.size}): what is"
            " more stays empty"
        )
    if origin.is_partitioned:
        device = flash_devices.device_of(wanted.kind, wanted.disk)
        shown = (
            f"`kpartx -a {device}`" if kinds.kind_of_name(wanted.kind).in_kernel else "the kernel"
        )
        say(
            f"{origin.path} is partitioned: mount its partitions from {device} from now on, where"
            f" {shown} shows them (`lsblk {device}`)"
        )
    if "LVM2_member" in origin.signatures:
        say(
            f"{origin.path} is a physical volume: udev no longer hands it to LVM, but LVM's own"
            f' commands look at every disk. Put `global_filter = [ "r|^{origin.path}$|" ]` into'
            " /etc/lvm/lvm.conf: `vgchange -a y` would use old data while the tier is down"
        )


def _check_means(
    machine: Machine,
    kind: TierKind,
    flash: FlashDevice | None,
    device: Device,
    origin: Device,
    yes: bool,
    say: Say,
) -> None:
    """:raises RequestError: the devices do not fit the kind, or each other, or may not be used.
    :raises PrerequisiteMissingError: the machine cannot have a tier of that kind.
    """
    _check_files(kind, origin, device)
    prerequisites.require(machine, kind)
    _check_devices(machine, flash, device, origin, yes)
    room.check(machine, kind, device, origin, yes, say)


def _reserve_room(attached: AttachedDisk, device: Device, yes: bool, say: Say) -> None:
    """Have the room of all that the disk writes on the flash."""
    flash, disk = attached.flash, attached.disk
    parts = (Part(Bytes(0), RESERVED), *flash.volume, *disk.metadata, *disk.cache)
    room.reserve(attached.machine, device.node, parts, yes, say)


def _check_files(kind: TierKind, origin: Device, device: Device) -> None:
    """:raises DeviceRefusedError: a file in the place of a device, and the kernel wants one."""
    for field, given in (("origin", origin), ("flash", device)):
        if given.is_file and not kinds.kind_of_name(kind).takes_files:
            raise DeviceRefusedError(
                f"{given.path} is a file, and {kind} works on block devices: show it as one"
                " (losetup --find --show FILE)",
                Remedy("cache a file in user space", parameters={"kind": "userspace"}),
                field=field,
            )


def _check_devices(
    machine: Machine, flash: FlashDevice | None, device: Device, origin: Device, yes: bool
) -> None:
    """:raises DeviceRefusedError, InUseError: one of them may not be used."""
    devices.check(machine, origin, "origin", yes)
    if flash is not None:
        if not devices.ours(device):
            raise DeviceRefusedError(
                f"{device.path} is in use: {'; '.join(device.uses)}", field="flash"
            )
        return
    labelled = flash_devices.read_flash(machine, device.node)
    if labelled is not None:
        disks = ", ".join(disk.name for disk in labelled.disks) or "none"
        raise DeviceRefusedError(
            f"{device.path} has a label of hotset's: flash device {labelled.name} of"
            f" {labelled.host_name}, disks: {disks}; it may hold writes that their origins lack",
            Remedy("make it known here", "tier import", {"flash": str(device.path)}),
            Remedy("use it again after that", "tier destroy", {"flash_name": labelled.name}),
            field="flash",
        )
    devices.check(machine, device, "flash", yes)


@contextmanager
def _reserved(attached: AttachedDisk, wanted: CreateRequest, say: Say) -> Iterator[None]:
    """The origin is this machine's alone, unless what is done meanwhile makes no tier."""
    disk = attached.disk
    if disk.reserve:
        say(reservation.describe(attached.machine, disk.origin, by_force=wanted.break_reservation))
    try:
        yield
    except BaseException as error:
        try:
            if not attached.tier.is_active():
                reservation.give_back(attached.machine, disk.origin)
        except Exception as other:
            error.add_note(f"{disk.origin} is still reserved: {other}")
        raise


def _make(attached: AttachedDisk, say: Say) -> None:
    machine, disk = attached.machine, attached.disk
    udev.prepare(attached)
    had_volume = flash_devices.volume_is_active(machine, attached.flash)
    creating = attached.with_disk(replace(disk, phase="creating")).save()
    systemd_unit.count_starts(machine)
    program.mark(creating, "active")
    tier = creating.tier
    try:
        tier.prepare()
        # On record as ready before anybody can write to it.
        _ready(creating)
        tier.create()
    except BaseException as error:
        try:
            _undo(creating, had_volume)
        except Exception as other:
            error.add_note(f"clean-up failed as well: {other}; the next create starts over")
        raise
    say(
        f"{disk.device} is active, with the origin's data unchanged: from now on use it instead of"
        f" {disk.origin}"
    )


def _ready(creating: AttachedDisk) -> None:
    """Cut short before, the next creation starts over."""
    udev.hide_origin(creating)
    ready = creating.with_disk(replace(creating.disk, phase="ready"))
    flash_devices.save(ready.machine, replace(ready.flash, new=False))


def _is_finished(left: AttachedDisk, say: Say) -> bool:
    """True if a creation of an earlier hotset, cut short, had come so far that the device may be in
    use."""
    disk = left.disk
    if disk.phase != "creating":
        raise FlashError(
            f"the detach of disk {disk.name} was cut short",
            Remedy("end it", "tier detach", {"disk": disk.name}),
            field="disk",
        )
    if not left.tier.is_active():
        return False
    _ready(left)
    say(f"{disk.device} is active: its creation had been cut short at the very end")
    return True


def _undo(left: AttachedDisk, had_volume: bool = True) -> FlashDevice | None:
    """The flash device as it was before the creation of a disk that failed or was cut short; None
    if it got its label for that disk, and so has none any more.

    :param had_volume: the volume's device was there before; of a creation that was killed nobody
        knows, and it does no harm.
    """
    machine, tier = left.machine, left.tier
    tier.discard()
    tier.uninstall()
    udev.show_origin(left)
    flash = left.flash.without(left.disk.name)
    if flash.new or not (had_volume or programs.users(machine, flash.volume_slice.path)):
        flash_devices.remove_volume(machine, flash)
    if flash.new:
        flash = replace(flash, volume=())
    flash = flash_devices.save(machine, flash)
    udev.forget(machine, flash_devices.inventory(machine))
    return flash if flash.disks or flash.volume else None


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name) or _TAKEN.fullmatch(name):
        raise FlashError(
            f"{name!r} is not a disk name: up to 32 lower-case letters, digits and dashes, not"
            " `volume` and not ending in -meta, -cache or -backing",
            field="disk",
        )


def _flash_of(machine: Machine, device: Device) -> FlashDevice | None:
    """A device as the flash device that it is on this machine; None if it is none yet."""
    for flash in flash_devices.list_all(machine):
        node = machine.run(["readlink", "-f", str(flash.path)], check=False).stdout.strip()
        if flash.path == device.path or PurePosixPath(node) == device.node:
            return flash
    labelled = flash_devices.read_flash(machine, device.node) if device.readable else None
    if labelled is None or not flash_devices.is_ours(machine, labelled):
        return None
    # Of a first creation that was cut short before its copy in /etc was written.
    is_cut_short = all(disk.phase == "creating" for disk in labelled.disks)
    return replace(labelled, path=device.path) if is_cut_short else None


def _existing(machine: Machine, flash: FlashDevice | None, wanted: CreateRequest) -> Disk | None:
    """The disk of that name, if it is what is asked for.

    :raises FlashError: another disk has the name or the origin.
    """
    for other in flash_devices.list_all(machine):
        for disk in other.disks:
            if disk.name == wanted.disk and disk.phase == "ready":
                cache = wanted.cache.align_up(UNIT)
                same = (disk.kind, disk.database, disk.spec.cache) == (
                    wanted.kind,
                    wanted.database,
                    cache,
                ) and origins.same(machine, disk.origin, wanted.origin)
                if same and flash == other and disk.spec.mode == (wanted.mode or disk.spec.mode):
                    return disk
                raise FlashError(
                    f"there is a disk {disk.name} already ({disk.kind} over {disk.origin} on"
                    f" {other.path}), set up otherwise: take another name",
                    Remedy("remove that one", "tier detach", {"disk": disk.name}),
                    field="disk",
                )
            if disk.name != wanted.disk and origins.same(machine, wanted.origin, disk.origin):
                raise FlashError(
                    f"{wanted.origin} is accelerated already, as disk {disk.name} over"
                    f" {disk.origin}",
                    field="origin",
                )
    return None


def _choose(
    wanted: CreateRequest, flash: FlashDevice | None, device: Device, origin: Device
) -> Choice:
    size = flash.size if flash else device.size
    volume = total(flash.volume) if flash else (wanted.volume or Bytes(0)).align_up(UNIT)
    if flash and wanted.volume is not None and wanted.volume.align_up(UNIT) != volume:
        raise FlashError(
            f"a volume of {wanted.volume} is not possible: the flash has one of {volume}, for all"
            " its disks; leave it out",
            field="volume",
        )
    cache = wanted.cache.align_up(UNIT)
    chosen = sizing.choose(
        wanted.kind,
        wanted.database,
        cache,
        volume,
        # Of one that is too small, what the next larger one would need is told.
        max(size, Bytes(cache + volume)),
        wanted.mode,
        wanted.block,
        wanted.policy,
        wanted.database_size,
    )
    if origin.size < chosen.spec.block:
        raise DeviceRefusedError(
            f"{origin.path} ({origin.size}) is smaller than one block of {chosen.spec.block}",
            field="origin",
        )
    return chosen


def _allocate(
    machine: Machine,
    flash: FlashDevice | None,
    wanted: CreateRequest,
    chosen: Choice,
    device: Device,
    say: Say,
) -> AttachedDisk:
    """The disk with its parts of the flash, and the flash device with them; nothing is written."""
    spec = chosen.spec
    if spec.mode == "writeback":
        through = Remedy("hold no writes back", parameters={"mode": "writethrough"})
        proof.require(machine, wanted.origin, "write-back", "origin", say, through)
    if flash is None:
        name = flash_devices.new_name(machine)
        made_by = kinds.kind_of_name(wanted.kind).made_by
        flash = FlashDevice(name, device.path, device.size, (), devices=made_by, new=True)
        _check_room(flash, spec)
        flash = replace(
            flash, volume=flash_devices.take(flash.free(), spec.volume, "a volume", "volume")
        )
    metadata = flash_devices.take(flash.free(), spec.metadata, "metadata", "cache")
    disk = Disk(
        wanted.disk,
        wanted.kind,
        wanted.database,
        wanted.origin,
        spec,
        metadata,
        (),
        str(uuid.uuid4()),
        record=flash.free_record(),
        origin_id=origins.identify(machine, wanted.origin),
    )
    attached = AttachedDisk(machine, flash, disk).with_disk(disk)
    cache = flash_devices.take(attached.flash.free(), spec.cache, "a cache", "cache")
    return attached.with_disk(replace(disk, cache=cache))


def _check_room(flash: FlashDevice, spec: TierSpec) -> None:
    """:raises FlashError: a flash device that is nobody's yet is too small; names what would do."""
    rest, size = RESERVED + spec.metadata + spec.volume, flash.size.align_down(UNIT)
    if rest + spec.cache <= size:
        return
    volume = f", {spec.volume} of volume" if spec.volume else ""
    left = Bytes(max(0, size - rest))
    remedy = f"make the cache at most {left}, or name" if left else "name"
    raise FlashError(
        f"a cache of {spec.cache} does not fit {flash.path} ({flash.size}): with {spec.metadata} of"
        f" metadata{volume} and hotset's label it needs {Bytes(rest + spec.cache)}; {remedy} a"
        " larger flash device",
        field="cache" if left else "flash",
    )


def _agree(
    machine: Machine, device: Device, yes: bool, say: Say, confirm: Confirm | None
) -> Device:
    """The device that is to be the flash, as it is now; that what is on it goes was agreed to."""
    # Looked at again: time has passed since.
    now = devices.inspect(machine, device.path)
    devices.check(machine, now, "flash", yes)
    devices.overwrite(now, say, confirm)
    return now


def _empty(machine: Machine, device: Device) -> None:
    # Without --force: it claims the device (O_EXCL), so one who took it meanwhile keeps it.
    machine.run(["wipefs", "--all", str(device.node)])
    devicemapper.wipe(machine, device.path, [Part(Bytes(0), UNIT)])
