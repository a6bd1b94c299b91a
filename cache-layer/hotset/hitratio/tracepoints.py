"""Counters per region from the kernel: a tier's trace events, added up by the kernel itself.

One tracing instance per disk holds its tables; it goes on counting between two commands of hotset
until it is stopped or the machine reboots. What is counted, as read in the kernel's sources:

- dm-cache: ``block_bio_remap`` (drivers/md/dm.c), told apart by where the bio went: to the cache
  device (hit) or to the origin (miss). Bios are split at cache blocks before that, so each lies in
  one region. Promotions and write-back go through kcopyd and are not remapped, so not counted. A
  write that replaces a whole block and is thereby promoted goes to the cache: a hit here, and in
  neither of the target's own counters (``map_bio``, drivers/md/dm-cache-target.c).
- bcache: ``bcache_read`` with its hit and bypass flags, where the tier's own statistics are
  counted, too (drivers/md/bcache/request.c), and ``bcache_write``. The same event comes from cache
  fills after a miss and from garbage collection, as reads. A bio counts where it begins.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from hotset.block.devicemapper import device_size
from hotset.core.clock import BOOT_ID
from hotset.core.errors import PrerequisiteError, Remedy
from hotset.core.machines.base import CommandError, Machine, PrerequisiteMissingError
from hotset.core.units import SECTOR_BYTES, Bytes, Sectors
from hotset.tier import regions

from . import histogram
from .heat import Grid, Reading, Tally, grid_of, total
from .histogram import Histogram, Trigger

_MINOR_BITS = 20
"""Bits of the minor in the kernel's own device numbers (include/linux/kdev_t.h), as events have."""
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class NotCountedError(PrerequisiteError):
    """Nothing counts the disk's regions; the message says what starts it."""


class RegionCounters(Protocol):
    """Region counters of a disk."""

    def start(self) -> bool:
        """Begin to count; False: it is counted already."""

    def stop(self) -> bool:
        """End it and forget the counters; False: nothing was counted."""

    def read(self) -> Reading:
        """The counters since :meth:`start`.

        :raises NotCountedError: it was not started, or on a device that is gone.
        """


@dataclass(frozen=True, slots=True)
class Table:
    """A trigger and the event that it hangs on (``block/block_bio_remap``)."""

    event: str
    trigger: Trigger


class Source(Protocol):
    """Events of a kind of tier that the kernel can count."""

    @property
    def grid(self) -> Grid:
        """How the disk is cut."""

    def tables(self) -> Sequence[Table]:
        """The tables to keep."""

    def tallies(self, tables: Sequence[Histogram]) -> dict[int, Tally]:
        """The tables, in that order, as counters per region."""


