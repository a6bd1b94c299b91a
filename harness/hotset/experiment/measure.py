"""One measured window: the workload runs, counters and CPU are sampled, a record comes out."""

from __future__ import annotations

from collections.abc import Sequence

from hotset.bench import window
from hotset.bench.server.sampled import ServerUse, add_use, window_fields
from hotset.bench.server.time_use import sample
from hotset.databases.postgres.tpch import PostgresTpch
from hotset.hitratio.sampler import Sampler, Window
from hotset.load.record import WindowOptions
from hotset.load.search import Limits
from hotset.reports.model.windows import HighestRate, PowerRun, Repeat
from hotset.tpch import queries
from hotset.tpch.record import RunFailed
from hotset.tpch.run import power

from .file.workload_tables import TpchTable
from .site.arms import Placed
from .site.context import Site
from .timed import Timed


def measure(site: Site, placed: Placed, workload: Timed, options: WindowOptions) -> Repeat:
    """Run a workload of many users on a placed database, and measure a window after its ramp-up.

    :raises RunFailed: the server died or stalled; there is no result.
    """
    database = placed.server.database(workload.name)
    with start_sampler(site, placed) as sampler, sample(database) as times:
        result = workload.drive(database, options, site.report)
        start, end = result.span
        sampled = sampler.window(start, end)
    each = sampler.each_second(start, len(result.series))
    result = window.add_time(window.with_reads(result, _reads(each)), times)
    return add_use(result, ServerUse(sampled, tuple(each)), site.tier.block)


def _reads(seconds: Sequence[Window | None]) -> list[float] | None:
    """Sum the reads of all devices in each second; None where a second was not seen."""
    per_second = [second.devices for second in seconds if second is not None]
    if len(per_second) < len(seconds):
        return None
    return [sum(device.read.iops for device in devices) for devices in per_second]


def highest_rate(
    site: Site, placed: Placed, workload: Timed, options: WindowOptions, fastest: Repeat | None
) -> HighestRate:
    """Search for the highest rate of transactions that meets the experiment's limits.

    :param fastest: the window of users without pause, where that has just been measured.
    :raises RunFailed: one of the windows has no result.
    """
    database = placed.server.database(workload.name)

    def drive(options: WindowOptions) -> Repeat:
        return workload.drive(database, options, site.report)

    limits = workload.want.limits
    missed = window.judge_limits(limits, workload.runs(database, site.report).values)
    wanted = Limits(tuple(workload.want.find_rate), missed)
    return window.find_rate(drive, options, wanted, site.report, fastest).record


def run_queries(
    site: Site, placed: Placed, want: TpchTable, numbers: Sequence[int] = queries.ALL
) -> PowerRun:
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
        window = sampler.around(*result.span)
    if result.cause:
        raise RunFailed(f"TPC-H ended early: {result.cause}")
    return result.model_copy(update=window_fields(window))


def start_sampler(site: Site, placed: Placed) -> Sampler:
    """Counts on the machine and below its tier."""
    return Sampler(site.machine, placed.tier, placed.devices)
