"""The tier of a disk: on slices of a flash device, over an origin, active or not."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.block import programs
from hotset.block.devicemapper import Place
from hotset.block.extents import Extent, Run
from hotset.block.io_counters import Readings
from hotset.block.salvage import Salvage
from hotset.core.machines.base import Machine
from hotset.core.units import Blocks, Bytes

from .base import MetadataDamagedError, Report, Tier, TierSpec
from .division import Divisible

OnFlush = Callable[[Blocks], None]
HOTTEST = 63
"""The level of what is worth most to a policy; the coldest is 0."""
_METADATA_BASE = 4 * 1024**2
_METADATA_PER_BLOCK = 44
_METADATA_MAX = 16 * 1024**3
_SYNC_LIMIT_S = 900.0


def metadata_bytes(cache: Bytes, block: Bytes) -> Bytes:
    """Room for the metadata: 4 MiB and 44 bytes a block (as LVM reckons; the kernel needs 28)."""
    needed = _METADATA_BASE + cache // block * _METADATA_PER_BLOCK
    return Bytes(min(needed, _METADATA_MAX)).align_up(1024**2)


@dataclass(frozen=True, slots=True)
class Contents:
    """Contents of the flash at one moment, to the byte: in order, none twice.

    :ivar dirty: extents that are not on the origin yet; None: the kernel does not say which.
    """

    cached: list[Extent]
    dirty: list[Extent] | None


@dataclass(frozen=True, slots=True)
class Resized:
    """Goal of a resize: a cache of another size, and an origin that has grown.

    :ivar claim: puts a larger cache on record; cut short then, the label names more flash than the
        cache uses, which harms nobody.
    :ivar free: puts a smaller one on record, once nothing uses what becomes free.
    """

    spec: TierSpec
    place: Place
    grows: bool
    claim: Callable[[], object]
    free: Callable[[], object]


class DiskTier(Tier):
    """Interface to a disk of any kind. What differs from kind to kind is here: no other code
    asks which kind it is."""

    cache_min = Bytes(0)
    """A smaller cache cannot be had."""

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

    @property
    @abstractmethod
    def path(self) -> PurePosixPath:
        """The accelerated device."""

    @abstractmethod
    def activate(self, on_usable: Callable[[], None] = lambda: None) -> None:
        """Make the devices again out of what lies on flash and origin.

        :param on_usable: called once the metadata were found to be usable, before anybody can
            write.
        :raises MetadataDamagedError: they are not.
        """

    @abstractmethod
    def is_active(self) -> bool:
        """True if the accelerated device exists, no matter who made it."""

    def has_ended(self) -> bool:
        """True if the server of an existing device is gone; the kernel's caches never are."""
        return False

    def require_unused(self) -> None:
        """:raises InUseError: somebody uses the accelerated device."""
        programs.require_unused(self.machine, self.path)

    @abstractmethod
    def report(self) -> Report:
        """How it is now; never raises for a tier that failed."""

    def may_be_filled(self) -> bool:
        """True if a warm-up can begin, or continue."""
        return self.is_active()

    def parse_devices(self, line: str) -> Readings:  # noqa: ARG002 - the kernel counts them
        return {}

    def divisible(self) -> Divisible | None:
        """Its cache, as one that keeps to pins, exclusions and shares; None: it keeps to none."""
        return None

    @abstractmethod
    def by_level(self) -> dict[int, list[Run]]:
        """Group the cached runs by their worth to the policy, 0 to 63."""

    @abstractmethod
    def contents(self) -> Contents:
        """Return the contents of the flash."""

    @abstractmethod
    def flush(
        self,
        progress: OnFlush = lambda _: None,
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

    @abstractmethod
    def settle(self) -> str | None:
        """Put right what an operation that was cut short left of an active tier. Returns what was
        put right, in words."""

    @abstractmethod
    def retune(self) -> None:
        """Take in another mode or policy of the specification."""

    @abstractmethod
    def may_be_dirty(self) -> bool:
        """True if the flash may hold writes that the origin lacks; the device is down."""

    @abstractmethod
    def empty(self) -> str:
        """Forget everything that is cached, while the accelerated device is down; returns what
        becomes of it, in words."""

    def repair(self, write: bool) -> str:  # noqa: ARG002
        """Describe what can be read of damaged metadata; with ``write``, it is rewritten with that
        and the tier can be activated.

        :raises MetadataDamagedError: they cannot be mended.
        """
        raise MetadataDamagedError(f"{self.kind} has no repair of its own")

    def salvage_by_hand(self) -> str:
        """Build the command, on the disk's machine, that writes back what is certain of a cache
        that nothing identifies."""
        raise NotImplementedError

    def salvage(self, write: bool) -> Salvage | None:  # noqa: ARG002
        """Examine a cache that is refused as damaged; with ``write``, dirty data is on the origin
        afterwards, for good. None: of this kind nothing can be proven."""
        return None

    def may_be_active(self) -> bool:
        """True unless it is certain that nothing of the tier is up."""
        return self.is_active()

    @abstractmethod
    def discard(self) -> None:
        """Remove the tier's devices without writing back; what is cached, also dirty, stays on the
        flash, and so does the volume."""

    def uninstall(self) -> None:
        """Remove what works for the disk beside its devices."""

    @abstractmethod
    def follow_origin(self) -> Bytes:
        """Take in an origin that has grown, without an interruption; returns its size."""

    def resize_drops_dirty(self, cache: Bytes) -> bool:
        """True if a cache of that size can only be had by writing back first."""
        return cache < self.spec.cache

    def metadata_needed(self, cache: Bytes) -> Bytes:  # noqa: ARG002
        """Return the metadata that a cache of that size needs; 0: the cache holds its own."""
        return Bytes(0)

    @abstractmethod
    def resize(self, after: Resized, progress: OnFlush, warn: Callable[[str], None]) -> str | None:
        """Take in what the disk is to become, while it is in use. Returns what is lost by that, in
        words."""

    def make_durable(self) -> None:
        """Have the origin write out its own volatile cache (fsync(2) on its device or file, which
        sends a FLUSH): only then may the flash's copy of what was written back go. The kernel's
        caches send none after they have written back.

        :raises CommandError: the origin does not, or is gone.
        """
        self.machine.run(["sync", str(self.origin)], timeout_s=_SYNC_LIMIT_S)


class InPlaceTier(DiskTier):
    """A kind that takes in another size of its cache as it is, metadata included."""

    def metadata_needed(self, cache: Bytes) -> Bytes:
        return metadata_bytes(cache, self.spec.block)

    @abstractmethod
    def follow_cache(self) -> None:
        """Take in the CACHE slice as the place has it now, larger or smaller than it was."""

    def resize(self, after: Resized, progress: OnFlush, warn: Callable[[str], None]) -> str | None:
        if after.grows:
            self.follow_origin()
        resized = copy(self)
        resized.spec, resized.place = after.spec, after.place
        # What is cut short, the next `activate` takes in.
        if after.spec.cache > self.spec.cache:
            after.claim()
            resized.follow_cache()
        elif after.spec.cache < self.spec.cache:
            if self.resize_drops_dirty(after.spec.cache):
                self.flush(progress, final=True, warn=warn)
            resized.follow_cache()
            after.free()
        return None
