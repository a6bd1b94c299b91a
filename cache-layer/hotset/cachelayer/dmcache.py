"""dm-cache: Linux's device-mapper cache target as a tier.

Tables follow Documentation/admin-guide/device-mapper/cache.rst of the kernel; what a resize may do
follows ``cache_preresume`` of drivers/md/dm-cache-target.c.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from hotset.cachelayer import flash, offline
from hotset.cachelayer.dmstatus import CacheStatus, parse_dmsetup_status, parse_mappings
from hotset.cachelayer.extents import Run
from hotset.cachelayer.flash import Place, device_size, mapper_path, remove
from hotset.cachelayer.machine import Machine
from hotset.cachelayer.tier import Counters, Progress, TierFailedError, TierKind, TierSpec, Warmup
from hotset.cachelayer.units import Blocks, Bytes

COUNTER_BITS = 32
BLOCK_STEP = Bytes(32 * 1024)
BLOCK_MAX = Bytes(1024**3)
_METADATA_BASE = 4 * 1024**2
_METADATA_PER_BLOCK = 44
_METADATA_MAX = 16 * 1024**3
_FLUSH_POLL_S = 0.5
_METADATA_COPY = PurePosixPath("/run/hotset/metadata")


def metadata_bytes(cache: Bytes, block: Bytes) -> Bytes:
    """Room for the metadata: 4 MiB and 44 bytes a block (as LVM reckons; the kernel needs 28)."""
    needed = _METADATA_BASE + cache // block * _METADATA_PER_BLOCK
    return Bytes(min(needed, _METADATA_MAX)).align_up(1024**2)


def check_block(block: Bytes) -> Bytes:
    """:raises ValueError: not a block size the kernel takes."""
    if not BLOCK_STEP <= block <= BLOCK_MAX or block % BLOCK_STEP:
        raise ValueError(
            f"{int(block)} bytes: dm-cache takes a multiple of 32 KiB from 32 KiB to 1 GiB"
            " (64KiB suits OLTP)"
        )
    return block


def table(spec: TierSpec, place: Place, origin_size: Bytes) -> str:
    """The device-mapper table of the accelerated device."""
    features = f"2 metadata2 {spec.mode}"
    devices = f"{place.slice('meta').path} {place.slice('cache').path} {place.origin}"
    block = int(spec.block.sectors)
    return f"0 {int(origin_size.sectors)} cache {devices} {block} {features} {spec.policy} 0"


class DmCache:
    """The kernel's dm-cache over an origin, on any machine that has it."""

    kind: TierKind = "dm-cache"
    counter_bits = COUNTER_BITS

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
    def cache(self) -> PurePosixPath:
        """The CACHE slice's own device: only a fill writes to it."""
        return self.place.slice("cache").path

    @property
    def metadata(self) -> PurePosixPath:
        """The METADATA slice's own device."""
        return self.place.slice("meta").path

    @property
    def capacity(self) -> Blocks:
        return self.spec.cache.blocks(self.spec.block)

    def prepare(self) -> PurePosixPath:
        """Cut METADATA, CACHE and VOLUME out of the flash, the cache empty; returns the origin."""
        place = self.place
        if self.stands():
            raise TierFailedError(f"{self.path} stands already: destroy it first")
        # An all-zero superblock makes the kernel format an empty cache; old metadata must never
        # be used over an origin that was written since.
        flash.wipe(self.machine, place.flash, place.metadata)
        self._make_slices()
        return self.origin

    def create(self) -> PurePosixPath:
        if not self.stands():
            size = device_size(self.machine, self.origin)
            flash.make(self.machine, self.place.top, table(self.spec, self.place, size))
        return self.path

    def warm(
        self, runs: Sequence[Run], samples: int, on_progress: Callable[[Progress], None]
    ) -> Warmup:
        return offline.fill(self, runs, samples, on_progress)

    def status_argv(self) -> list[str]:
        return ["dmsetup", "status", self.place.top]

    def parse(self, line: str) -> Counters:
        return parse_dmsetup_status(line).counters()

    def status(self) -> CacheStatus:
        return parse_dmsetup_status(self.machine.run(self.status_argv()).stdout)

    def counters(self) -> Counters:
        return self.status().counters()

    def resident(self) -> list[Run]:
        """From a copy of the metadata, taken while the tier is suspended and so all of it is
        written (dm-cache has no other way to tell)."""
        self.machine.run(["mkdir", "-p", str(_METADATA_COPY.parent)])
        self.machine.run(["dmsetup", "suspend", self.place.top])
        try:
            self.machine.run(["dd", f"if={self.metadata}", f"of={_METADATA_COPY}", "bs=1M",
                              "iflag=direct", "status=none"])  # fmt: skip
        finally:
            self.machine.run(["dmsetup", "resume", self.place.top])
        dump = self.machine.run(["cache_dump", str(_METADATA_COPY)]).stdout
        self.machine.run(["rm", "-f", str(_METADATA_COPY)])
        return parse_mappings(dump)

    def flush(self, progress: Callable[[Blocks], None] = lambda _: None) -> int:
        """Write every dirty block back under the ``cleaner`` policy.

        The policy stays ``cleaner`` afterwards: this is the step before the tier is removed.
        """
        first = dirty = int(self.status().dirty)
        if first == 0:
            return 0
        self._reload(replace(self.spec, policy="cleaner"))
        while dirty:
            time.sleep(_FLUSH_POLL_S)
            dirty = int(self.status().dirty)
            progress(Blocks(dirty))
        return first

    def destroy(self) -> None:
        if self.stands():
            self.flush()
        self.discard()

    def discard(self) -> None:
        """Remove the tier without writing back: for an origin that is restored anyway."""
        place = self.place
        names = (place.top, place.volume.name, *(place.slice(what).name for what in _SLICES))
        remove(self.machine, names)

    def stands(self) -> bool:
        """Whether the accelerated device is there, no matter who made it."""
        return self.place.top in flash.standing(self.machine)

    def _make_slices(self) -> None:
        there = flash.standing(self.machine)
        slices = (*(self.place.slice(what) for what in _SLICES), self.place.volume)
        for part in slices:
            if part.name not in there and part.size:
                flash.make(self.machine, part.name, part.table(self.place.flash))

    def _reload(self, spec: TierSpec) -> None:
        """Switch the standing device to another table; I/O waits meanwhile."""
        size = device_size(self.machine, self.origin)
        self.machine.run(["dmsetup", "suspend", self.place.top])
        try:
            line = table(spec, self.place, size)
            self.machine.run(["dmsetup", "reload", self.place.top], stdin=line)
        finally:
            # With the old table, if the kernel refused the new one.
            self.machine.run(["dmsetup", "resume", self.place.top])


_SLICES = ("meta", "cache")
