"""The flash device, cut into slices by device-mapper linear targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.cachelayer.machine import EnvironmentLacksError, Machine
from hotset.cachelayer.units import Bytes

PREFIX = "hotset-"
UNIT = Bytes(1024**2)
"""Every part of the flash starts and ends at a multiple of this."""
RESERVED = UNIT
"""The first bytes of a flash device stay empty: a superblock there would let udev take the whole
device for what is only a slice of it (bcache looks at sector 8)."""
_RETRIES = "--retry"


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
    """A device-mapper device made of parts of the flash, one behind the other."""

    name: str
    parts: tuple[Part, ...]

    @property
    def size(self) -> Bytes:
        return total(self.parts)

    @property
    def path(self) -> PurePosixPath:
        return mapper_path(self.name)

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
    return PurePosixPath("/dev/mapper") / name


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
    """Size of a block device."""
    return Bytes(int(machine.run(["blockdev", "--getsize64", str(device)]).stdout))


def stacked(room: Bytes, sizes: Sequence[tuple[str, Bytes]], start: Bytes) -> list[Slice]:
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


def standing(machine: Machine) -> frozenset[str]:
    """Names of the device-mapper devices that stand."""
    lines = machine.run(["dmsetup", "ls"]).stdout.splitlines()
    return frozenset(line.split()[0] for line in lines if "\t" in line)


def make(machine: Machine, name: str, table: str) -> None:
    """Make a device-mapper device."""
    machine.run(["dmsetup", "create", name], stdin=table)


def swap(machine: Machine, name: str, table: str) -> None:
    """Give a standing device another table; I/O waits meanwhile."""
    machine.run(["dmsetup", "reload", name], stdin=table)
    machine.run(["dmsetup", "resume", name])


def load(machine: Machine, *modules: str) -> None:
    """Load modules of the kernel.

    :raises EnvironmentLacksError: it has none of that name.
    """
    done = machine.run(["modprobe", "-a", *modules], check=False)
    if done.rc:
        release = machine.run(["uname", "-r"]).stdout.strip()
        raise EnvironmentLacksError(
            f"the kernel of {machine.kind} ({release}) has no {' or '.join(modules)}:"
            f" {done.stderr.strip()[:200]}; a distribution's own kernel has them"
        )


def wipe(machine: Machine, flash: PurePosixPath, parts: Sequence[Part]) -> None:
    """Blank the first bytes of a slice before it stands, so that nothing old is found on it.

    Written to the flash itself: as soon as the slice stood, udev would register a bcache that was
    there before.
    """
    machine.run(["dd", "if=/dev/zero", f"of={flash}", f"bs={int(UNIT)}", "count=1",
                 f"seek={parts[0].start // UNIT}", "oflag=direct", "conv=notrunc",
                 "status=none"])  # fmt: skip


def remove(machine: Machine, names: Iterable[str]) -> None:
    """Remove those of the named devices that stand, in this order."""
    there = standing(machine)
    for name in names:
        if name in there:
            machine.run(["dmsetup", "remove", _RETRIES, name])
