"""File systems of a database's disk: where they are mounted, made, looked at, and what they need
beside their files.

The journal and the file system's own tables are warmed with the database, so that it finds those
cached too.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from hotset.core.errors import RequestError
from hotset.core.machines.base import Machine
from hotset.core.units import Bytes

from .extents import Extent

FileSystem = Literal["ext4", "xfs"]

# "ro" alone would replay the journal, and so write.
LOOK_OPTIONS: dict[FileSystem, str] = {"ext4": "ro,noload", "xfs": "ro,norecovery"}
_MAKE: dict[FileSystem, tuple[str, ...]] = {
    # All tables written now, not lazily during a measured run.
    "ext4": ("mke2fs", "-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0,nodiscard"),
    "xfs": ("mkfs.xfs", "-q", "-f", "-K"),
}
_MAKE_TIMEOUT_S = 600
_HEAD_BYTES = Bytes(16 * 1024**2)
_GROUP_HEAD_BYTES = Bytes(1024**2)
_EXT4_BLOCK = re.compile(r"^Block size:\s+(\d+)$", re.MULTILINE)
_EXT4_JOURNAL = re.compile(r"^\s*\d+/\s*\d+\s+\d+/\s*\d+\s+\d+\s*-\s*\d+\s+(\d+)\s*-\s*(\d+)\s")
_EXT4_FREE = re.compile(r"^  Free blocks: ([\d, -]+)$", re.MULTILINE)
_EXT4_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_XFS_FREE = re.compile(r"^\s*(\d+)\s+(\d+)\s+(\d+)\s*$", re.MULTILINE)
_XFS_FIELDS = ("blocksize", "agblocks", "agcount", "agblklog", "logstart", "logblocks")


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: its device as ``major:minor``, where, and of which kind."""

    device: str
    folder: PurePosixPath
    kind: str


def device_number(machine: Machine, device: PurePosixPath) -> str:
    """``major:minor`` of a block device."""
    words = machine.run(["stat", "--dereference", "--format=%t %T", str(device)]).stdout.split()
    major, minor = (int(word, 16) for word in words)
    return f"{major}:{minor}"


def mounts(machine: Machine) -> list[Mount]:
    """List the machine's mounts (proc_pid_mountinfo(5))."""
    entries = []
    for line in machine.run(["cat", "/proc/self/mountinfo"]).stdout.splitlines():
        before, _, after = line.partition(" - ")
        _, _, device, _, folder, *_ = before.split(" ")
        entries.append(Mount(device, PurePosixPath(unescape(folder)), after.split(" ")[0]))
    return entries


def mounts_of(machine: Machine, device: PurePosixPath) -> list[Mount]:
    """Where a device is mounted."""
    number = device_number(machine, device)
    return [mount for mount in mounts(machine) if mount.device == number]


def unescape(word: str) -> str:
    r"""The kernel, fstab(5) and libmount write blanks and the like as octal bytes.

    >>> unescape("/srv/my\\040data"), unescape("/srv/d\\303\\251p\\303\\264t")
    ('/srv/my data', '/srv/dépôt')
    """
    raw = re.sub(rb"\\([0-3][0-7]{2})", lambda match: bytes([int(match[1], 8)]), os.fsencode(word))
    return os.fsdecode(raw)


def make(machine: Machine, device: PurePosixPath, kind: FileSystem) -> None:
    """A new file system on a device of the lab."""
    machine.run([*_MAKE[kind], str(device)], timeout_s=_MAKE_TIMEOUT_S)


def make_of(machine: Machine, device: PurePosixPath, folder: PurePosixPath) -> None:
    """A new ext4 on a device or file that holds what is in a folder, without mounting it."""
    argv = [*_MAKE["ext4"], "-d", str(folder), str(device)]
    machine.run(argv, timeout_s=_MAKE_TIMEOUT_S)


def kind_of(machine: Machine, device: PurePosixPath) -> FileSystem:
    """:raises RequestError: none that hotset knows is on the device."""
    kind, name = _probe(machine, device)
    if kind is None:
        raise RequestError(f"{device} holds {name or 'no known file system'}, not ext4 or xfs")
    return kind


