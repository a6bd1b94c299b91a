"""Results of warm-ups and preferences of caches: records, and tables of them for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from hotset.core.record import Record
from hotset.core.units import Blocks, Bytes
from hotset.core.words import duration, part_of_all, text_table
from hotset.databases.base import Offer
from hotset.tier import pins
from hotset.tier.base import Warmup, WarmupMethod
from hotset.tier.filling import Way

from .division import Kept, Lies, Location
from .plan import Plan, Planned, Row
from .plan_store import SavedPlan, State

_METHODS = {"offline": "off line", "read": "on line", "insert": "inserted, on line"}
_HEADS = ("target", "extents", "size", "fits", "cached already", "to fetch", "left out", "expected")


@dataclass(frozen=True, slots=True)
class PlannedTarget:
    """Target of a plan. ``bytes`` are its own: neither excluded nor those of another
    target before it; of these ``fits`` will be cached, and ``resident`` of that are so already."""

    order: int
    target: str
    pinned: bool
    extents: int
    bytes: Bytes
    fits: Bytes
    resident: Bytes
    to_fetch: Bytes
    left_out: Bytes
    expected_s: float


@dataclass(frozen=True)
class WarmupPlan(Record):
    """A plan, its targets in order of importance, and their total.

    ``expected_s`` are the bytes to fetch over the origin's sequential rate.
    """

    csv_rows = "targets"

    targets: tuple[PlannedTarget, ...]
    cache_bytes: Bytes
    to_fetch: Bytes
    origin_mb_per_s: float
    expected_s: float
    notes: tuple[str, ...]
    block_bytes: Bytes

    @classmethod
    def from_plan(cls, planned: Planned) -> WarmupPlan:
        whole, rate = planned.plan, planned.origin_mb_per_s
        return cls(
            tuple(_planned_target(at, row, whole, rate) for at, row in enumerate(whole.rows, 1)),
            whole.capacity.bytes(whole.block),
            whole.bytes,
            round(rate, 1),
            round(whole.seconds(rate), 1),
            tuple(planned.notes),
            whole.block,
        )

    def to_text(self) -> str:
        """Format a plan as a table, with its total and where its seconds come from."""
        lines = [
            _line(
                f"{target.order}. {target.target}{' (pinned)' * target.pinned}",
                [target],
                target.expected_s,
            )
            for target in self.targets
        ]
        total = _line("total", self.targets, self.expected_s)
        last = (
            f"room for {self.cache_bytes} in blocks of {self.block_bytes}; expected seconds are"
            f" bytes to fetch over the origin's sequential rate, {self.origin_mb_per_s:.0f} MB/s"
        )
        return "\n".join((text_table(_HEADS, [*lines, total]), "", last))


def _planned_target(at: int, row: Row, whole: Plan, rate: float) -> PlannedTarget:
    block = whole.block
    return PlannedTarget(
        at,
        row.name,
        row.pinned,
        row.extents,
        row.blocks.bytes(block),
        row.taken.bytes(block),
        row.resident.bytes(block),
        row.missing.bytes(block),
        row.left_out.bytes(block),
        round(row.missing.bytes(block) / 1e6 / rate, 1),
    )


def _line(name: str, rows: Sequence[PlannedTarget], seconds: float) -> tuple[str, ...]:
    """The rows' figures, summed up, as cells."""
    names = ("bytes", "fits", "resident", "to_fetch", "left_out")
    sizes = [str(Bytes(sum(getattr(row, name) for row in rows))) for name in names]
    extents = sum(row.extents for row in rows)
    return (name, f"{extents:,}", *sizes, duration(seconds))


def summary(whole: Plan) -> str:
    """A plan in one line."""
    rest = f", {whole.left_out} do not fit" if whole.left_out else ""
    planned = Blocks(sum(row.taken for row in whole.rows)).bytes(whole.block)
    return f"{planned} planned, {whole.bytes} of it to fetch{rest}"


