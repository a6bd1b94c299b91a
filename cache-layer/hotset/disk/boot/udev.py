"""Rules that keep others off what is hotset's own: the inner devices, and an origin's file system
while its tier is down. And one that has systemd know the devices of tiers in user space.

Inner devices have a device-mapper UUID with a prefix of ours, as LVM's and Stratis' have one of
theirs; the flags are those that the device mapper's own rules (lvm2) look at. Without a rule the
first cache block, which may hold the origin's superblock, is a second file system with its UUID.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import PurePosixPath
from typing import assert_never

from hotset.block import loop
from hotset.block.devicemapper import PRIVATE
from hotset.core.errors import HotsetError
from hotset.core.machines import locks
from hotset.core.machines.base import Machine, PrerequisiteMissingError
from hotset.tier import kinds

from ..flash_devices import AttachedDisk, Inventory
from ..identity import origin as identity
from ..identity import reservation
from ..identity.origin import Shown

FOLDER = PurePosixPath("/etc/udev/rules.d")
_INNER = (FOLDER / "11-dm-hotset.rules", FOLDER / "56-dm-hotset.rules")
"""Between 10-dm.rules and 13-dm-disk.rules, and between 55-dm.rules and
60-persistent-storage-dm.rules, as Debian calls them."""
_INNER_RULES = f"""\
# Written by hotset: the parts of its tiers are nobody else's to look at.
SUBSYSTEM=="block", ATTR{{dm/uuid}}=="{PRIVATE}*", ENV{{DM_UDEV_DISABLE_DISK_RULES_FLAG}}="1", \
ENV{{DM_UDEV_DISABLE_SUBSYSTEM_RULES_FLAG}}="1", ENV{{DM_UDEV_DISABLE_OTHER_RULES_FLAG}}="1", \
ENV{{ID_FS_TYPE}}="hotset", ENV{{SYSTEMD_READY}}="0", ENV{{UDISKS_IGNORE}}="1"
"""

_DEVICES = FOLDER / "99-hotset.rules"
_OF_UBLK = f'SUBSYSTEM=="block", KERNEL=="ublkb[0-9]*", ENV{{SYSTEMD_ALIAS}}=="*{loop.FOLDER}/*"'
_DEVICE_RULES = f"""\
# Written by hotset: a loop or ublk device that it names is a device to systemd, for which a mount
# can wait. An older udev makes no links by what lies on a ublk device.
SUBSYSTEM=="block", KERNEL=="loop[0-9]*|ublkb[0-9]*", TEST=="{loop.FOLDER}", \
PROGRAM=="/usr/bin/find {loop.FOLDER} -lname $devnode", RESULT=="?*", ENV{{SYSTEMD_ALIAS}}+="%c"
{_OF_UBLK}, IMPORT{{builtin}}="blkid"
{_OF_UBLK}, ENV{{ID_FS_USAGE}}=="filesystem|other|crypto", ENV{{ID_FS_UUID_ENC}}=="?*", \
SYMLINK+="disk/by-uuid/$env{{ID_FS_UUID_ENC}}"
"""

_TRIES, _LOOKS_S = 4, 3.5
"""On a busy computer udev has gone by the rules of before, for seconds after it was told of new
ones: seen with an iSCSI disk (systemd 257)."""


class OriginShownError(HotsetError):
    """Links by UUID or label lead to an origin; the message names them and says what to do."""


AWAY = locks.RUNTIME / "away"
"""A folder in it for each disk whose origin went away since the machine started: what the kernel
has counted of writes to it begins again when it comes back (``hotset-boot``)."""

_HIDE = (
    'SYMLINK-="disk/by-uuid/$env{ID_FS_UUID_ENC}", SYMLINK-="disk/by-label/$env{ID_FS_LABEL_ENC}",'
    ' ENV{UDISKS_IGNORE}="1"'
)
_NO_LVM = 'ENV{ID_FS_TYPE}=="LVM2_member", ENV{ID_FS_TYPE}="hotset"'
"""Else LVM makes a volume group's devices of an origin whose tier is down (69-lvm.rules)."""


