"""Is a device in use, and how much was read from it?"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.core.errors import Remedy
from hotset.core.machines.base import Machine
from hotset.core.units import Sectors

from . import boot_program
from .boot_program import InUseError

_READ = 2


_ONLINE = Remedy("warm it up while it is in use", parameters={"method": "online"})


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


def require_idle(machine: Machine, device: PurePosixPath) -> None:
    """:raises InUseError: an offline warm-up needs it idle, and somebody uses it."""
    if message := boot_program.users(machine, device):
        raise InUseError(f"an offline warm-up needs it idle: {message}", _ONLINE)


def read(machine: Machine, device: PurePosixPath) -> Sectors:
    """Sectors read from a block device since the machine's start."""
    return Sectors(_stat(machine, device)[_READ])


def _stat(machine: Machine, device: PurePosixPath) -> list[int]:
    """Counters of what goes through this very device, a partition or a disk, on this machine.

    Source: Documentation/block/stat.rst of the kernel.
    """
    path = f"/sys/dev/block/{device_number(machine, device)}/stat"
    return [int(word) for word in machine.run(["cat", path]).stdout.split()]


def unescape(word: str) -> str:
    r"""The kernel, fstab(5) and libmount write blanks and the like as octal bytes.

    >>> unescape("/srv/my\\040data"), unescape("/srv/d\\303\\251p\\303\\264t")
    ('/srv/my data', '/srv/dépôt')
    """
    raw = re.sub(rb"\\([0-3][0-7]{2})", lambda match: bytes([int(match[1], 8)]), os.fsencode(word))
    return os.fsdecode(raw)
