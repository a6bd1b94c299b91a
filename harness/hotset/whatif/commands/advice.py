"""How much flash to buy, by a trace and a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.errors import RequestError
from hotset.core.extras import Extra
from hotset.core.machines.local import Local
from hotset.core.operation import Context, Kind, operation
from hotset.core.rights import Right
from hotset.core.units import Bytes

from ..choices import Mode, Policy
from .caches import BlockSize
from .models import SetUp, predict_run
from .traces import TraceFile, on_read

if TYPE_CHECKING:
    from ..advice import CacheAdvice
    from ..caches import Curve
    from ..doubt import Doubt
    from ..prediction import PredictedLine

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
    """Find the smallest cache that gives nearly all of the attainable NOPM, its price and wear.

    A recording that is too short to tell gets bounds of that size, and how long one is needed.
    """
    from .. import advice, caches

    local, block = Local(), Bytes.parse(request.block)
    with context.report.task(f"reading {request.trace}"):
        about = caches.trace_figures(local, request.trace)
        if not about.timed:
            raise RequestError("the trace has no times, which wear takes", field="trace")
        share = min(1.0, _SAMPLED_REQUESTS / max(about.requests, 1))
        curve = caches.curve(local, request.trace, block, max(share, 0.001), (), on_read(context))
    predicted, doubts = _predict(request, curve)
    bounds = advice.bound(curve, advice.gain_of(predicted), request.share)
    if bounds.most is not None and bounds.close:
        curve = advice.with_size(curve, bounds.most)
        predicted, doubts = _predict(request, curve)
    sizes = advice.sizes(curve, predicted, request.price)
    best = next((size for size in sizes if bounds.close and size.cache_bytes == bounds.most), None)
    worn = None
    if best is not None:
        cache = caches.Cache(request.policy, best.cache_bytes, int(block), request.mode)
        with context.report.task(f"simulating {cache.policy} with {Bytes(cache.cache_bytes)}"):
            outcome = caches.simulate(local, request.trace, cache, (), on_read(context))
        worn = advice.wear(cache, outcome, about)
    return advice.CacheAdvice(
        trace=request.trace,
        run=request.run,
        asked_share=request.share,
        recommended=best,
        least_bytes=bounds.least,
        most_bytes=bounds.most,
        new_share=curve.new_share,
        gone_share=curve.gone_share,
        needed_s=None if best else advice.needed_seconds(curve, about.seconds),
        wear=worn,
        sizes=tuple(sizes),
        doubts=doubts,
        warnings=(
            *advice.beside_short(best, about.seconds),
            *caches.beside_whole_seconds({request.policy} if worn else (), about),
        ),
    )


def _predict(
    request: Advise, curve: Curve
) -> tuple[dict[float, PredictedLine] | None, tuple[Doubt, ...]]:
    """Predict by the run at each hit ratio of a curve; None without a run."""
    from .. import advice
    from ..traffic import CacheKind

    ratios = advice.hit_ratios(curve)
    if request.run is None:
        return None, ()
    cache = CacheKind(request.policy, request.mode, int(Bytes.parse(request.block)))
    run = predict_run(request.run, request, ratios, cache)
    return dict(zip(ratios, run.lines, strict=True)), run.doubts
