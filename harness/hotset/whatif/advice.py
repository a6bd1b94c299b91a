"""How large a cache is to be: the smallest that comes near to what flash for everything would give.

A recording does not tell what was asked for before it. Its first request to a block misses a cache
that starts empty, and may hit one that is in use. So hit ratios have bounds (see ``caches``), and
so has the size: at least the one that is enough if whatever may hit does and what is new is new to
any cache; at most the one that is enough if nothing of that hits, though all of it could, and what
only the earlier part asked for (a night's scan) comes back and misses. A size is recommended where
the bounds are close; until then it is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from math import ceil, log

from hotset.core.errors import RequestError
from hotset.core.record import Versioned
from hotset.core.units import Bytes
from hotset.core.words import duration, percent, text_table

from .caches import Cache, Curve, CurvePoint, Outcome, TraceFigures
from .doubt import Doubt, in_words
from .prediction import PredictedLine

_DAY_S = 24 * 3600
_SHORT_S = 3600
"""A shorter recording has seen one hour of a day at most."""
CLOSE = 1.2
"""Bounds of a size within this factor of each other tell it."""
_CLOSEST = 1.01
"""Sizes of a curve are no farther apart where it is steep (``CLOSEST`` of curve.rs)."""
_NEW_WANTED = 0.01
"""Share of requests to new blocks from which on the bounds of a size are mostly close."""
_DOUBLINGS_FIT = 4
_LONGER_MAX = 200
"""Times its length: farther ahead a recording does not tell how its new blocks become fewer."""


@dataclass(frozen=True, slots=True)
class Size:
    """A cache size, what it would hit and give at least.

    :ivar hit_ratio: of LRU in use, at least; ``hit_ratio_most``: at most.
    :ivar nopm_low: with ``nopm_high``, the range of the prediction.
    :ivar share: of the NOPM (without a run: of the hits) that a cache for all of it gives.
    :ivar price_per_nopm: of the flash, by what it gives over the smallest size asked about.
    """

    cache_bytes: int
    hit_ratio: float
    hit_ratio_most: float
    nopm: float | None
    nopm_low: float | None
    nopm_high: float | None
    share: float
    price: float | None
    price_per_nopm: float | None


@dataclass(frozen=True, slots=True)
class Wear:
    """Estimated wear by a cache of the recommended size, simulated over the trace from empty.

    :ivar flash_bytes_a_day: of a day as busy as the trace, once the cache is full: blocks that take
        another's place, and what is written to blocks that are there, at the trace's mean size.
    :ivar fill_bytes: bytes written into free room: once, not every day.
    :ivar drive_writes_a_day: how often its flash is written over in such a day.
    """

    policy: str
    mode: str
    hit_ratio: float
    flash_bytes_a_day: int
    fill_bytes: int
    drive_writes_a_day: float
    origin_writes_share: float


@dataclass(frozen=True)
class CacheAdvice(Versioned):
    """The recommendation.

    :ivar run: whose NOPM they are; None: by hits alone.
    :ivar recommended: None: the trace does not tell which size is enough.
    :ivar least_bytes: the size that is enough is no smaller, by LRU.
    :ivar most_bytes: and no larger; None: not known.
    :ivar new_share: of the trace's later requests, those to blocks that it had not touched before.
    :ivar gone_share: blocks of its earlier part alone, by all requests.
    :ivar needed_s: about so long a recording would tell; None: a size is recommended, or not known.
    :ivar wear: of the recommended size.
    :ivar doubts: of the predictions; none without a run.
    """

    csv_rows = "sizes"

    trace: str
    run: str | None
    asked_share: float
    recommended: Size | None
    least_bytes: int
    most_bytes: int | None
    new_share: float
    gone_share: float
    needed_s: float | None
    wear: Wear | None
    sizes: tuple[Size, ...]
    doubts: tuple[Doubt, ...]
    warnings: tuple[str, ...] = ()

    def to_text(self) -> str:
        columns, rows = ["", "cache", "hit ratio", "at most"], []
        columns += ["NOPM", "from", "to"] if self.run else []
        columns.append("of the attainable")
        priced = any(size.price is not None for size in self.sizes)
        columns += ["price", *(["a NOPM more"] if self.run else [])] if priced else []
        for size in self.sizes:
            mark = "->" if size == self.recommended else ""
            row = [mark, str(Bytes(size.cache_bytes)), percent(size.hit_ratio)]
            row.append(percent(size.hit_ratio_most))
            nopms = (size.nopm, size.nopm_low, size.nopm_high)
            row += [f"{nopm:,.0f}" for nopm in nopms if nopm is not None]
            row.append(percent(size.share))
            row += [f"{size.price:,.2f}"] if size.price is not None else []
            if priced and self.run:
                row.append("" if size.price_per_nopm is None else f"{size.price_per_nopm:,.4f}")
            rows.append(row)
        return "\n\n".join((text_table(columns, rows), *self._notes()))

    def _notes(self) -> list[str]:
        by = f"the NOPM of run {self.run}'s set-up" if self.run else "hits"
        enough = f"{percent(self.asked_share, 0)} of what flash for everything would give, by {by}"
        best = self.recommended
        if best is None:
            sizes = [self._not_known(enough)]
        else:
            sizes = [
                f"{Bytes(best.cache_bytes)} gives {enough}; less than"
                f" {Bytes(self.least_bytes)} does not."
            ]
        return [
            *sizes,
            *([self._of_wear(self.wear)] if self.wear else []),
            "Hit ratios are those of LRU in a cache that is in use, over the later part of the"
            " trace: at least, and at most. They differ by requests to blocks that the trace had"
            f" not touched until then ({percent(self.new_share)}), and by blocks of its earlier"
            f" part alone (as many as {percent(self.gone_share)} of all requests), which may come"
            " back: whether a cache has those it does not tell.",
            *([in_words(self.doubts)] if self.run else []),
            *self.warnings,
        ]

    def _not_known(self, enough: str) -> str:
        bounds = f"at least {Bytes(self.least_bytes)}"
        if self.most_bytes is not None:
            bounds += f", at most {Bytes(self.most_bytes)}"
        if self.new_share <= _NEW_WANTED:
            longer = "What its beginning alone asked for may come back: record until it has."
        elif self.needed_s:
            longer = f"It takes a recording of about {duration(self.needed_s)} or more to tell."
        else:
            longer = (
                "How long a recording would tell is not known: new blocks keep coming as at its"
                " beginning. Record a day, or longer."
            )
        return (
            f"Which size gives {enough}, is not known: {bounds}. {percent(self.new_share)} of the"
            " later requests went to blocks that the trace had not touched until then, and blocks"
            f" of its earlier part alone are as many as {percent(self.gone_share)} of all requests."
            f" {longer}"
        )

    def _of_wear(self, worn: Wear) -> str:
        return (
            f"Wear, simulated with {worn.policy} and {worn.mode}: {Bytes(worn.flash_bytes_a_day)}"
            f" a day, {worn.drive_writes_a_day:.2f} drive writes a day if every day is as busy as"
            f" the trace, after {Bytes(worn.fill_bytes)} to fill it; the origin gets"
            f" {percent(worn.origin_writes_share, 0)} of the writes. Its hit ratio, starting empty:"
            f" {percent(worn.hit_ratio)}."
        )


def beside_short(recommended: Size | None, trace_s: float) -> list[str]:
    """List what a size does not tell that a recording of so many seconds gave."""
    if recommended is None or trace_s >= _SHORT_S:
        return []
    return [
        f"The recording is of {duration(trace_s)}: size and wear are of a day that goes on like it."
        " What is asked for in hours that it does not hold, it does not tell: record a day."
    ]


Gain = Callable[[float], float]
"""Gain of a hit ratio: NOPM, or hits."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Sizes in bytes; ``most`` is None where the trace does not bound it."""

    least: int
    most: int | None

    @property
    def close(self) -> bool:
        return self.most is not None and self.most <= CLOSE * self.least


