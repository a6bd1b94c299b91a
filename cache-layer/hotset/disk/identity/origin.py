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

from hotset.block import boot_program, devices
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
        argv = [str(boot_program.find_built()), "compare"]
        both = json.dumps({"known": asdict(self), "now": asdict(now)})
        return Compared(**json.loads(Local().run(argv, stdin=both).stdout))


def identify(machine: Machine, origin: PurePosixPath) -> OriginId:
    """:raises CommandError: there is no such device."""
    found = _lsblk(machine, origin, "--nodeps")
    number = found.get("maj:min") or ""
    mapper = (
        machine.run(["cat", f"/sys/dev/block/{number}/dm/uuid"], check=False) if number else None
    )
    return OriginId(
        Bytes(int(found.get("size") or 0)),
        found.get("wwn") or "",
        found.get("serial") or "",
        found.get("partuuid") or "",
        mapper.stdout.strip() if mapper and mapper.rc == 0 else "",
    )


def kind(machine: Machine, device: PurePosixPath) -> str:
    """Return the type that lsblk gives: ``disk``, ``part``, ``mpath``, ``lvm`` …"""
    return _lsblk(machine, device, "--nodeps").get("type") or "unknown"


def is_remote(machine: Machine, device: PurePosixPath) -> bool:
    """True if it comes over the network, and so not before that is up."""
    return any(_transport(machine, one) in _REMOTE for one in chain(machine, device))


def _transport(machine: Machine, one: dict[str, Any]) -> str:
    """Return a disk's transport, from lsblk. To lsblk all NVMe disks are "nvme": for them the
    kernel is asked, and of several paths a remote path counts."""
    name, said = str(one.get("name") or ""), str(one.get("tran") or "")
    if not name.startswith("nvme"):
        return said
    # With native multipath a disk belongs to a subsystem, and that to controllers.
    argv = ["sh", "-c", _NVME_TRANSPORTS, "hotset-transports", name]
    found = machine.run(argv, check=False).stdout.split()
    return next((word for word in found if word in _REMOTE), said)


def paths(machine: Machine, device: PurePosixPath) -> list[PurePosixPath]:
    """The disks by which commands reach a whole disk: itself, or all paths to a multipath one;
    none of anything else."""
    top = _lsblk(machine, device, "--inverse")
    if top.get("type") == "disk":
        return [device]
    if top.get("type") != "mpath":
        return []
    wwids = _wwids(machine)
    wanted = {wwids.get(f"/dev/{one['name']}") for one in top.get("children", [])} - {None}
    # Those that the device does not lead through yet, too.
    return [PurePosixPath(path) for path, wwid in wwids.items() if wwid in wanted]


def _wwids(machine: Machine) -> dict[str, str]:
    """Read the ids that the kernel has kept of each disk; udev forgets the World Wide Name of
    a path that is dead (``wwid`` in drivers/scsi/scsi_sysfs.c, drivers/nvme/host/sysfs.c)."""
    said = machine.run(["sh", "-c", _WWIDS, "hotset-wwids"]).stdout
    return dict(line.split(" ", 1) for line in said.splitlines() if " " in line)


def chain(machine: Machine, device: PurePosixPath) -> list[dict[str, Any]]:
    """A device and all that it lies on, as lsblk describes each."""
    found, left = list[dict[str, Any]](), [_lsblk(machine, device, "--inverse")]
    while left:
        one = left.pop()
        found.append(one)
        left += one.get("children", [])
    return found


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
        for one in level
        for disk in (one.get("children", []) if one.get("type") == "mpath" else [one])
    ]
    wwns = frozenset(one["wwn"] for one in (*disks, top) if one.get("wwn"))
    return Shown(
        number,
        frozenset(one["maj:min"] for one in tree if one.get("maj:min")),
        wwns | {one["maj:min"] for one in disks if one.get("maj:min")},
        wwns,
        str(top.get("partuuid") or number) if is_partition else "",
    )


def same(machine: Machine, one: PurePosixPath, other: PurePosixPath) -> bool:
    """True if two names lead to one disk, or to a disk and a partition of it."""
    nodes = [
        machine.run(["readlink", "-f", str(name)], check=False).stdout for name in (one, other)
    ]
    if one == other or (nodes[0] and nodes[0] == nodes[1]):
        return True
    first, second = show(machine, one), show(machine, other)
    return first is not None and second is not None and first.overlaps(second)


def require_same(machine: Machine, disk: str, origin: PurePosixPath, known: OriginId) -> None:
    """:raises DeviceRefusedError: another disk has the origin's name now, or may have it, or it is
    gone."""
    if machine.run([boot_program.on(machine), "await", str(origin)], check=False).rc:
        raise DeviceRefusedError(
            f"disk {disk}: {origin} is not there: connect it (iSCSI: log in), then try again"
        )
    found = known.compare(identify(machine, origin))
    # Of a disk without numbers the program that brings it up finds out more, and decides.
    if found.answer == "same" or (found.answer == "unknown" and known.is_nameless):
        return
    is_ = "is" if found.answer == "other" else "may be"
    raise DeviceRefusedError(
        f"disk {disk}: {origin} {is_} another disk than the accelerated one: {found.why}. Nothing"
        " was changed; find the right disk, since what the flash holds belongs to it"
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
