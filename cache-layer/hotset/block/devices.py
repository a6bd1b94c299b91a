"""Which devices hotset may write to: named by the user, by id, and with nothing on them.

A device with a mount, a holder, a partition table or a signature is refused; what is in use stays
refused; what merely lies there is overwritten only when the caller says yes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any, Literal

from hotset.core.errors import Remedy, RequestError
from hotset.core.machines.base import CommandError, CommandTimeoutError, Machine
from hotset.core.units import Bytes

from . import label, programs
from .devicemapper import PREFIX

Role = Literal["origin", "flash"]
Confirm = Callable[[str, str], None]
"""Called with a device's name and what lies on it; raises unless that may be overwritten."""
_ANSWER_S = 20.0
BY_ID = PurePosixPath("/dev/disk/by-id")
FILE_SYSTEMS = frozenset(("ext2", "ext3", "ext4", "xfs", "btrfs"))
"""File systems that an origin may carry."""
_TABLES = frozenset(("gpt", "dos", "PMBR"))


class DeviceRefusedError(RequestError):
    """A device may not be used; the message says what is on it and what to do."""


_YES = {"yes": True}
OVERWRITE = Remedy("overwrite it", parameters=_YES)


@dataclass(frozen=True, slots=True)
class Device:
    """A block device of a machine as it was found, or a file in the place of one.

    ``node`` is its kernel name (``/dev/sda``); ``uses`` says who has it open, in words, as lsblk
    knows (who uses a file only :func:`hotset.block.programs.users` tells);
    ``signatures`` are the types that libblkid knows, partition tables among them; ``parts`` are
    its partitions. ``is_read_only``: the kernel takes no writes to it. ``model`` is
    its vendor's name and its own; it and ``serial`` are empty where the device tells none.
    """

    path: PurePosixPath
    node: PurePosixPath
    by_id: tuple[PurePosixPath, ...]
    size: Bytes
    uses: tuple[str, ...]
    signatures: tuple[str, ...]
    parts: tuple[str, ...]
    readable: bool
    is_read_only: bool
    is_file: bool = False
    model: str = ""
    serial: str = ""

    @property
    def known_as(self) -> str:
        """A device as people know it."""
        model = self.model or ("a file" if self.is_file else "no model name")
        serial = "" if self.is_file else f", serial {self.serial or 'none'}"
        return f"{self.path} ({model}{serial}, {self.size})"

    @property
    def is_partitioned(self) -> bool:
        return bool(self.parts or _TABLES.intersection(self.signatures))

    @property
    def holds(self) -> str:
        """Known contents: signatures and partitions."""
        contents = (*self.signatures, *(f"partition {part}" for part in self.parts))
        return ", ".join(contents) or "nothing known"


def type_of(machine: Machine, path: PurePosixPath) -> Literal["device", "file"] | None:
    """Classify a path: a block device, a file in the place of one, or neither."""
    if machine.run(["test", "-b", str(path)], check=False).rc == 0:
        return "device"
    return "file" if machine.run(["test", "-f", str(path)], check=False).rc == 0 else None


def inspect(machine: Machine, path: PurePosixPath) -> Device:
    """Describe a device and its users; nothing is changed.

    :raises DeviceRefusedError: there is no such block device.
    """
    type_ = type_of(machine, path)
    if type_ == "file":
        return _inspect_file(machine, path)
    if type_ is None:
        raise DeviceRefusedError(
            f"{path}: no such block device on {machine.kind}; `ls -l {BY_ID}` shows what there is"
        )
    node = PurePosixPath(machine.run(["readlink", "-f", str(path)]).stdout.strip())
    columns = "NAME,TYPE,SIZE,RO,MOUNTPOINTS,VENDOR,MODEL,SERIAL"
    argv = ["lsblk", "--json", "--bytes", "--output", columns, str(node)]
    tree = json.loads(machine.run(argv).stdout)["blockdevices"][0]
    known = [(tree.get(name) or "").strip() for name in ("vendor", "model")]
    output = machine.run(["find", "-L", str(BY_ID), "-samefile", str(node)], check=False).stdout
    readable, signatures = _signatures(machine, node)
    children = tree.get("children", [])
    parts = tuple(child["name"] for child in children if child["type"] == "part")
    return Device(
        path,
        node,
        tuple(PurePosixPath(link) for link in sorted(output.split())),
        Bytes(int(tree["size"])),
        tuple(_uses(tree)),
        signatures,
        parts,
        readable,
        # A flag, or a number of before util-linux 2.33.
        tree.get("ro") in (True, "1"),
        model=" ".join(part for part in known if part),
        serial=(tree.get("serial") or "").strip(),
    )


