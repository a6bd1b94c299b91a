"""What the kernel's tiers have in common: the accelerated device is device-mapper's."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import PurePosixPath

from hotset.block import devicemapper
from hotset.block.devicemapper import mapper_path
from hotset.block.io_counters import CACHE, ORIGIN, VOLUME
from hotset.core.machines.base import CommandTimeoutError, Result
from hotset.core.units import Blocks

from .base import Report, TierFailedError
from .disk_tier import DiskTier

_STATUS_LIMIT_S = 20.0
STAYS_COLD = "nothing of it is fetched again by itself: a warm-up fills it"
"""What becomes of what a kernel's cache held when it has to begin empty."""
_SUSPENDED = (
    "it is suspended and holds all I/O back: an operation was cut short, or somebody suspended it"
    " by dmsetup; activate it, which resumes it"
)


class DeviceMapperTier(DiskTier):
    """A tier of the kernel, whose accelerated device is device-mapper's."""

    @property
    def path(self) -> PurePosixPath:
        """The accelerated device."""
        return mapper_path(self.place.top)

    def report(self) -> Report:
        """How it is now; never raises for a tier that failed."""
        if not self.is_active():
            return Report("inactive", None)
        if devicemapper.is_suspended(self.machine, self.place.top):
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
        """As `DiskTier.flush`."""
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
