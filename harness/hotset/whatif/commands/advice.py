"""How much flash to buy, by a trace and a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.errors import RequestError
from hotset.core.extras import Extra
from hotset.core.operation import Context, Kind, Recorded, operation, write
from hotset.core.rights import Right
from hotset.core.units import Bytes
from hotset.core.words import percent, text_table

from ..choices import Mode, Policy
from .caches import BlockSize
from .models import SetUp, predict_run
from .traces import TraceFile, on_read

if TYPE_CHECKING:
    from rich.console import Console

    from ..advice import CacheAdvice

_SAMPLED_REQUESTS = 2_000_000
"""Of longer traces a sample of the blocks is enough."""


class Advise(SetUp):
    trace: TraceFile
    run: Annotated[
        fields.Word | None,
        Field(
            description="Judge sizes by their NOPM, learned from this run (id or 'last'). Without"
            " it they are judged by hits alone."
        ),
    ] = None
    share: Annotated[
        float,
        Field(
            gt=0,
            le=1,
            description="The share to reach of the NOPM with everything cached.",
        ),
    ] = 0.95
    policy: Annotated[
        Policy,
        Field(description="The policy for which wear is simulated and NOPM are predicted."),
    ] = "hotset"
    mode: Annotated[Mode, Field(description="How writes that hit are handled.")] = "writeback"
    block: BlockSize = "64KiB"
    price: Annotated[
        float | None, Field(ge=0, le=1e9, description="Price of a GiB of flash, in any currency.")
    ] = None


@dataclass(frozen=True, slots=True)
class Advice(Recorded["CacheAdvice"]):
    """The smallest cache that gives nearly all there is to gain."""

    rows = "sizes"

    @classmethod
    def record(cls) -> type[CacheAdvice]:
        from ..advice import CacheAdvice

        return CacheAdvice

    def show(self, console: Console) -> None:
        columns, rows = ["", "cache", "hit ratio"], []
        columns += ["NOPM", "from", "to"] if self.found.run else []
        columns.append("of the attainable")
        priced = self.found.recommended.price is not None
        columns += ["price", *(["a NOPM more"] if self.found.run else [])] if priced else []
        for size in self.found.sizes:
            mark = "->" if size == self.found.recommended else ""
            row = [mark, str(Bytes(size.cache_bytes)), percent(size.hit_ratio)]
            nopms = (size.nopm, size.nopm_low, size.nopm_high)
            row += [f"{nopm:,.0f}" for nopm in nopms if nopm is not None]
            row.append(percent(size.share))
            row += [f"{size.price:,.2f}"] if size.price is not None else []
            if priced and self.found.run:
                row.append("" if size.price_per_nopm is None else f"{size.price_per_nopm:,.4f}")
            rows.append(row)
        write(console, text_table(columns, rows))
        write(console, "\n" + "\n\n".join(self._notes()))

    def _notes(self) -> list[str]:
        from .. import doubt

        found = self.found
        best, worn = found.recommended, found.wear
        by = f"the NOPM of run {found.run}'s set-up" if found.run else "hits"
        return [
            f"{Bytes(best.cache_bytes)} is the smallest of these sizes that gives"
            f" {percent(found.asked_share, 0)} of what flash for everything in the trace would"
            f" give, by {by}. More gains at most {percent(1 - best.share)}.",
            f"Wear, simulated with {worn.policy} and {worn.mode}: {Bytes(worn.flash_bytes_a_day)}"
            f" a day, {worn.drive_writes_a_day:.2f} drive writes a day if every day is as busy as"
            f" the trace, after {Bytes(worn.fill_bytes)} to fill it; the origin gets"
            f" {percent(worn.origin_writes_share, 0)} of the writes. Its hit ratio, starting empty:"
            f" {percent(worn.hit_ratio)}.",
            "Hit ratios in the table are those of LRU, starting empty. The first access to a block"
            " misses in any cache, so a short trace makes all sizes look worse than they are.",
            *([doubt.in_words(found.doubts)] if found.run else []),
        ]


@operation(
    "whatif advise",
    Kind.JOB,
    Right.OPERATE,
    ("Get", "HotsetCacheAdvice"),
    progress=True,
    extras=(Extra.BENCH,),
)
def advise(request: Advise, context: Context) -> Advice:
    """Find the smallest cache that gives nearly all of the attainable NOPM, its price and wear."""
    from hotset.core.machines.local import Local

    from .. import advice, caches
    from ..traffic import CacheKind

    local, block = Local(), Bytes.parse(request.block)
    with context.report.task(f"reading {request.trace}"):
        about = caches.trace_figures(local, request.trace)
        if not about.timed:
            raise RequestError(
                "the trace has no times, so wear cannot be calculated", field="trace"
            )
        share = min(1.0, _SAMPLED_REQUESTS / max(about.requests, 1))
        curve = caches.curve(local, request.trace, block, max(share, 0.001), (), on_read(context))
    found = None
    if request.run is not None:
        ratios = [point.hit_ratio for point in curve.points]
        asked = CacheKind(request.policy, request.mode, int(block))
        found = predict_run(request.run, request, ratios, asked).found
    sizes = advice.sizes(curve, found.lines if found else None, request.price)
    best = advice.recommend(sizes, request.share)
    blocks = -(-best.cache_bytes // int(block))
    cache = caches.Cache(request.policy, blocks * int(block), int(block), request.mode)
    with context.report.task(f"simulating {cache.policy} with {Bytes(cache.cache_bytes)}"):
        outcome = caches.simulate(local, request.trace, cache, (), on_read(context))
    worn = advice.wear(cache, outcome, about)
    doubts = found.doubts if found else ()
    return Advice(
        advice.CacheAdvice(
            request.trace, request.run, request.share, best, worn, tuple(sizes), doubts
        )
    )
