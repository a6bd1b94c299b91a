"""`hotset tier explain`: would this file or table hit, and what will the policy do with it next?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.block import extents
from hotset.block.extents import Extent
from hotset.core.errors import NotFoundError
from hotset.core.record import Record
from hotset.core.units import Bytes
from hotset.core.words import percent, size
from hotset.hitratio import attribution, hit_report, region_counters
from hotset.hitratio.attribution import Owner
from hotset.hitratio.heat import Grid, Tally, total
from hotset.hitratio.hit_report import Label, Target
from hotset.hitratio.tracepoints import NotCountedError
from hotset.tier import kinds, pins
from hotset.tier.base import Counters, TierKind, TierSpec
from hotset.tier.disk_tier import Contents
from hotset.tier.division import Owners
from hotset.tier.pins import Kind, Preferences
from hotset.tier.policies import ALL, NONE
from hotset.warmup.division import MOVED_SHARE

_KEPT_TO: Mapping[Kind, str] = {
    "pinned": "It is pinned: what is cached of it is never evicted, and the rest has room.",
    "excluded": "It is excluded: none of it enters the cache.",
}
_MOVED = (
    "It is {preference}, but only {share} of it lies where it was looked up last: `warmup refresh`"
    " looks it up again."
)


class NoSuchOwnerError(NotFoundError):
    """Nothing of that name lies on the disk; the message shows what does."""


@dataclass(frozen=True)
class Explanation(Record):
    """All that is known of one file or table.

    ``resident`` and ``dirty`` are shares of its bytes: in the cache, and there alone (None: the
    kernel does not say which blocks are). ``preference``: whether it is pinned or excluded.
    ``times_average`` is its heat a byte over that of the whole disk. The ratios are of the regions
    that it has for itself, since counting began; None: nothing counted, or nothing was asked.
    """

    name: str
    disk: str
    tier: str
    bytes: int
    resident: float
    dirty: float | None
    preference: Kind | None
    heat: float | None
    times_average: float | None
    read_hit_ratio: float | None
    write_hit_ratio: float | None
    bypassed: int | None
    next: tuple[str, ...]

    def to_text(self) -> str:
        """A line for each of what is known."""
        heat = "not known yet: nothing counts it (heat start does)"
        if self.heat is not None:
            times = (
                ""
                if self.times_average is None
                else (f", {self.times_average:,.1f} times the disk's average for its size")
            )
            heat = f"{self.heat:,.1f} requests, decayed{times}"
        lines = [
            f"{self.name} on disk {self.disk} ({self.tier})",
            f"  size on disk    {size(self.bytes)}",
            f"  in the cache    {percent(self.resident)} of its bytes",
            f"  dirty           {_dirty_words(self)}",
            f"  preference      {self.preference or 'neither pinned nor excluded'}"
            + (
                ", which only warm-ups keep to"
                if self.preference and not kinds.kind_of_name(self.tier).divides
                else ""
            ),
            f"  heat            {heat}",
            f"  hits so far     reads {percent(self.read_hit_ratio)}, writes"
            f" {percent(self.write_hit_ratio)}"
            + (f", {self.bypassed:,} bypassed" if self.bypassed else ""),
            *(f"  {sentence}" for sentence in self.next),
        ]
        return "\n".join(lines)


def explain(target: Target, name: str, label: Label | None) -> Explanation:
    """Look it up.

    :param name: a file's path, or what ``label`` calls the files (a table).
    :raises NoSuchOwnerError: no such file or table on the disk.
    """
    tier, machine, disk = target.tier, target.machine, target.disk
    owners = attribution.files(machine, disk.device)
    if label is not None:
        owners = attribution.group_by(owners, label)
    mine = _choose(owners, name)
    where = extents.merge(mine.extents)
    contents, counters = tier.contents(), tier.counters()
    share = _share(where, contents.cached)
    tally, notes = _tally(target, owners, mine, label or str)
    heat, times = _heat(target, mine)
    words = describe_outlook(tier.kind, tier.spec, counters, share)
    wanted = pins.read_preferences(machine, disk.name)
    preference = _preference(wanted, mine.name, label is not None)
    if preference is not None and (cache := tier.divisible()) is not None:
        words = (words[0], _describe_limits(preference, where, cache.owners(), disk.spec.block))
    return Explanation(
        mine.name,
        disk.name,
        tier.kind,
        int(extents.length(where)),
        share,
        _dirty(contents, counters, where),
        preference,
        heat,
        times,
        None if tally is None else tally.read_ratio,
        None if tally is None else tally.write_ratio,
        None if tally is None else tally.bypassed,
        (*words, *notes),
    )


def _describe_limits(
    preference: Kind, where: Sequence[Extent], owners: Owners, block: Bytes
) -> str:
    """Explain what the cache does by itself for what lies there now: it knows blocks, not names."""
    named = owners.pinned if preference == "pinned" else owners.excluded
    kept = extents.of_runs(extents.union(*(owner.runs for owner in named)), block)
    # An excluded file's first and last block may be others' as well, which stay cacheable.
    if _share(where, kept) >= 1 - MOVED_SHARE:
        return _KEPT_TO[preference]
    return _MOVED.format(preference=preference, share=percent(_share(where, kept)))


def _share(where: Sequence[Extent], others: Sequence[Extent]) -> float:
    held = extents.length(where)
    return extents.length(extents.common(where, others)) / held if held else 0.0


def _dirty(contents: Contents, counters: Counters, where: Sequence[Extent]) -> float | None:
    if contents.dirty is None:
        return None if counters.dirty else 0.0
    return _share(where, contents.dirty)


def _preference(wanted: Preferences, name: str, table: bool) -> Kind | None:
    """Return the preference for a file or a folder above it, or for a table; exclusion wins, as in
    a plan."""
    names = {f"table:{name}"} if table else {name, *map(str, PurePosixPath(name).parents)}
    if names & set(wanted.excluded):
        return "excluded"
    return "pinned" if names & set(wanted.pinned) else None


def _dirty_words(explanation: Explanation) -> str:
    if explanation.dirty is None:
        return f"some of the disk's blocks are; {explanation.tier} does not say which"
    return (
        f"{percent(explanation.dirty)} of its bytes are on the flash only"
        if explanation.dirty
        else "none"
    )


def _choose(owners: Sequence[Owner], name: str) -> Owner:
    """By its whole name, or by the end of it after a slash or point where that is plain."""
    exact = [owner for owner in owners if owner.name == name]
    ends = [owner for owner in owners if owner.name.endswith((f"/{name}", f".{name}"))]
    chosen = exact or ends
    if len(chosen) == 1:
        return chosen[0]
    some = ", ".join(sorted(owner.name for owner in chosen or owners)[:5])
    more = " …" if len(chosen or owners) > 5 else ""
    if chosen:
        raise NoSuchOwnerError(f"{name!r} matches several names: {some}{more}", field="name")
    raise NoSuchOwnerError(
        f"{name!r} has no blocks on this disk, which has: {some}{more} (for tables, name the"
        " database server)",
        field="name",
    )


def _tally(
    target: Target, owners: Sequence[Owner], mine: Owner, label: Label
) -> tuple[Tally | None, tuple[str, ...]]:
    try:
        reading = region_counters.find_counters(target.tier, target.disk.name).read()
    except NotCountedError as error:
        return None, (f"Hits per file are not known: {error}.",)
    with target.store() as store:
        store.fold(reading, store.now())
        begun = min(reading.begun, store.begun(store.now()))
    whose = attribution.of_regions(reading.grid, owners)
    own = [tally for number, tally in reading.tallies.items() if whose.get(number) == mine.name]
    shared = "It shares some regions with others; hits there are not counted as its own."
    young = hit_report.describe_younger(target, [mine.name], label, begun)
    is_shared = _shares(reading.grid, mine, whose)
    return total(own), (*([shared] if is_shared else []), *young)


def _shares(grid: Grid, mine: Owner, whose: dict[int, str]) -> bool:
    numbers = {number for extent in mine.extents for number in grid.numbers(extent)}
    return any(whose.get(number) == attribution.SHARED for number in numbers)


def _heat(target: Target, mine: Owner) -> tuple[float | None, float | None]:
    """Its heat by its part of each region, and by size how many times the disk's average."""
    with target.store() as store:
        grid, heats = store.grid, store.heats(store.now())
    if grid is None:
        return None, None
    where, heat, bytes_ = extents.merge(mine.extents), 0.0, 0
    for extent in where:
        for number in grid.numbers(extent):
            region = grid.extent(number)
            part = int(extents.length(extents.common([extent], [region])))
            heat += heats.get(number, 0.0) * part / region.length
            bytes_ += part
    whole = sum(heats.values())
    return heat, heat / bytes_ / (whole / grid.disk) if whole and bytes_ else None


def describe_outlook(
    kind: TierKind, spec: TierSpec, counters: Counters, resident: float
) -> tuple[str, ...]:
    """Whole sentences.

    :param resident: the share of the blocks that is in the cache, 0 to 1.
    """
    words: list[str] = []
    if resident >= ALL:
        words.append("All of it is in the cache: the next read of any block is a hit.")
    elif resident <= NONE:
        words.append("Nothing of it is in the cache: the next read of a block goes to the origin.")
    else:
        words.append(
            f"Of reads spread evenly over it {percent(resident)} would hit now; the others go to"
            " the origin."
        )
    full = counters.used >= counters.total
    return (*words, *kinds.kind_of_name(kind).what_next(spec, full, resident))
