"""One measured window: the workload runs, counters and CPU are sampled, a record comes out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hotset.cachelayer.hits import Sampler, Window
from hotset.cachelayer.units import Bytes
from hotset.harness.arms import Placed
from hotset.harness.engines.postgres_tpch import PostgresTpch
from hotset.harness.site import Site
from hotset.harness.spec import TpchTable
from hotset.reports import document
from hotset.tpcc import driver
from hotset.tpcc.record import KindResult, Latency, RunOptions, RunResult, Second
from hotset.tpch import power, queries
from hotset.tpch.record import PowerResult, RunFailed


@dataclass(frozen=True, slots=True)
class Measured:
    """What a window held: the workload's result and the machine's samples over it."""

    result: RunResult
    window: Window
    seconds: list[Window | None]


def measure(site: Site, placed: Placed, rampup_s: float, duration_s: float, seed: int) -> Measured:
    """Run TPC-C on a placed database.

    :raises RunFailed: the server died or stalled; there is no result.
    """
    want = site.spec.tpcc
    options = RunOptions(
        users=want.users,
        warehouses=want.warehouses,
        rampup_s=rampup_s,
        duration_s=duration_s,
        seed=seed,
        think_time=want.think_time,
    )
    with Sampler(site.machine, placed.tier) as sampler:
        result = driver.run(placed.server.database("tpcc"), options, site.report.on_run)
    window = sampler.window(result.window_start, result.window_end)
    seconds = sampler.each_second(result.window_start, len(result.series))
    return Measured(result, window, seconds)


def run_queries(
    site: Site, placed: Placed, want: TpchTable, numbers: Sequence[int] = queries.ALL
) -> tuple[PowerResult, Window]:
    """Run the TPC-H queries on a placed database, without the refresh functions: every arm and
    repeat then asks the same of the same rows, and their answers can be compared.

    :raises RunFailed: the server died; there is no result.
    """
    database = PostgresTpch(placed.server.database("tpch"))
    with Sampler(site.machine, placed.tier) as sampler:
        result = power.run(
            database, want.scale, seed=want.seed, queries=numbers, timeout_s=want.timeout_s,
            refresh=False, observe=site.report.on_tpch_run,
        )  # fmt: skip
        window = sampler.around(result.started, result.ended)
    if result.cause:
        raise RunFailed(f"TPC-H ended early: {result.cause}")
    return result, window


def power_record(
    number: int, result: PowerResult, window: Window, others: float
) -> document.PowerRun:
    """A power run as it stands in the result document.

    :param others: share of this computer's CPU that was busy before the arm was set up.
    """
    return document.PowerRun(
        **_window(number, window, result.ended - result.started),
        others_cpu=others,
        queries=tuple(
            document.Query(
                number=one.number,
                seconds=one.seconds,
                outcome=one.outcome,
                rows=one.rows,
                checksum=one.checksum,
                cause=one.cause,
            )
            for one in result.queries
        ),
    )


def _window(number: int, window: Window, seconds: float) -> dict[str, Any]:
    """The fields of `document.Window`."""
    hits = window.hits
    return {
        "repeat": number,
        "hit_ratio": hits.ratio if hits else None,
        "read_hit_ratio": hits.read_ratio if hits else None,
        "write_hit_ratio": hits.write_ratio if hits else None,
        "server_cpu": window.cpu,
        "server_iowait": window.iowait,
        "server_steal": window.steal,
        "duration_s": seconds,
        "counters": _counters(window),
    }


def repeat_record(
    number: int,
    measured: Measured,
    block: Bytes,
    others: float,
    parts: Sequence[document.Part] = (),
) -> document.Repeat:
    """The window of TPC-C as it stands in the result document; ``others`` as with
    :func:`power_record`."""
    result = measured.result
    return document.Repeat(
        **_window(number, measured.window, result.window_end - result.window_start),
        others_cpu=others,
        parts=tuple(parts),
        nopm=result.nopm,
        tpm=result.tpm,
        latency_ms=_latency(result.latency_ms),
        failed=result.failed,
        retries=sum(sum(kind.retries.values()) for kind in result.kinds.values()),
        rampup_s=result.options.rampup_s,
        transactions={name: _transaction(kind) for name, kind in result.kinds.items()},
        series=tuple(
            _second(second, sampled, block)
            for second, sampled in zip(result.series, measured.seconds, strict=True)
        ),
    )


def _counters(window: Window) -> document.Counters | None:
    hits, first, last = window.hits, window.first.counters, window.last.counters
    if hits is None or first is None or last is None:
        return None
    return document.Counters(
        read_hits=hits.read_hits,
        read_misses=hits.read_misses,
        write_hits=hits.write_hits,
        write_misses=hits.write_misses,
        promotions=hits.promotions,
        demotions=hits.demotions,
        dirty_blocks=last.dirty - first.dirty,
        used_blocks=last.used - first.used,
        bypassed=hits.bypassed or 0,
    )


def _transaction(kind: KindResult) -> document.Transaction:
    return document.Transaction(
        committed=kind.committed,
        rolled_back=kind.rolled_back,
        retries=sum(kind.retries.values()),
        failed=kind.failed,
        latency_ms=_latency(kind.latency_ms),
    )


def _latency(latency: Latency) -> document.Latency | None:
    if latency.p50 is None or latency.p95 is None or latency.p99 is None:
        return None
    return document.Latency(p50=latency.p50, p95=latency.p95, p99=latency.p99)


def _second(second: Second, sampled: Window | None, block: Bytes) -> document.Second:
    hits = sampled.hits if sampled else None
    counters = sampled.last.counters if sampled else None
    p95 = second.latency_ms_p95
    return document.Second(
        second=second.second,
        nopm=second.new_orders * 60,
        tpm=second.transactions * 60,
        failed=second.failed,
        latency_ms_p95=p95 if p95 is None or math.isfinite(p95) else None,
        hit_ratio=hits.ratio if hits else None,
        server_cpu=sampled.cpu if sampled else None,
        dirty_bytes=int(counters.dirty.bytes(block)) if counters else None,
    )
