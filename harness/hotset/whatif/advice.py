"""How large a cache is to be: the smallest that comes near to what the largest would give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotset.core.errors import RequestError
from hotset.core.record import Versioned
from hotset.core.units import Bytes
from hotset.core.words import percent, text_table

from .caches import Cache, Curve, Outcome, TraceFigures
from .doubt import Doubt, in_words
from .prediction import PredictedLine

if TYPE_CHECKING:
    pass

_DAY_S = 24 * 3600


@dataclass(frozen=True, slots=True)
class Size:
    """A cache size, what it would hit and give.

    :ivar nopm_low: with ``nopm_high``, the range of the prediction.
    :ivar share: of the NOPM (without a run: of the hits) that a cache for all of it gives.
    :ivar price_per_nopm: of the flash, by what it gives over the smallest size asked about.
    """

    cache_bytes: int
    hit_ratio: float
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
    :ivar doubts: of the predictions; none without a run.
    """

    csv_rows = "sizes"

    trace: str
    run: str | None
    asked_share: float
    recommended: Size
    wear: Wear
    sizes: tuple[Size, ...]
    doubts: tuple[Doubt, ...]

    def to_text(self) -> str:
        columns, rows = ["", "cache", "hit ratio"], []
        columns += ["NOPM", "from", "to"] if self.run else []
        columns.append("of the attainable")
        priced = self.recommended.price is not None
        columns += ["price", *(["a NOPM more"] if self.run else [])] if priced else []
        for size in self.sizes:
            mark = "->" if size == self.recommended else ""
            row = [mark, str(Bytes(size.cache_bytes)), percent(size.hit_ratio)]
            nopms = (size.nopm, size.nopm_low, size.nopm_high)
            row += [f"{nopm:,.0f}" for nopm in nopms if nopm is not None]
            row.append(percent(size.share))
            row += [f"{size.price:,.2f}"] if size.price is not None else []
            if priced and self.run:
                row.append("" if size.price_per_nopm is None else f"{size.price_per_nopm:,.4f}")
            rows.append(row)
        return "\n\n".join((text_table(columns, rows), *self._notes()))

    def _notes(self) -> list[str]:
        best, worn = self.recommended, self.wear
        by = f"the NOPM of run {self.run}'s set-up" if self.run else "hits"
        return [
            f"{Bytes(best.cache_bytes)} is the smallest of these sizes that gives"
            f" {percent(self.asked_share, 0)} of what flash for everything in the trace would"
            f" give, by {by}. More gains at most {percent(1 - best.share)}.",
            f"Wear, simulated with {worn.policy} and {worn.mode}: {Bytes(worn.flash_bytes_a_day)}"
            f" a day, {worn.drive_writes_a_day:.2f} drive writes a day if every day is as busy as"
            f" the trace, after {Bytes(worn.fill_bytes)} to fill it; the origin gets"
            f" {percent(worn.origin_writes_share, 0)} of the writes. Its hit ratio, starting empty:"
            f" {percent(worn.hit_ratio)}.",
            "Hit ratios in the table are those of LRU, starting empty. The first access to a block"
            " misses in any cache, so a short trace makes all sizes look worse than they are.",
            *([in_words(self.doubts)] if self.run else []),
        ]


def sizes(
    curve: Curve, predicted: Sequence[PredictedLine] | None, price_per_gib: float | None
) -> list[Size]:
    """The points of a curve with what they give.

    :param predicted: at each point; None: there is no run to learn from.
    :raises RequestError: the trace is empty.
    """
    lines: Sequence[PredictedLine | None] = predicted or [None for _ in curve.points]
    gained = [line.nopm for line in predicted] if predicted else [p.hit_ratio for p in curve.points]
    if not gained or gained[-1] <= 0:
        raise RequestError("nothing of the trace hits any cache: record for longer", field="trace")

    def size(at: int) -> Size:
        point, line = curve.points[at], lines[at]
        price = None if price_per_gib is None else price_per_gib * point.cache_bytes / 1024**3
        more = None if line is None else gained[at] - gained[0]
        return Size(
            point.cache_bytes,
            point.hit_ratio,
            None if line is None else line.nopm,
            None if line is None else line.nopm_low,
            None if line is None else line.nopm_high,
            gained[at] / gained[-1],
            price,
            None if price is None or not more or more <= 0 else price / more,
        )

    return [size(at) for at in range(len(curve.points))]


def recommend(sizes: Sequence[Size], share: float) -> Size:
    """The smallest size that gives a share of the attainable.

    >>> shares = ((1, 0.5), (2, 0.96), (3, 1))
    >>> each = [Size(n, 0.1, None, None, None, share, None, None) for n, share in shares]
    >>> recommend(each, 0.95).cache_bytes
    2
    """
    return next(size for size in sizes if size.share >= share)


def wear(cache: Cache, outcome: Outcome, about: TraceFigures) -> Wear:
    """
    :param about: the contents of the trace; it must have times.

    >>> trace = TraceFigures(9_000, 4_000, 0, 4_000 * 8192, 0, 20.0, timed=True)
    >>> made = Outcome(9_000, 8_000, 1_000, 0.1, 441, 0, 4_000, 3_591, 3_591, 0, 0)
    >>> found = wear(Cache("hotset", 64 << 20, 65536, "writeback"), made, trace)
    >>> round((found.fill_bytes + found.flash_bytes_a_day * 20 / 86400) / 1e6, 1)  # measured: 56.6
    58.3
    """
    if about.seconds <= 0:
        raise RequestError("the trace has no times: wear cannot be told", field="trace")
    written = outcome.write_hits * about.written_bytes / max(outcome.writes, 1)
    a_day = (outcome.demotions * cache.block_bytes + written) / about.seconds * _DAY_S
    return Wear(
        cache.policy,
        cache.mode,
        outcome.hit_ratio,
        Bytes(round(a_day)),
        Bytes((outcome.promotions - outcome.demotions) * cache.block_bytes),
        a_day / cache.cache_bytes,
        outcome.origin_writes / outcome.writes if outcome.writes else 0.0,
    )
