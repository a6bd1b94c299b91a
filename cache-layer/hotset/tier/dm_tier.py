"""What tiers are by where they lie: on slices of a card's flash, over an origin."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.block import devicemapper
from hotset.block.devicemapper import Place, mapper_path
from hotset.block.extents import Extent
from hotset.block.io_counters import CACHE, ORIGIN, VOLUME
from hotset.core.machines.base import CommandTimeoutError, Machine, Result
from hotset.core.units import Blocks

from .base import Report, TierFailedError, TierSpec

_STATUS_LIMIT_S = 20.0
_SYNC_LIMIT_S = 900.0
STAYS_COLD = "nothing of it is fetched again by itself: `hotset warmup run` fills it"
"""What becomes of what a kernel's cache held when it has to begin empty."""
_SUSPENDED = (
    "it is suspended and holds all I/O back: an operation was cut short, or somebody suspended it"
    " by dmsetup; activate it, which resumes it"
)


@dataclass(frozen=True, slots=True)
class Contents:
    """What the flash holds of the disk, at one moment, to the byte: in order, none twice.

    :ivar dirty: what of it is not on the origin yet; None: the kernel does not say which it is.
    """

    cached: list[Extent]
    dirty: list[Extent] | None


class PlacedTier:
    """A tier at its place, whether it is active or not."""

    def __init__(self, machine: Machine, spec: TierSpec, place: Place) -> None:
        self.machine = machine
        self.spec = spec
        self.place = place

    @property
    def origin(self) -> PurePosixPath:
        return self.place.origin

    @property
    def volume(self) -> PurePosixPath:
        return self.place.volume.path

    @property
    def capacity(self) -> Blocks:
        return self.spec.cache.blocks(self.spec.block)

    def make_durable(self) -> None:
        """Have the origin write out its own volatile cache (fsync(2) on its device or file, which
        sends a FLUSH): only then may the flash's copy of what was written back go. The kernel's
        caches send none after they have written back.

        :raises CommandError: the origin does not, or is gone.
        """
        self.machine.run(["sync", str(self.origin)], timeout_s=_SYNC_LIMIT_S)


class DeviceMapperTier(PlacedTier, ABC):
    """A tier of the kernel, whose accelerated device is device-mapper's."""

    @property
    def path(self) -> PurePosixPath:
        """The accelerated device."""
        return mapper_path(self.place.top)

    def report(self) -> Report:
        """How it is now; never raises for a tier that failed."""
        if not self.is_active():
            return Report("inactive", None)
        if devicemapper.suspended(self.machine, self.place.top):
            return Report("failed", None, (), (_SUSPENDED,))
        try:
            return self._report()
        except (TierFailedError, CommandTimeoutError) as error:
            return Report("failed", None, (), (str(error),))

    @abstractmethod
    def status_argv(self) -> list[str]:
        """Prints the line that :meth:`report` is made of."""

    def _asked(self, *, check: bool) -> Result:
        """The kernel's answer.

        :raises CommandTimeoutError: somebody who waits for a flash that hangs has its locks.
        """
        return self.machine.run(self.status_argv(), check=check, timeout_s=_STATUS_LIMIT_S)

    def devices(self) -> dict[str, PurePosixPath]:
        """As `base.Tier.devices`."""
        cache = self.place.slice("cache").path
        return {ORIGIN: self.origin, CACHE: cache, VOLUME: self.volume}

    def flush(
        self,
        progress: Callable[[Blocks], None] = lambda _: None,
        *,
        final: bool = False,
        warn: Callable[[str], None] = lambda _: None,
    ) -> int:
        """Write everything back; returns how many blocks were dirty. The origin has them for good
        then, whatever becomes of the flash and of the power.

        :param final: leave the tier in the settings of the flush: it is about to be taken down.
        :param warn: told why there is no progress.
        :raises FlushStalledError: nothing was written back for a quarter of an hour.
        """
        written = self._write_back(progress, final, warn)
        self.make_durable()
        return written

    @abstractmethod
    def _write_back(
        self,
        progress: Callable[[Blocks], None],
        final: bool,
        warn: Callable[[str], None],
    ) -> int:
        """As :meth:`flush`; the origin may have it in a volatile cache."""

    @abstractmethod
    def _report(self) -> Report:
        """Of an active one.

        :raises TierFailedError: it has no figures.
        """

    def is_active(self) -> bool:
        """Whether the accelerated device is there, no matter who made it."""
        return self.place.top in devicemapper.active_names(self.machine)
