"""Results of benchmarks with everything that they can have, for the tests of what shows them."""

from __future__ import annotations

from typing import Any

from hotset.bench import thresholds, tpcc_metrics
from hotset.bench.commands.tpcc import RunOutcome
from hotset.bench.commands.tpch import RunOutcome as TpchOutcome
from hotset.bench.tpcc import Outcome
from hotset.bench.window import Warned, WindowTime
from hotset.load.latency import Latencies
from hotset.load.record import KindResult, Second
from hotset.reports.model.windows import ServerIo, TimeUse
from hotset.tpcc.data.consistency import ConditionResult
from hotset.tpcc.record import RunOptions, RunResult
from hotset.tpch.record import PowerResult, QueryResult

USE = TimeUse(
    cpu=0.5, data_read=0.2, data_write=0, log=0.1, lock=0.1, client=0.1, other=0, sessions=4
)


def latencies(*milliseconds: float) -> Latencies:
    found = Latencies()
    for one in milliseconds:
        found.record(one / 1000)
    return found


def outcome(users: int = 4, broken: bool = False) -> Outcome:
    """A run with everything that a run can have."""
    latency = latencies(1, 2, 3, 50).latency()
    kinds = dict.fromkeys(
        ("new_order", "payment", "order_status", "delivery", "stock_level"),
        KindResult(4, 1, {"deadlock": 2}, {"error 57014: canceled [by the user]": 1}, latency),
    )
    result = RunResult(
        options=RunOptions(users=users, warehouses=2, rampup_s=0, duration_s=2),
        window_start=100.0,
        window_end=102.0,
        nopm=600.0 * users,
        tpm=1200.0 * users,
        kinds=kinds,
        latency_ms=latency,
        failed=5,
        series=[Second(0, 10, 20, 0, 1.0, 2.0)],
        orders_before=3082,
        isolation="read committed",
    )
    io_counted = ServerIo(seconds=2, reads=100, read_bytes=819200, read_ms=30, log_bytes=4096)
    conditions = [
        ConditionResult(number, f"condition {number}", int(broken and number == 3), [(1, 2)])
        for number in range(1, 13)
    ]
    return Outcome(
        result,
        verdicts=tuple(
            thresholds.judge(
                tpcc_metrics.limits(["nopm>=5000", "p95<70ms"]), tpcc_metrics.values(result)
            )
        ),
        time_use=WindowTime(USE, (USE, None), "nothing of the log", io_counted),
        warned=(Warned("STATEMENT_TIMEOUT", "the server cancelled 3 statements"),),
        conditions=tuple(conditions),
    )


def tpcc_document(*points: Outcome) -> dict[str, Any]:
    """As a job's result has it."""
    return RunOutcome(points).document()


def tpch_document() -> dict[str, Any]:
    """A power run; query 7 took 0.7 s."""
    queries = tuple(QueryResult(number, number / 10, "ok", 5, "ab") for number in range(1, 23))
    return TpchOutcome((), PowerResult(0.01, None, 100.0, 130.0, queries), None).document()
