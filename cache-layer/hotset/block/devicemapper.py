"""The flash device, cut into slices by device-mapper linear targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.core.errors import Remedy
from hotset.core.machines.base import Machine, PrerequisiteMissingError, to_its_end
from hotset.core.units import Bytes

PREFIX = "hotset-"
MAPPER = PurePosixPath("/dev/mapper")
UNIT = Bytes(1024**2)
"""Every part of the flash starts and ends at a multiple of this."""
RESERVED = UNIT
"""The first bytes of a flash device stay empty: a superblock there would let udev take the whole
device for what is only a slice of it (bcache looks at sector 8)."""
UUID_PREFIX = "HOTSET-"
PRIVATE = "HOTSET-private-"
IN_USER_SPACE = Remedy("cache in user space", parameters={"kind": "userspace"})
_RETRIES = "--retry"
_REMOVE_LIMIT_S = 60.0
_SWAP_LIMIT_S = 300.0

# `dmsetup resume` suspends, swaps the tables and resumes in one call (do_resume,
# drivers/md/dm-ioctl.c). Its wait for I/O under way ends with a signal, and then nothing happened.
_SWAP = """
old=$(dmsetup table "$1") || exit 1
load() { printf '%s\\n' "$1" | dmsetup reload "$name"; }
name=$1
trap 'dmsetup resume "$name"; exit 1' HUP INT TERM PIPE
load "$(cat)" || exit 1
timeout 120 dmsetup resume "$name" && exit 0
load "$old"; dmsetup resume "$name"; exit 1
"""
# $1, $2: the device and the one below it, $3, $4: their new tables.
_SWAP_BELOW = """
old=$(dmsetup table "$1") && old_below=$(dmsetup table "$2") || exit 1
top=$1 below=$2 new=$3 new_below=$4
use() { printf '%s\\n' "$2" | dmsetup reload "$1" && timeout 60 dmsetup resume "$1"; }
back() { use "$below" "$old_below"; use "$top" "$old" || dmsetup resume "$top"; exit 1; }
trap back HUP INT TERM PIPE
timeout 60 dmsetup suspend "$top" || { dmsetup resume "$top"; exit 1; }
use "$below" "$new_below" && use "$top" "$new" || back
"""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the flash, in bytes from its beginning."""

    start: Bytes
    size: Bytes

    @property
    def end(self) -> Bytes:
        return Bytes(self.start + self.size)


