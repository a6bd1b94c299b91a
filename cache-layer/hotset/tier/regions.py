"""By what the requests of a disk can be counted region by region, as a tier answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.core.units import Bytes


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
