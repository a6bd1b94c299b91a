"""bcache: Linux's block cache as a tier that leaves the origin's data where they are.

bcache wants a superblock of its own on the backing device. Here that is a device-mapper device of
two pieces, a header of 1 MiB on the flash and the whole origin behind it. So the origin's sectors
map one to one and it can be mounted again once the tier is gone. The header is no device of its
own, or udev would register it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hotset.block import devicemapper
from hotset.block.devicemapper import UNIT, Place
from hotset.block.extents import Run
from hotset.block.filesystem import device_number
from hotset.block.transfer import READ_MAX
from hotset.core.machines.base import Machine
from hotset.core.units import Blocks, Bytes
from hotset.core.words import plural

from .. import stalled
from ..base import (
    Counters,
    Counting,
    FlushStalledError,
    Report,
    TierFailedError,
    TierKind,
    TierSpec,
    Warmup,
)
from ..disk_tier import HOTTEST, Contents, OnFlush, Resized
from ..dm_tier import DeviceMapperTier
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
_TUNABLES = (
    "cache_mode",
    "sequential_cutoff",
    "writeback_percent",
    "writeback_delay",
    "stop_when_cache_set_failed",
    "cache/congested_read_threshold_us",
    "cache/congested_write_threshold_us",
)
"""Settings that are reported."""


def bucket_bytes(cache: Bytes) -> Bytes:
    """512 KiB, less where there would be too few of them: as ``hotset-boot`` makes them."""
    bucket = int(BUCKET)
    while cache // bucket < _BUCKETS and bucket > _BUCKET_MIN:
        bucket //= 2
    return Bytes(bucket)


class Bcache(DeviceMapperTier):
    """The kernel's bcache over an origin, on any machine that has it."""

    kind: TierKind = "bcache"
    counting = COUNTING
    cache_min = CACHE_MIN

    def __init__(self, machine: Machine, spec: TierSpec, place: Place, identity: str = "") -> None:
        super().__init__(machine, spec, place, identity)
        self.kernel = Kernel(machine, self.backing, identity)

    @property
    def backing(self) -> str:
        """The device-mapper name of header and origin."""
        return f"{self.place.top}-backing"

    def may_be_dirty(self) -> bool:
        """True if the flash may hold writes that the origin lacks; the accelerated device is down.
        The backing device's superblock says so."""
        return self.perform("may-be-dirty") != "no"

    def settle(self) -> str | None:
        """Put right what an operation that was cut short left of an active tier: suspended,
        without its cache, or in the settings of a flush. Returns what was put right, in words."""
        if devicemapper.is_suspended(self.machine, self.place.top):
            devicemapper.resume(self.machine, self.place.top)
        if self.kernel.device() is None or self._is_past_bcache():
            # An origin was being followed: I/O goes to the origin itself until now.
            self.perform("follow-origin")
        message = None
        if self.status().state == "no cache":
            self.perform("follow-cache")
            message = "it has a cache again, which begins empty: it had been without one"
        self.perform("reload")
        return message

    def _is_past_bcache(self) -> bool:
        """True if I/O goes to the origin itself, as while the cache follows a grown origin."""
        device = self.kernel.device()
        table = self.machine.run(["dmsetup", "table", self.place.top]).stdout.split()
        return device is None or device_number(self.machine, device) not in table

    def fill(self, wanted: Filling) -> Warmup:
        """Implement `DiskTier.fill`: read every block through the tier; the metadata is its own."""
        return reading.fill(self, wanted)

    @contextmanager
    def caching_every_read(self) -> Iterator[None]:
        """Nothing is bypassed as sequential while this lasts."""
        self.kernel.set(("sequential_cutoff", 0))
        try:
            yield
        finally:
            self.perform("reload")

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
        result = self._ask(check=False)
        try:
            return parse_line(result.stdout if result.rc == 0 else "Fail")
        except TierFailedError as error:
            raise TierFailedError(f"{error}. {self._last_words()}") from None

    def _last_words(self) -> str:
        """Why bcache let go of a device, as the kernel's log has it (``bch_cached_dev_error`` and
        ``bch_cache_set_error``, drivers/md/bcache/super.c)."""
        log = self.machine.run(["dmesg", "--notime"], check=False).stdout.splitlines()
        lines = [line for line in log if "bcache" in line and _LETS_GO.search(line)]
        return f"The kernel's log says: {lines[-1].strip()}" if lines else "See the kernel's log"

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
        keys = self.kernel.list_keys()
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
                self.perform("reload")
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
        self.perform("drop-cache")

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
        Bcache(self.machine, after.spec, after.place, self.identity).perform("follow-cache")
        return "the cache begins empty: bcache changes neither size while it has one"

    def retune(self) -> None:
        """Take in another mode of the specification; in write-through what is dirty is written
        back."""
        self.perform("reload")
        if self.spec.mode == "writethrough":
            self.flush()

    def _tunables(self) -> tuple[tuple[str, str], ...]:
        """Read the settings from the kernel."""
        values = zip(_TUNABLES, self.kernel.get(*_TUNABLES), strict=True)
        return tuple(
            (name, parse_choice(text) if "[" in text else text or "-") for name, text in values
        )
