"""Which blocks a workload asks for most, learned before the cache is filled by it.

As the published cards do it: the workload runs for a while, on a cold tier over slow storage, its
requests are counted by region, and the hottest ones are cached first.
"""

from __future__ import annotations

from hotset.cachelayer import counting
from hotset.cachelayer.extents import Run
from hotset.cachelayer.heat import difference, warmth
from hotset.harness import arms
from hotset.harness.arms import Placed, Workloads
from hotset.harness.measure import measure, run_queries
from hotset.harness.site import Site
from hotset.harness.spec import Spec

_SEED = 20_000
"""Another one than the measured windows': what is learned is the workload, not their very rows."""


def wanted(spec: Spec) -> bool:
    """Where the cache holds everything there is nothing to choose."""
    return spec.warmup.order == "heat" and spec.database_bytes > spec.tier.cache


def hottest(site: Site, workloads: Workloads) -> tuple[Run, ...]:
    """Blocks of the origin, those first that the workloads ask for most often."""
    with arms.cold(site, workloads) as placed:
        assert placed.tier is not None
        counters = counting.of_tier(placed.tier)
        counters.start()
        try:
            before = counters.read()
            with site.report.task("learning which blocks are hot"):
                for workload in workloads:
                    _run(site, placed, workload)
            after = counters.read()
        finally:
            counters.stop()
    gained = difference(before.tallies, after.tallies)
    site.report.say(f"{len(gained):,} regions of {after.grid.region} were asked for")
    order = sorted(gained, key=lambda number: (-warmth(gained[number]), number))
    return tuple(after.grid.run(number, site.tier.block) for number in order)


def _run(site: Site, placed: Placed, workload: str) -> None:
    if workload == "tpcc":
        measure(site, placed, 0, site.spec.warmup.learn_s, _SEED)
    else:
        assert site.spec.tpch is not None
        run_queries(site, placed, site.spec.tpch)
