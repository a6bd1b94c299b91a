"""Which blocks a workload asks for most, learned before the cache is filled by it.

As the published caches do it: the workload runs for a while, on a cold tier over slow storage, its
requests are counted by region, and the hottest ones are cached first.
"""

from __future__ import annotations

from hotset.block.extents import Run
from hotset.hitratio import region_counters
from hotset.hitratio.heat import cacheable_requests, difference

from . import timed
from .file.spec import Spec
from .measure import measure, run_queries
from .site import arms
from .site.arms import Placed, Workloads
from .site.context import Site

_SEED = 20_000
"""Another one than the measured windows': what is learned is the workload, not their very rows."""


def is_wanted(spec: Spec) -> bool:
    """Where the cache holds everything there is nothing to choose."""
    return spec.warmup.order == "heat" and spec.database_bytes > spec.tier.cache


def hottest(site: Site, workloads: Workloads) -> tuple[Run, ...]:
    """Blocks of the origin, those first that the workloads ask for most often."""
    with arms.cold(site, workloads) as placed:
        assert placed.tier is not None
        counters = region_counters.find_counters(placed.tier)
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
    site.report.say(f"{len(gained):,} regions of {after.grid.region} were accessed")
    order = sorted(gained, key=lambda number: (-cacheable_requests(gained[number]), number))
    return tuple(after.grid.run(number, site.tier.block) for number in order)


def _run(site: Site, placed: Placed, workload: str) -> None:
    if workload == "tpch":
        assert site.spec.tpch is not None
        run_queries(site, placed, site.spec.tpch)
        return
    run = timed.find_timed(site.spec)
    assert run is not None
    options = run.options(run.want.most_users, 0, site.spec.warmup.learn_s, _SEED)
    measure(site, placed, run, options)