def hit_ratios(curve: Curve) -> list[float]:
    """Every hit ratio that sizes are judged by, in ascending order.

    :raises RequestError: the trace is empty.
    """
    if not curve.requests:
        raise RequestError("the trace has no requests: record for longer", field="trace")
    each = {ratio for point in curve.points for ratio in (point.warm_low, point.warm_high)}
    return sorted({*each, 1 - curve.new_share, 1.0})


def bound(curve: Curve, gain: Gain, share: float) -> Bounds:
    """Bound the smallest size that gives a share of what a cache for everything gives."""
    attainable = gain(1.0)
    least = _first(curve, lambda point: gain(point.warm_high), share * gain(1 - curve.new_share))
    most = _first(curve, lambda point: gain(point.warm_low), share * attainable)
    return Bounds(least or curve.points[-1].cache_bytes, most)


def _first(curve: Curve, gained: Callable[[CurvePoint], float], wanted: float) -> int | None:
    """The first size at which so much is gained, in whole blocks: between two points by the
    logarithm of the size, unless they are as close as a curve's are where it is steep (half of a
    loop's blocks hit nothing)."""
    before: tuple[float, int] | None = None
    for point in curve.points:
        here = gained(point)
        if here >= wanted:
            if before is None or point.cache_bytes <= _CLOSEST * before[1]:
                return point.cache_bytes
            part = (wanted - before[0]) / (here - before[0])
            blocks = before[1] * (point.cache_bytes / before[1]) ** part / curve.block_bytes
            return int(ceil(blocks - 1e-9) * curve.block_bytes)
        before = here, point.cache_bytes
    return None


