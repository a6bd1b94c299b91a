"""Models of each kind's counters beside what was really requested, and of a computer's clocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from hotset.core.clock import Moment
from hotset.core.units import Blocks, Bytes
from hotset.tier.base import Counters
from hotset.tier.bcache.sysfs import Line

DAY_S = 24 * 3600.0
NOTHING = Counters(0, 0, 0, 0, 0, 0, Blocks(0), Blocks(0), Blocks(9))


@dataclass
class Computer:
    """A clock that is set, and starts."""

    wall: float = 1_800_000_000.0
    up: float = 100.0
    starts: int = 0

    @property
    def moment(self) -> Moment:
        return Moment(self.wall, f"boot {self.starts}", self.up)

    def passes(self, seconds: float) -> None:
        self.wall += seconds
        self.up += seconds

    def is_set(self, days: float) -> None:
        self.wall += days * DAY_S

    def starts_again(self) -> None:
        self.starts, self.up = self.starts + 1, 1.0


@dataclass
class DmCache:
    """Hits and misses as the kernel keeps them over a reload, promotions as it does not
    (drivers/md/dm-cache-target.c): what a table shows was read when it was loaded."""

    computer: Computer
    shown: Counters = NOTHING
    written: Counters = NOTHING
    flushing: bool = False

    def requested(self, hits: int, misses: int) -> None:
        if not self.flushing:
            now = self.shown
            self.shown = replace(
                now,
                read_hits=now.read_hits + hits,
                read_misses=now.read_misses + misses,
                promotions=(now.promotions or 0) + misses // 2,
            )

    def flush_begins(self) -> None:
        if not self.flushing:
            self.flushing, kept = True, self.written
            self.written = replace(self.shown, promotions=0)
            self.shown = replace(kept, promotions=0, stale=True)

    def flush_ends(self) -> None:
        if self.flushing:
            self.flushing, self.shown = False, self.written

    def is_reloaded(self) -> None:
        self.flush_ends()
        self.written = self.shown = replace(self.shown, promotions=0)

    def power_is_cut(self) -> None:
        self.flushing, self.shown = False, self.written


@dataclass
class Engine:
    """Counters that begin at zero with each process, and say when that was."""

    computer: Computer
    shown: Counters = field(init=False)
    number: int = 0

    def __post_init__(self) -> None:
        self.is_reloaded()

    def requested(self, hits: int, misses: int) -> None:
        now = self.shown
        self.shown = replace(
            now, read_hits=now.read_hits + hits, read_misses=now.read_misses + misses
        )

    def flush_begins(self) -> None:
        pass

    flush_ends = flush_begins

    def is_reloaded(self) -> None:
        self.number += 1
        # The wall clock's time, and no other start's.
        self.shown = replace(NOTHING, begun=self.computer.wall + self.number / 1000)

    power_is_cut = is_reloaded


@dataclass
class Bcache:
    """Requests that bcache adds up every 13.6 s, in 16 bits at a time, from zero at each start
    (drivers/md/bcache/stats.c); a request of which a part was cached is one that missed."""

    computer: Computer
    added: tuple[int, int] = (0, 0)
    waiting: tuple[int, int] = (0, 0)
    reads: int = 0
    due: float = 0.0
    start: int = 0

    def requested(self, hits: int, misses: int) -> None:
        self._add_up()
        self.waiting = self.waiting[0] + hits, self.waiting[1] + misses
        self.reads += hits + misses

    def _add_up(self) -> None:
        if self.start != self.computer.starts:
            self.power_is_cut()
        if self.computer.up >= self.due:
            hits, misses = (a + w % 2**16 for a, w in zip(self.added, self.waiting, strict=True))
            self.added, self.waiting, self.due = (hits, misses), (0, 0), self.computer.up + 13.6

    @property
    def shown(self) -> Counters:
        self._add_up()
        line = Line(self.reads, *self.added, 0, 0, Bytes(0), "clean", 0, 0.5)
        return line.counters(Bytes(4096), Blocks(9), bypass=False)

    def flush_begins(self) -> None:
        pass

    flush_ends = is_reloaded = flush_begins

    def power_is_cut(self) -> None:
        self.added, self.waiting, self.reads, self.due = (0, 0), (0, 0), 0, 0.0
        self.start = self.computer.starts


KINDS: dict[str, Callable[[Computer], DmCache | Engine | Bcache]] = {
    "dm-cache": DmCache,
    "userspace": Engine,
    "bcache": Bcache,
}
