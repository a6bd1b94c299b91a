"""The flash device, cut into slices by device-mapper linear targets. (Those of a tier are made by
``hotset-boot``: :mod:`hotset.tier.devices`.)"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.core.errors import Remedy
from hotset.core.machines.base import Machine, PrerequisiteMissingError
from hotset.core.units import Bytes

PREFIX = "hotset-"
MAPPER = PurePosixPath("/dev/mapper")
UNIT = Bytes(1024**2)
"""Every part of the flash starts and ends at a multiple of this."""
RESERVED = UNIT
"""The first bytes of a flash device stay empty: a superblock there would let udev take the whole
device for what is only a slice of it (bcache looks at sector 8)."""
PRIVATE = "HOTSET-private-"
"""With what the device-mapper UUID of a part begins that is nobody else's to look at
(:mod:`hotset.disk.boot.udev`)."""
IN_USER_SPACE = Remedy("cache in user space", parameters={"kind": "userspace"})
_RETRIES = "--retry"
_REMOVE_LIMIT_S = 60.0


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
        lines, at = list[str](), 0
        for part in self.parts:
            lines.append(f"{at} {int(part.size.sectors)} linear {flash} {int(part.start.sectors)}")
            at += int(part.size.sectors)
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tier of one disk lies: its name, its two devices, and its stretches of the flash.

    ``metadata`` holds what the kind keeps beside the cached data (dm-cache: its metadata; bcache:
    the backing device's superblock). ``volume`` is the flash device's: all its disks share it.
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
    """Names of the active device-mapper devices."""
    lines = machine.run(["dmsetup", "ls"]).stdout.splitlines()
    return frozenset(line.split()[0] for line in lines if "\t" in line)


def make(machine: Machine, name: str, table: str) -> None:
    """Make a device-mapper device."""
    machine.run(["dmsetup", "create", name, "--uuid", f"HOTSET-{name}"], stdin=table)


def is_suspended(machine: Machine, name: str) -> bool:
    """True if a device holds all I/O back."""
    argv = ["dmsetup", "info", "-c", "--noheadings", "-o", "suspended", name]
    return machine.run(argv, check=False).stdout.strip() == "Suspended"


def resume(machine: Machine, name: str) -> None:
    machine.run(["dmsetup", "resume", name])


def require(machine: Machine) -> None:
    """:raises PrerequisiteMissingError: the machine's kernel has no device mapper."""
    asked = machine.run(["dmsetup", "ls"], check=False)
    if asked.rc:
        message = asked.stderr.strip().partition("\n")[0]
        raise PrerequisiteMissingError(
            f"the kernel has no device mapper ({message}); a distribution's own has",
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
    """Blank the first bytes of a slice before it is active, so that nothing old is found on it.

    Written to the flash itself: once the slice is active, udev would register a bcache that was
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
    """Remove those of the named devices that are active, in this order."""
    active = active_names(machine)
    for name in names:
        if name in active:
            machine.run(["dmsetup", "remove", _RETRIES, name], timeout_s=_REMOVE_LIMIT_S)
