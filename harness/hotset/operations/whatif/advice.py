"""How much flash to buy, by a trace and a run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from hotset.core.errors import RequestError
from hotset.core.units import Bytes
from hotset.reports.model.schema import SCHEMA_VERSION
from hotset.reports.model.words import percent
from hotset.reports.render.plain import csv_text, text_table
from hotset.whatif.choices import Mode, Policy

from ..base import fields, records
from ..base.context import Context
from ..base.registry import Kind, operation
from ..base.result import Result, write
from ..base.rights import Right
from .caches import BlockSize
from .models import SetUp, predict_run
from .traces import TraceFile, on_read

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from hotset.whatif.advice import Size, Wear
    from hotset.whatif.doubt import Doubt

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
class Advice(Result):
    """:ivar run: whose NOPM they are; None: by hits alone."""

    trace: str
    run: str | None
    asked_share: float
    recommended: Size
    wear: Wear
    sizes: list[Size]
    doubts: tuple[Doubt, ...]

    @classmethod
    def record(cls) -> type[BaseModel]:
        from hotset.whatif.advice import Size, Wear
        from hotset.whatif.doubt import Doubt

        return records.record_of(
            "CacheAdvice",
            trace=str,
            run=str | None,
            asked_share=float,
            recommended=records.part("AdvisedSize", Size),
            wear=records.part("FlashWear", Wear),
            sizes=records.several("AdvisedSize", Size),
            doubts=records.several("PredictionDoubt", Doubt),
        )

    def document(self) -> dict[str, Any]:
        return {"schema_version": SCHEMA_VERSION, **asdict(self)}

    def show(self, console: Console) -> None:
        columns, rows = ["", "cache", "hit ratio"], []
        columns += ["NOPM", "from", "to"] if self.run else []
        columns.append("of the attainable")
        priced = self.recommended.price is not None
        columns += ["price", *(["a NOPM more"] if self.run else [])] if priced else []
        for one in self.sizes:
            mark = "->" if one == self.recommended else ""
            row = [mark, str(Bytes(one.cache_bytes)), percent(one.hit_ratio)]
            nopms = (one.nopm, one.nopm_low, one.nopm_high)
            row += [f"{nopm:,.0f}" for nopm in nopms if nopm is not None]
            row.append(percent(one.share))
            row += [f"{one.price:,.2f}"] if one.price is not None else []
            if priced and self.run:
                row.append("" if one.price_per_nopm is None else f"{one.price_per_nopm:,.4f}")
            rows.append(row)
        write(console, text_table(columns, rows))
        write(console, "\n" + "\n\n".join(self._notes()))

    def _notes(self) -> list[str]:
        from hotset.whatif import doubt

        best, worn = self.recommended, self.wear
        by = f"the NOPM of run {self.run}'s set-up" if self.run else "hits"
        return [
            f"{Bytes(best.cache_bytes)} is the smallest of these sizes that gives"
            f" {percent(self.asked_share, 0)} of what flash for everything in the trace would give,"
            f" by {by}. More gains at most {percent(1 - best.share)}.",
            f"Wear, simulated with {worn.policy} and {worn.mode}: {Bytes(worn.flash_bytes_a_day)}"
            f" a day, {worn.drive_writes_a_day:.2f} drive writes a day if every day is as busy as"
            f" the trace; the origin gets {percent(worn.origin_writes_share, 0)} of the writes. Its"
            f" hit ratio, starting empty: {percent(worn.hit_ratio)}.",
            "Hit ratios in the table are those of LRU, starting empty. The first access to a block"
            " misses in any cache, so a short trace makes all sizes look worse than they are.",
            *([doubt.in_words(self.doubts)] if self.run else []),
        ]

    def csv(self) -> str:
        rows = [asdict(one) for one in self.sizes]
        return csv_text(list(rows[0]), [list(one.values()) for one in rows])


@operation("whatif advise", Kind.JOB, Right.OPERATE, ("Get", "HotsetCacheAdvice"), progress=True)
def advise(request: Advise, context: Context) -> Advice:
    """Find the smallest cache that gives nearly all of the attainable NOPM, its price and wear."""
    from hotset.core.machines.local import Local
    from hotset.whatif import advice, caches
    from hotset.whatif.traffic import CacheKind

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
        ratios = [one.hit_ratio for one in curve.points]
        asked = CacheKind(request.policy, request.mode, int(block))
        found = predict_run(request.run, request, ratios, asked).found
    sizes = advice.sizes(curve, found.lines if found else None, request.price)
    best = advice.recommend(sizes, request.share)
    blocks = -(-best.cache_bytes // int(block))
    cache = caches.Cache(request.policy, blocks * int(block), int(block), request.mode)
    with context.report.task(f"simulating {cache.policy} with {Bytes(cache.cache_bytes)}"):
        outcome = caches.simulate(local, request.trace, cache, (), on_read(context))
    worn = advice.wear(cache, outcome, about.seconds)
    doubts = found.doubts if found else ()
    return Advice(request.trace, request.run, request.share, best, worn, sizes, doubts)
