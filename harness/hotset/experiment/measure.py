"""One measured window: the workload runs, counters and CPU are sampled, a record comes out."""

from __future__ import annotations

from collections.abc import Sequence

from hotset.bench import window
from hotset.bench.kept.records import Measured
from hotset.bench.server.time_use import TimeSampler, readings
from hotset.databases.postgres.tpch import PostgresTpch
from hotset.hitratio.sampler import Sampler, Window
from hotset.load.record import WindowOptions, WindowResult
from hotset.load.search import FoundRate
from hotset.tpch import queries
from hotset.tpch.record import PowerResult, RunFailed
from hotset.tpch.run import power

from .file.workload_tables import TpchTable
from .site.arms import Placed
from .site.context import Site
from .timed import Timed


def measure(site: Site, placed: Placed, workload: Timed, options: WindowOptions) -> Measured:
    """Run a workload of many users on a placed database, and measure a window after its ramp-up.

    :raises RunFailed: the server died or stalled; there is no result.
    """
    database = placed.server.database(workload.name)
    with start_sampler(site, placed) as sampler, TimeSampler(readings(database)) as times:
        result = workload.drive(database, options, site.report)
        start, end, seconds = result.window_start, result.window_end, len(result.series)
        sampled = sampler.window(start, end)
    each = sampler.each_second(start, seconds)
    return Measured(
        window.with_reads(result, _reads(each)),
        sampled,
        each,
        times.window(start, end),
        times.each_second(start, seconds),
        times.missing,
        times.io_window(start, end),
        times.io_missing,
        times.io_window(start - options.rampup_s, start),
    )


def _reads(seconds: Sequence[Window | None]) -> list[float] | None:
    """Of all devices, in each second; None where one was not seen."""
    found = [second.devices for second in seconds if second is not None]
    if len(found) < len(seconds):
        return None
    return [sum(device.read.iops for device in devices) for devices in found]


def highest_rate(
    site: Site,
    placed: Placed,
    workload: Timed,
    options: WindowOptions,
    fastest: WindowResult | None,
) -> FoundRate[WindowResult]:
    """Search for the highest rate of transactions that meets the experiment's limits.

    :param fastest: what the users got done without pause, where that has just been measured.
    :raises RunFailed: one of the windows has no result.
    """
    database = placed.server.database(workload.name)

    def one(options: WindowOptions) -> WindowResult:
        return workload.drive(database, options, site.report)

    judge = window.missed_limits(workload.want.limits, workload.values)
    return window.find_rate(one, options, judge, site.report, fastest)


def run_queries(
    site: Site, placed: Placed, want: TpchTable, numbers: Sequence[int] = queries.ALL
) -> tuple[PowerResult, Window]:
    """Run the TPC-H queries on a placed database, without the refresh functions: every arm and
    repeat then asks the same of the same rows, and their answers can be compared.

    :raises RunFailed: the server died; there is no result.
    """
    database = PostgresTpch(placed.server.database("tpch"))
    with start_sampler(site, placed) as sampler:
        result = power.run(
            database,
            want.scale,
            seed=want.seed,
            queries=numbers,
            timeout_s=want.timeout_s,
            refresh=False,
            observe=site.report.on_step,
        )
        window = sampler.around(result.started, result.ended)
    if result.cause:
        raise RunFailed(f"TPC-H ended early: {result.cause}")
    return result, window


def start_sampler(site: Site, placed: Placed) -> Sampler:
    """Counts on the machine and below its tier."""
    return Sampler(site.machine, placed.tier, placed.devices)