@dataclass(frozen=True, slots=True)
class Slice:
    """A device made of parts of the flash, one behind the other: of the device mapper, unless it
    is in another folder of /dev."""

    name: str
    parts: tuple[Part, ...]
    folder: PurePosixPath = MAPPER

    @property
    def size(self) -> Bytes:
        return total(self.parts)

    @property
    def path(self) -> PurePosixPath:
        return self.folder / self.name

    def table(self, flash: PurePosixPath) -> str:
        """Its table, one line a part (Documentation/admin-guide/device-mapper/linear.rst)."""
        return linear_table((flash, part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tier of one disk lies: its name, its two devices, and its stretches of the flash.

    ``metadata`` holds what the kind keeps beside the cached data (dm-cache: its metadata; bcache:
    the backing device's superblock). ``volume`` belongs to the card: all its disks share it.
    """

    name: str
    flash: PurePosixPath
    origin: PurePosixPath
    metadata: tuple[Part, ...]
    cache: tuple[Part, ...]
    volume: Slice

    @property
    def top(self) -> str:
        """The device-mapper name of the accelerated device."""
        return f"{PREFIX}{self.name}"

    def slice(self, what: str) -> Slice:
        """Its slice ``meta`` or ``cache``."""
        return Slice(f"{self.top}-{what}", self.metadata if what == "meta" else self.cache)


def total(parts: Iterable[Part]) -> Bytes:
    return Bytes(sum(part.size for part in parts))


def mapper_path(name: str) -> PurePosixPath:
    return MAPPER / name


def linear_table(parts: Iterable[tuple[PurePosixPath, Part]]) -> str:
    """Parts of devices one behind the other, as ``dmsetup`` takes them.

    >>> linear_table([(PurePosixPath("/dev/x"), Part(Bytes(1048576), Bytes(4096)))])
    '0 8 linear /dev/x 2048'
    """
    lines, at = [], 0
    for device, part in parts:
        length = int(part.size.sectors)
        lines.append(f"{at} {length} linear {device} {int(part.start.sectors)}")
        at += length
    return "\n".join(lines)


def device_size(machine: Machine, device: PurePosixPath) -> Bytes:
    """Size of a block device, or of a file in the place of one."""
    asked = machine.run(["blockdev", "--getsize64", str(device)], check=False)
    if asked.rc:
        asked = machine.run(["stat", "--dereference", "--format=%s", str(device)])
    return Bytes(int(asked.stdout))


def stack(room: Bytes, sizes: Sequence[tuple[str, Bytes]], start: Bytes) -> list[Slice]:
    """Slices of the given names and sizes, one behind the other from ``start``.

    :param room: size of the flash.
    :raises ValueError: together they are larger than the flash.
    """
    slices, offset = [], start
    for name, size in sizes:
        slices.append(Slice(name, (Part(offset, size),)))
        offset = Bytes(offset + size)
    if offset > room:
        parts = ", ".join(f"{name.removeprefix(PREFIX)} {size}" for name, size in sizes)
        raise ValueError(f"{parts} together are larger than the flash device ({room})")
    return slices


def active_names(machine: Machine) -> frozenset[str]:
    """Names of the device-mapper devices that stand."""
    lines = machine.run(["dmsetup", "ls"]).stdout.splitlines()
    return frozenset(line.split()[0] for line in lines if "\t" in line)


def uuid_of(name: str, private: bool) -> str:
    """The device-mapper UUID that goes with a name; of an inner device with a mark by which
    :mod:`hotset.disk.udev` keeps others away from it."""
    return f"{PRIVATE if private else UUID_PREFIX}{name}"


def make(machine: Machine, name: str, table: str, *, private: bool = False) -> None:
    """Make a device-mapper device.

    :param private: it is a part of another; nobody but that one is to look at it.
    """
    machine.run(["dmsetup", "create", name, "--uuid", uuid_of(name, private)], stdin=table)


def swap(machine: Machine, name: str, table: str) -> None:
    """Give an active device another table; I/O waits for a moment.

    One command on the machine: whatever becomes of this program and of the connection, the device
    is not left suspended. A table that the kernel refuses leaves the old one at work.
    """
    argv = to_its_end(["sh", "-c", _SWAP, "hotset-swap", name])
    machine.run(argv, stdin=table, timeout_s=_SWAP_LIMIT_S)


def swap_below(machine: Machine, name: str, table: str, inner: str, inner_table: str) -> None:
    """As :func:`swap`, for a device and one that it lies on, with no I/O in between."""
    argv = ["sh", "-c", _SWAP_BELOW, "hotset-swap", name, inner, table, inner_table]
    machine.run(to_its_end(argv), timeout_s=_SWAP_LIMIT_S)


def is_suspended(machine: Machine, name: str) -> bool:
    """Whether a device holds all I/O back."""
    argv = ["dmsetup", "info", "-c", "--noheadings", "-o", "suspended", name]
    return machine.run(argv, check=False).stdout.strip() == "Suspended"


def resume(machine: Machine, name: str) -> None:
    machine.run(["dmsetup", "resume", name])


def require(machine: Machine) -> None:
    """:raises PrerequisiteMissingError: the machine's kernel has no device mapper."""
    asked = machine.run(["dmsetup", "ls"], check=False)
    if asked.rc:
        said = asked.stderr.strip().partition("\n")[0]
        raise PrerequisiteMissingError(
            f"the kernel has no device mapper ({said}); a distribution's own has",
            IN_USER_SPACE,
        )


def load(machine: Machine, *modules: str) -> None:
    """Load modules of the kernel.

    :raises PrerequisiteMissingError: it has none of that name.
    """
    done = machine.run(["modprobe", "-a", *modules], check=False)
    if done.rc:
        release = machine.run(["uname", "-r"]).stdout.strip()
        raise PrerequisiteMissingError(
            f"the kernel ({release}) has no {' or '.join(modules)}:"
            f" {done.stderr.strip()[:200]}; a distribution's own kernel has them",
            IN_USER_SPACE,
        )


def wipe(machine: Machine, flash: PurePosixPath, parts: Sequence[Part]) -> None:
    """Blank the first bytes of a slice before it stands, so that nothing old is found on it.

    Written to the flash itself: as soon as the slice stood, udev would register a bcache that was
    there before.
    """
    machine.run(
        [
            "dd",
            "if=/dev/zero",
            f"of={flash}",
            f"bs={int(UNIT)}",
            "count=1",
            f"seek={parts[0].start // UNIT}",
            "oflag=direct",
            "conv=notrunc",
            "status=none",
        ]
    )


def remove(machine: Machine, names: Iterable[str]) -> None:
    """Remove those of the named devices that stand, in this order."""
    there = active_names(machine)
    for name in names:
        if name in there:
            machine.run(["dmsetup", "remove", _RETRIES, name], timeout_s=_REMOVE_LIMIT_S)