@dataclass(frozen=True)
class WarmupResult(Record):
    """Result of a plan; see `hotset.tier.base.Warmup`.

    ``job`` is the plan's name; ``cached_share`` is how much is cached now of what was asked for,
    which is what was planned and ``left_out_bytes``, which had no room.
    ``looked_up`` is when the targets lay where that is; ``not_known`` is why nobody said where they
    lie now, empty where it was said.
    """

    method: WarmupMethod
    bytes: Bytes
    seconds: float
    total_seconds: float
    origin_mb_per_s: float
    sampled_blocks: int
    differing_blocks: int
    mb_per_s: float
    job: str
    cached_share: float
    planned_bytes: Bytes
    left_out_bytes: Bytes
    looked_up: str
    not_known: str = ""

    @classmethod
    def from_outcome(
        cls, plan: SavedPlan, warmed: Warmup, cached: Blocks, not_known: str = ""
    ) -> WarmupResult:
        """:param cached: how many of the plan's blocks are cached now."""
        asked = plan.bytes + plan.left_out
        return cls(
            **asdict(warmed),
            mb_per_s=round(warmed.mb_per_s, 1),
            job=plan.id,
            cached_share=cached.bytes(plan.block) / asked if asked else 1.0,
            planned_bytes=plan.bytes,
            left_out_bytes=plan.left_out,
            looked_up=plan.looked_up or plan.created,
            not_known=not_known,
        )

    def to_text(self) -> str:
        """Format a result as a table."""
        figures = [
            ("plan", self.job),
            ("method", _METHODS[self.method]),
            ("fetched", f"{self.bytes} in {self.seconds:.1f} s, {self.mb_per_s:.1f} MB/s"),
            ("origin", f"{self.origin_mb_per_s:.1f} MB/s sequentially"),
            ("in all", duration(self.total_seconds)),
            ("sampled", f"{self.sampled_blocks} blocks, {self.differing_blocks} differ"),
            ("cached now", _describe_cached(self)),
        ]
        return text_table(("warm-up", ""), figures)

    def figures(self) -> Mapping[str, str]:
        left = self.left_out_bytes
        return {
            "cached of what was planned" if self.not_known else "cached": part_of_all(
                self.cached_share
            ),
            **({"did not fit": str(left)} if left else {}),
            "fetched at": f"{self.mb_per_s:.0f} MB/s",
        }


def _describe_cached(result: WarmupResult) -> str:
    share, left = part_of_all(result.cached_share), result.left_out_bytes
    rest = f"; {left} did not fit" if left else ""
    text = f"{share} of {Bytes(result.planned_bytes + left)}{rest}"
    if not result.not_known:
        return text
    return f"{text}, by where it lay at {result.looked_up}; where it lies now is not known"


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A saved plan, without its blocks; ``targets`` have a space between them."""

    job: str
    state: State
    machine: str
    disk: str
    method: Way
    bytes: Bytes
    targets: str
    said: str


@dataclass(frozen=True)
class WarmupPlans(Record):
    """The saved plans."""

    csv_rows = "jobs"

    jobs: tuple[KeptPlan, ...]

    @classmethod
    def from_plans(cls, plans: Sequence[SavedPlan]) -> WarmupPlans:
        return cls(
            tuple(
                KeptPlan(
                    plan.id,
                    plan.state,
                    plan.machine,
                    plan.disk,
                    plan.method,
                    plan.bytes,
                    " ".join(plan.targets),
                    plan.said,
                )
                for plan in plans
            )
        )

    def to_text(self) -> str:
        """A line for each, and what was said of it below."""
        lines = [
            f"{plan.job}  {plan.state}: {plan.bytes} of {plan.targets} on {plan.disk}"
            f" ({plan.machine})" + (f"\n  {plan.said}" if plan.said else "")
            for plan in self.jobs
        ]
        return "\n".join(lines) or "no saved plans"


@dataclass(frozen=True)
class WarmupTargets(Record):
    """Targets on a server that can be named."""

    csv_rows = "targets"

    targets: tuple[Offer, ...]

    def to_text(self) -> str:
        """With their sizes, where known."""
        shown = [
            (target.target, "" if target.bytes is None else str(Bytes(target.bytes)))
            for target in self.targets
        ]
        return text_table(("target", "size"), shown)


@dataclass(frozen=True, slots=True)
class Preferred:
    """A target that is pinned, excluded or shared. None: it has no share, or is not known. From
    ``lies`` on: see `hotset.warmup.division.Location`."""

    target: str
    preference: Literal["pinned", "excluded", "shared"]
    guarantee: str | None = None
    limit: str | None = None
    bytes: Bytes | None = None
    cached_bytes: Bytes | None = None
    guaranteed_bytes: Bytes | None = None
    lies: Lies | None = None
    unused_bytes: Bytes | None = None
    outside_bytes: Bytes | None = None
    why: str = ""

    @property
    def place(self) -> Location | None:
        if self.lies is None:
            return None
        return Location(self.lies, self.unused_bytes, self.outside_bytes, self.why)


@dataclass(frozen=True)
class Preferences(Record):
    """Preferences of a disk's cache: what to keep, to leave out, and how it is shared."""

    csv_rows = "preferences"

    preferences: tuple[Preferred, ...]

    @classmethod
    def from_preferences(
        cls,
        wanted: pins.Preferences,
        kept: Mapping[str, Kept],
        places: Mapping[str, Location],
    ) -> Preferences:
        """
        :param kept: cached part of each target, where known.
        :param places: where each lies now, where it has a place.
        """
        every = (
            replace(preference, **_of(preference.target, kept, places))
            for preference in _list_preferences(wanted)
        )
        return cls(tuple(every))

    def to_text(self) -> str:
        """Pinned, excluded and shared targets: their sizes, and which are not where they were."""
        heads = (
            "target",
            "preference",
            "guarantee",
            "limit",
            "size",
            "cached",
            "guaranteed",
            "lies",
        )
        rows = [
            (
                preference.target,
                preference.preference,
                *(
                    preference.guarantee,
                    preference.limit,
                    preference.bytes,
                    preference.cached_bytes,
                    preference.guaranteed_bytes,
                    preference.lies,
                ),
            )
            for preference in self.preferences
        ]
        shown = [["" if value is None else str(value) for value in row] for row in rows]
        if not shown:
            return "nothing is pinned, excluded or shared"
        notes = [
            f"{preference.target}: {describe_place(place)}"
            for preference in self.preferences
            if (place := preference.place) is not None and place.lies != "where it was"
        ]
        return "\n".join((text_table(heads, shown), *(["", *notes] if notes else [])))


