"""dm-cache: Linux's device-mapper cache target as a tier.

What a resize may do follows ``cache_preresume`` of drivers/md/dm-cache-target.c.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath

from hotset.block import devicemapper, extents, programs
from hotset.block.devicemapper import device_size
from hotset.block.extents import Run, count
from hotset.block.programs import InUseError
from hotset.core.machines import locks
from hotset.core.machines.base import CommandError, CommandTimeoutError, put_lines, to_its_end
from hotset.core.units import Blocks, Bytes

from .. import stalled
from ..base import (
    Counters,
    Counting,
    FlushStalledError,
    MetadataDamagedError,
    Report,
    State,
    TierKind,
    Warmup,
)
from ..disk_tier import Contents, InPlaceTier
from ..dm_tier import DeviceMapperTier
from ..filling import Filling
from ..regions import RemapRegions
from ..stalled import StallWatch
from . import offline, online
from .metadata import Slots
from .status import CacheStatus, parse_dmsetup_status, stall_reasons

COUNTING = Counting(32, kept=frozenset(("read_hits", "read_misses", "write_hits", "write_misses")))
"""The kernel writes these down when a table is suspended (``save_stats``, dm-cache-target.c)."""
BLOCK_STEP = Bytes(32 * 1024)
BLOCK_MAX = Bytes(1024**3)
_FLUSH_POLL_S = 0.5
_TOOL_TIMEOUT_S = 1800.0
_STALL_S, _STALL_LIMIT_S = 30.0, 900.0
_FASTER = 2**24
"""A ``migration_threshold`` (in sectors) that holds no write-back back."""
_CLEAN_SHUTDOWN = 1
"""A bit of the superblock's flags (``superblock_flag_bits``, drivers/md/dm-cache-metadata.c): the
kernel wrote its dirty bits out. Without it they are from an earlier time and mean nothing."""
_SUPERBLOCK_WORDS, _FLAGS, _FORMAT = 11, 1, 10
"""Words of 32 bits: csum, flags, blocknr, uuid, magic, version (``cache_disk_superblock`` in
drivers/md/dm-cache-metadata.c)."""
ARCHIVE = PurePosixPath("/var/lib/hotset/archive")
_ARCHIVE_KEEP = 5
_STAMP_GLOB = f"{'[0-9]' * 8}-{'[0-9]' * 6}"
"""A copy's time and no more: ``oltp-*`` would be copies of disk ``oltp-2`` as well."""

# $1: the device, $2: its metadata, $3: the copy. What is committed is never written over before the
# next commit, which changes the superblock: while that stays the same, the copy is of one moment.
_COPY_RUNNING = """
for try in 1 2 3 4 5; do
    before=$(dd if="$2" bs=4096 count=1 iflag=direct status=none | sha256sum)
    dd if="$2" of="$3" bs=1M iflag=direct conv=sparse status=none || exit 1
    after=$(dd if="$2" bs=4096 count=1 iflag=direct status=none | sha256sum)
    [ "$before" != "$after" ] || exit 0
done
"""
# The same with the device suspended, so that the levels too are written; it is resumed whatever
# becomes of the copy and of who asked for it.
_COPY_SUSPENDED = """
trap 'dmsetup resume "$1"' EXIT
trap 'exit 1' HUP INT TERM PIPE
timeout 60 dmsetup suspend "$1" || exit 1
timeout 120 dd if="$2" of="$3" bs=1M iflag=direct conv=sparse status=none
"""


def check_block(block: Bytes) -> Bytes:
    """:raises ValueError: not a block size the kernel takes."""
    if not BLOCK_STEP <= block <= BLOCK_MAX or block % BLOCK_STEP:
        raise ValueError(
            f"{int(block)} bytes: dm-cache takes a multiple of 32 KiB from 32 KiB to 1 GiB"
            " (64KiB suits OLTP)"
        )
    return block


