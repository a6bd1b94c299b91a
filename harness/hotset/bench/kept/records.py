"""What was measured, as it stands in the document of a run: of an experiment's arm, or of a
database as it was found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hotset.core.units import Bytes
from hotset.hitratio.sampler import Window
from hotset.load.record import KindResult, Latency, Second, WindowResult
from hotset.load.search import FoundRate
from hotset.reports.model import document, windows
from hotset.tpcc.record import RunResult
from hotset.tpch.record import PowerResult

from ..window import Outcome


@dataclass(frozen=True, slots=True)
class Measured:
    """What a window held: the workload's result, the machine's samples over it, where the
    users' time went and what the server counted; ``…missing`` says what of it could not be
    seen. ``window`` is None where the machine was not sampled."""

    result: WindowResult
    window: Window | None
    seconds: list[Window | None]
    time: windows.TimeUse | None
    time_series: list[windows.TimeUse | None]
    time_missing: str
    server_io: windows.ServerIo | None
    server_io_missing: str
    rampup_io: windows.ServerIo | None = None


def of_outcome(outcome: Outcome[Any]) -> Measured:
    """A window of a measurement, which has one: only what was asked to be sampled was."""
    result, time, server = outcome.result, outcome.time_use, outcome.server
    assert result is not None
    seconds = len(result.series)
    return Measured(
        result,
        server.window if server else None,
        _each(server.seconds if server else (), seconds),
        time.window if time else None,
        _each(time.series if time else (), seconds),
        time.missing if time else "",
        time.io if time else None,
        time.io_missing if time else "",
    )


def _each(found: Sequence[Any], seconds: int) -> list[Any]:
    """One of each second of the window; the last may have begun without being seen."""
    return [*found[:seconds], *([None] * (seconds - len(found)))]


def rate_record(
    number: int, found: FoundRate[WindowResult], limits: Sequence[str], users: int
) -> document.HighestRate:
    """A search as it stands in the result document."""
    highest = found.highest.rate_per_s if found.highest else None
    failed = [trial.rate_per_s for trial in found.trials if not trial.holds]
    return document.HighestRate(
        repeat=number,
        limits=tuple(limits),
        users=users,
        rate_per_s=highest,
        failed_per_s=min(failed, default=max(found.highest_per_s, highest or 0.0)),
        trials=tuple(
            document.RateTrial(
                rate_per_s=trial.rate_per_s,
                reached_per_s=trial.reached_per_s,
                missed=trial.missed,
                seed=trial.result.options.seed,
                latency_ms=_latency(trial.result.latency_ms),
            )
            for trial in found.trials
        ),
    )


def power_record(
    number: int, result: PowerResult, window: Window | None, others: float
) -> windows.PowerRun:
    """A power run as it stands in the result document.

    :param others: share of this computer's CPU that was busy before the arm was set up.
    """
    return windows.PowerRun(
        **_window(number, window, result.ended - result.started),
        others_cpu=others,
        queries=tuple(windows.Query(**asdict(query)) for query in result.queries),
    )


def _window(number: int, window: Window | None, seconds: float) -> dict[str, Any]:
    """The fields of `windows.Window`."""
    if window is None:
        return {"repeat": number, "duration_s": seconds}
    hits = window.hits
    return {
        "repeat": number,
        "hit_ratio": hits.ratio if hits else None,
        "read_hit_ratio": hits.read_ratio if hits else None,
        "write_hit_ratio": hits.write_ratio if hits else None,
        "server_cpu": window.cpu,
        "server_user": window.user,
        "server_system": window.system,
        "server_iowait": window.iowait,
        "server_steal": window.steal,
        "duration_s": seconds,
        "counters": _counters(window),
        "devices": _devices(window),
    }


def _devices(window: Window) -> tuple[windows.DeviceUse, ...]:
    return tuple(windows.DeviceUse.model_validate(asdict(device)) for device in window.devices)


def repeat_record(
    number: int,
    measured: Measured,
    block: Bytes,
    others: float,
    parts: Sequence[windows.Part] = (),
    preparation: windows.Preparation | None = None,
) -> windows.Repeat:
    """A window of many users as it stands in the result document; ``others`` as with
    :func:`power_record`."""
    result = measured.result
    tpcc = result if isinstance(result, RunResult) else None
    return windows.Repeat(
        **_window(number, measured.window, result.window_end - result.window_start),
        others_cpu=others,
        parts=tuple(parts),
        users=result.options.users,
        nopm=tpcc.nopm if tpcc else None,
        tpm=result.tpm,
        latency_ms=_latency(result.latency_ms, histogram=result.latency_ms.histogram),
        failed=result.failed,
        retries=sum(sum(kind.retries.values()) for kind in result.kinds.values()),
        rampup_s=result.options.rampup_s,
        rampup_read_bytes=_rampup_read_bytes(measured),
        preparation=preparation,
        arrived=_arrived(result),
        unfinished=windows.Unfinished(**asdict(result.unfinished)) if result.unfinished else None,
        transactions={name: _transaction(kind) for name, kind in result.kinds.items()},
        series=tuple(
            _second(second, sampled, time, block)
            for second, sampled, time in zip(
                result.series, measured.seconds, measured.time_series, strict=True
            )
        ),
        steadiness=tuple(windows.Steadiness(**asdict(one)) for one in result.steadiness),
        **(_drawn(tpcc) if tpcc else {}),
        orders_before=tpcc.orders_before if tpcc else None,
        time=measured.time,
        time_missing=measured.time_missing,
        server_io=measured.server_io,
        server_io_missing=measured.server_io_missing,
    )


def _rampup_read_bytes(measured: Measured) -> int | None:
    if measured.result.options.rampup_s == 0:
        return 0
    return measured.rampup_io.read_bytes if measured.rampup_io else None


def _drawn(result: RunResult) -> dict[str, Any]:
    """How the users drew what they asked for, and by what isolation level."""
    return {
        "items": result.options.items,
        "hottest_fifth": result.hottest_fifth,
        "isolation": result.isolation,
        "seed": result.options.seed if result.driver == "hotset" else None,
    }


def _arrived(result: WindowResult) -> windows.Arrived | None:
    rate_per_s = result.options.rate_per_s
    if result.arrived is None or rate_per_s is None:
        return None
    return windows.Arrived(rate_per_s=rate_per_s, **asdict(result.arrived))


def _counters(window: Window) -> windows.Counters | None:
    hits, first, last = window.hits, window.first.counters, window.last.counters
    if hits is None or first is None or last is None:
        return None
    return windows.Counters(
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


def _transaction(kind: KindResult) -> windows.Transaction:
    return windows.Transaction(
        committed=kind.committed,
        rolled_back=kind.rolled_back,
        retries=sum(kind.retries.values()),
        failed=kind.failed,
        latency_ms=_latency(kind.latency_ms, histogram=kind.latency_ms.histogram),
    )


def _latency(latency: Latency, histogram: str | None = None) -> windows.Latency | None:
    if latency.p50 is None or latency.p95 is None or latency.p99 is None:
        return None
    return windows.Latency(
        p50=latency.p50,
        p90=latency.p90,
        p95=latency.p95,
        p99=latency.p99,
        p99_9=latency.p99_9,
        p99_99=latency.p99_99,
        histogram=histogram,
    )


def _second(
    second: Second, sampled: Window | None, time: windows.TimeUse | None, block: Bytes
) -> windows.Second:
    hits = sampled.hits if sampled else None
    counters = sampled.last.counters if sampled else None
    p95 = second.latency_ms_p95
    return windows.Second(
        second=second.second,
        nopm=None if second.new_orders is None else second.new_orders * 60,
        tpm=second.transactions * 60,
        failed=second.failed,
        latency_ms_p95=p95 if p95 is None or math.isfinite(p95) else None,
        hit_ratio=hits.ratio if hits else None,
        server_cpu=sampled.cpu if sampled else None,
        time=time,
        dirty_bytes=int(counters.dirty.bytes(block)) if counters else None,
        devices=_devices(sampled) if sampled else (),
    )