def kind_if_any(machine: Machine, device: PurePosixPath) -> FileSystem | None:
    """Call :func:`kind_of`; None for a disk that something else uses (LVM, ASM, a guest)."""
    return _probe(machine, device)[0]


def _probe(machine: Machine, device: PurePosixPath) -> tuple[FileSystem | None, str]:
    argv = ["blkid", "--probe", "--match-tag", "TYPE", "--output", "value", str(device)]
    name = machine.run(argv, check=False).stdout.strip()
    return next((kind for kind in LOOK_OPTIONS if name == kind), None), name


def own_extents(machine: Machine, device: PurePosixPath, kind: FileSystem) -> list[Extent]:
    """List the extents of the file system's own metadata."""
    return _of_ext4(machine, device) if kind == "ext4" else _of_xfs(machine, device)


def free_extents(machine: Machine, device: PurePosixPath, kind: FileSystem) -> list[Extent]:
    """Where files can grow to, in origin order."""
    return _free_ext4(machine, device) if kind == "ext4" else _free_xfs(machine, device)


def _free_ext4(machine: Machine, device: PurePosixPath) -> list[Extent]:
    output = machine.run(["dumpe2fs", str(device)]).stdout
    block = _ext4_block(output, device)
    return [
        Extent(Bytes(int(first) * block), Bytes((int(last or first) - int(first) + 1) * block))
        for listed in _EXT4_FREE.findall(output)
        for first, last in _EXT4_RANGE.findall(listed)
    ]


def _free_xfs(machine: Machine, device: PurePosixPath) -> list[Extent]:
    block, group_blocks, *_ = _xfs_fields(machine, device)
    output = machine.run(["xfs_db", "-r", "-c", "freesp -d", str(device)]).stdout
    return [
        Extent(Bytes((int(group) * group_blocks + int(first)) * block), Bytes(int(count) * block))
        for group, first, count in _XFS_FREE.findall(output)
    ]


def _ext4_block(output: str, device: PurePosixPath) -> int:
    match = _EXT4_BLOCK.search(output)
    if match is None:
        raise ValueError(f"{device}: its block size is missing: is it ext4?")
    return int(match[1])


def _of_ext4(machine: Machine, device: PurePosixPath) -> list[Extent]:
    """The first megabytes and the journal."""
    extents = [Extent(Bytes(0), _HEAD_BYTES)]
    superblock = machine.run(["debugfs", "-R", "show_super_stats -h", str(device)]).stdout
    block_size = _ext4_block(superblock, device)
    listing = machine.run(["debugfs", "-R", "dump_extents <8>", str(device)]).stdout
    for line in listing.splitlines():
        match = _EXT4_JOURNAL.match(line)
        if match is not None:
            first, last = int(match[1]), int(match[2])
            length = Bytes((last - first + 1) * block_size)
            extents.append(Extent(Bytes(first * block_size), length))
    return extents


def _of_xfs(machine: Machine, device: PurePosixPath) -> list[Extent]:
    """The head of every allocation group, and the log."""
    block, group_blocks, groups, group_bits, log, log_blocks = _xfs_fields(machine, device)
    heads = [
        Extent(Bytes(group * group_blocks * block), _GROUP_HEAD_BYTES) for group in range(groups)
    ]
    # An xfs block number has the group above the block within it.
    start = (log >> group_bits) * group_blocks + (log & ((1 << group_bits) - 1))
    return [*heads, Extent(Bytes(start * block), Bytes(log_blocks * block))]


def _xfs_fields(machine: Machine, device: PurePosixPath) -> tuple[int, ...]:
    argv = ["xfs_db", "-r", "-c", "sb 0", "-c", f"print {' '.join(_XFS_FIELDS)}", str(device)]
    output = machine.run(argv).stdout
    fields = dict(re.findall(r"^(\w+) = (\d+)$", output, re.MULTILINE))
    missing = [name for name in _XFS_FIELDS if name not in fields]
    if missing:
        raise ValueError(f"xfs_db does not report {', '.join(missing)} of {device}: is it xfs?")
    return tuple(int(fields[name]) for name in _XFS_FIELDS)