def _inspect_file(machine: Machine, path: PurePosixPath) -> Device:
    """A file that a cache in user space may use as it would a device."""
    node = PurePosixPath(machine.run(["readlink", "-f", str(path)]).stdout.strip())
    size = Bytes(int(machine.run(["stat", "--format=%s", str(node)]).stdout))
    readable, signatures = _signatures(machine, node)
    is_read_only = machine.run(["test", "-w", str(node)], check=False).rc != 0
    return Device(
        path,
        node,
        (),
        size,
        (),
        signatures,
        (),
        readable,
        is_read_only,
        is_file=True,
    )


def _signatures(machine: Machine, node: PurePosixPath) -> tuple[bool, tuple[str, ...]]:
    """Read a device's signatures; the first item is True if it can be read."""
    try:
        wiped = machine.run(["wipefs", "--json", str(node)], check=False, timeout_s=_ANSWER_S)
    except CommandTimeoutError:
        return False, ()
    listed = json.loads(wiped.stdout)["signatures"] if wiped.stdout.strip() else []
    signatures = [str(entry["type"]) for entry in listed]
    if _has_label(machine, node):
        signatures.append(label.SIGNATURE)
    return wiped.rc == 0, tuple(dict.fromkeys(signatures))


def _has_label(machine: Machine, node: PurePosixPath) -> bool:
    """True if hotset's label is on it: no device with one is empty."""
    try:
        return label.read(machine, node) is not None
    except label.LabelError:
        return True
    except (CommandError, CommandTimeoutError):
        return False  # whether it can be read is told apart


def every(machine: Machine) -> list[Device]:
    """The machine's block devices and their partitions by the names that stay with them, without
    hotset's own; nothing is changed."""
    listed = json.loads(
        machine.run(["lsblk", "--json", "--bytes", "--list", "--output", "PATH,TYPE,SIZE"]).stdout
    )["blockdevices"]
    own = f"/dev/mapper/{PREFIX}"
    # Of an engine's its device has another name; one that hangs blocks its readers.
    argv = ["find", "/dev/hotset", "-type", "l", "-exec", "readlink", "-f", "{}", "+"]
    served = machine.run(argv, check=False).stdout.split()
    names = dict.fromkeys(
        PurePosixPath(entry["path"])
        for entry in listed
        if entry["type"] != "rom"
        and int(entry["size"])
        and not entry["path"].startswith(own)
        and entry["path"] not in served
    )
    devices = [inspect(machine, name) for name in names]
    return [replace(device, path=lasting_name(device)) for device in devices]


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


def require_name_by_id(device: Device, field: str, yes: bool) -> None:
    """See that the name stays with the disk: /dev/sda may be another one after a reboot.

    :param field: where the name was given.
    :raises DeviceRefusedError: another name was given; offers the right one. ``yes`` helps only
        where the device has no name by id.
    """
    if device.path.parent == BY_ID or (device.is_file and device.path.is_absolute()):
        return
    if device.by_id:
        raise DeviceRefusedError(
            f"{device.path} may be another disk after a reboot: use {_best(device.by_id)}",
            field=field,
        )
    if not yes:
        if device.is_file:
            raise DeviceRefusedError(f"{device.path}: give the file's whole path", field=field)
        raise DeviceRefusedError(
            f"{device.path} has no name in {BY_ID}: it may be another device after a reboot",
            Remedy("use it all the same", parameters=_YES),
            field=field,
        )


