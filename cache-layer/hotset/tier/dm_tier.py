"""Base of the kernel's tiers: the accelerated device is device-mapper's, and
``hotset-boot`` makes it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from pathlib import PurePosixPath

from hotset.block import devicemapper
from hotset.block.devicemapper import Place, device_size, mapper_path
from hotset.block.io_counters import CACHE, ORIGIN, VOLUME
from hotset.core.machines.base import CommandTimeoutError, Machine, Result
from hotset.core.units import Blocks, Bytes

from .base import Report, TierFailedError, TierSpec
from .devices import Action, Devices
from .disk_tier import DiskTier

_STATUS_LIMIT_S = 20.0
_SUSPENDED = (
    "it is suspended and holds all I/O back: an operation was cut short, or somebody suspended it"
    " by dmsetup; activate it, which resumes it"
)


class DeviceMapperTier(DiskTier):
    """A tier of the kernel, whose accelerated device is device-mapper's."""

    def __init__(self, machine: Machine, spec: TierSpec, place: Place, identity: str = "") -> None:
        """:param identity: the disk's UUID; bcache's cache set has it."""
        super().__init__(machine, spec, place)
        self.identity = identity

    def perform(self, action: Action, spec: TierSpec | None = None) -> str:
        """Call `Devices.perform` for the tier's own specification, or for ``spec`` if given."""
        described = spec or self.spec
        devices = Devices(self.machine, self.kind, described, self.place, self.identity)
        return devices.perform(action)

    def prepare(self) -> PurePosixPath:
        """Make METADATA, CACHE and VOLUME of the flash, the cache empty; returns the origin."""
        if self.is_active():
            raise TierFailedError(f"{self.path} is active already: destroy it first")
        self.empty()
        return self.origin

    def create(self) -> PurePosixPath:
        if not self.is_active():
            self.perform("make")
        return self.path

    def activate(self, on_usable: Callable[[], None] = lambda: None) -> None:
        """Make the devices again out of what lies on flash and origin.

        :param on_usable: called once the metadata were found to be usable, before anybody can
            write.
        :raises MetadataDamagedError: they are not.
        """
        if self.is_active():
            return
        self.perform("open")
        on_usable()
        self.create()

    def empty(self) -> str:
        """Forget everything that is cached, while the accelerated device is down;
        returns what becomes of it, in words."""
        return self.perform("empty")

    def discard(self) -> None:
        """Remove the tier's devices without writing back; the volume stays. (The kernel
        writes the metadata out when the device goes.)"""
        self.perform("remove")

    def follow_origin(self) -> Bytes:
        """Take in an origin that has grown, I/O going on; returns its size."""
        self.perform("follow-origin")
        return device_size(self.machine, self.origin)

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

    def _ask(self, *, check: bool) -> Result:
        """The kernel's answer.

        :raises CommandTimeoutError: somebody who waits for a flash that hangs has its locks.
        """
        return self.machine.run(self.status_argv(), check=check, timeout_s=_STATUS_LIMIT_S)

    def devices(self) -> dict[str, PurePosixPath]:
        """Implement `base.Tier.devices`."""
        cache = self.place.slice("cache").path
        return {ORIGIN: self.origin, CACHE: cache, VOLUME: self.volume}

    def flush(
        self,
        progress: Callable[[Blocks], None] = lambda _: None,
        *,
        final: bool = False,
        warn: Callable[[str], None] = lambda _: None,
    ) -> int:
        """Implement `DiskTier.flush`."""
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
        """Write back for :meth:`flush`; the origin may have it in a volatile cache."""

    @abstractmethod
    def _report(self) -> Report:
        """Read the report of an active tier.

        :raises TierFailedError: it has no figures.
        """

    def is_active(self) -> bool:
        """True if the accelerated device exists, no matter who made it."""
        return self.place.top in devicemapper.active_names(self.machine)

    def may_be_active(self) -> bool:
        """A part that is left keeps the origin, or lies on another flash by now."""
        names = {f"{self.place.top}{ending}" for ending in ("", "-meta", "-cache", "-backing")}
        return not names.isdisjoint(devicemapper.active_names(self.machine))
