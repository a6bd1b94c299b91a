"""How much flash to buy, by a trace and a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.errors import RequestError
from hotset.core.extras import Extra
from hotset.core.operation import Context, Kind, operation
from hotset.core.rights import Right
from hotset.core.units import Bytes

from ..choices import Mode, Policy
from .caches import BlockSize
from .models import SetUp, predict_run
from .traces import TraceFile, on_read

if TYPE_CHECKING:
    from ..advice import CacheAdvice

_SAMPLED_REQUESTS = 2_000_000
"""Sample size: of longer traces a sample of the blocks is enough."""


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


@operation(
    "whatif advise",
    Kind.JOB,
    Right.OPERATE,
    ("Get", "HotsetCacheAdvice"),
    progress=True,
    extras=(Extra.BENCH,),
    result="whatif.advice:CacheAdvice",
)
def advise(request: Advise, context: Context) -> CacheAdvice:
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
    predicted = None
    if request.run is not None:
        ratios = [point.hit_ratio for point in curve.points]
        asked = CacheKind(request.policy, request.mode, int(block))
        predicted = predict_run(request.run, request, ratios, asked)
    sizes = advice.sizes(curve, predicted.lines if predicted else None, request.price)
    best = advice.recommend(sizes, request.share)
    blocks = -(-best.cache_bytes // int(block))
    cache = caches.Cache(request.policy, blocks * int(block), int(block), request.mode)
    with context.report.task(f"simulating {cache.policy} with {Bytes(cache.cache_bytes)}"):
        outcome = caches.simulate(local, request.trace, cache, (), on_read(context))
    worn = advice.wear(cache, outcome, about)
    doubts = predicted.doubts if predicted else ()
    return advice.CacheAdvice(
        request.trace, request.run, request.share, best, worn, tuple(sizes), doubts
    )
