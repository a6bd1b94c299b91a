"""Curves and simulations of caches on a trace."""

from __future__ import annotations

import os
from itertools import product
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.errors import RequestError
from hotset.core.extras import Extra
from hotset.core.machines.local import Local
from hotset.core.operation import (
    Cli,
    Context,
    Kind,
    OnThisComputer,
    Request,
    operation,
)
from hotset.core.record import extend
from hotset.core.rights import Right
from hotset.core.units import Bytes
from hotset.core.words import percent

from ..choices import Mode, Policy
from .traces import TraceFile, on_read

if TYPE_CHECKING:
    from ..caches import HitCurve, Simulations
    from ..workers import Cluster, Cores

Sizes = Annotated[list[fields.Size], Field(max_length=200)]
BlockSize = Annotated[
    fields.Size, Field(description="Size of a cache block. bcache: the database's page.")
]


class Mrc(Request):
    trace: TraceFile
    block: BlockSize = "64KiB"
    sample: Annotated[
        float,
        Field(
            ge=0.0001,
            le=1,
            description="Count only this share of the blocks (SHARDS) and show how far the curve"
            " may be off: 0.01 is a hundred times as fast.",
        ),
    ] = 1.0
    cache: Annotated[Sizes | None, Field(description="Show this cache size. Repeatable.")] = None


@operation(
    "whatif mrc",
    Kind.JOB,
    Right.OPERATE,
    ("Get", "HotsetHitCurve"),
    progress=True,
    result="whatif.caches:HitCurve",
)
def mrc(request: Mrc, context: Context) -> HitCurve:
    """Show the hit ratio of an LRU cache of each size, in one pass over a trace."""
    from .. import caches

    sizes = sorted(Bytes.parse(text) for text in request.cache or ())
    block = Bytes.parse(request.block)
    with context.report.task(f"reading {request.trace}"):
        curve = caches.curve(Local(), request.trace, block, request.sample, sizes, on_read(context))
    return extend(caches.HitCurve, curve, trace=request.trace)


class Simulate(Request):
    trace: TraceFile
    cache: Annotated[Sizes, Field(min_length=1, description="A cache size. Repeatable.")]
    policy: Annotated[
        list[Policy] | None,
        Field(
            max_length=20,
            description="What decides which blocks are cached; bound: the best possible choice,"
            " which knows the future; rates: one that knows how often each block is asked for."
            " Repeatable; hotset if left out.",
        ),
    ] = None
    block: Annotated[
        Sizes | None,
        Field(description="Size of a cache block. Repeatable; 64 KiB if left out."),
    ] = None
    mode: Annotated[
        list[Mode] | None,
        Field(
            max_length=4,
            description="How writes that hit are handled. Repeatable; writeback if left out.",
        ),
    ] = None
    sequential_cutoff: Annotated[
        fields.Size,
        Field(description="bcache: longer sequential requests bypass the cache. 0: none do."),
    ] = "4MiB"
    workers: Annotated[
        int | None,
        Field(
            ge=1, le=1024, description="How many simulations run at once; by default one per core."
        ),
    ] = None
    scheduler: Annotated[
        fields.Text | None,
        Field(
            description="Simulate on the workers of this Dask cluster. Each needs a built hotset,"
            " and the trace at the same path."
        ),
        Cli(metavar="tcp://HOST:8786"),
        Extra.CLUSTER,
        OnThisComputer,
    ] = None


@operation(
    "whatif simulate",
    Kind.JOB,
    Right.OPERATE,
    ("Invoke", "HotsetSimulation"),
    progress=True,
    result="whatif.caches:Simulations",
)
def simulate(request: Simulate, context: Context) -> Simulations:
    """Simulate caches on a trace: every policy with every size, block and mode given.

    Several run at once. To resume an interrupted simulation, give the same command again.
    """
    from hotset.core.progress import Measured

    from .. import caches

    every = product(
        request.policy or ("hotset",),
        (Bytes.parse(text) for text in request.cache),
        [Bytes.parse(text) for text in request.block or ("64KiB",)],
        request.mode or ("writeback",),
    )
    wanted = [
        caches.Cache(policy, int(size), int(block), mode) for policy, size, block, mode in every
    ]
    wanted = list(dict.fromkeys(wanted))
    caches.require_whole_blocks(wanted)
    more = [f"--sequential-cutoff={int(Bytes.parse(request.sequential_cutoff))}"]
    begun = context.report.seconds

    def on_done(cache: caches.Cache, outcome: caches.Outcome, left: int) -> None:
        done, seconds = len(wanted) - left, context.report.seconds - begun
        text = (
            f"{cache.policy}, {Bytes(cache.cache_bytes)}, {Bytes(cache.block_bytes)} blocks,"
            f" {cache.mode}: {percent(outcome.hit_ratio, 2)}"
        )
        context.report.say(text)
        measured = Measured.by_rate(done, len(wanted), "caches", seconds)
        context.report.figure(
            f"{seconds:.1f} s, {done} of {len(wanted)} caches, ETA {measured.eta_s or 0:.0f} s",
            measured,
        )

    with _workers(request) as workers:
        text = f"simulating {len(wanted)} caches, {workers.at_a_time} at a time"
        with context.report.task(text):
            outcomes = caches.sweep(workers, request.trace, wanted, more, on_done)
    goes_by_time = any(cache.policy in caches.BY_TIME for cache in wanted)
    figures = caches.trace_figures(Local(), request.trace) if goes_by_time else None
    return caches.Simulations.from_outcomes(request.trace, outcomes, figures)


def _workers(request: Simulate) -> Cores | Cluster:

    from ..workers import Cluster, Cores

    if request.scheduler is None:
        return Cores(Local(), request.workers or len(os.sched_getaffinity(0)))
    if request.workers is not None:
        raise RequestError("on a cluster, its workers decide how many run at once", field="workers")
    return Cluster(request.scheduler, request.trace)