class Traced:
    """Counters per region of a disk of a kernel's tier."""

    def __init__(self, machine: Machine, disk: str, source: Source) -> None:
        """:param disk: the name of the tracing instance."""
        self._machine = machine
        self._source = source
        self._disk = disk
        self._instance = regions.tracing_of(disk)

    @property
    def grid(self) -> Grid:
        """How the disk is cut."""
        return self._source.grid

    def tables(self) -> Sequence[Table]:
        """Return the tables for the kernel to keep."""
        return self._source.tables()

    def start(self) -> bool:
        self._mount()
        if self._is_active():
            if self._describe() == [table.trigger.shown for table in self._source.tables()]:
                return False
            # Half made by somebody interrupted, or over a device that is gone.
            self.stop()
        self._machine.run(["mkdir", str(self._instance)])
        try:
            # With names of commands an event has the scheduler note who runs, at each switch
            # (tracing_start_cmdline_record, kernel/trace/trace_sched_switch.c): nobody reads them
            # here, and to begin and end it the kernel rewrites its scheduler while it runs.
            # An instance has no file in options/ for it (TOP_LEVEL_TRACE_FLAGS); it takes the word.
            options = str(self._instance / "trace_options")
            self._machine.run(["tee", options], stdin="norecord-cmd")
            for table in self._source.tables():
                # -a: opened for overwriting, the file forgets the triggers it has.
                argv = ["tee", "-a", str(self._event(table) / "trigger")]
                self._machine.run(argv, stdin=table.trigger.render())
        except CommandError as refused:
            result = self._machine.run(["cat", str(self._instance / "error_log")], check=False)
            self.stop()
            refused.add_note(result.stdout.strip()[-500:] or "the kernel's log may say more")
            raise
        return True

    def stop(self) -> bool:
        return regions.end_tracing(self._machine, self._disk)

    def read(self) -> Reading:
        if not self._is_active():
            raise NotCountedError(f"heat of disk {self._disk} is not counted", self._remedy)
        wanted = self._source.tables()
        if self._describe() != [table.trigger.shown for table in wanted]:
            raise NotCountedError(
                f"heat of disk {self._disk} was counted on a device that is gone or was resized",
                self._remedy,
            )
        tables = [histogram for event in _events(wanted) for histogram in self._histograms(event)]
        by_trigger = {table.trigger: table for table in tables}
        ordered = [by_trigger[table.trigger.shown] for table in wanted]
        epoch, begun = self._epoch()
        return Reading(
            self._source.grid,
            epoch,
            begun,
            self._source.tallies(ordered),
            sum(table.dropped for table in ordered),
        )

    @property
    def _remedy(self) -> Remedy:
        return Remedy("start counting", "heat start", {"disk": self._disk})

    def _mount(self) -> None:
        if (
            self._machine.run(["test", "-d", str(regions.TRACING / "instances")], check=False).rc
            == 0
        ):
            return
        argv = ["mount", "-t", "tracefs", "tracefs", str(regions.TRACING)]
        if self._machine.run(argv, check=False).rc != 0:
            raise PrerequisiteMissingError(
                f"{regions.TRACING} cannot be mounted: heat needs root and a kernel with"
                " CONFIG_HIST_TRIGGERS (Debian's has it, User-Mode Linux's has not)"
            )

    def _is_active(self) -> bool:
        return self._machine.run(["test", "-d", str(self._instance)], check=False).rc == 0

    def _event(self, table: Table) -> PurePosixPath:
        return self._instance / "events" / table.event

    def _describe(self) -> list[str]:
        """The active triggers, in the order of the wanted ones as far as they are such."""
        triggers: list[str] = []
        for event in _events(self._source.tables()):
            file = self._instance / "events" / event / "trigger"
            triggers += histogram.triggers(self._machine.run(["cat", str(file)]).stdout)
        order = [table.trigger.shown for table in self._source.tables()]
        return sorted(
            triggers, key=lambda trigger: order.index(trigger) if trigger in order else len(order)
        )

    def _histograms(self, event: str) -> list[Histogram]:
        text = self._machine.run(["cat", str(self._instance / "events" / event / "hist")]).stdout
        return histogram.parse(text)

    def _epoch(self) -> tuple[str, float]:
        """This boot and when the instance was made."""
        boot = self._machine.run(["cat", str(BOOT_ID)]).stdout.strip()
        argv = ["find", str(self._instance), "-maxdepth", "0", "-printf", "%T@"]
        made = float(self._machine.run(argv).stdout)
        return f"{boot} {made:.3f}", made


