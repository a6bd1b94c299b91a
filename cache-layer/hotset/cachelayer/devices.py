"""Which devices hotset may write to: named by the user, by id, and with nothing on them.

A device with a mount, a holder, a partition table or a signature is refused; what is in use stays
refused, what merely lies there may be given up with ``--yes``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Literal

from hotset.cachelayer.flash import PREFIX
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.units import Bytes

Role = Literal["origin", "flash"]
BY_ID = PurePosixPath("/dev/disk/by-id")
FILE_SYSTEMS = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs"))
"""What an origin is meant to carry."""
_TABLES = frozenset(("gpt", "dos", "PMBR"))


class DeviceRefusedError(ValueError):
    """A device may not be used; the message says what is on it and what to do."""


@dataclass(frozen=True, slots=True)
class Device:
    """A block device of a machine as it was found.

    ``node`` is its kernel name (``/dev/sda``); ``uses`` says who has it open, in words;
    ``signatures`` are the types that libblkid knows, partition tables among them; ``parts`` are
    its partitions.
    """

    path: PurePosixPath
    node: PurePosixPath
    by_id: tuple[PurePosixPath, ...]
    size: Bytes
    uses: tuple[str, ...]
    signatures: tuple[str, ...]
    parts: tuple[str, ...]
    readable: bool


def look(machine: Machine, path: PurePosixPath) -> Device:
    """Look at a device; nothing is changed.

    :raises DeviceRefusedError: there is no such block device.
    """
    if machine.run(["test", "-b", str(path)], check=False).rc:
        raise DeviceRefusedError(
            f"{path}: no such block device on {machine.kind}; `ls -l {BY_ID}` shows what there is"
        )
    node = PurePosixPath(machine.run(["readlink", "-f", str(path)]).stdout.strip())
    argv = ["lsblk", "--json", "--bytes", "--output", "NAME,TYPE,SIZE,MOUNTPOINTS", str(node)]
    tree = json.loads(machine.run(argv).stdout)["blockdevices"][0]
    found = machine.run(["find", "-L", str(BY_ID), "-samefile", str(node)], check=False).stdout
    wiped = machine.run(["wipefs", "--json", str(node)], check=False, timeout_s=30)
    listed = json.loads(wiped.stdout)["signatures"] if wiped.stdout.strip() else []
    children = tree.get("children", [])
    parts = tuple(one["name"] for one in children if one["type"] == "part")
    return Device(
        path, node, tuple(PurePosixPath(one) for one in sorted(found.split())),
        Bytes(int(tree["size"])), tuple(_uses(tree)),
        tuple(dict.fromkeys(str(one["type"]) for one in listed)), parts, wiped.rc == 0,
    )  # fmt: skip


def every(machine: Machine) -> list[Device]:
    """The machine's block devices and their partitions by the names that stay with them, without
    hotset's own; nothing is changed."""
    listed = json.loads(machine.run(["lsblk", "--json", "--bytes", "--list", "--output",
                                     "PATH,TYPE,SIZE"]).stdout)["blockdevices"]  # fmt: skip
    own = f"/dev/mapper/{PREFIX}"
    names = dict.fromkeys(
        PurePosixPath(one["path"]) for one in listed
        if one["type"] != "rom" and int(one["size"]) and not one["path"].startswith(own)
    )  # fmt: skip
    found = [look(machine, name) for name in names]
    return [replace(one, path=_best(one.by_id)) if one.by_id else one for one in found]


def _uses(tree: dict[str, Any]) -> Iterator[str]:
    """Mounts of the device and of all that lies on it, and its holders but for partitions."""
    for point in tree.get("mountpoints", ()):
        if point:
            where = "is swap space" if point == "[SWAP]" else f"is mounted on {point}"
            yield f"{tree['name']} {where}"
    for child in tree.get("children", ()):
        if child["type"] != "part":
            yield f"{tree['name']} is held by {child['name']} ({child['type']})"
        yield from _uses(child)


def named_by_id(device: Device, option: str, yes: bool) -> None:
    """See that the name stays with the disk: /dev/sda may be another one after a reboot.

    :param option: where the name was given, with what stands before it: ``--flash `` .
    :raises DeviceRefusedError: another name was given; offers the right one. ``--yes`` helps only
        where the device has no name by id.
    """
    if device.path.parent == BY_ID:
        return
    if device.by_id:
        raise DeviceRefusedError(
            f"{option}{device.path}: that name may lead to another disk after a reboot;"
            f" write {option}{_best(device.by_id)}"
        )
    if not yes:
        raise DeviceRefusedError(
            f"{option}{device.path} has no name in {BY_ID}: it may be another device after a"
            " reboot; if you know better, add --yes"
        )


def check(device: Device, role: Role, yes: bool, option: str | None = None) -> None:
    """See that a device may be used as the origin (where a file system is welcome) or as flash
    (where all is written over).

    :param option: where the name was given, if not by an option of the role's name.
    :raises DeviceRefusedError: says what is on it and what to do.
    """
    given = f"--{role} " if option is None else option
    named_by_id(device, given, yes)
    option = f"{given}{device.path}"
    if device.uses:
        remedy = "unmount it first" if role == "origin" else "free it first"
        raise DeviceRefusedError(f"{option} is in use: {'; '.join(device.uses)}: {remedy}")
    if not device.readable:
        raise DeviceRefusedError(f"{option} cannot be read: see the kernel's log")
    welcome = FILE_SYSTEMS if role == "origin" else frozenset[str]()
    found = [name for name in device.signatures if name not in welcome]
    if yes or not (found or device.parts):
        return
    tables = [name for name in found if name in _TABLES]
    what = ", ".join(found) or "partitions"
    if role == "flash":
        raise DeviceRefusedError(f"{option} is not empty: {what} on it; --yes gives that up")
    if tables or device.parts:
        parts = ", ".join(device.parts) or "none"
        raise DeviceRefusedError(
            f"{option} has a partition table ({what}; partitions: {parts}): name the partition"
            " that carries the database, or add --yes to accelerate the whole disk"
        )
    raise DeviceRefusedError(
        f"{option} carries {what}, not a file system: others may claim it beside the tier;"
        " --yes if that is meant"
    )


def answers(machine: Machine, device: PurePosixPath) -> bool:
    """Whether a device is there and its first sectors can be read."""
    argv = ["dd", f"if={device}", "of=/dev/null", "bs=4096", "count=1", "iflag=direct",
            "status=none"]  # fmt: skip
    return machine.run(argv, check=False, timeout_s=20).rc == 0


def mounts(machine: Machine, device: PurePosixPath) -> tuple[str, ...]:
    """Who has one of hotset's own devices in use, in words."""
    if machine.run(["test", "-b", str(device)], check=False).rc:
        return ()
    argv = ["lsblk", "--json", "--bytes", "--output", "NAME,TYPE,SIZE,MOUNTPOINTS", str(device)]
    return tuple(_uses(json.loads(machine.run(argv).stdout)["blockdevices"][0]))


def ours(device: Device) -> bool:
    """Whether all that holds the device are hotset's own slices."""
    return all(f"is held by {PREFIX}" in use for use in device.uses[:1])


def _best(names: tuple[PurePosixPath, ...]) -> PurePosixPath:
    """The name people know: of the bus, not of the World Wide Name."""
    return min(names, key=lambda path: (path.name.startswith(("wwn-", "dm-", "nvme-eui")), path))
