"""The flash device, split into slices by device-mapper linear targets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.cachelayer.machine import Machine
from hotset.cachelayer.units import Bytes

PREFIX = "hotset-"
_RETRIES = "--retry"


@dataclass(frozen=True, slots=True)
class Slice:
    """A named part of the flash."""

    name: str
    size: Bytes


def mapper_path(name: str) -> PurePosixPath:
    return PurePosixPath("/dev/mapper") / name


def device_size(machine: Machine, device: PurePosixPath) -> Bytes:
    """Size of a block device."""
    return Bytes(int(machine.run(["blockdev", "--getsize64", str(device)]).stdout))


def split(machine: Machine, flash: PurePosixPath, slices: Sequence[Slice]) -> None:
    """Lay the slices one behind the other on the flash device.

    :raises ValueError: together they are larger than the flash.
    """
    room, wanted = device_size(machine, flash), Bytes(sum(part.size for part in slices))
    if wanted > room:
        parts = ", ".join(f"{part.name.removeprefix(PREFIX)} {part.size}" for part in slices)
        raise ValueError(f"{parts} together are larger than the flash device {flash} ({room})")
    offset = Bytes(0)
    for part in slices:
        line = f"0 {int(part.size.sectors)} linear {flash} {int(offset.sectors)}"
        machine.run(["dmsetup", "create", part.name], stdin=line)
        offset = Bytes(offset + part.size)


def remove(machine: Machine, names: Iterable[str]) -> None:
    """Remove those of the named devices that stand, in this order."""
    standing = machine.run(["dmsetup", "ls"]).stdout.split()
    for name in names:
        if name in standing:
            machine.run(["dmsetup", "remove", _RETRIES, name])