@dataclass(frozen=True, slots=True)
class DmCacheSource:
    """Bios of a dm-cache by where they are sent; numbers of devices as the kernel has them."""

    grid: Grid
    device: int
    cache: int

    def tables(self) -> Sequence[Table]:
        # Empty bios are flushes, which go to both devices.
        condition = f"old_dev=={self.device} && nr_sector > 0 && rwbs ~ "
        sectors = int(self.grid.region.sectors)
        keys = ("dev", f"old_sector.buckets={sectors}")
        size = histogram.size_for(2 * self.grid.count)
        return [
            Table("block/block_bio_remap", Trigger(keys, f'{condition}"{letter}*"', size))
            for letter in ("R", "W")
        ]

    def tallies(self, tables: Sequence[Histogram]) -> dict[int, Tally]:
        counts: defaultdict[int, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for first, table in zip((0, 2), tables, strict=True):
            for entry in table.entries:
                miss = int(entry.key("dev") != self.cache)
                counts[_region(self.grid, entry.key("old_sector"))][first + miss] += entry.events
        return {
            number: Tally(rh + rm, wh + wm, rh, rm, wh, wm, None)
            for number, (rh, rm, wh, wm) in sorted(counts.items())
        }


@dataclass(frozen=True, slots=True)
class BcacheSource:
    """Requests of a bcache device.

    :param backing: number of the backing device.
    :param index: of the device in its cache set (``bdevN``), which is all that a write names
        beside ``cache_set``, the first eight bytes of the set's UUID as a number.
    """

    grid: Grid
    backing: int
    index: int
    cache_set: int

    def tables(self) -> Sequence[Table]:
        buckets = f"sector.buckets={int(self.grid.region.sectors)}"
        size, both = histogram.size_for(self.grid.count), histogram.size_for(2 * self.grid.count)
        read, mine = "bcache/bcache_read", f"dev=={self.backing} && bypass=="
        # Nothing but a write has a W; a discard has none.
        write = f'inode=={self.index} && rwbs ~ "*W*"'
        return [
            Table(read, Trigger((buckets,), f"{mine}0", size, ("cache_hit",))),
            Table(read, Trigger((buckets,), f"{mine}1", size)),
            Table("bcache/bcache_write", Trigger(("uuid.hex", "bypass", buckets), write, both)),
        ]

    def tallies(self, tables: Sequence[Histogram]) -> dict[int, Tally]:
        parts: defaultdict[int, list[Tally]] = defaultdict(list)
        inspected, bypassed, written = tables

        def add(entry: histogram.Entry, tally: Tally) -> None:
            parts[_region(self.grid, entry.key("sector"))].append(tally)

        for entry in inspected.entries:
            hits, events = entry.sum("cache_hit"), entry.events
            add(entry, Tally(events, 0, hits, events - hits, None, None, 0))
        for entry in bypassed.entries:
            add(entry, Tally(entry.events, 0, 0, 0, None, None, entry.events))
        for entry in written.entries:
            # Another cache set's device may have the same index.
            if entry.key("uuid") == self.cache_set:
                skipped = entry.events * entry.key("bypass")
                add(entry, Tally(0, entry.events, 0, 0, None, None, skipped))
        return {number: total(parts[number]) for number in sorted(parts)}


def dm_cache(machine: Machine, disk: str, device: PurePosixPath) -> Traced:
    """The counters of a dm-cache device."""
    size = device_size(machine, device)
    _, cache, _, block = _table(machine, device, "cache")[:4]
    grid = grid_of(size, Sectors(int(block)).bytes)
    return Traced(machine, disk, DmCacheSource(grid, _own_number(machine, device), _number(cache)))


def bcache(machine: Machine, disk: str, device: PurePosixPath, block: Bytes) -> Traced:
    """The counters of a bcache device with a linear target on top.

    :param block: the smallest region that makes sense.
    """
    below, offset = _table(machine, device, "linear")[:2]
    if offset != "0":
        raise ValueError(
            f"{device} begins at sector {offset} of {below}, not at 0: hotset did not set it up"
        )
    sysfs = PurePosixPath("/sys/dev/block") / below
    backing = PurePosixPath(_real(machine, sysfs / "bcache")).parent
    sizes = [int(_text(machine, path / "size")) for path in (sysfs, backing)]
    cache_set = _real(machine, sysfs / "bcache" / "cache")
    uuid = PurePosixPath(cache_set).name
    if not _UUID.fullmatch(uuid):
        raise NotCountedError(f"{device} has no cache attached: there is nothing to count")
    grid = grid_of(
        Bytes(sizes[0] * SECTOR_BYTES), block, Bytes((sizes[1] - sizes[0]) * SECTOR_BYTES)
    )
    number = _number(_text(machine, backing / "dev"))
    index = _index(machine, PurePosixPath(cache_set), backing / "bcache")
    return Traced(machine, disk, BcacheSource(grid, number, index, first_eight(uuid)))


def first_eight(uuid: str) -> int:
    """The first eight bytes of a UUID as the number that the kernel shows of them.

    A ``.hex`` key of a byte array is its first eight bytes, little end first, and ends at a zero.

    >>> f"{first_eight('1b66ea3f-2580-4316-a318-40f6402d1be7'):x}"
    '164380253fea661b'
    """
    head = bytes.fromhex(uuid.replace("-", ""))[:8].split(b"\0")[0]
    return int.from_bytes(head, "little")


def _region(grid: Grid, sector: int) -> int:
    return Sectors(sector).bytes // grid.region


def _events(tables: Iterable[Table]) -> list[str]:
    return list(dict.fromkeys(table.event for table in tables))


def _table(machine: Machine, device: PurePosixPath, target: str) -> list[str]:
    """The parameters of a device's only target."""
    words = machine.run(["dmsetup", "table", str(device)]).stdout.split()
    if len(words) < 4 or words[2] != target:
        raise ValueError(f"{device} is not a device-mapper {target} but {' '.join(words)[:60]!r}")
    return words[3:]


def _own_number(machine: Machine, device: PurePosixPath) -> int:
    argv = ["dmsetup", "info", "-c", "--noheadings", "--separator", ":", "-o", "major,minor"]
    return _number(machine.run([*argv, str(device)]).stdout.strip())


def _number(text: str) -> int:
    """``major:minor`` as the kernel's own number.

    >>> _number("253:1")
    265289729
    """
    major, minor = text.strip().split(":")
    return int(major) << _MINOR_BITS | int(minor)


def _index(machine: Machine, cache_set: PurePosixPath, mine: PurePosixPath) -> int:
    """Which ``bdevN`` of a cache set a backing device is."""
    argv = ["find", str(cache_set), "-maxdepth", "1", "-name", "bdev*", "-printf", "%f %l\n"]
    for line in machine.run(argv).stdout.splitlines():
        name, _, target = line.partition(" ")
        if target.endswith(str(mine).removeprefix("/sys/devices")):
            return int(name.removeprefix("bdev"))
    raise NotCountedError(f"{mine} is in no cache set: there is nothing to count")


def _real(machine: Machine, path: PurePosixPath) -> str:
    return machine.run(["readlink", "-f", str(path)]).stdout.strip()


def _text(machine: Machine, path: PurePosixPath) -> str:
    return machine.run(["cat", str(path)]).stdout.strip()
