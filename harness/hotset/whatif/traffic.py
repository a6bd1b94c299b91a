"""Work of the slow storage for the cache itself: blocks promoted to the flash, and written back.

How many there are for each miss and for each write that hits depends on the policy, on the cache's
size (so on the hit ratio), and on the load. A run's own counters tell it for the hit ratio that it
had; ``traffic.json`` for others, from the published simulations of small caches, for the policies
that were simulated. All other policies are assumed to move what the simulated one moves that is
most like them. What writing a block back costs with hotset's policy, and what a log that moved to
flash gives by itself, are such that the published windows of small caches are predicted best.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import fsum
from typing import Any

from hotset.reports.model.setup import Tier
from hotset.reports.model.windows import Repeat

_MISSES_MIN = 1000
"""Fewer do not tell how many of them a policy answers with a promotion."""
_NEAR = 0.01
"""A simulated point so near to a hit ratio that a run measured gives way to it."""
_LIKE = {"hotset": "hotset", "smq": "smq", "s3-fifo": "s3-fifo"}
_LIKE_ANY_OTHER = "arc"
"""Policy assumed for others: like most textbook policies, it promotes on nearly every miss."""
_PAGED = "bcache"
"""It keeps what was requested, and no block around it."""
_READ_ONCE = (_PAGED, "hotset")
"""Policies whose misses have read what is kept (hotset's the whole block): nothing more is read for
a promotion."""


@dataclass(frozen=True, slots=True)
class CacheKind:
    """A cache as far as its traffic depends on it."""

    policy: str
    mode: str
    block_bytes: int

    @property
    def reads_once(self) -> bool:
        """True if a promotion reads nothing that the miss had not read."""
        return self.policy in _READ_ONCE


@dataclass(frozen=True, slots=True)
class Moved:
    """Blocks at a hit ratio: promoted for each miss, written back for each write that hits."""

    hit_ratio: float
    promoted: float
    written_back: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """:ivar write_through: every write that hits goes to the slow storage, too, while it is
    waited for; nothing is written back.
    :ivar cost: of a moved block, in random reads of a page.
    :ivar points: by ascending hit ratio.
    :ivar measured: which of ``promoted`` and ``written_back`` a run counted, at its hit ratio.
    """

    kind: CacheKind
    write_through: bool
    cost: float
    points: tuple[Moved, ...]
    measured: tuple[str, ...] = ()

    def at(self, hit_ratio: float) -> Moved:
        """Between two points on a straight line, beyond them as the nearest."""
        below = [point for point in self.points if point.hit_ratio <= hit_ratio]
        above = [point for point in self.points if point.hit_ratio > hit_ratio]
        if not below or not above:
            return (below[-1:] or above[:1])[0]
        low, high = below[-1], above[0]
        part = (hit_ratio - low.hit_ratio) / (high.hit_ratio - low.hit_ratio)
        promoted = low.promoted * (1 - part) + high.promoted * part
        return Moved(hit_ratio, promoted, low.written_back * (1 - part) + high.written_back * part)


def kind_of(tier: Tier | None) -> CacheKind | None:
    """Return the kind of a run's cache; None where it had none."""
    return None if tier is None else CacheKind(tier.policy, tier.mode, tier.block_bytes)


def assume_traffic(kind: CacheKind) -> Traffic:
    """Estimate a cache's traffic from the published simulations. A larger block costs by its size;
    a smaller one as much, as most of it is the way to its place."""
    known = read_simulations()[_LIKE.get(kind.policy, _LIKE_ANY_OTHER)]
    paged = kind.policy == _PAGED
    larger = 1.0 if paged else max(1.0, kind.block_bytes / known["block_bytes"])
    points = tuple(
        Moved(ratio, 0.0 if kind.reads_once else promoted, written)
        for ratio, promoted, written in known["points"]
    )
    points = (*points, _at_the_end(points))
    through = kind.mode != "writeback"
    if through:
        points = tuple(Moved(point.hit_ratio, point.promoted, 0.0) for point in points)
    return Traffic(kind, through, known["cost"] * larger, points)


def _at_the_end(points: Sequence[Moved]) -> Moved:
    """With everything cached, which was not simulated: along the line of the two largest caches,
    and never less than nothing."""
    before, last = points[-2:]
    more = (1 - last.hit_ratio) / (last.hit_ratio - before.hit_ratio)
    written = last.written_back + (last.written_back - before.written_back) * more
    return Moved(1.0, last.promoted, max(0.0, written))


def count_traffic(kind: CacheKind, windows: Sequence[Repeat]) -> Traffic:
    """Estimate as :func:`assume_traffic` does, with what a run's windows with the cache counted."""
    traffic = assume_traffic(kind)
    ratios = [window.hit_ratio for window in windows if window.hit_ratio is not None]
    if len(ratios) != len(windows) or not windows:
        return traffic
    at = fsum(ratios) / len(ratios)
    promoted = None if kind.reads_once else _promotions(windows)
    written = None if traffic.write_through else _write_backs(windows)
    known = {"promoted": promoted, "written_back": written}
    measured = tuple(name for name, value in known.items() if value is not None)
    if not measured:
        return traffic
    assumed = traffic.at(at)
    own = Moved(
        at,
        assumed.promoted if promoted is None else promoted,
        assumed.written_back if written is None else written,
    )
    others = [point for point in traffic.points if abs(point.hit_ratio - at) > _NEAR]
    points = tuple(sorted([*others, own], key=lambda point: point.hit_ratio))
    return Traffic(kind, traffic.write_through, traffic.cost, points, measured)


def _promotions(windows: Sequence[Repeat]) -> float | None:
    """For each miss; None where too few missed or the tier does not count it."""
    each = [window.counters for window in windows]
    counters = [sample for sample in each if sample is not None and sample.promotions is not None]
    misses = sum(counter.read_misses + (counter.write_misses or 0) for counter in counters)
    if len(counters) != len(windows) or misses < _MISSES_MIN:
        return None
    return sum(counter.promotions or 0 for counter in counters) / misses


def _write_backs(windows: Sequence[Repeat]) -> float | None:
    """For each write that hits, in the window or, of what it left dirty, later; None where the
    slow storage's own writes or the cache's were not counted."""
    blocks, hits = 0.0, 0
    for window in windows:
        origin = next((device for device in window.devices if device.name == "origin"), None)
        counters = window.counters
        if origin is None or counters is None or counters.write_hits is None:
            return None
        missed = counters.write_misses or 0
        blocks += origin.write.iops * window.duration_s - missed + counters.dirty_blocks
        hits += counters.write_hits
    return max(0.0, blocks) / hits if hits else None


def read_simulations() -> dict[str, Any]:
    """``traffic.json``: by policy, the block, what moving one costs, and the points."""
    return dict(_read()["policies"])


def assume_log_moved() -> float:
    """Return how many times as much a baseline does with its log on flash, as far as is known."""
    return float(_read()["log_moved"])


@cache
def _read() -> dict[str, Any]:
    text = files(__package__).joinpath("traffic.json").read_text(encoding="utf-8")
    return dict(json.loads(text))