def with_size(curve: Curve, cache_bytes: int) -> Curve:
    """The curve with a point of that size, between its neighbours as :func:`bound` has it."""
    points = sorted(curve.points, key=lambda point: point.cache_bytes)
    above = next(at for at, point in enumerate(points) if point.cache_bytes >= cache_bytes)
    low, high = points[max(0, above - 1)], points[above]
    if high.cache_bytes == cache_bytes:
        return curve
    part = log(cache_bytes / low.cache_bytes, high.cache_bytes / low.cache_bytes)
    between = {
        name.name: getattr(low, name.name) * (1 - part) + getattr(high, name.name) * part
        for name in fields(CurvePoint)
    }
    point = CurvePoint(**{**between, "cache_bytes": cache_bytes})
    return replace(curve, points=(*points[:above], point, *points[above:]))


def needed_seconds(curve: Curve, trace_s: float) -> float | None:
    """Estimate how long a recording tells the size: in which few requests go to new blocks.

    Their share falls as in the trace's last doublings, along exp(-(k t)^b): exactly so where all
    blocks are alike, the slower the more their rates differ. None: it does not fall, or far too
    slowly to tell.

    >>> from math import exp
    >>> growth = tuple(round(1e6 * (1 - exp(-(2**k) / 1e6))) for k in range(21))
    >>> curve = Curve(2**20, growth[-1], 4096, 1.0, 2**19, growth[-1] - growth[-2], 0, growth, ())
    >>> round(needed_seconds(curve, 60.0) / 60, 1)  # 6.5 of these make the last half's share 1 %
    6.0
    """
    turns = range(max(1, len(curve.growth) - _DOUBLINGS_FIT), len(curve.growth))
    shares = [(curve.growth[at] - curve.growth[at - 1]) / 2 ** (at - 1) for at in turns]
    known = [
        (at, log(log(1 / share)), 2**at)
        for at, share in zip(turns, shares, strict=True)
        if 0 < share < 1
    ]
    if shares and shares[-1] <= 0:
        return 2 * trace_s
    if len(known) < _DOUBLINGS_FIT // 2:
        return None
    weight = sum(many for _, _, many in known)
    at = sum(turn * many for turn, _, many in known) / weight
    here = sum(value * many for _, value, many in known) / weight
    spread = sum(many * (turn - at) ** 2 for turn, _, many in known)
    power = sum(many * (turn - at) * (value - here) for turn, value, many in known) / spread
    if power <= 0:
        return None
    last = at + (log(log(1 / _NEW_WANTED)) - here) / power
    longer = 2.0**last / curve.requests if last < 64 else float("inf")
    return trace_s * max(2.0, longer) if longer <= _LONGER_MAX else None


def sizes(
    curve: Curve, predicted: Mapping[float, PredictedLine] | None, price_per_gib: float | None
) -> list[Size]:
    """The points of a curve with what they give at least.

    :param predicted: by hit ratio; None: there is no run to learn from.
    """
    gain = gain_of(predicted)
    least = gain(curve.points[0].warm_low)

    def size(point: CurvePoint) -> Size:
        line = None if predicted is None else predicted[point.warm_low]
        price = None if price_per_gib is None else price_per_gib * point.cache_bytes / 1024**3
        more = None if line is None else line.nopm - least
        return Size(
            point.cache_bytes,
            point.warm_low,
            point.warm_high,
            None if line is None else line.nopm,
            None if line is None else line.nopm_low,
            None if line is None else line.nopm_high,
            gain(point.warm_low) / gain(1.0),
            price,
            None if price is None or not more or more <= 0 else price / more,
        )

    return [size(point) for point in curve.points]


def gain_of(predicted: Mapping[float, PredictedLine] | None) -> Gain:
    """Return what a hit ratio gives, of those that were predicted; without a run, hits."""
    return (lambda ratio: ratio) if predicted is None else (lambda ratio: predicted[ratio].nopm)


def wear(cache: Cache, outcome: Outcome, about: TraceFigures) -> Wear:
    """
    :param about: the contents of the trace; it must have times.

    >>> trace = TraceFigures(9_000, 4_000, 0, 4_000 * 8192, 0, 20.0, True, False)
    >>> made = Outcome(9_000, 8_000, 1_000, 0.1, 441, 0, 4_000, 3_591, 3_591 * 8192, 3_591, 0, 0)
    >>> found = wear(Cache("hotset", 64 << 20, 65536, "writeback"), made, trace)
    >>> round((found.fill_bytes + found.flash_bytes_a_day * 20 / 86400) / 1e6, 1)  # measured: 56.6
    58.3
    """
    if about.seconds <= 0:
        raise RequestError("the trace has no times: wear cannot be told", field="trace")
    written = outcome.demotions * cache.block_bytes + outcome.write_hit_bytes
    a_day = written / about.seconds * _DAY_S
    return Wear(
        cache.policy,
        cache.mode,
        outcome.hit_ratio,
        Bytes(round(a_day)),
        Bytes((outcome.promotions - outcome.demotions) * cache.block_bytes),
        a_day / cache.cache_bytes,
        outcome.origin_writes / outcome.writes if outcome.writes else 0.0,
    )
