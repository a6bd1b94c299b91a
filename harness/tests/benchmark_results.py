"""Results of benchmarks with everything that they can have, for the tests of what shows them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from pydantic import JsonValue

from hotset.bench import thresholds, tpcc_metrics
from hotset.bench.commands.tpcc import RunOutcome
from hotset.bench.commands.tpch import RunOutcome as TpchOutcome
from hotset.bench.kept.measurement import Subject, begin
from hotset.bench.window import Outcome
from hotset.load.latency import Latencies
from hotset.reports.analysis.caveats import Code
from hotset.reports.model.windows import (
    Condition,
    Query,
    Repeat,
    Second,
    ServerIo,
    TimeUse,
    Transaction,
)
from hotset.tpch.record import power_run

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
        Transaction(
            committed=4,
            rolled_back=1,
            retries=2,
            retry_causes={"deadlock": 2},
            failed={"error 57014: canceled [by the user]": 1},
            latency_ms=latency,
        ),
    )
    io_counted = ServerIo(seconds=2, reads=100, read_bytes=819200, read_ms=30, log_bytes=4096)
    second = Second(second=0, nopm=600, tpm=1200, latency_ms_mean=1.0, latency_ms_p95=2.0, time=USE)
    limit = {"cancelled": "3", "limit": "statement_timeout is 2,500 ms"}
    result = Repeat(
        users=users,
        rampup_s=0,
        seed=1,
        items="nurand",
        opened_at=datetime.fromtimestamp(100, UTC),
        duration_s=2,
        nopm=600.0 * users,
        tpm=1200.0 * users,
        transactions=kinds,
        latency_ms=latency,
        failed=5,
        retries=10,
        series=(second,),
        orders_before=3082,
        isolation="read committed",
        warnings=(Code.STATEMENT_TIMEOUT.fill(**limit),),
        time=USE,
        time_missing="nothing of the log",
        server_io=io_counted,
    )
    conditions = [
        Condition(
            number=number,
            title=f"condition {number}",
            holds=not broken or number != 3,
            violations=int(broken and number == 3),
            examples=((1, 2),),
        )
        for number in range(1, 13)
    ]
    result = result.model_copy(update={"conditions": tuple(conditions)})
    return Outcome(
        result,
        verdicts=tuple(
            thresholds.judge(
                tpcc_metrics.limits(["nopm>=5000", "p95<70ms"]), tpcc_metrics.values(result)
            )
        ),
    )


def run_of(*points: Outcome) -> RunOutcome:
    """A run, or a curve, that is not kept."""
    settings: dict[str, JsonValue] = {"driver": "hotset", "warehouses": 2}
    kept = begin(False, Subject("tpcc run", "tpcc", "TPC-C", {"tpcc": settings}))
    kept.keep_windows(points, "tpcc")
    kept.finish(points[-1].state, points[-1].cause)
    return RunOutcome(points, kept.document)


def tpcc_document(*points: Outcome) -> dict[str, Any]:
    """As a job's result has it."""
    return run_of(*points).document()


def tpch_document() -> dict[str, Any]:
    """A power run; query 7 took 0.7 s."""
    queries = tuple(
        Query(number=number, seconds=number / 10, rows=5, checksum="ab") for number in range(1, 23)
    )
    kept = begin(False, Subject("tpch run", "tpch", "TPC-H", {"tpch": {}}))
    run = power_run(0.01, None, 100.0, 130.0, queries)
    kept.keep_queries(run, None, ())
    kept.finish("complete", None)
    return TpchOutcome((), run, None, run=kept.document).document()