def _list_preferences(wanted: pins.Preferences) -> Iterator[Preferred]:
    yield from (Preferred(target, "pinned") for target in wanted.pinned)
    yield from (Preferred(target, "excluded") for target in wanted.excluded)
    for share in wanted.shares:
        yield Preferred(share.target, "shared", share.guarantee, share.limit)


def _of(target: str, kept: Mapping[str, Kept], places: Mapping[str, Location]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if (known := kept.get(target)) is not None:
        fields["bytes"] = known.size
        fields["cached_bytes"] = known.cached
        fields["guaranteed_bytes"] = known.guaranteed
    if (place := places.get(target)) is not None:
        fields["lies"], fields["why"] = place.lies, place.why
        fields["unused_bytes"], fields["outside_bytes"] = place.unused, place.outside
    return fields


def describe_place(place: Location) -> str:
    """Where a target lies now, in words."""
    if place.lies == "gone":
        kept = f", and {place.unused} are still kept for it" if place.unused else ""
        return f"it is gone{kept} ({place.why})"
    if place.lies == "not known":
        return f"where it lies now is not known ({place.why})"
    if place.lies == "elsewhere":
        return (
            f"it lies elsewhere by now: {place.unused} kept for it are its own no more, and"
            f" {place.outside} of it are not kept"
        )
    return "it lies where it was looked up"


def describe_preference(
    target: str,
    before: pins.Preferences,
    after: pins.Preferences,
    kept: Mapping[str, Kept] | None,
) -> str:
    """Describe the change of a target's preference, in a sentence.

    :param kept: cached part of each target; None: a cache that does not know targets.
    """
    was, is_ = before.kind_of(target), after.kind_of(target)
    if is_ is None:
        return (
            f"{target} is no longer {was}"
            if was
            else f"{target} was neither pinned, excluded nor shared: nothing changed"
        )
    words: str = is_
    if is_ == "shared":
        share = next(share for share in after.shares if share.target == target)
        words = f"shared: guaranteed {share.guarantee} of the cache, limited to {share.limit}"
    if kept is None:
        return f"{target} {words}"
    usage = kept.get(target)
    if usage is None:
        return f"{target} {words}; how much of it is cached is not known"
    return f"{usage.size} of {target} {words}, {usage.cached} of it cached now"
