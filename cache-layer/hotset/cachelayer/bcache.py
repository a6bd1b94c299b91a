"""bcache: Linux's block cache as a tier that leaves the origin's data where they are.

bcache wants a superblock of its own on the backing device. Here that is a device-mapper device of
two pieces, a header of 1 MiB on the flash and the whole origin behind it, with the data at the
origin's first sector (superblock version 4, ``data_offset``: drivers/md/bcache/super.c). So the
origin's sectors map one to one and it can be mounted again once the tier is gone. The header is
no device of its own, or udev would register it. The accelerated device is a linear one on top of
``/dev/bcacheN``, whose number may change.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

from hotset.cachelayer import flash, warmup
from hotset.cachelayer.bcachekernel import Kernel
from hotset.cachelayer.bcachesys import (
    STATUS_PROGRAM,
    Line,
    extents_of,
    parse_choice,
    parse_line,
)
from hotset.cachelayer.extents import Run, count, difference
from hotset.cachelayer.flash import UNIT, Part, Place, device_size, linear_table, mapper_path
from hotset.cachelayer.machine import Machine
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
    WriteMode,
)
from hotset.cachelayer.units import Blocks, Bytes

COUNTER_BITS = 64
BLOCK = Bytes(4096)
"""The unit of plans and counters; bcache itself caches whatever length was asked for."""
HEADER = UNIT
"""In front of the origin, on the flash; its superblock lies at sector 8."""
BUCKET = Bytes(512 * 1024)
_BUCKET_MIN = Bytes(64 * 1024)
_BUCKETS = 1024
CACHE_MIN = Bytes(_BUCKETS * _BUCKET_MIN)
"""``cache_alloc`` (super.c) wants more than 512 buckets."""
_POLL_S = 0.5
_PASSES_MAX = 20
_VAIN_MAX = 3
_MISSING_MAX = 0.005
_WRITEBACK_PERCENT = 10
_WRITEBACK_DELAY_S = 5


def bucket_bytes(cache: Bytes) -> Bytes:
    """512 KiB, less where there would be too few of them."""
    bucket = int(BUCKET)
    while cache // bucket < _BUCKETS and bucket > _BUCKET_MIN:
        bucket //= 2
    return Bytes(bucket)


class Bcache(PlacedTier):
    """The kernel's bcache over an origin, on any machine that has it."""

    kind: TierKind = "bcache"
    counter_bits = COUNTER_BITS

    def __init__(self, machine: Machine, spec: TierSpec, place: Place, set_uuid: str) -> None:
        """:param set_uuid: the cache set's, chosen when the disk is put on its card."""
        super().__init__(machine, spec, place)
        self.set_uuid = set_uuid
        self.kernel = Kernel(machine, f"{place.top}-backing", set_uuid)
        self._fresh = False

    @property
    def backing(self) -> str:
        """The device-mapper name of header and origin."""
        return f"{self.place.top}-backing"

    def prepare(self) -> PurePosixPath:
        """Cut CACHE and VOLUME out of the flash, the cache empty; returns the origin."""
        if self.stands():
            raise TierFailedError(f"{self.path} stands already: destroy it first")
        flash.load(self.machine, "bcache")
        flash.wipe(self.machine, self.place.flash, self.place.metadata)
        self.format_cache()
        self._make(self.place.volume.name, self.place.volume.table(self.place.flash))
        self._fresh = True
        return self.origin

    def format_cache(self) -> None:
        """A new, empty cache set on the CACHE slice."""
        place, cache = self.place, self.place.slice("cache")
        flash.wipe(self.machine, place.flash, place.cache)
        self._make(cache.name, cache.table(place.flash))
        self.machine.run(["make-bcache", "-C", "--bucket", str(int(bucket_bytes(cache.size))),
                          "--block", str(self._sector()), "--cset-uuid", self.set_uuid,
                          str(cache.path)])  # fmt: skip

    def create(self) -> PurePosixPath:
        if self.stands():
            return self.path
        if not self._fresh:
            self.activate()
            return self.path
        self._make(self.backing, self.backing_table())
        self.machine.run(["make-bcache", "-B", "--block", str(self._sector()),
                          "--data-offset", str(int(HEADER.sectors)),
                          str(mapper_path(self.backing))])  # fmt: skip
        self._start()
        return self.path

    def activate(self) -> None:
        """Make the devices again out of what lies on flash and origin; changes nothing on them.

        :raises MetadataDamagedError: a superblock is gone or bcache refuses it.
        """
        if self.stands():
            return
        flash.load(self.machine, "bcache")
        cache = self.place.slice("cache")
        self._make(self.place.volume.name, self.place.volume.table(self.place.flash))
        self._make(cache.name, cache.table(self.place.flash))
        self._make(self.backing, self.backing_table())
        for device in (cache.path, mapper_path(self.backing)):
            if not self._has_superblock(device):
                shown = self.machine.run(["bcache-super-show", str(device)], check=False)
                raise MetadataDamagedError(
                    f"{device} has no valid bcache superblock:"
                    f" {(shown.stderr.strip() or shown.stdout.strip())[:300]}"
                )
        self._start()

    def deactivate(self) -> None:
        """Remove the devices; what is cached, also dirty, stays on the flash."""
        self.discard()

    def warm(
        self,
        runs: Sequence[Run],
        samples: int,
        on_progress: Callable[[Progress], None],
        rate: Bytes | None = None,
    ) -> Warmup:
        """Reads with nothing bypassed: one pass, and further ones over what it left out.

        A miss is only inserted into buckets that are free at that moment (``bch_data_insert`` of a
        read does not wait); one in 1,024 is held free.
        """
        del samples  # every block that is cached was read through the tier itself
        self.create()
        begun = time.monotonic()
        total = count(runs).bytes(self.spec.block)
        origin_rate = warmup.sequential_rate(self.machine, self.origin)
        progress = warmup.progress_of(total, on_progress)
        self.kernel.set(("sequential_cutoff", 0))
        try:
            seconds = self._read_until_cached(runs, progress, rate)
        finally:
            self._tune()
        return Warmup("read", total, seconds, time.monotonic() - begun, origin_rate, 0, 0)

    def _read_until_cached(
        self, runs: Sequence[Run], progress: Callable[[Bytes], None], rate: Bytes | None
    ) -> float:
        """Pass after pass over what is missing, until nearly nothing is, or passes do not help;
        returns the seconds."""
        begun = time.monotonic()
        enough = count(runs) * _MISSING_MAX
        missing, vain = list(runs), 0
        for _ in range(_PASSES_MAX):
            before = count(missing)
            there = count(runs) - before

            def on_bytes(done: Bytes, there: int = there) -> None:
                progress(Bytes(Blocks(there).bytes(self.spec.block) + done))

            warmup.read_runs(self.machine, missing, self.spec.block, self.path, on_bytes, rate,
                             self._piece())  # fmt: skip
            missing = difference(missing, self.resident())
            vain = 0 if count(missing) < before else vain + 1
            if count(missing) <= enough or vain == _VAIN_MAX:
                break
            # So that buckets become free.
            time.sleep(_POLL_S)
        return time.monotonic() - begun

    def _piece(self) -> Bytes:
        """The largest read whose misses can be kept: no more than is held free."""
        return min(max(Bytes(self.spec.cache // _BUCKETS).align_down(_BUCKET_MIN), _BUCKET_MIN),
                   warmup.READ_MAX)  # fmt: skip

    def status_argv(self) -> list[str]:
        return ["sh", "-c", STATUS_PROGRAM, "hotset-bcache", self.backing]

    def parse(self, line: str) -> Counters:
        return parse_line(line).counters(self.spec.block, self.capacity)

    def status(self) -> Line:
        result = self.machine.run(self.status_argv(), check=False)
        return parse_line(result.stdout if result.rc == 0 else "Fail")

    def counters(self) -> Counters:
        return self.status().counters(self.spec.block, self.capacity)

    def report(self) -> Report:
        """How it is now; never raises for a tier that failed."""
        if not self.stands():
            return Report("inactive", None)
        try:
            line = self.status()
        except TierFailedError as error:
            return Report("failed", None, (), (str(error),))
        notes: list[str] = []
        if line.state in ("no cache", "inconsistent"):
            notes.append(f"bcache says {line.state!r}: the origin works without a cache")
        counters = line.counters(self.spec.block, self.capacity)
        return Report("degraded" if notes else "active", counters, self._tunables(), tuple(notes))

    def resident(self) -> list[Run]:
        """Blocks of which every byte is cached."""
        block, runs = self.spec.block, list[Run]()
        for extent in self.contents().cached:
            first = -(-extent.start // block)
            last = (extent.start + extent.length) // block
            if last > first:
                runs.append(Run(Blocks(first), Blocks(last - first)))
        return runs

    def contents(self) -> Contents:
        """To the sector."""
        keys = self.kernel.cached_keys()
        dirty = (key for key in keys if key.dirty)
        return Contents(extents_of(keys, HEADER.sectors), extents_of(dirty, HEADER.sectors))

    def flush(
        self, progress: Callable[[Blocks], None] = lambda _: None, *, going: bool = False
    ) -> int:
        first = dirty = self.counters().dirty
        if not first:
            return 0
        # Nothing becomes dirty any more, and the rest is written back as fast as the origin goes.
        self.kernel.set(("cache_mode", "writethrough"))
        self.kernel.set(("writeback_percent", 0))
        self.kernel.set(("writeback_running", 1))
        try:
            while dirty:
                progress(dirty)
                time.sleep(_POLL_S)
                dirty = self.counters().dirty
            progress(Blocks(0))
        finally:
            if not going:
                self._tune()
        return int(first)

    def detach_cache(self) -> None:
        """Let go of the cache set while the device stays; what was dirty is written back first."""
        self.kernel.set(("cache_mode", "writethrough"))
        self.flush(going=True)
        self.kernel.set(("detach", 1))
        self.kernel.wait(
            lambda: self.status().state == "no cache", "bcache did not let go of its cache"
        )
        self.kernel.stop_set()
        flash.remove(self.machine, [self.place.slice("cache").name])

    def attach_cache(self) -> None:
        """Take the (new) cache set into use."""
        self.kernel.register(self.place.slice("cache").path)
        self.kernel.attach()
        self._tune()

    def follow_origin(self) -> Bytes:
        """Take in an origin that has grown, the cache let go of and I/O going on; returns its size.

        bcache learns a backing device's size only when it starts, so I/O goes to the origin itself
        meanwhile.
        """
        size = device_size(self.machine, self.origin)
        direct = linear_table([(self.origin, Part(Bytes(0), size))])
        flash.swap(self.machine, self.place.top, direct)
        self.kernel.stop()
        flash.swap(self.machine, self.backing, self.backing_table())
        self.kernel.register(mapper_path(self.backing))
        self.kernel.await_device()
        flash.swap(self.machine, self.place.top, self._top_table())
        return size

    def destroy(self) -> None:
        if self.stands():
            self.flush(going=True)
        self.discard()

    def discard(self) -> None:
        """Remove the tier's devices without writing back; the card's volume stays."""
        place = self.place
        flash.remove(self.machine, [place.top])
        self.kernel.stop()
        self.kernel.stop_set()
        flash.remove(self.machine, [self.backing, place.slice("cache").name])

    def _make(self, name: str, table: str) -> None:
        if table and name not in flash.standing(self.machine):
            flash.make(self.machine, name, table)

    def backing_table(self) -> str:
        size = device_size(self.machine, self.origin)
        header = [(self.place.flash, part) for part in self.place.metadata]
        return linear_table([*header, (self.origin, Part(Bytes(0), size))])

    def _top_table(self) -> str:
        size = device_size(self.machine, self.origin)
        device = self.kernel.device()
        if device is None:
            raise TierFailedError(f"bcache has no device for {mapper_path(self.backing)}")
        return linear_table([(device, Part(Bytes(0), size))])

    def _start(self) -> None:
        """Register both devices, attach the one to the other and put the linear one on top."""
        self.kernel.register(self.place.slice("cache").path)
        self.kernel.register(mapper_path(self.backing))
        self.kernel.wait(
            lambda: self.kernel.device() is not None, "bcache does not start the device"
        )
        if self._fresh or self.status().state == "no cache":
            self.kernel.attach()
        self._fresh = False
        self._tune()
        flash.make(self.machine, self.place.top, self._top_table())

    def _tune(self) -> None:
        """Set what the kernel forgets at every start, and what a flush changed."""
        self.kernel.set(*self.wanted())

    def wanted(self) -> tuple[tuple[str, str], ...]:
        """Attributes in their order. A congested flash must not bypass, or a warm-up on a slow
        origin is skipped without a word; a short delay lets a flush begin soon."""
        mode: WriteMode = self.spec.mode
        return (
            ("cache_mode", mode),
            ("sequential_cutoff", str(int(self.spec.bypass or 0))),
            ("writeback_percent", str(_WRITEBACK_PERCENT)),
            ("writeback_delay", str(_WRITEBACK_DELAY_S)),
            ("stop_when_cache_set_failed", "auto"),
            ("cache/congested_read_threshold_us", "0"),
            ("cache/congested_write_threshold_us", "0"),
        )

    def _tunables(self) -> tuple[tuple[str, str], ...]:
        """What they are by the kernel's word."""
        names = [name for name, _ in self.wanted()]
        found = zip(names, self.kernel.get(*names), strict=True)
        return tuple((name, parse_choice(text) if "[" in text else text or "-")
                     for name, text in found)  # fmt: skip

    def _has_superblock(self, device: PurePosixPath) -> bool:
        shown = self.machine.run(["bcache-super-show", str(device)], check=False)
        return shown.rc == 0 and "[match]" in shown.stdout

    def _sector(self) -> int:
        """The larger logical sector: what a file system on the origin was made for must do."""
        devices = (self.origin, self.place.flash)
        return max(int(self.machine.run(["blockdev", "--getss", str(one)]).stdout)
                   for one in devices)  # fmt: skip
