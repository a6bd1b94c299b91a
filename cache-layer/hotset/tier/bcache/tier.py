"""bcache: Linux's block cache as a tier that leaves the origin's data where they are.

bcache wants a superblock of its own on the backing device. Here that is a device-mapper device of
two pieces, a header of 1 MiB on the flash and the whole origin behind it, with the data at the
origin's first sector (superblock version 4, ``data_offset``: drivers/md/bcache/super.c). So the
origin's sectors map one to one and it can be mounted again once the tier is gone. The header is
no device of its own, or udev would register it. The accelerated device is a linear one on top of
``/dev/bcacheN``, whose number may change.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath

from hotset.block import devicemapper
from hotset.block.devicemapper import UNIT, Part, Place, device_size, linear_table, mapper_path
from hotset.block.extents import Run
from hotset.block.transfer import READ_MAX
from hotset.block.usage import device_number
from hotset.core.machines.base import Machine
from hotset.core.units import Blocks, Bytes
from hotset.core.words import plural

from .. import stalled
from ..base import (
    Counters,
    Counting,
    FlushStalledError,
    MetadataDamagedError,
    Report,
    TierFailedError,
    TierKind,
    TierSpec,
    Warmup,
    WriteMode,
)
from ..disk_tier import HOTTEST, Contents, OnFlush, Resized
from ..dm_tier import STAYS_COLD, DeviceMapperTier
from ..filling import Filling
from ..regions import BcacheRegions
from ..stalled import StallWatch
from . import reading
from .control import Kernel
from .sysfs import (
    LAG_S,
    STATUS_PROGRAM,
    UNDER_WAY,
    WITHOUT_CACHE,
    Line,
    extents_of,
    parse_choice,
    parse_line,
)

COUNTING = Counting(64, lag_s=LAG_S, early=UNDER_WAY)
BLOCK = Bytes(4096)
"""The unit of plans and counters; bcache itself caches whatever length was asked for."""
_REGION = Bytes(64 * 1024)
"""A region that a database's small reads share."""
HEADER = UNIT
"""In front of the origin, on the flash; its superblock lies at sector 8."""
BUCKET = Bytes(512 * 1024)
_BUCKET_MIN = Bytes(64 * 1024)
_BUCKETS = 1024
CACHE_MIN = Bytes(_BUCKETS * _BUCKET_MIN)
"""``cache_alloc`` (super.c) wants more than 512 buckets."""
_POLL_S = 0.5
_STALL_S, _STALL_LIMIT_S = 30.0, 900.0
_LETS_GO = re.compile("too many IO errors|disabling caching")
_SUPERBLOCK_AT = 4096
_FLAGS_LAST_BYTE = 111
"""Of the superblock's 64 bits of flags; its bits 5 and 6 are the backing device's state."""
_DIRTY_STATES = (2, 3)
_WRITEBACK_PERCENT = 10
_WRITEBACK_DELAY_S = 1


def bucket_bytes(cache: Bytes) -> Bytes:
    """512 KiB, less where there would be too few of them."""
    bucket = int(BUCKET)
    while cache // bucket < _BUCKETS and bucket > _BUCKET_MIN:
        bucket //= 2
    return Bytes(bucket)


