"""Findings from the heat of a disk's regions: what became hot, and whether another size or policy
would do better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from hotset.block import extents
from hotset.block.extents import Extent
from hotset.core.errors import Remedy
from hotset.core.units import Bytes
from hotset.core.words import duration, percent
from hotset.databases import file_labels
from hotset.hitratio import attribution, heat_ratios, region_counters
from hotset.hitratio.attribution import Owner
from hotset.hitratio.heat import Grid, Tally, cacheable_requests
from hotset.hitratio.heatstore import CounterDelta
from hotset.hitratio.hit_report import Label, Target
from hotset.tier import kinds
from hotset.tier.base import Counters

from . import thresholds as limits
from .findings import Ask, Finding

By = Literal["file", "table"]
_REST = (attribution.SHARED, attribution.UNOWNED, attribution.FILE_SYSTEM)


@dataclass(frozen=True, slots=True)
class Heat:
    """A disk's heat: of the last day, and of the week before it.

    :ivar recent: since the last look before that day, which may be longer ago.
    :ivar earlier: by region; empty: nothing was read then.
    :ivar earlier_s: how long that time was.
    :ivar since: when it began, by the wall clock.
    """

    grid: Grid
    heats: Mapping[int, float]
    recent: CounterDelta
    earlier: Mapping[int, float]
    earlier_s: float
    since: float

    @property
    def recent_s(self) -> float:
        """For how long the recent heat was counted."""
        return self.recent.at - self.recent.begun


def read(target: Target) -> Heat | None:
    """Read the counters and keep the reading, as every look at the heat does; None: nothing was
    counted in the last day.

    :raises NotCountedError: nothing counts; names what does.
    """
    reading = region_counters.find_counters(target.tier, target.disk.name).read()
    with target.store() as store:
        now = store.now()
        store.fold(reading, now)
        recent = store.since(now - limits.DAY_S)
        whole = store.since(now - (limits.DAYS + 1) * limits.DAY_S)
        heats = store.heats(now)
        since = store.wall(whole.begun if whole else now)
    if recent is None or whole is None:
        return None
    before = {
        number: float(asked)
        for number, tally in whole.tallies.items()
        if (asked := cacheable_requests(tally) - _ask(recent.tallies.get(number)))
    }
    return Heat(recent.grid, heats, recent, before, recent.begun - whole.begun, since)


def _ask(tally: Tally | None) -> int:
    return 0 if tally is None else cacheable_requests(tally)


def became_hot(ask: Ask, seen: Heat, target: Target, label: Label | None) -> list[Finding]:
    """Tables (or files, without a database server) that are asked for far more than before.

    :param label: function that names the table of a file; None: by file.
    """
    if seen.recent_s > limits.RECENT_MAX_S:
        ago = duration(seen.recent_s)
        return [ask.unknown(f"the last look before this one was {ago} ago: look once a day")]
    recent = sum(map(cacheable_requests, seen.recent.tallies.values()))
    earlier = sum(seen.earlier.values())
    if min(recent, earlier) < limits.DAY_REQUESTS_MIN or seen.earlier_s < limits.DAY_S:
        return [ask.unknown(_too_little(seen, recent, earlier))]
    owners = attribution.files(target.machine, target.disk.device)
    young = attribution.newer(target.machine, target.disk.device, seen.since, label or str)
    by: By = "file" if label is None else "table"
    if label is not None:
        owners = attribution.group_by(owners, label)
    cached = None if kinds.kind_of_name(target.disk.kind).pauses else target.tier.contents().cached
    hot = list(_hotter(ask, by, seen, owners, cached))
    if not hot:
        return [ask.say("ok", f"no {by} became hot in the last day")]
    # Else what was there before them was asked for, or they were read when they were made.
    sure = [finding for name, finding in hot if young is not None and name not in young]
    unsure = ", ".join(name for name, _ in hot if young is None or name in young)
    why = f"whether {unsure} became hot is not known: when its files came to be"
    why += " is not kept" if young is None else " lies within the time that is compared"
    return [*sure, *([ask.unknown(why)] if unsure else [])]


def _too_little(seen: Heat, recent: float, earlier: float) -> str:
    return (
        f"{recent:,.0f} requests of the last day and {earlier:,.0f} of"
        f" {duration(max(0.0, seen.earlier_s))} before it are kept, and"
        f" {limits.DAY_REQUESTS_MIN:,} are needed of each, over a day at least: look once a day,"
        " which keeps a reading"
    )


def _hotter(
    ask: Ask,
    by: By,
    seen: Heat,
    owners: Sequence[Owner],
    cached: Sequence[Extent] | None,
) -> Iterator[tuple[str, Finding]]:
    whose = attribution.of_regions(seen.grid, owners)
    recent = {number: float(_ask(tally)) for number, tally in seen.recent.tallies.items()}
    now, before = _shares(recent, whose), _shares(seen.earlier, whose)
    where = {owner.name: extents.merge(owner.extents) for owner in owners}
    for name, share in sorted(now.items(), key=lambda pair: -pair[1]):
        was = before.get(name, 0.0)
        if name in _REST or share < limits.HOT_SHARE or share < limits.HOT_TIMES * was:
            continue
        held = None if cached is None else _cached_share(where[name], cached)
        how = f"{percent(was)} before, {percent(share)} of requests now"
        yield name, _hot(ask, by, name, how, held)


def _shares(heats: Mapping[int, float], whose: Mapping[int, str]) -> dict[str, float]:
    whole, parts = sum(heats.values()), dict[str, float]()
    for number, heat in heats.items():
        name = whose.get(number, attribution.UNOWNED)
        parts[name] = parts.get(name, 0.0) + heat / whole
    return parts


def _cached_share(where: list[Extent], cached: Sequence[Extent]) -> float:
    whole = extents.length(where)
    return extents.length(extents.common(where, cached)) / whole if whole else 0.0


def _hot(ask: Ask, by: By, name: str, how: str, held: float | None) -> Finding:
    text = f"{name} became hot: {how}"
    text += "" if held is None else f"; {percent(held, 0)} of it is cached"
    target = file_labels.target_of(by, name)
    if target is None:
        return ask.say("advice", text)
    pin = ask.remedy("keep it in the cache", "warmup pin", disk=ask.disk, targets=target)
    given = {"targets": target, "disk": ask.disk}
    fetch = ask.remedy("fetch what is missing", "warmup run", **given)
    is_cached = held is not None and held >= limits.CACHED_ENOUGH
    return ask.say("advice", text, *([pin] if is_cached else [fetch, pin]))


def outlook(ask: Ask, seen: Heat, target: Target, counters: Counters) -> list[Finding]:
    """Judge whether twice the cache, or another policy, would hit more: by two estimates on the
    disk's own heat, of which the worse one decides."""
    asked = sum(map(cacheable_requests, seen.recent.tallies.values()))
    ratio, cache = seen.recent.total.ratio, target.disk.spec.cache
    if ratio is None or asked < limits.DAY_REQUESTS_MIN:
        since = duration(seen.recent_s)
        return [ask.unknown(f"{asked:,} requests were counted in {since}, too few to tell")]
    if counters.used < limits.FULL * counters.total:
        return [ask.unknown("the cache is still being filled: its hit ratio says nothing yet")]
    if not any(heat > 0 for heat in seen.heats.values()):
        return [ask.unknown("no region has any heat")]
    findings = [
        *_larger(ask, seen, target, ratio, cache),
        *_policy(ask, seen, target, ratio, cache),
    ]
    doubt = f"by the heat of regions of {seen.grid.region}"
    return findings or [
        ask.say(
            "ok", f"{percent(ratio)} hit; no other size or policy is known to do better {doubt}"
        )
    ]


