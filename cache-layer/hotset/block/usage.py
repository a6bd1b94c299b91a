"""Is a device in use, and was it written to? What an off-line fill must know before and after."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.core.errors import PrerequisiteError, Remedy
from hotset.core.machines.base import Machine
from hotset.core.machines.dry_run import READS
from hotset.core.units import Sectors

from .devices import type_of

_READ = 2


class InUseError(PrerequisiteError):
    """A device is in use; the message names who has it and what to do."""


_ONLINE = Remedy("warm it up while it is in use", parameters={"method": "online"})


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system: its device as ``major:minor``, where, and of which kind."""

    device: str
    folder: PurePosixPath
    kind: str


def device_number(machine: Machine, device: PurePosixPath) -> str:
    """``major:minor`` of a block device."""
    said = machine.run(["stat", "--dereference", "--format=%t %T", str(device)]).stdout.split()
    major, minor = (int(word, 16) for word in said)
    return f"{major}:{minor}"


def mounts(machine: Machine) -> list[Mount]:
    """What is mounted there (proc_pid_mountinfo(5))."""
    found = []
    for line in machine.run(["cat", "/proc/self/mountinfo"]).stdout.splitlines():
        before, _, after = line.partition(" - ")
        _, _, device, _, folder, *_ = before.split(" ")
        found.append(Mount(device, PurePosixPath(unescaped(folder)), after.split(" ")[0]))
    return found


def mounted_at(machine: Machine, device: PurePosixPath) -> list[Mount]:
    """Where a device is mounted."""
    number = device_number(machine, device)
    return [mount for mount in mounts(machine) if mount.device == number]


def require_idle(machine: Machine, device: PurePosixPath) -> None:
    """:raises InUseError: the device-mapper device is mounted, built upon or open."""
    fields = ["dmsetup", "info", "-c", "--noheadings", "-o", "open", device.name]
    if int(machine.run(fields).stdout) == 0:
        return
    places = [str(mount.folder) for mount in mounted_at(machine, device)]
    if places:
        raise InUseError(
            f"{device} is mounted on {', '.join(places)}, and an offline warm-up needs it idle:"
            f" stop the database and unmount it (umount {places[0]})",
            _ONLINE,
        )
    holders = f"/sys/dev/block/{device_number(machine, device)}/holders"
    above = machine.run(["ls", holders], check=False).stdout.split()
    who = f"{', '.join(above)} is built on it" if above else "a process has it open"
    raise InUseError(
        f"{device} is in use ({who}), and an offline warm-up needs it idle: close what uses it"
        f" (`lsof {device}` names processes)",
        _ONLINE,
    )


def written(machine: Machine, device: PurePosixPath) -> Sectors:
    """Sectors written to and discarded from a block device since the machine's start; of a file,
    when it was written to last, in nanoseconds. Of a partition all that may be its own: its count
    begins anew whenever the table is read anew, that of its disk goes on, and has what is written
    by the disk's name as well (``hotset-boot`` counts in the same way).

    :raises PrerequisiteError: the kernel counts nothing there.
    """
    if type_of(machine, device) == "file":
        said = machine.run(["stat", "--dereference", "--format=%.9Y", str(device)]).stdout
        return Sectors(int(said.strip().replace(".", "")))
    at = f"/sys/dev/block/{device_number(machine, device)}"
    done = machine.run(["sh", "-c", _WRITES, READS, at])
    said = "0" if done.made_up else done.stdout.strip()
    if said == "uncounted":
        raise PrerequisiteError(
            f"the kernel does not count what is written to {device} (its queue/iostats is 0), so"
            " nobody would know whether it was changed meanwhile: write 1 there",
            _ONLINE,
        )
    return Sectors(int(said))


# $1: the device's folder in sysfs. The whole disk's count first: what is written to the others
# meanwhile is theirs. An NVMe disk of several paths counts itself only since Linux 6.4, its paths
# (nvme0c1n2) always.
_WRITES = """
cd -P "$1" || exit 1
count() {
    read -r _ _ _ _ _ _ written _ _ _ _ _ _ discarded _ < "$1/stat" || exit 1
    count=$((written + ${discarded:-0}))
}
of_disk() {
    name=$(cd -P "$1" && echo "${PWD##*/}") paths=0
    for path in /sys/block/"${name%n*}"c*n"${name##*n}"; do
        [ ! -e "$path/stat" ] || { count "$path"; paths=$((paths + count)); }
    done
    count "$1"
    [ $paths -le $count ] || count=$paths
}
[ -e partition ] && disk=.. || disk=.
[ "$(cat "$disk/queue/iostats" 2> /dev/null)" != 0 ] || { echo uncounted; exit; }
if [ $disk = . ]; then of_disk .; else count .; fi
most=$count
if [ -e partition ]; then
    for look in 1 2 3 4 5; do
        of_disk ..; rest=$count
        for other in ../*/partition; do
            other=${other%/partition}
            [ "$other" -ef . ] || { count "$other"; rest=$((rest - count)); }
        done
        [ $rest -le $most ] || most=$rest
    done
fi
echo $most
"""


def read(machine: Machine, device: PurePosixPath) -> Sectors:
    """Sectors read from a block device since the machine's start."""
    return Sectors(_stat(machine, device)[_READ])


def _stat(machine: Machine, device: PurePosixPath) -> list[int]:
    """Counters of what goes through this very device, a partition or a disk, on this machine.

    Source: Documentation/block/stat.rst of the kernel.
    """
    path = f"/sys/dev/block/{device_number(machine, device)}/stat"
    return [int(word) for word in machine.run(["cat", path]).stdout.split()]


def unescaped(word: str) -> str:
    r"""The kernel, fstab(5) and libmount write blanks and the like as octal bytes.

    >>> unescaped("/srv/my\\040data"), unescaped("/srv/d\\303\\251p\\303\\264t")
    ('/srv/my data', '/srv/dépôt')
    """
    raw = re.sub(rb"\\([0-3][0-7]{2})", lambda found: bytes([int(found[1], 8)]), os.fsencode(word))
    return os.fsdecode(raw)
