"""Curves and simulations of caches on a trace."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.errors import RequestError
from hotset.core.operation import (
    Cli,
    Context,
    Kind,
    OnThisComputer,
    Recorded,
    Request,
    operation,
    write,
)
from hotset.core.record import extended
from hotset.core.rights import Right
from hotset.core.units import Bytes
from hotset.core.words import percent, text_table

from ..choices import Mode, Policy
from .traces import TraceFile, on_read

if TYPE_CHECKING:
    from rich.console import Console

    from ..caches import HitCurve, Simulations
    from ..workers import Cluster, Cores

_BAR = 30
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


@dataclass(frozen=True, slots=True)
class CurveShown(Recorded["HitCurve"]):
    """Hit ratios by the size of a cache."""

    rows = "points"

    @classmethod
    def record(cls) -> type[HitCurve]:
        from ..caches import HitCurve

        return HitCurve

    def show(self, console: Console) -> None:
        found = self.found
        touched = Bytes(found.blocks * found.block_bytes)
        sampled = found.sampled_share < 1
        columns = ["cache", "of what is touched", "hit ratio", *(["from", "to"] if sampled else [])]
        rows = []
        for point in found.points:
            share = point.cache_bytes / touched if touched else 0.0
            row = [str(Bytes(point.cache_bytes)), percent(share), percent(point.hit_ratio, 2)]
            if sampled:
                row += [percent(point.hit_ratio_low, 2), percent(point.hit_ratio_high, 2)]
            rows.append([*row, ("█" * round(point.hit_ratio * _BAR)).ljust(_BAR)])
        write(console, text_table([*columns, ""], rows))
        counted = f"{percent(found.sampled_share, 2)} of its" if sampled else "all"
        write(
            console,
            f"\n{found.trace}: {found.requests:,} requests to {touched} in blocks of"
            f" {Bytes(found.block_bytes)}, {counted} blocks counted. The ratios are those of LRU,"
            " starting empty, for reads and writes alike; the first access to a block misses in"
            " any cache."
            + (
                " The exact ratio is between From and To with a probability of 95 %."
                if sampled
                else ""
            ),
        )


@operation("whatif mrc", Kind.JOB, Right.OPERATE, ("Get", "HotsetHitCurve"), progress=True)
def mrc(request: Mrc, context: Context) -> CurveShown:
    """Show the hit ratio of an LRU cache of each size, in one pass over a trace."""
    from hotset.core.machines.local import Local

    from .. import caches

    sizes = sorted(Bytes.parse(one) for one in request.cache or ())
    block = Bytes.parse(request.block)
    with context.report.task(f"reading {request.trace}"):
        found = caches.curve(Local(), request.trace, block, request.sample, sizes, on_read(context))
    return CurveShown(extended(caches.HitCurve, found, trace=request.trace))


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
        OnThisComputer,
    ] = None


_BESIDE_THE_KERNELS = {
    "smq": "the kernel's, for which moving data takes time, hit up to 17 points more in replays"
    " (scans that come back), and 0 to 9 with TPC-C",
    "bcache": "the kernel's hit up to 2.4 points more or 2 fewer in replays",
}
"""How far off these figures are known to be (reports/published/20261127-agreement)."""


@dataclass(frozen=True, slots=True)
class Simulated(Recorded["Simulations"]):
    """What caches made of a trace."""

    rows = "caches"

    @classmethod
    def record(cls) -> type[Simulations]:
        from ..caches import Simulations

        return Simulations

    def show(self, console: Console) -> None:
        columns = ["policy", "cache", "block", "mode", "hit ratio", "bypassed"]
        columns += ["writes absorbed", "origin writes", "flash writes"]
        rows = [
            (
                cache.policy,
                str(Bytes(cache.cache_bytes)),
                str(Bytes(cache.block_bytes)),
                cache.mode,
                percent(cache.hit_ratio, 2),
                percent(cache.bypassed / max(cache.requests, 1), 2),
                percent(cache.absorbed / max(cache.writes, 1), 2),
                f"{cache.origin_writes:,}",
                f"{cache.flash_writes:,}",
            )
            for cache in self.found.caches
        ]
        write(console, text_table(columns, rows))
        write(
            console,
            f"\n{self.found.trace}, simulated, starting empty; requests are split at block"
            " boundaries, and moving data takes no time. Origin and flash writes: requests and"
            " blocks.",
        )
        policies = {cache.policy for cache in self.found.caches}
        for policy, said in _BESIDE_THE_KERNELS.items():
            if policy in policies:
                write(console, f"{policy}: {said}")


@operation(
    "whatif simulate", Kind.JOB, Right.OPERATE, ("Invoke", "HotsetSimulation"), progress=True
)
def simulate(request: Simulate, context: Context) -> Simulated:
    """Simulate caches on a trace: every policy with every size, block and mode given.

    Several run at once. To resume an interrupted simulation, give the same command again.
    """
    from hotset.core.progress import Measured

    from .. import caches

    every = product(
        request.policy or ("hotset",),
        (Bytes.parse(one) for one in request.cache),
        [Bytes.parse(one) for one in request.block or ("64KiB",)],
        request.mode or ("writeback",),
    )
    wanted = [caches.Cache(one, int(size), int(block), mode) for one, size, block, mode in every]
    wanted = list(dict.fromkeys(wanted))
    caches.require_whole_blocks(wanted)
    more = [f"--sequential-cutoff={int(Bytes.parse(request.sequential_cutoff))}"]
    begun = context.report.seconds

    def on_done(cache: caches.Cache, outcome: caches.Outcome, left: int) -> None:
        done, seconds = len(wanted) - left, context.report.seconds - begun
        told = (
            f"{cache.policy}, {Bytes(cache.cache_bytes)}, {Bytes(cache.block_bytes)} blocks,"
            f" {cache.mode}: {percent(outcome.hit_ratio, 2)}"
        )
        context.report.say(told)
        measured = Measured.by_rate(done, len(wanted), "caches", seconds)
        context.report.figure(
            f"{seconds:.1f} s, {done} of {len(wanted)} caches, ETA {measured.eta_s or 0:.0f} s",
            measured,
        )

    with _workers(request) as workers:
        told = f"simulating {len(wanted)} caches, {workers.at_a_time} at a time"
        with context.report.task(told):
            found = caches.sweep(workers, request.trace, wanted, more, on_done)
    return Simulated(caches.Simulations.of(request.trace, found))


def _workers(request: Simulate) -> Cores | Cluster:
    from hotset.core.machines.local import Local

    from ..workers import Cluster, Cores

    if request.scheduler is None:
        return Cores(Local(), request.workers or len(os.sched_getaffinity(0)))
    if request.workers is not None:
        raise RequestError("on a cluster, its workers decide how many run at once", field="workers")
    return Cluster(request.scheduler, request.trace)