class Bcache(DeviceMapperTier):
    """The kernel's bcache over an origin, on any machine that has it."""

    kind: TierKind = "bcache"
    counting = COUNTING
    cache_min = CACHE_MIN

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
        if self.is_active():
            raise TierFailedError(f"{self.path} is active already: destroy it first")
        devicemapper.load(self.machine, "bcache")
        devicemapper.wipe(self.machine, self.place.flash, self.place.metadata)
        self.format_cache()
        self._make(self.place.volume.name, self.place.volume.table(self.place.flash))
        self._fresh = True
        return self.origin

    def format_cache(self) -> None:
        """A new, empty cache set on the CACHE slice."""
        place, cache = self.place, self.place.slice("cache")
        devicemapper.wipe(self.machine, place.flash, place.cache)
        self._make(cache.name, cache.table(place.flash))
        self.machine.run(self.format_argv())

    def format_argv(self) -> list[str]:
        cache = self.place.slice("cache")
        bucket = ["--bucket", str(int(bucket_bytes(cache.size)))]
        sizes = [*bucket, "--block", str(self._sector())]
        return ["make-bcache", "-C", *sizes, "--cset-uuid", self.set_uuid, str(cache.path)]

    def create(self, on_usable: Callable[[], None] = lambda: None) -> PurePosixPath:
        """:param on_usable: as for :meth:`activate`."""
        if self.is_active():
            return self.path
        if not self._fresh:
            self.activate(on_usable)
            return self.path
        self._make(self.backing, self.backing_table())
        self.machine.run(
            [
                "make-bcache",
                "-B",
                "--block",
                str(self._sector()),
                "--data-offset",
                str(int(HEADER.sectors)),
                str(mapper_path(self.backing)),
            ]
        )
        on_usable()
        self._start()
        return self.path

    def activate(self, on_usable: Callable[[], None] = lambda: None) -> None:
        """Make the devices again out of what lies on flash and origin; changes nothing on them.

        :param on_usable: called once both superblocks were found, before anybody can write.
        :raises MetadataDamagedError: a superblock is gone or bcache refuses it.
        """
        if self.is_active():
            return
        devicemapper.load(self.machine, "bcache")
        cache = self.place.slice("cache")
        self._make(self.place.volume.name, self.place.volume.table(self.place.flash))
        self._make(cache.name, cache.table(self.place.flash))
        self._make(self.backing, self.backing_table())
        backing = mapper_path(self.backing)
        if not self._has_superblock(backing):
            raise self._no_superblock(backing)
        if not self._has_superblock(cache.path):
            # A resize was cut short before it had formatted the new cache; nothing is lost then.
            if self.may_be_dirty():
                raise self._no_superblock(cache.path)
            self.format_cache()
        on_usable()
        self._start()

    def may_be_dirty(self) -> bool:
        """Whether the flash may hold writes that the origin lacks; the accelerated device is down.

        The backing device's superblock says so: ``BDEV_STATE`` in its flags (bcache_ondisk.h).
        """
        start = (self.place.metadata[0].start + _SUPERBLOCK_AT) // _SUPERBLOCK_AT
        script = (
            f"dd if={self.place.flash} bs={_SUPERBLOCK_AT} skip={start} count=1 iflag=direct"
            f" status=none | od -An -v -tu1 -j {_FLAGS_LAST_BYTE} -N 1"
        )
        said = self.machine.run(["sh", "-c", script]).stdout.strip()
        return not said.isdigit() or (int(said) >> 5) & 3 in _DIRTY_STATES

    def empty(self) -> str:
        """Forget everything that is cached, while the accelerated device is down;
        returns what becomes of it, in words."""
        devicemapper.load(self.machine, "bcache")
        self.kernel.stop()
        self.kernel.stop_set()
        devicemapper.remove(self.machine, [self.backing, self.place.slice("cache").name])
        self.format_cache()
        return STAYS_COLD

    def begin_empty(self, on_usable: Callable[[], None]) -> None:
        """As `DiskTier.begin_empty`: the backing device gets a new superblock, too."""
        self.prepare()
        self.create(on_usable)

    def settle(self) -> str | None:
        """Put right what an operation that was cut short left of an active tier: suspended,
        without its cache, or in the settings of a flush. Returns what was put right, in words."""
        if devicemapper.is_suspended(self.machine, self.place.top):
            devicemapper.resume(self.machine, self.place.top)
        said = None
        if self.kernel.device() is None:
            # An origin was being followed: I/O goes to the origin itself until now.
            devicemapper.swap(self.machine, self.backing, self.backing_table())
            self.kernel.register(mapper_path(self.backing))
            self.kernel.await_device()
        if self._is_past_bcache():
            devicemapper.swap(self.machine, self.place.top, self._top_table())
        if self.status().state == "no cache":
            cache = self.place.slice("cache")
            if not self._has_superblock(cache.path):
                self.format_cache()
            self.attach_cache()
            said = "it has its cache again, which begins empty: a resize had been cut short"
        self._tune()
        return said

    def _is_past_bcache(self) -> bool:
        """Whether I/O goes to the origin itself, as while a grown one is followed."""
        device = self.kernel.device()
        table = self.machine.run(["dmsetup", "table", self.place.top]).stdout.split()
        return device is None or device_number(self.machine, device) not in table

    def _no_superblock(self, device: PurePosixPath) -> MetadataDamagedError:
        shown = self.machine.run(["bcache-super-show", str(device)], check=False)
        return MetadataDamagedError(
            f"{device} has no valid bcache superblock:"
            f" {(shown.stderr.strip() or shown.stdout.strip())[:300]}"
        )

    def deactivate(self) -> None:
        """Remove the devices; what is cached, also dirty, stays on the flash."""
        self.discard()

    def fill(self, wanted: Filling) -> Warmup:
        """As `DiskTier.fill`; every block is read through the tier, whose metadata are its own."""
        return reading.fill(self, wanted)

    @contextmanager
    def caching_every_read(self) -> Iterator[None]:
        """Nothing is bypassed as sequential while this lasts."""
        self.kernel.set(("sequential_cutoff", 0))
        try:
            yield
        finally:
            self._tune()

    @property
    def kept_read_max(self) -> Bytes:
        """The largest read whose misses can be kept: no more than is held free."""
        return min(
            max(Bytes(self.spec.cache // _BUCKETS).align_down(_BUCKET_MIN), _BUCKET_MIN),
            READ_MAX,
        )

    def status_argv(self) -> list[str]:
        return ["sh", "-c", STATUS_PROGRAM, "hotset-bcache", self.backing]

    def parse(self, line: str) -> Counters:
        return self._counters(parse_line(line))

    @property
    def regions(self) -> BcacheRegions:
        return BcacheRegions(self.path, _REGION)

    def status(self) -> Line:
        result = self._asked(check=False)
        try:
            return parse_line(result.stdout if result.rc == 0 else "Fail")
        except TierFailedError as error:
            raise TierFailedError(f"{error}. {self._last_words()}") from None

    def _last_words(self) -> str:
        """Why bcache let go of a device, as the kernel's log has it (``bch_cached_dev_error`` and
        ``bch_cache_set_error``, drivers/md/bcache/super.c)."""
        log = self.machine.run(["dmesg", "--notime"], check=False).stdout.splitlines()
        said = [line for line in log if "bcache" in line and _LETS_GO.search(line)]
        return f"The kernel's log says: {said[-1].strip()}" if said else "See the kernel's log"

    def counters(self) -> Counters:
        return self._counters(self.status())

    def _counters(self, line: Line) -> Counters:
        return line.counters(self.spec.block, self.capacity, bypass=bool(self.spec.bypass))

    def _report(self) -> Report:
        line = self.status()
        notes: list[str] = []
        if line.state in WITHOUT_CACHE:
            notes.append(f"bcache says {line.state!r}: the origin works without a cache")
        if line.io_errors:
            notes.append(
                f"{self.place.origin} failed {plural(line.io_errors, 'request')} since the disk was"
                " made active; what could not be written back is on the flash alone. At 64 the"
                " kernel stops the disk: see its log, and mend the origin before"
            )
        counters = self._counters(line)
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

    def by_level(self) -> dict[int, list[Run]]:
        """bcache has one."""
        return {HOTTEST: self.resident()}

    def contents(self) -> Contents:
        """To the sector."""
        keys = self.kernel.cached_keys()
        dirty = (key for key in keys if key.dirty)
        return Contents(extents_of(keys, HEADER.sectors), extents_of(dirty, HEADER.sectors))

    def _write_back(
        self,
        progress: Callable[[Blocks], None],
        final: bool,
        warn: Callable[[str], None],
    ) -> int:
        line = self.status()
        first = dirty = self._dirty(line)
        if not first and line.state != "dirty":
            return 0
        watch = StallWatch(_STALL_S, _STALL_LIMIT_S)
        # Nothing becomes dirty any more, and the rest is written back as fast as the origin goes.
        self.kernel.set(
            ("cache_mode", "writethrough"), ("writeback_percent", 0), ("writeback_running", 1)
        )
        try:
            # The superblock says that nothing is dirty only after the kernel has looked again.
            while dirty or line.state == "dirty":
                progress(dirty)
                time.sleep(_POLL_S)
                line = self.status()
                dirty = self._dirty(line)
                if watch.stalls(int(dirty)):
                    why = stalled.reasons(self.machine, self.origin)
                    words = (
                        f"{int(dirty)} blocks are dirty still, none was written back for"
                        f" {watch.seconds:.0f} s: {why}"
                    )
                    if watch.is_over():
                        raise FlushStalledError(words)
                    warn(words)
            progress(Blocks(0))
        finally:
            if not final:
                self._tune()
        return int(first)

    def _dirty(self, line: Line) -> Blocks:
        return self._counters(line).dirty

    def detach_cache(self) -> None:
        """Let go of the cache set while the device stays; what was dirty is written back first."""
        self.kernel.set(("cache_mode", "writethrough"))
        self.flush(final=True)
        self.kernel.set(("detach", 1))
        self.kernel.wait(
            lambda: self.status().state == "no cache", "bcache did not let go of its cache"
        )
        self.kernel.stop_set()
        devicemapper.remove(self.machine, [self.place.slice("cache").name])
        # So that an activation after a crash finds no cache there, rather than one of another size.
        devicemapper.wipe(self.machine, self.place.flash, self.place.cache)

    def attach_cache(self) -> None:
        """Take the (new) cache set into use."""
        self.kernel.register(self.place.slice("cache").path)
        self.kernel.attach()
        self._tune()

    def resize_drops_dirty(self, cache: Bytes) -> bool:  # noqa: ARG002
        return True

    def resize(self, after: Resized, progress: OnFlush, warn: Callable[[str], None]) -> str | None:
        """bcache changes neither size while it has a cache."""
        self.flush(progress, final=True, warn=warn)
        # Cut short from here on, the tier has no cache; the next `activate` gives it one again.
        self.detach_cache()
        after.free()
        if after.grows:
            self.follow_origin()
        resized = Bcache(self.machine, after.spec, after.place, self.set_uuid)
        resized.format_cache()
        resized.attach_cache()
        return "the cache begins empty: bcache changes neither size while it has one"

    def retune(self) -> None:
        """Take in another mode of the specification; in write-through what is dirty is written
        back."""
        self._tune()
        if self.spec.mode == "writethrough":
            self.flush()

    def follow_origin(self) -> Bytes:
        """Take in an origin that has grown, the cache let go of and I/O going on; returns its size.

        bcache learns a backing device's size only when it starts, so I/O goes to the origin itself
        meanwhile.
        """
        size = device_size(self.machine, self.origin)
        direct = linear_table([(self.origin, Part(Bytes(0), size))])
        devicemapper.swap(self.machine, self.place.top, direct)
        self.kernel.stop()
        devicemapper.swap(self.machine, self.backing, self.backing_table())
        self.kernel.register(mapper_path(self.backing))
        self.kernel.await_device()
        devicemapper.swap(self.machine, self.place.top, self._top_table())
        return size

    def discard(self) -> None:
        """Remove the tier's devices without writing back; the card's volume stays."""
        place = self.place
        devicemapper.remove(self.machine, [place.top])
        self.kernel.stop()
        self.kernel.stop_set()
        devicemapper.remove(self.machine, [self.backing, place.slice("cache").name])

    def _make(self, name: str, table: str) -> None:
        if table and name not in devicemapper.active_names(self.machine):
            private = name != self.place.volume.name
            devicemapper.make(self.machine, name, table, private=private)

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
        devicemapper.make(self.machine, self.place.top, self._top_table())

    def _tune(self) -> None:
        """Set what the kernel forgets at every start, and what a flush changed."""
        self.kernel.set(*self.attributes())

    def attributes(self) -> tuple[tuple[str, str], ...]:
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
        names = [name for name, _ in self.attributes()]
        found = zip(names, self.kernel.get(*names), strict=True)
        return tuple(
            (name, parse_choice(text) if "[" in text else text or "-") for name, text in found
        )

    def _has_superblock(self, device: PurePosixPath) -> bool:
        shown = self.machine.run(["bcache-super-show", str(device)], check=False)
        return shown.rc == 0 and "[match]" in shown.stdout

    def _sector(self) -> int:
        """The larger logical sector: what a file system on the origin was made for must do."""
        devices = (self.origin, self.place.flash)
        return max(
            int(self.machine.run(["blockdev", "--getss", str(device)]).stdout) for device in devices
        )
