"""Hit ratios of an accelerated disk: of all of it, or by file, database or table.

The whole comes from the tier's own counters, the parts from the counters per region (`hotset heat
start`), each as a difference of two readings; the parts' sum is their own last line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from math import inf
from pathlib import PurePosixPath
from typing import Literal

from hotset.block import loop
from hotset.core import clock
from hotset.core.clock import Moment
from hotset.core.machines.base import Machine
from hotset.core.units import Bytes, parse_span
from hotset.disk import lifecycle
from hotset.disk.flash_devices import AttachedDisk, Disk, FlashDevice
from hotset.disk.places import disk_of
from hotset.tier.base import (
    Counters,
    Counting,
    Hits,
    counters_restarted,
    hits_over,
    is_contradicted,
)
from hotset.tier.disk_tier import DiskTier

from . import attribution, region_counters
from .attribution import SystemName
from .heat import Reading, Tally, total
from .heatstore import Store, open_store, store_path
from .report import HitRatios, HitRow, moment

By = Literal["total", "volume", "file", "database", "table"]
Since = Literal["boot", "last"] | float
Label = Callable[[str], str]
_SERVED = "all of it is flash: no cache, no ratio"


_TOLD = 5
_LATE_S = 1.0
"""A time that counting begins later than was asked for is told from here on."""


@dataclass(frozen=True, slots=True)
class Target:
    """A disk, where it is, and what it is called there."""

    machine_name: str
    attached: AttachedDisk

    @property
    def machine(self) -> Machine:
        return self.attached.machine

    @property
    def flash(self) -> FlashDevice:
        return self.attached.flash

    @property
    def disk(self) -> Disk:
        return self.attached.disk

    @property
    def tier(self) -> DiskTier:
        return self.attached.tier

    def store(self) -> AbstractContextManager[Store]:
        """Where its readings are kept."""
        return open_store(store_path(self.machine_name, self.disk.name, self.disk.identity))


def parse_since(text: str, now: float) -> Since:
    """``boot``, ``last``, a span back from now (``90min``, ``8h``) or a time of day or date.

    :raises ValueError: none of these; shows them.

    >>> parse_since("2h", 10_000.0)
    2800.0
    """
    if text in ("boot", "last"):
        return "boot" if text == "boot" else "last"
    with suppress(ValueError):
        return now - parse_span(text)
    try:
        if re.fullmatch(r"\d{1,2}:\d{2}", text):
            hour, minute = (int(part) for part in text.split(":"))
            # Without an offset: today may have two.
            today = datetime.fromtimestamp(now)
            moment = today.replace(hour=hour, minute=minute, second=0, microsecond=0)
        else:
            moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time: write boot, last, a span (30min, 8h, 2d), a time of day"
            " (08:00) or a date and time (2026-11-21T08:00)"
        ) from None
    at = moment.timestamp()
    if moment.tzinfo is None and datetime.fromtimestamp(at) != moment:
        raise ValueError(f"{text!r} never was: the clocks were set forward over it")
    if at > now:
        raise ValueError(f"{text!r} is in the future")
    return at


def of_disk(
    target: Target, since: Since, now: Moment | None = None, *, mark: bool = False
) -> HitRatios:
    """The whole disk, by the tier's own counters; the reading is kept.

    :param mark: what is since ``last`` counts from here on. A look alone does not move that.
    """
    now = now or clock.moment()
    tier = target.tier
    counters = replace(tier.counters(), device=loop.identity(target.machine, target.disk.device))
    with target.store() as store:
        at = store.now(now)
        samples, wrong = _samples(store, since, (at, counters), tier.counting)
        if not counters.stale:
            store.keep_sample(counters, at)
        if mark:
            store.mark(at)
    readings = [*(reading for _, reading in samples), counters]
    counted = hits_over(readings, tier.counting) if samples else counters.hits
    row = _whole(target.disk, counters, counted)
    begun = samples[0][0] if samples else None
    notes = [_no_reading(since)] if since != "boot" and begun is None else []
    if begun is not None and isinstance(since, float) and begun - since > _LATE_S:
        notes.append(f"nothing was read by {_clock(since)}: counted from {_clock(begun)} on")
    notes += _describe_losses([*samples, (now.wall, counters)], tier.counting)
    notes += [_describe_contradiction(when) for when in wrong]
    if counters.stale:
        notes.append(
            "what was asked lately is in no figure: a flush is at work, or the origin works without"
            " its cache (hotset tier status)"
        )
    elif late := tier.counting.late:
        notes.append(late)
    return HitRatios(
        target.disk.name,
        tier.kind,
        "total",
        None if begun is None else moment(begun),
        moment(now.wall),
        Tally.from_hits(counted).denominator,
        (row,),
        row,
        tuple(notes),
    )


def of_flash(target: Target, now: Moment | None = None) -> HitRatios:
    """All disks of a flash device and its VOLUME, since their counters began.

    :raises TierRefusedError: one of the disks is not active; the message names it.
    """
    now = now or clock.moment()
    rows, kinds, tallies = [], [], []
    for disk in target.flash.disks:
        tier = lifecycle.active(AttachedDisk(target.machine, target.flash, disk))
        counters = tier.counters()
        counted = counters.hits
        rows.append(_whole(disk, counters, counted))
        kinds.append(tier.kind)
        tallies.append(Tally.from_hits(counted))
    whole = total(tallies)
    if target.flash.volume:
        rows.append(_volume(target))
    return HitRatios(
        target.flash.name,
        " + ".join(dict.fromkeys(kinds)),
        "volume",
        None,
        moment(now.wall),
        whole.denominator,
        tuple(rows),
        _row("(disks together)", whole),
        (f"{target.flash.volume_slice.name}: {_SERVED}",) if target.flash.volume else (),
    )


def of_parts(
    target: Target,
    by: By,
    label: Label,
    since: Since,
    now: Moment | None = None,
    *,
    mark: bool = False,
) -> HitRatios:
    """By file, or by whatever the label makes of a file's path.

    :param mark: as for :func:`of_disk`.
    """
    disk = target.disk
    reading = region_counters.find_counters(target.tier, disk.name).read()
    period = _period(target, reading, since, now or clock.moment(), mark=mark)
    owners = attribution.group_by(attribution.files(target.machine, disk.device), label)
    rows = tuple(
        _row(name, tally) for name, tally in attribution.split(period.tallies, reading.grid, owners)
    )
    whole = total(period.tallies.values())
    notes = [f"counted per region of {reading.grid.region}; regions of several {by}s are one line"]
    notes += period.notes
    notes += describe_younger(target, [row.name for row in rows], label, period.begun)
    if period.dropped:
        notes.append(
            f"{period.dropped:,} requests found no room in the kernel's table and are in no line"
        )
    return HitRatios(
        disk.name,
        disk.kind,
        by,
        moment(period.begun),
        moment(period.ended),
        whole.denominator,
        rows,
        _row("(total)", whole),
        tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class Period:
    """Counts per region from one time of the wall clock to another."""

    begun: float
    ended: float
    tallies: Mapping[int, Tally]
    dropped: int
    notes: tuple[str, ...] = ()


def _period(target: Target, reading: Reading, since: Since, now: Moment, *, mark: bool) -> Period:
    """Take a reading in; returns what there is of the time that is asked for."""
    with target.store() as store:
        at = store.now(now)
        store.fold(reading, at)
        start = _start(store, since) or store.at(reading.begun)
        if mark:
            store.mark(at)
        kept = None if since == "boot" else store.since(start)
        if kept is None:
            return Period(reading.begun, now.wall, reading.tallies, reading.dropped)
        begun, asked = store.wall(kept.begun), store.wall(start)
        notes = [_describe_restart(*map(store.wall, restart)) for restart in store.restarts(start)]
        if begun - asked > _LATE_S:
            notes.append(f"no region was read by {_clock(asked)}: counted from {_clock(begun)} on")
        return Period(begun, store.wall(kept.at), kept.tallies, kept.dropped, tuple(notes))


def describe_younger(target: Target, names: Sequence[str], label: Label, begun: float) -> list[str]:
    """Describe which of the names may have counts of files that lay at the same places before.

    :param begun: when counting began, by the wall clock.
    """
    young = attribution.newer(target.machine, target.disk.device, begun, label)
    if young is None:
        return ["when files came to be is not known: what is counted may be of files before them"]
    affected = [name for name in names if name in young]
    if not affected:
        return []
    more = f" and {len(affected) - _TOLD} others" if len(affected) > _TOLD else ""
    return [
        f"files of {', '.join(affected[:_TOLD])}{more} came to be after {_clock(begun)}: what is"
        " counted where they lie may be of files that were there before them"
    ]


Samples = list[tuple[float, Counters]]


def _samples(
    store: Store, since: Since, now: tuple[float, Counters], counting: Counting
) -> tuple[Samples, list[float]]:
    """The readings kept from the begin of the time on; none: the counters' own. And when those
    were taken that are not among them, since the ones beside them contradict them."""
    start = _start(store, since)
    if start is None:
        return [], []
    kept = store.samples(start, before=2)
    read = [*kept, *([] if now[1].stale else [now])]
    wrong = [
        sample
        for before, sample, after in zip(read, read[1:], read[2:], strict=False)
        if before[1].device == sample[1].device == after[1].device != ""
        and is_contradicted(before[1], sample[1], after[1], counting)
    ]
    right = [sample for sample in kept if sample not in wrong]
    first = max((place for place, sample in enumerate(right) if sample[0] <= start), default=0)
    counted = [(store.wall(at), counters) for at, counters in right[first:]]
    return (
        _with_zero(counted, now[1], store.wall(start)),
        [store.wall(at) for at, _ in wrong],
    )


def _with_zero(samples: Samples, now: Counters, start: float) -> Samples:
    """The readings, and before them that of the counters' own begin, where this is after the begin
    of the time: all that they counted belongs to it, whenever somebody first asked."""
    at, first = samples[0] if samples else (inf, now)
    if first.stale or first.begun is None or not start <= first.begun < at:
        return samples
    zero = replace(
        first,
        read_hits=0,
        read_misses=0,
        write_hits=_zero(first.write_hits),
        write_misses=_zero(first.write_misses),
        promotions=_zero(first.promotions),
        demotions=_zero(first.demotions),
        bypassed=_zero(first.bypassed),
    )
    return [(first.begun, zero), *samples]


def _zero(counted: int | None) -> int | None:
    return None if counted is None else 0


def _start(store: Store, since: Since) -> float | None:
    """From when on in the store's time; None: since the counters began."""
    match since:
        case "boot":
            return None
        case "last":
            return store.marked
        case wall:
            return store.at(wall)