def check(
    machine: Machine, device: Device, role: Role, yes: bool, field: str | None = None
) -> None:
    """See that a device may be used as the origin (where a file system is welcome) or as flash
    (where all is written over).

    :param field: where the name was given, if not in a field of the role's name.
    :raises DeviceRefusedError: says what is on it and what to do.
    :raises InUseError: somebody on the whole computer uses it: who has an origin goes on past the
        cache, which nobody could tell later.
    """
    field = field or role
    require_name_by_id(device, field, yes)
    if device.uses:
        remedy = "unmount it first" if role == "origin" else "free it first"
        raise DeviceRefusedError(
            f"{device.path} is in use: {'; '.join(device.uses)}: {remedy}", field=field
        )
    programs.require_unused(machine, device.node, field=field)
    if not device.readable:
        raise DeviceRefusedError(f"{device.path} cannot be read: see the kernel's log", field=field)
    if device.is_read_only:
        raise DeviceRefusedError(
            f"{device.path} is read-only: what is written to the cache could not be written back to"
            " it; have its storage take writes (`blockdev --getro` says 0 then)"
            if role == "origin"
            else f"{device.path} is read-only: name flash that can be written",
            field=field,
        )
    welcome = FILE_SYSTEMS if role == "origin" else frozenset[str]()
    signatures = [name for name in device.signatures if name not in welcome]
    if yes or not (signatures or device.parts):
        return
    what = ", ".join(signatures) or "partitions"
    if role == "flash":
        raise DeviceRefusedError(
            f"{device.known_as} is not empty: {what} on it", OVERWRITE, field=field
        )
    if device.is_partitioned:
        parts = ", ".join(device.parts) or "none"
        raise DeviceRefusedError(
            f"{device.path} has a partition table ({what}; partitions: {parts}): name the partition"
            " that holds the database",
            Remedy("accelerate the whole disk", parameters=_YES),
            field=field,
        )
    raise DeviceRefusedError(
        f"{device.path} holds {what}, not a file system: something else may claim it, too",
        Remedy("accelerate it all the same", parameters=_YES),
        field=field,
    )


def answers(machine: Machine, device: PurePosixPath) -> bool:
    """True if a device exists and its first sectors can be read."""
    words = ["bs=4096", "count=1", "iflag=direct", "status=noxfer"]
    argv = ["dd", f"if={device}", "of=/dev/null", *words]
    try:
        done = machine.run(argv, check=False, timeout_s=_ANSWER_S)
    except CommandTimeoutError:
        return False
    # Of a loop device without its file nothing is read, and that is no error: "0+0 records in".
    return done.rc == 0 and done.stderr.startswith("1+0 ")


def overwrite(device: Device, say: Callable[[str], None], confirm: Confirm | None) -> None:
    """Show what is about to be overwritten; where something lies on it, ask for it by name.

    :param confirm: whom to ask; None: nobody can be asked.
    """
    shown = f"{device.known_as}: {device.holds}"
    if confirm is not None and (device.signatures or device.parts):
        confirm(device.path.name, shown)
    say(f"overwritten: {shown}")


def ours(device: Device) -> bool:
    """True if slices of hotset's own are all that holds the device."""
    if device.is_file:
        return True  # its volume is behind a loop device
    # What lies on such a slice is used by others, and follows in the list.
    name = device.uses[0].partition(" ")[0] if device.uses else ""
    direct = [use for use in device.uses if use.startswith(f"{name} ")]
    return all(f" is held by {PREFIX}" in use for use in direct)


def lasting_name(device: Device) -> PurePosixPath:
    """The name to write down for a device: by id, or the one it was given by if it has none."""
    return _best(device.by_id) if device.by_id else device.path


def _best(names: tuple[PurePosixPath, ...]) -> PurePosixPath:
    """The name people know, of the bus and not the World Wide Name, unless it may move."""
    known = {path.name for path in names}
    return min(names, key=lambda path: (_rank(path.name, known), path))


def _rank(name: str, known: set[str]) -> int:
    """nvme-MODEL_SERIAL is the controller's: of several namespaces the one that udev looked at last
    has it (60-persistent-storage.rules of systemd), and nvme-MODEL_SERIAL_1 is the namespace's."""
    if name.startswith(("wwn-", "dm-")):
        return 1
    if not name.startswith("nvme-"):
        return 0
    if name.startswith(("nvme-eui.", "nvme-uuid.")):
        return 1
    stem, part, number = name.partition("-part")
    stem, underline, namespace = stem.rpartition("_")
    is_the_namespaces = namespace.isdigit() and f"{stem}{part}{number}" in known
    return 0 if underline and is_the_namespaces else 2
