"""What both kernel tiers are by where they lie: on slices of a card's flash, over an origin."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.cachelayer import flash
from hotset.cachelayer.extents import Extent
from hotset.cachelayer.flash import Place, mapper_path
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.tier import TierSpec
from hotset.cachelayer.units import Blocks


@dataclass(frozen=True, slots=True)
class Contents:
    """What the flash holds of the disk, at one moment, to the byte: in order, none twice.

    :ivar dirty: what of it is not on the origin yet; None: the kernel does not say which it is.
    """

    cached: list[Extent]
    dirty: list[Extent] | None


class PlacedTier:
    """A tier at its place, whether its devices stand or not."""

    def __init__(self, machine: Machine, spec: TierSpec, place: Place) -> None:
        self.machine = machine
        self.spec = spec
        self.place = place

    @property
    def origin(self) -> PurePosixPath:
        return self.place.origin

    @property
    def path(self) -> PurePosixPath:
        """The accelerated device."""
        return mapper_path(self.place.top)

    @property
    def volume(self) -> PurePosixPath:
        return self.place.volume.path

    @property
    def capacity(self) -> Blocks:
        return self.spec.cache.blocks(self.spec.block)

    def stands(self) -> bool:
        """Whether the accelerated device is there, no matter who made it."""
        return self.place.top in flash.standing(self.machine)
