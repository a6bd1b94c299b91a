"""Which disk an origin is.

A path is only a name: the same disk has several, and another disk may come to have it. What is
kept of an origin is what stays with it: World Wide Name, serial number, partition UUID, size.
``hotset-boot`` compares them, and finds out whether somebody wrote to it while its tier was down
(:mod:`hotset.disk.boot.program`).
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

from hotset.block import devices, programs
from hotset.block.devices import DeviceRefusedError
from hotset.core.machines.base import Machine
from hotset.core.machines.local import Local
from hotset.core.units import Bytes

_REMOTE = frozenset(("iscsi", "fcoe", "nvme-tcp", "tcp", "rdma"))
"""Transports that need the network to be up; Fibre Channel is there before that."""
_NVME_TRANSPORTS = """
disk=$(lsblk --noheadings --nodeps --output PKNAME "/dev/$1" | head -n 1)
at=/sys/block/${disk:-$1}/device
cat "$at/transport" "$at"/nvme*/transport 2> /dev/null
"""
_WWIDS = """
for disk in /sys/block/*; do
    id=$(cat "$disk/device/wwid" 2> /dev/null || cat "$disk/wwid" 2> /dev/null) || continue
    echo "/dev/${disk##*/} $id"
done
"""


@dataclass(frozen=True, slots=True)
class Compared:
    """Comparison of two disks; ``why`` they differ, or are not known to be the same, in words."""

    answer: Literal["same", "other", "unknown"]
    why: str = ""


@dataclass(frozen=True, slots=True)
class OriginId:
    """Lasting identity of a disk; a field is empty where it has no such thing."""

    size: Bytes
    wwn: str = ""
    serial: str = ""
    partition: str = ""
    mapper: str = ""

    @property
    def is_nameless(self) -> bool:
        """True if nothing identifies it but its size."""
        return not any(map(str.strip, (self.wwn, self.serial, self.partition, self.mapper)))

    def compare(self, now: OriginId) -> Compared:
        """Compare this disk with a disk as it is now."""
        argv = [str(programs.find_boot()), "compare"]
        both = json.dumps({"known": asdict(self), "now": asdict(now)})
        return Compared(**json.loads(Local().run(argv, stdin=both).stdout))


def identify(machine: Machine, origin: PurePosixPath) -> OriginId:
    """:raises CommandError: there is no such device."""
    fields = _lsblk(machine, origin, "--nodeps")
    number = fields.get("maj:min") or ""
    mapper = (
        machine.run(["cat", f"/sys/dev/block/{number}/dm/uuid"], check=False) if number else None
    )
    return OriginId(
        Bytes(int(fields.get("size") or 0)),
        fields.get("wwn") or "",
        fields.get("serial") or "",
        fields.get("partuuid") or "",
        mapper.stdout.strip() if mapper and mapper.rc == 0 else "",
    )


def kind(machine: Machine, device: PurePosixPath) -> str:
    """Return the type that lsblk gives: ``disk``, ``part``, ``mpath``, ``lvm`` …"""
    return _lsblk(machine, device, "--nodeps").get("type") or "unknown"


def is_remote(machine: Machine, device: PurePosixPath) -> bool:
    """True if it comes over the network, and so not before that is up."""
    return any(_transport(machine, node) in _REMOTE for node in chain(machine, device))


def _transport(machine: Machine, device: dict[str, Any]) -> str:
    """Return a disk's transport, from lsblk. To lsblk all NVMe disks are "nvme": for them the
    kernel is asked, and of several paths a remote path counts."""
    name, transport = str(device.get("name") or ""), str(device.get("tran") or "")
    if not name.startswith("nvme"):
        return transport
    # With native multipath a disk belongs to a subsystem, and that to controllers.
    argv = ["sh", "-c", _NVME_TRANSPORTS, "hotset-transports", name]
    words = machine.run(argv, check=False).stdout.split()
    return next((word for word in words if word in _REMOTE), transport)


def paths(machine: Machine, device: PurePosixPath) -> list[PurePosixPath]:
    """The disks by which commands reach a whole disk: itself, or all paths to a multipath one;
    none of anything else."""
    top = _lsblk(machine, device, "--inverse")
    if top.get("type") == "disk":
        return [device]
    if top.get("type") != "mpath":
        return []
    wwids = _wwids(machine)
    wanted = {wwids.get(f"/dev/{child['name']}") for child in top.get("children", [])} - {None}
    # Those that the device does not lead through yet, too.
    return [PurePosixPath(path) for path, wwid in wwids.items() if wwid in wanted]


def _wwids(machine: Machine) -> dict[str, str]:
    """Read the ids that the kernel has kept of each disk; udev forgets the World Wide Name of
    a path that is dead (``wwid`` in drivers/scsi/scsi_sysfs.c, drivers/nvme/host/sysfs.c)."""
    output = machine.run(["sh", "-c", _WWIDS, "hotset-wwids"]).stdout
    return dict(line.split(" ", 1) for line in output.splitlines() if " " in line)


def chain(machine: Machine, device: PurePosixPath) -> list[dict[str, Any]]:
    """A device and all that it lies on, as lsblk describes each."""
    nodes, left = list[dict[str, Any]](), [_lsblk(machine, device, "--inverse")]
    while left:
        node = left.pop()
        nodes.append(node)
        left += node.get("children", [])
    return nodes


@dataclass(frozen=True, slots=True)
class Shown:
    """Identity of the bytes behind a device, whichever path leads there.

    :ivar number: its own ``major:minor``; None for a file.
    :ivar below: ``major:minor`` of it and of all that it lies on.
    :ivar disks: World Wide Names and numbers of the disks whose bytes it has, of a multipath device
        those of its paths.
    :ivar wwns: the World Wide Names among them.
    :ivar partition: which partition of them it is; empty: all of each.
    """

    number: str | None
    below: frozenset[str]
    disks: frozenset[str]
    wwns: frozenset[str]
    partition: str

    def is_same(self, other: Shown) -> bool:
        """True if both hold the same bytes."""
        if self.number is not None and self.number == other.number:
            return True
        return bool(self.disks & other.disks) and self.partition == other.partition

    def overlaps(self, other: Shown) -> bool:
        """True if a write to the one may change the other: a disk and a partition of it, a volume
        and a disk below it."""
        if {self.number, other.number} & self.below & other.below:
            return True
        is_whole = not self.partition or not other.partition
        return bool(self.disks & other.disks) and (is_whole or self.partition == other.partition)


def show(machine: Machine, device: PurePosixPath) -> Shown | None:
    """None where there is no such device or file."""
    if devices.type_of(machine, device) is None:
        return None
    tree = chain(machine, device)
    top = tree[0]
    number = top.get("maj:min")
    is_partition = bool(top.get("partuuid")) or top.get("type") == "part"
    level = top.get("children", []) if is_partition else [top]
    disks = [
        disk
        for device in level
        for disk in (device.get("children", []) if device.get("type") == "mpath" else [device])
    ]
    wwns = frozenset(device["wwn"] for device in (*disks, top) if device.get("wwn"))
    return Shown(
        number,
        frozenset(device["maj:min"] for device in tree if device.get("maj:min")),
        wwns | {disk["maj:min"] for disk in disks if disk.get("maj:min")},
        wwns,
        str(top.get("partuuid") or number) if is_partition else "",
    )


def same(machine: Machine, path: PurePosixPath, other: PurePosixPath) -> bool:
    """True if two names lead to one disk, or to a disk and a partition of it."""
    nodes = [
        machine.run(["readlink", "-f", str(name)], check=False).stdout for name in (path, other)
    ]
    if path == other or (nodes[0] and nodes[0] == nodes[1]):
        return True
    first, second = show(machine, path), show(machine, other)
    return first is not None and second is not None and first.overlaps(second)


def require_same(machine: Machine, disk: str, origin: PurePosixPath, known: OriginId) -> None:
    """:raises DeviceRefusedError: another disk has the origin's name now, or may have it, or it is
    gone."""
    if machine.run([programs.boot(machine), "await", str(origin)], check=False).rc:
        raise DeviceRefusedError(
            f"disk {disk}: {origin} is not there: connect it (iSCSI: log in), then try again"
        )
    comparison = known.compare(identify(machine, origin))
    # Of a disk without numbers the program that brings it up finds out more, and decides.
    if comparison.answer == "same" or (comparison.answer == "unknown" and known.is_nameless):
        return
    is_ = "is" if comparison.answer == "other" else "may be"
    raise DeviceRefusedError(
        f"disk {disk}: {origin} {is_} another disk than the accelerated one: {comparison.why}."
        " Nothing was changed; find the right disk, since what the flash holds belongs to it"
    )


def _lsblk(machine: Machine, device: PurePosixPath, how: str) -> dict[str, Any]:
    if devices.type_of(machine, device) == "file":
        size = machine.run(["stat", "--dereference", "--format=%s", str(device)]).stdout
        return {"name": str(device), "type": "file", "size": int(size)}
    columns = "NAME,MAJ:MIN,TYPE,SIZE,TRAN,WWN,SERIAL,PARTUUID"
    argv = ["lsblk", "--json", "--bytes", how, "--output", columns, str(device)]
    listed = json.loads(machine.run(argv).stdout or "{}").get("blockdevices") or [{}]
    first: dict[str, Any] = listed[0]
    return first