class DmCache(DeviceMapperTier, InPlaceTier):
    """The kernel's dm-cache over an origin, on any machine that has it."""

    kind: TierKind = "dm-cache"
    counting = COUNTING

    @property
    def cache(self) -> PurePosixPath:
        """The CACHE slice's own device: only a fill writes to it."""
        return self.place.slice("cache").path

    @property
    def metadata(self) -> PurePosixPath:
        """The METADATA slice's own device."""
        return self.place.slice("meta").path

    def status_argv(self) -> list[str]:
        # Otherwise the kernel commits the metadata first, which a flash that hangs never ends.
        return ["dmsetup", "status", self.place.top, "--noflush"]

    def parse(self, line: str) -> Counters:
        return parse_dmsetup_status(line).counters()

    @property
    def regions(self) -> RemapRegions:
        return RemapRegions(self.path)

    def status(self) -> CacheStatus:
        return parse_dmsetup_status(self._ask(check=True).stdout)

    def counters(self) -> Counters:
        return self.status().counters()

    def resident(self) -> list[Run]:
        """Read without holding any I/O back, unless the metadata change faster than they are
        read."""
        try:
            return self._read_active(f"{_COPY_RUNNING}\n{_COPY_SUSPENDED}").runs()
        except CommandError:
            # One that an earlier version made and nobody took down since has no hints, without
            # which the tools cannot read it. To be suspended makes the kernel write them.
            return self._read_active(_COPY_SUSPENDED).runs()

    def slots(self) -> Slots:
        """Read the slots of an active tier, with the levels, which the kernel writes only
        when the device is suspended: that is done for the moment of the copy."""
        return self._read_active(_COPY_SUSPENDED)

    def may_be_filled(self) -> bool:
        """A fill that was killed leaves the parts of the flash; after a reboot no device exists."""
        active = devicemapper.active_names(self.machine)
        return bool({self.place.top, self.place.slice("cache").name} & active)

    def fill(self, wanted: Filling) -> Warmup:
        """Implement `DiskTier.fill`, off line or on line."""
        if self._is_filled_on_line(wanted):
            return online.fill(self, wanted)
        return offline.fill(self, wanted)

    def _is_filled_on_line(self, wanted: Filling) -> bool:
        if wanted.way != "auto" or not self.is_active():
            return wanted.way == "online"
        try:
            programs.require_idle(self.machine, self.path)
        except InUseError:
            wanted.say(
                f"{self.path} is in use, so it is warmed up on line, as fast as the policy promotes"
                " (an idle disk is filled off line, at the origin's full rate)"
            )
            return True
        return False

    def _read_active(self, program: str) -> Slots:
        with locks.scratch_folder(self.machine, self.place.name) as folder:
            copy = folder / "metadata"
            words = [self.place.top, str(self.metadata), str(copy)]
            argv = to_its_end(["sh", "-c", program, "hotset-copy", *words])
            self.machine.run(argv, timeout_s=_TOOL_TIMEOUT_S)
            return self._dump(copy)

    def slots_at_rest(self) -> Slots:
        """Read the metadata on the flash while the accelerated device is down. Every block
        counts as dirty after a crash, and where the tools here do not read which are."""
        slots = self._dump(self.metadata)
        if not self._tells_what_is_dirty():
            slots.all_dirty()
        return slots

    def _tells_what_is_dirty(self) -> bool:
        """True if the kernel closed the metadata, so that the dirty bits in it are true, and
        ``cache_dump`` reads them: those of format 2 lie in an array of their own, and before
        version 1.0 it passes over that and calls every block clean."""
        at = self.place.metadata[0].start // 4096
        script = (
            f"dd if={self.place.flash} bs=4096 skip={at} count=1 iflag=direct status=none"
            f" | od -An -v -tu4 -N {4 * _SUPERBLOCK_WORDS}"
        )
        words = self.machine.run(["sh", "-c", script]).stdout.split()
        if len(words) != _SUPERBLOCK_WORDS or not int(words[_FLAGS]) & _CLEAN_SHUTDOWN:
            return False
        if words[_FORMAT] == "1":
            return True
        version = self.machine.run(["cache_dump", "--version"], check=False).stdout.strip()
        return words[_FORMAT] == "2" and bool(re.match(r"[1-9][0-9]*\.", version))

    def may_be_dirty(self) -> bool:
        """True if the flash may hold writes that the origin lacks; the accelerated device is down.
        It may where its metadata cannot be read, which need not be damaged for that."""
        if self.spec.mode == "writethrough":
            return False
        self.perform("parts")
        try:
            return bool(self.slots_at_rest().dirty)
        except (CommandError, CommandTimeoutError):
            return True

    def restore(self, slots: Slots) -> None:
        """Write the metadata on the flash again, while the accelerated device is down."""
        with locks.scratch_folder(self.machine, self.place.name) as folder:
            # A file, not standard input: cache_restore wants to know its size.
            xml = folder / "cache.xml"
            put_lines(self.machine, slots.xml(self.spec.block, self.spec.policy), xml)
            argv = ["cache_restore", "--quiet", "-i", str(xml), "-o", str(self.metadata)]
            self.machine.run(argv, timeout_s=_TOOL_TIMEOUT_S)

    def _dump(self, metadata: PurePosixPath) -> Slots:
        argv = ["cache_dump", str(metadata)]
        return Slots.parse(self.machine.run(argv, timeout_s=_TOOL_TIMEOUT_S).stdout, self.capacity)

    def contents(self) -> Contents:
        """dm-cache says how many blocks are dirty, not which, while it works."""
        return Contents(extents.merge(extents.of_runs(self.resident(), self.spec.block)), None)

    def _write_back(
        self,
        progress: Callable[[Blocks], None],
        final: bool,
        warn: Callable[[str], None],
    ) -> int:
        """Under the ``cleaner`` policy in writethrough mode, where no clean block becomes dirty."""
        first = dirty = int(self.status().dirty)
        if first == 0:
            self.settle()
            return 0
        watch = StallWatch(_STALL_S, _STALL_LIMIT_S)
        try:
            self.perform("reload", replace(self.spec, policy="cleaner", mode="writethrough"))
            while dirty:
                progress(Blocks(dirty))
                time.sleep(_FLUSH_POLL_S)
                status = self.status()
                dirty = int(status.dirty)
                if watch.stalls(dirty):
                    self._push(status, dirty, watch, warn)
            progress(Blocks(0))
        finally:
            if not final:
                self.perform("reload")
        return first

    def _push(
        self, status: CacheStatus, dirty: int, watch: StallWatch, warn: Callable[[str], None]
    ) -> None:
        """Say why a flush makes no progress, and lift the kernel's limit on write-back."""
        release = self.machine.run(["uname", "-r"], check=False).stdout.strip()
        known = stall_reasons(status, release)
        why = stalled.reasons(self.machine, self.origin, known)
        words = f"{dirty} blocks are dirty still, none was written back for {watch.seconds:.0f} s"
        if watch.is_over():
            raise FlushStalledError(f"{words}: {why}")
        argv = ["dmsetup", "message", self.place.top, "0", "migration_threshold", str(_FASTER)]
        self.machine.run(argv, check=False)
        warn(f"{words}: {why}")

    def settle(self) -> str | None:
        """Put right what an operation that was cut short left of an active tier: suspended, in the
        policy of a flush, or with a table of other sizes. Returns what was put right, in words."""
        if devicemapper.is_suspended(self.machine, self.place.top):
            devicemapper.resume(self.machine, self.place.top)
        status = self.status()
        is_as_asked = (status.policy, status.mode) == (self.spec.policy, self.spec.mode)
        if not is_as_asked:
            self.perform("reload")
        cache = self.place.slice("cache")
        if device_size(self.machine, cache.path) != cache.size:
            self.follow_cache()
            return f"the cache has its {cache.size} now: a resize had been cut short"
        if not is_as_asked:
            return (
                f"{status.mode} with policy {status.policy} was left by a flush that was cut short"
            )
        return None

    def repair(self, write: bool) -> str:
        """Describe what ``cache_repair`` still finds in damaged metadata; with ``write``, it is
        rewritten by that, and the old metadata kept.

        Which blocks are dirty cannot be known any more (``cache_repair`` makes the metadata look
        closed in good order): in write-back mode all of them are taken for dirty.

        :raises MetadataDamagedError: it finds nothing that can be used.
        """
        self.perform("parts")
        with locks.scratch_folder(self.machine, self.place.name) as folder:
            mended = folder / "metadata"
            self.machine.run(
                ["truncate", "-s", str(int(self.place.slice("meta").size)), str(mended)]
            )
            argv = ["cache_repair", "-i", str(self.metadata), "-o", str(mended)]
            done = self.machine.run(argv, check=False, timeout_s=_TOOL_TIMEOUT_S)
            check = ["cache_check", str(mended)]
            if done.rc or self.machine.run(check, check=False, timeout_s=_TOOL_TIMEOUT_S).rc:
                raise MetadataDamagedError(
                    f"cache_repair {self.metadata}: {(done.stderr + done.stdout).strip()[:600]}"
                )
            slots = self._dump(mended)
        message = " ".join((done.stderr + done.stdout).split())
        words = f"cache_repair reads {count(slots.runs())} blocks{message and f': {message[:600]}'}"
        if not write:
            return words
        kept = self._archive()
        if self.spec.mode == "writeback":
            slots.all_dirty()
        self.restore(slots)
        return f"{words} (the old metadata is kept in {kept})"

    def _archive(self) -> PurePosixPath:
        """A copy of the metadata as they are, beside the latest few of earlier repairs."""
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
        kept = ARCHIVE / f"{self.place.name}-{stamp}.metadata"
        script = (
            'mkdir -p -m 700 "${1%/*}" "$1"'
            ' && dd if="$2" of="$3" bs=1M iflag=direct conv=sparse,fsync status=none'
            f' && ls -t "$1"/"$4"-{_STAMP_GLOB}.metadata | tail -n +$(($5 + 1)) |'
            ' while read -r old; do rm -f "$old"; done'
        )
        words = [str(ARCHIVE), str(self.metadata), str(kept), self.place.name, str(_ARCHIVE_KEEP)]
        self.machine.run(["sh", "-c", script, "hotset-archive", *words], timeout_s=_TOOL_TIMEOUT_S)
        return kept

    def _report(self) -> Report:
        status = self.status()
        notes = []
        if status.metadata_mode == "ro":
            notes.append("the kernel has its metadata read-only: nothing is promoted")
        if status.needs_check:
            notes.append(
                "the metadata needs a check: deactivate the disk, then activate it, which checks it"
            )
        if status.policy == "cleaner" != self.spec.policy:
            notes.append(
                "it is set to write everything back and to cache nothing new: a flush is at work,"
                " or was cut short (activate it, which puts that right)"
            )
        tunables = (
            ("mode", status.mode),
            ("policy", status.policy),
            *status.core_args,
            *status.policy_args,
        )
        state: State = "degraded" if notes else "active"
        whole = status.metadata_total
        metadata = status.metadata_used / whole if whole else None
        return Report(state, status.counters(), tunables, tuple(notes), metadata)

    def retune(self) -> None:
        """Take in another mode of the specification; nothing is dirty where it is write-through.

        In between, writes could become dirty again: a second flush ends with none.
        """
        self.perform("reload")
        if self.spec.mode == "writethrough":
            self.flush()

    def by_level(self) -> dict[int, list[Run]]:
        return self.slots().by_level()

    def follow_cache(self) -> None:
        """Take in the CACHE slice as the place has it now, larger or smaller than it was.

        The kernel resizes the metadata when the new table is resumed; blocks that no longer fit
        are dropped, so a smaller one must have been flushed.
        """
        self.perform("follow-cache")
