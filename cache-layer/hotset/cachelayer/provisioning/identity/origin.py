"""Which disk an origin is, and whether somebody wrote to it while its tier was down.

A path is only a name: the same disk has several, and another disk may come to have it. What is
kept of an origin is what stays with it: World Wide Name, serial number, partition UUID, size. And
what it looked like when its tier was taken down: a checksum over its first mebibyte, which every
file system that is mounted for writing changes (ext4 and btrfs count mounts or generations there;
xfs writes to its log, which is taken in too), and the machine's count of written sectors while it
stays up.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ...block import devices, filesystem
from ...block.devices import DeviceRefusedError
from ...common.units import Bytes
from ...hosts.base import CommandError, Machine, PrerequisiteMissingError

_HEAD = Bytes(1024**2)
_PIECE = 64 * 1024
_TIMEOUT_S = 900.0
_REMOTE = frozenset(("iscsi", "fcoe", "nvme-tcp", "tcp", "rdma"))
"""Transports that need the network to be up; Fibre Channel is there before that."""
_NVME_TRANSPORTS = """
disk=$(lsblk --noheadings --nodeps --output PKNAME "/dev/$1" | head -n 1)
at=/sys/block/${disk:-$1}/device
cat "$at/transport" "$at"/nvme*/transport 2> /dev/null
"""

# $1: the device; then pairs of first and number of pieces of 64 KiB. Prints the fingerprint, the
# boot's id, and the sectors written since that boot; of a file, when it was written to last.
PROGRAM = """
device=$1; shift
{
    blockdev --getsize64 "$device" 2> /dev/null || stat -L -c %s "$device"
    while [ $# -gt 1 ]; do
        dd if="$device" bs=64k skip="$1" count="$2" iflag=direct status=none
        shift 2
    done
} | sha256sum | cut -c 1-32
cat /proc/sys/kernel/random/boot_id 2> /dev/null || echo unknown
if [ -b "$device" ]; then
    set -- $(stat -L -c "0x%t 0x%T" "$device")
    set -- $(cat "/sys/dev/block/$(($1)):$(($2))/stat")
    echo $(($7 + ${14:-0}))
else
    stat -L -c %.9Y "$device" | tr -d .
fi
"""
# $1: the device; $2: its size, bytes; then pairs of what it is known by and the value.
IS_SAME = """
device=$1 size=$2; shift 2
found=$(blockdev --getsize64 "$device" 2> /dev/null || stat -L -c %s "$device") || exit 1
[ "$found" -ge "$size" ] || exit 1
while [ $# -gt 1 ]; do
    if [ "$1" = DM_UUID ]; then
        node=$(readlink -f "$device")
        found=$(cat "/sys/class/block/${node##*/}/dm/uuid" 2> /dev/null) || found=
    else
        found=$(lsblk --nodeps --noheadings --output "$1" "$device" | sed "s/^ *//; s/ *$//")
    fi
    [ -z "$found" ] || [ "$found" = "$2" ] || exit 1
    shift 2
done
"""


@dataclass(frozen=True, slots=True)
class OriginId:
    """What stays with a disk; empty where it has no such thing."""

    size: Bytes
    wwn: str = ""
    serial: str = ""
    partition: str = ""
    mapper: str = ""

    def differs(self, other: OriginId) -> str | None:
        """What says that the other is not the same disk, in words; None if nothing does."""
        pairs = (
            ("World Wide Name", self.wwn, other.wwn),
            ("serial number", self.serial, other.serial),
            ("partition UUID", self.partition, other.partition),
            ("device-mapper UUID", self.mapper, other.mapper),
        )
        for name, known, found in pairs:
            if known and found and known != found:
                return f"its {name} is {found}, not {known}"
        if other.size < self.size:
            return f"it has {int(other.size):,} bytes, fewer than {int(self.size):,}"
        return None


@dataclass(frozen=True, slots=True)
class OriginState:
    """What an origin looked like at one moment."""

    fingerprint: str
    boot: str
    written: int

    def changed_since(self, earlier: OriginState) -> bool:
        """Whether somebody wrote to it, as far as can be told."""
        if self.fingerprint != earlier.fingerprint:
            return True
        # A device that went away and came back counts from 0 again.
        comparable = self.boot == earlier.boot != "unknown" and self.written >= earlier.written
        return comparable and self.written != earlier.written


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
    """As lsblk calls it: ``disk``, ``part``, ``mpath``, ``lvm`` …"""
    return _lsblk(machine, device, "--nodeps").get("type") or "unknown"


def is_remote(machine: Machine, device: PurePosixPath) -> bool:
    """Whether it comes over the network, and so not before that is up."""
    return any(_transport(machine, one) in _REMOTE for one in chain(machine, device))


def _transport(machine: Machine, one: dict[str, Any]) -> str:
    """What carries a disk, as lsblk says it. NVMe disks are all "nvme" to lsblk: of them as the
    kernel says it, of several paths one that is remote."""
    name, said = str(one.get("name") or ""), str(one.get("tran") or "")
    if not name.startswith("nvme"):
        return said
    # With native multipath a disk belongs to a subsystem, and that to controllers.
    found = machine.run(["sh", "-c", _NVME_TRANSPORTS, "hotset", name], check=False).stdout.split()
    return next((word for word in found if word in _REMOTE), said)


def paths(machine: Machine, device: PurePosixPath) -> list[PurePosixPath]:
    """The disks by which commands reach a whole disk: itself, or all paths to a multipath one;
    none of anything else."""
    top = _lsblk(machine, device, "--inverse")
    if top.get("type") == "disk":
        return [device]
    if top.get("type") != "mpath":
        return []
    wwns = {one["wwn"] for one in top.get("children", []) if one.get("wwn")}
    # Those that the device does not lead through yet, too.
    argv = ["lsblk", "--json", "--nodeps", "--output", "PATH,TYPE,WWN"]
    listed = json.loads(machine.run(argv).stdout)["blockdevices"]
    return [
        PurePosixPath(one["path"]) for one in listed if one["type"] == "disk" and one["wwn"] in wwns
    ]


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
    """What a device shows, whichever path leads there.

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
        """Whether both hold the same bytes."""
        if self.number is not None and self.number == other.number:
            return True
        return bool(self.disks & other.disks) and self.partition == other.partition

    def overlaps(self, other: Shown) -> bool:
        """Whether a write to the one may change the other: a disk and a partition of it, a volume
        and a disk below it."""
        if {self.number, other.number} & self.below & other.below:
            return True
        is_whole = not self.partition or not other.partition
        return bool(self.disks & other.disks) and (is_whole or self.partition == other.partition)


def shown(machine: Machine, device: PurePosixPath) -> Shown | None:
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
    """Whether two names lead to one disk, or to a disk and a partition of it."""
    nodes = [
        machine.run(["readlink", "-f", str(name)], check=False).stdout for name in (one, other)
    ]
    if one == other or (nodes[0] and nodes[0] == nodes[1]):
        return True
    first, second = shown(machine, one), shown(machine, other)
    return first is not None and second is not None and first.overlaps(second)


def regions(machine: Machine, origin: PurePosixPath) -> tuple[tuple[int, int], ...]:
    """What a fingerprint covers: first piece of 64 KiB and number of pieces, of each stretch."""
    parts = [(0, _HEAD // _PIECE)]
    try:
        kind = filesystem.kind_of(machine, origin)
        if kind == "xfs":
            log = filesystem.own_extents(machine, origin, kind)[-1]
            first = log.start // _PIECE
            parts.append((first, -(-(log.start + log.length) // _PIECE) - first))
    except (ValueError, CommandError, PrerequisiteMissingError):
        # No file system that hotset knows: its first mebibyte has to do.
        pass
    return tuple(parts)


def program(origin: PurePosixPath, parts: tuple[tuple[int, int], ...]) -> list[str]:
    """The command that prints an origin's :class:`OriginState`, a field a line."""
    numbers = [str(number) for part in parts for number in part]
    return ["sh", "-c", PROGRAM, "hotset-fingerprint", str(origin), *numbers]


def is_same_program(origin: PurePosixPath, known: OriginId) -> list[str]:
    """The command that fails where :func:`require_same` does."""
    names = {
        "WWN": known.wwn,
        "SERIAL": known.serial,
        "PARTUUID": known.partition,
        "DM_UUID": known.mapper,
    }
    words = [word for name, value in names.items() if value for word in (name, value.strip())]
    return ["sh", "-c", IS_SAME, "hotset-origin", str(origin), str(int(known.size)), *words]


def see(
    machine: Machine, origin: PurePosixPath, parts: tuple[tuple[int, int], ...] | None = None
) -> OriginState:
    """What it looks like now; its tier is down."""
    parts = regions(machine, origin) if parts is None else parts
    said = machine.run(program(origin, parts), timeout_s=_TIMEOUT_S).stdout.split()
    fingerprint, boot, written = said
    return OriginState(fingerprint, boot, int(written))


def require_same(machine: Machine, disk: str, origin: PurePosixPath, known: OriginId) -> None:
    """:raises DeviceRefusedError: another disk has the origin's name now, or it is gone."""
    if machine.run(["test", "-e", str(origin)], check=False).rc:
        raise DeviceRefusedError(
            f"disk {disk}: {origin} is not there: connect it (iSCSI: log in), then try again"
        )
    why = known.differs(identify(machine, origin))
    if why:
        raise DeviceRefusedError(
            f"disk {disk}: {origin} is another disk than the one that was accelerated: {why}."
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