def prepare(attached: AttachedDisk) -> None:
    """Have the rules for a disk's own devices; before the first of them is made."""
    machine = attached.machine
    if not _is_here(machine):
        return
    match kinds.kind_of_name(attached.disk.kind).made_by:
        case "loop":
            _write(machine, _DEVICES, _DEVICE_RULES)
        case "mapper":
            for path in _INNER:
                _write(machine, path, _INNER_RULES)
        case other:
            assert_never(other)


def hide_origin(attached: AttachedDisk) -> None:
    """Take the origin's file-system UUID and label from it and from every path to it, whether a
    multipath device has that path or not: they are to lead to the accelerated device, or nowhere
    while that is down.

    :raises CommandError: udev does not finish, so that nobody knows what it still links.
    :raises OriginShownError: its links lead to the origin all the same.
    """
    machine, disk = attached.machine, attached.disk
    if not disk.origin.is_relative_to("/dev") or not _is_here(machine):
        return  # a file, which udev does not know
    shown = identity.show(machine, disk.origin)
    paths = _paths(shown)
    matches = [*_rules_by_name(machine, disk.origin), *paths]
    rules = "".join(
        f'SUBSYSTEM=="block", {match}, {what}\n' for match in matches for what in (_HIDE, _NO_LVM)
    )
    join = reservation.for_new_path(machine, disk.origin) if disk.reserve else None
    if join:
        # Before udev tells multipathd of the path.
        run = f"RUN+=\"/bin/sh -c '{join.replace('$', '$$')}' hotset-path $devnode\""
        rules += "".join(f'ACTION=="add", SUBSYSTEM=="block", {match}, {run}\n' for match in paths)
    folders = f"{locks.RUNTIME} {AWAY} {AWAY / disk.name}"
    note = f'RUN+="/bin/mkdir -p -m 700 {folders}"'
    rules += "".join(
        f'ACTION=="remove", SUBSYSTEM=="block", {match}, {note}\n'
        for match in _whole(shown) or [*matches, f'ENV{{DEVNAME}}=="{disk.origin}"']
    )
    head = f"# Written by hotset: {disk.origin} is used through {disk.device} alone.\n"
    _write(machine, origin_rules(disk.name), head + rules)
    # Of before: LVM had looked at it by then.
    machine.run(["rm", "-f", str(FOLDER / f"99-hotset-{disk.name}.rules")])
    # Rules that were there already are applied as well: their writer may have been cut short
    # here. A path that udev is just looking at still gets the links of before, and is found only
    # once that has ended.
    _settle(machine, check=True)
    _apply(attached, shown)


def _apply(attached: AttachedDisk, shown: Shown | None) -> None:
    """Have the rules applied until no link by what lies on it leads to the origin.

    :raises OriginShownError: one still does.
    """
    machine, disk = attached.machine, attached.disk
    for attempt in range(_TRIES):
        if attempt:
            # udev looks no more often whether its rules have changed.
            time.sleep(_LOOKS_S)
            _udevadm(machine, "control", "--reload", check=True)
        _again(attached, shown)
        _settle(machine, check=True)
        if not _links(machine, disk.origin):
            return
    raise OriginShownError(
        f"udev still has {', '.join(_links(machine, disk.origin))} lead to {disk.origin}: a mount"
        " by that would find old data while the disk is down. Look why (udevadm test), then create"
        " or activate it again"
    )


def _links(machine: Machine, origin: PurePosixPath) -> list[str]:
    """List the links that udev makes to a device by its contents."""
    argv = ["udevadm", "info", "--query=symlink", str(origin)]
    try:
        links = machine.run(argv, check=False).stdout.split()
    except PrerequisiteMissingError:
        return []
    return [link for link in links if link.startswith(("disk/by-uuid/", "disk/by-label/"))]


def _rules_by_name(machine: Machine, origin: PurePosixPath) -> list[str]:
    """Match the origin by the name that the user gave it. The kernel's own may be another
    disk's after a boot, so its file system is looked at as well."""
    name = str(origin)
    patterns = "|".join((name, f"{name} *", f"* {name}", f"* {name} *"))
    argv = ["blkid", "--probe", "--output", "udev", name]
    lines = machine.run(argv, check=False).stdout.splitlines()
    uuid = next((line for line in lines if line.startswith("ID_FS_UUID_ENC=")), "").partition("=")[
        2
    ]
    by_node = [f'ENV{{DEVNAME}}=="{name}", ENV{{ID_FS_UUID_ENC}}=="{uuid}"'] if uuid else []
    return [f'ENV{{DEVLINKS}}=="{patterns}"', *by_node]


