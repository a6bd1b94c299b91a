"""By what the requests of a disk can be counted region by region, as a tier answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.core.machines.base import Machine
from hotset.core.units import Bytes

TRACING = PurePosixPath("/sys/kernel/tracing")


@dataclass(frozen=True, slots=True)
class EngineRegions:
    """A cache engine counts them, from its start on.

    :ivar control: its socket on the machine.
    """

    control: PurePosixPath


@dataclass(frozen=True, slots=True)
class RemapRegions:
    """The kernel tells where dm-cache sends each request.

    :ivar device: the accelerated device.
    """

    device: PurePosixPath


@dataclass(frozen=True, slots=True)
class BcacheRegions:
    """The kernel tells of bcache's reads and writes.

    :ivar device: the accelerated device.
    :ivar region: the smallest that makes sense: bcache has no block size.
    """

    device: PurePosixPath
    region: Bytes


@dataclass(frozen=True, slots=True)
class NoRegions:
    """Nothing counts them.

    :ivar why: in words, the kind's name in front.
    """

    why: str


Regions = EngineRegions | RemapRegions | BcacheRegions | NoRegions


def end_tracing(machine: Machine, disk: str) -> bool:
    """End the counting of a disk, whatever became of its device; False: nothing was counted."""
    instance = tracing_of(disk)
    if machine.run(["test", "-d", str(instance)], check=False).rc:
        return False
    machine.run(["rmdir", str(instance)])
    return True


def tracing_of(disk: str) -> PurePosixPath:
    """Where a disk's tables are kept."""
    return TRACING / "instances" / f"hotset-{disk}"