def _describe_losses(samples: Sequence[tuple[float, Counters]], counting: Counting) -> list[str]:
    """Describe the counts that a restart of the counters lost, as they were not read before."""
    settled = [(at, counters) for at, counters in samples if not counters.stale]
    return [
        _describe_restart(before, after.begun or at)
        for (before, earlier), (at, after) in pairwise(settled)
        if counters_restarted(earlier, after, counting)
    ]


def _describe_restart(before: float, begun: float) -> str:
    return (
        f"the counters restarted by {_clock(begun)}: what was counted after the reading of"
        f" {_clock(before)} and before that is not known, and in no figure"
    )


def _describe_contradiction(at: float) -> str:
    return (
        f"the reading of {_clock(at)} contradicts those before and after it, and is in no figure:"
        " how much more was counted meanwhile is not known"
    )


def _clock(at: float) -> str:
    return f"{moment(at):%Y-%m-%d %H:%M:%S}"


def _no_reading(since: Since) -> str:
    return (
        "no earlier report was marked: this is everything since the tier's counters started"
        if since == "last"
        else "no reading of that time is kept: this is everything since the tier's counters started"
    )


def _whole(disk: Disk, counters: Counters, counted: Hits) -> HitRow:
    row = _row(disk.name, Tally.from_hits(counted))
    block = disk.spec.block
    writes = None if counted.write_hits is None else row.writes
    return HitRow(
        row.name,
        row.reads,
        writes,
        row.read_hit_ratio,
        row.write_hit_ratio,
        row.hit_ratio,
        row.bypassed,
        counted.promotions,
        counted.demotions,
        int(counters.dirty.bytes(block)),
        int(counters.used.bytes(block)),
    )


def _row(name: str, tally: Tally) -> HitRow:
    return HitRow(
        name,
        tally.reads,
        tally.writes,
        tally.read_ratio,
        tally.write_ratio,
        tally.ratio,
        tally.bypassed,
        system=isinstance(name, SystemName),
    )


def _volume(target: Target) -> HitRow:
    """The VOLUME's requests since its device was made (Documentation/block/stat.rst)."""
    device = target.flash.volume_slice.path
    real = target.machine.run(["readlink", "-f", str(device)]).stdout.strip()
    stat = f"/sys/class/block/{PurePosixPath(real).name}/stat"
    words = target.machine.run(["cat", stat]).stdout.split()
    size = Bytes(sum(part.size for part in target.flash.volume))
    return HitRow(
        target.flash.volume_slice.name,
        int(words[0]),
        int(words[4]),
        None,
        None,
        None,
        None,
        used_bytes=int(size),
    )


@contextmanager
def target_of(name: str, disk: str | None) -> Iterator[Target]:
    """The disk a user means, with where its readings are kept.

    :raises TierRefusedError: it is not active, so there is nothing to read.
    """

    with disk_of(name, disk) as attached:
        lifecycle.active(attached)
        yield Target(name, attached)