def _paths(origin: Shown | None) -> list[str]:
    """Match every path to it: by its World Wide Name, and its partition's UUID."""
    if origin is None or origin.partition == origin.number:
        return []
    partition = f'ENV{{ID_PART_ENTRY_UUID}}=="{origin.partition}"'
    return [f"{rule}, {partition}" for wwn in sorted(origin.wwns) for rule in _by_wwn(wwn)]


def _whole(origin: Shown | None) -> list[str]:
    """Match every path to the disk that an origin is a partition of, as far as that has a
    World Wide Name: a partition itself goes and comes whenever the table is read again, and its
    disk's count of writes goes on."""
    if origin is None or not origin.partition:
        return []
    is_disk = 'ENV{DEVTYPE}=="disk"'
    return [f"{is_disk}, {rule}" for wwn in sorted(origin.wwns) for rule in _by_wwn(wwn)]


def _by_wwn(wwn: str) -> tuple[str, str]:
    return (
        f'ENV{{ID_WWN_WITH_EXTENSION}}=="{wwn}"',
        f'ENV{{ID_WWN_WITH_EXTENSION}}=="", ENV{{ID_WWN}}=="{wwn}"',
    )


def show_origin(attached: AttachedDisk) -> None:
    """The origin is a plain disk again."""
    machine, disk = attached.machine, attached.disk
    if machine.run(["test", "-e", str(origin_rules(disk.name))], check=False).rc == 0:
        machine.run(["rm", "-f", str(origin_rules(disk.name))])
        _udevadm(machine, "control", "--reload")
        _again(attached, identity.show(machine, disk.origin))
        _settle(machine)


def forget(machine: Machine, inventory: Inventory) -> None:
    """Take away the rules that none of the machine's flash devices needs any more."""
    if inventory.problems:
        return  # a flash device that cannot be read may need them
    needed = {
        path
        for flash in inventory.flash_devices
        for path in ([_DEVICES] if flash.devices == "loop" else _INNER if flash.disks else [])
    }
    rules = [path for path in (_DEVICES, *_INNER) if path not in needed]
    files = [
        str(rule) for rule in rules if machine.run(["test", "-e", str(rule)], check=False).rc == 0
    ]
    if files:
        machine.run(["rm", "-f", *files])
        _udevadm(machine, "control", "--reload")


def origin_rules(disk: str) -> PurePosixPath:
    """The file of the rule that hides the origin of a disk of this name: after those that look what
    is on it, before those that make something of it."""
    return FOLDER / f"65-hotset-{disk}.rules"


def _is_here(machine: Machine) -> bool:
    """Without udev there is nobody to keep away."""
    return machine.run(["test", "-d", str(FOLDER)], check=False).rc == 0


def _write(machine: Machine, path: PurePosixPath, text: str) -> None:
    if machine.run(["cat", str(path)], check=False).stdout != text:
        machine.replace(text, path)
        _udevadm(machine, "control", "--reload")


def _again(attached: AttachedDisk, origin: Shown | None) -> None:
    """Have the rules applied to the origin now, and to every path to it."""
    trigger = ("trigger", "--action=change")
    _udevadm(attached.machine, *trigger, str(attached.disk.origin))
    for wwn in sorted(origin.wwns) if origin else ():
        keys = ("ID_WWN_WITH_EXTENSION", "ID_WWN")
        names = [f"--property-match={key}={wwn}" for key in keys]
        _udevadm(attached.machine, *trigger, "--subsystem-match=block", *names)


def _settle(machine: Machine, check: bool = False) -> None:
    """Wait until udev has looked at all that came and changed."""
    _udevadm(machine, "settle", "--timeout=60", check=check)


def _udevadm(machine: Machine, *words: str, check: bool = False) -> None:
    # Where it is not installed nobody makes links by UUID either.
    with suppress(PrerequisiteMissingError):
        machine.run(["udevadm", *words], check=check)
