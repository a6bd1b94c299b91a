"""dm-cache: Linux's device-mapper cache target as a tier.

Tables follow Documentation/admin-guide/device-mapper/cache.rst of the kernel; what a resize may do
follows ``cache_preresume`` of drivers/md/dm-cache-target.c.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from hotset.cachelayer import flash, offline, overlap
from hotset.cachelayer.dmstatus import CacheStatus, parse_dmsetup_status
from hotset.cachelayer.extents import Run
from hotset.cachelayer.flash import Place, device_size, remove
from hotset.cachelayer.placed import Contents, PlacedTier
from hotset.cachelayer.tier import (
    Counters,
    MetadataDamagedError,
    Progress,
    Report,
    TierFailedError,
    TierKind,
    TierSpec,
    Warmup,
)
from hotset.cachelayer.units import Blocks, Bytes

COUNTER_BITS = 32
BLOCK_STEP = Bytes(32 * 1024)
BLOCK_MAX = Bytes(1024**3)
_METADATA_BASE = 4 * 1024**2
_METADATA_PER_BLOCK = 44
_METADATA_MAX = 16 * 1024**3
_FLUSH_POLL_S = 0.5
_CHECK_TIMEOUT_S = 1800.0
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


class DmCache(PlacedTier):
    """The kernel's dm-cache over an origin, on any machine that has it."""

    kind: TierKind = "dm-cache"
    counter_bits = COUNTER_BITS

    @property
    def cache(self) -> PurePosixPath:
        """The CACHE slice's own device: only a fill writes to it."""
        return self.place.slice("cache").path

    @property
    def metadata(self) -> PurePosixPath:
        """The METADATA slice's own device."""
        return self.place.slice("meta").path

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
        self,
        runs: Sequence[Run],
        samples: int,
        on_progress: Callable[[Progress], None],
        rate: Bytes | None = None,
    ) -> Warmup:
        return offline.fill(self, runs, samples, on_progress, rate)

    def status_argv(self) -> list[str]:
        return ["dmsetup", "status", self.place.top]

    def parse(self, line: str) -> Counters:
        return parse_dmsetup_status(line).counters()

    def status(self) -> CacheStatus:
        return parse_dmsetup_status(self.machine.run(self.status_argv()).stdout)

    def counters(self) -> Counters:
        return self.status().counters()

    def resident(self) -> list[Run]:
        return offline.look(self).runs()

    def contents(self) -> Contents:
        """dm-cache says how many blocks are dirty, not which, while it works."""
        return Contents(overlap.merged(overlap.of_runs(self.resident(), self.spec.block)), None)

    def flush(
        self, progress: Callable[[Blocks], None] = lambda _: None, *, going: bool = False
    ) -> int:
        """Under the ``cleaner`` policy in writethrough mode, where no clean block becomes dirty;
        so it ends, however busy the database is."""
        first = dirty = int(self.status().dirty)
        if first == 0:
            return 0
        try:
            self._reload(replace(self.spec, policy="cleaner", mode="writethrough"))
            while dirty:
                progress(Blocks(dirty))
                time.sleep(_FLUSH_POLL_S)
                dirty = int(self.status().dirty)
            progress(Blocks(0))
        finally:
            if not going:
                self._reload(self.spec)
        return first

    def activate(self) -> None:
        """Make the devices again out of what lies on flash and origin.

        :raises MetadataDamagedError: ``cache_check`` finds the metadata damaged; an all-zero
            superblock counts as damaged too, where the kernel would format an empty cache and
            forget what was dirty.
        """
        if self.stands():
            return
        self._make_slices()
        # After a needs_check the kernel takes the metadata read-only until the flag is cleared,
        # which cache_check does only if it finds nothing wrong.
        argv = ["cache_check", "--clear-needs-check-flag", str(self.metadata)]
        checked = self.machine.run(argv, check=False, timeout_s=_CHECK_TIMEOUT_S)
        if checked.rc:
            raise MetadataDamagedError(
                f"cache_check {self.metadata}: {(checked.stderr + checked.stdout).strip()[:600]}"
            )
        self.create()

    def repair(self) -> str:
        """Rewrite damaged metadata by what ``cache_repair`` still finds in it; returns its words.

        :raises MetadataDamagedError: it finds nothing that can be used.
        """
        self._make_slices()
        self.machine.run(["mkdir", "-p", str(_METADATA_COPY.parent)])
        size = int(self.place.slice("meta").size)
        try:
            self.machine.run(["truncate", "-s", str(size), str(_METADATA_COPY)])
            argv = ["cache_repair", "-i", str(self.metadata), "-o", str(_METADATA_COPY)]
            done = self.machine.run(argv, check=False, timeout_s=_CHECK_TIMEOUT_S)
            check = ["cache_check", str(_METADATA_COPY)]
            if done.rc or self.machine.run(check, check=False, timeout_s=_CHECK_TIMEOUT_S).rc:
                raise MetadataDamagedError(
                    f"cache_repair {self.metadata}: {(done.stderr + done.stdout).strip()[:600]}"
                )
            self.machine.run(["dd", f"if={_METADATA_COPY}", f"of={self.metadata}", "bs=1M",
                              "oflag=direct", "status=none"])  # fmt: skip
        finally:
            self.machine.run(["rm", "-f", str(_METADATA_COPY)])
        return (done.stderr + done.stdout).strip()

    def deactivate(self) -> None:
        """Remove the devices; what is cached, also dirty, stays on the flash and is known as it
        was (the kernel writes its metadata out when the device goes)."""
        self.discard()

    def report(self) -> Report:
        """How it is now; never raises for a tier that failed."""
        if not self.stands():
            return Report("inactive", None)
        try:
            status = self.status()
        except TierFailedError as error:
            return Report("failed", None, (), (str(error),))
        notes = []
        if status.metadata_mode == "ro":
            notes.append("the kernel has its metadata read-only: nothing is promoted any more")
        if status.needs_check:
            notes.append(
                "the metadata needs a check: `hotset tier deactivate`, then `hotset tier activate`,"
                " which checks it"
            )
        tunables = (("mode", status.mode), ("policy", status.policy),
                    *status.core_args, *status.policy_args)  # fmt: skip
        return Report("degraded" if notes else "active", status.counters(), tunables, tuple(notes))

    def follow_origin(self) -> Bytes:
        """Take in an origin that has grown, without an interruption; returns its size."""
        self._reload(self.spec)
        return device_size(self.machine, self.origin)

    def follow_cache(self, before: Place) -> None:
        """Take in the CACHE slice as the place has it now, larger or smaller than ``before``.

        The kernel resizes the metadata when the new table is resumed; blocks that no longer fit
        are dropped, so a smaller one must have been flushed.
        """
        cache, top = self.place.slice("cache"), self.place.top
        size = device_size(self.machine, self.origin)
        self.machine.run(["dmsetup", "suspend", top])
        try:
            flash.swap(self.machine, cache.name, cache.table(self.place.flash))
            line = table(self.spec, self.place, size)
            self.machine.run(["dmsetup", "reload", top], stdin=line)
            self.machine.run(["dmsetup", "resume", top])
        except BaseException:
            flash.swap(self.machine, cache.name, before.slice("cache").table(self.place.flash))
            self.machine.run(["dmsetup", "resume", top])
            raise

    def destroy(self) -> None:
        if self.stands():
            self.flush(going=True)
        self.discard()

    def discard(self) -> None:
        """Remove the tier's devices without writing back; the card's volume stays."""
        place = self.place
        remove(self.machine, (place.top, *(place.slice(what).name for what in _SLICES)))

    def _make_slices(self) -> None:
        flash.load(self.machine, "dm-cache", "dm-cache-smq")
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