def _larger(ask: Ask, seen: Heat, target: Target, ratio: float, cache: Bytes) -> Iterator[Finding]:
    twice = Bytes(2 * cache)
    gains = [
        model(seen.heats, seen.grid, twice) - model(seen.heats, seen.grid, cache)
        for model in (heat_ratios.lru_ratio, heat_ratios.best_ratio)
    ]
    # No more can be gained than misses.
    low, high = (min(1 - ratio, gain) for gain in sorted(gains))
    if low < limits.GAIN_MIN:
        return
    text = (
        f"{percent(ratio)} hit; twice the cache, {twice}, should hit {percent(low)} to"
        f" {percent(high)} more, by the heat of regions of {seen.grid.region}: as an LRU has it,"
        " and as the best choice has it"
    )
    look = ask.remedy("see what each size gives", "whatif flash")
    grow = ask.remedy("enlarge the cache", "tier resize", disk=ask.disk, cache=str(twice))
    room = sum(int(part.size) for part in target.flash.free()) >= cache
    yield ask.say("advice", text, look, *([grow] if room else []))


def _policy(ask: Ask, seen: Heat, target: Target, ratio: float, cache: Bytes) -> Iterator[Finding]:
    plain = heat_ratios.lru_ratio(seen.heats, seen.grid, cache)
    best = heat_ratios.best_ratio(seen.heats, seen.grid, cache)
    if plain - ratio < limits.GAIN_MIN:
        return
    trace, size = f"{ask.disk}.trace", str(cache)
    record = {"device": str(target.disk.device), "output": trace, "minutes": 60}
    text = (
        f"{percent(ratio)} hit, where a plain LRU of the same size should reach {percent(plain)}"
        f" and the best choice to {percent(best)}, by the heat of regions of {seen.grid.region};"
        " which policy does better is found on a recorded trace"
    )
    yield ask.say(
        "advice",
        text,
        ask.remedy("record an hour of its requests", "whatif record", **record),
        Remedy("compare policies on it", "whatif simulate", {"trace": trace, "cache": size}),
    )
