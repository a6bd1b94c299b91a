"""What a run of TPC-C shows where it measured nothing."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from hotset.harness.benchmarks import tpcc as workload
from hotset.harness.benchmarks import tpcc_metrics
from hotset.harness.benchmarks.tpcc import Outcome
from hotset.harness.operations.benchmarks.tpcc import RunOutcome
from hotset.harness.terminal.progress import Reporter
from hotset.tpcc.window.record import KindResult, Latency, RunOptions, RunResult

NO_LATENCY = Latency(*[None] * 8, histogram=None)
KIND = KindResult(0, 0, {}, {}, NO_LATENCY)
STOOD_STILL = RunResult(
    options=RunOptions(users=2, warehouses=1, rampup_s=0, duration_s=2),
    window_start=100.0,
    window_end=102.0,
    nopm=0.0,
    tpm=0.0,
    nopm_by_district=0.0,
    kinds={"new_order": KIND},
    latency_ms=NO_LATENCY,
    failed=0,
    series=[],
)


@pytest.mark.parametrize("windows", [1, 3])
def test_a_window_without_a_transaction_is_shown_in_every_form(windows: int) -> None:
    limits = tpcc_metrics.limits(["p95<20ms"])
    outcomes = [
        workload.Runs(Reporter(quiet=True)).judged(
            Outcome(replace(STOOD_STILL, options=replace(STOOD_STILL.options, users=users))), limits
        )
        for users in range(1, windows + 1)
    ]
    found, screen = RunOutcome(tuple(outcomes)), io.StringIO()
    found.show(Console(file=screen))
    assert "p95<20ms: p95 was not measured" in screen.getvalue()
    assert "failed" in found.csv() or "second" in found.csv()
    assert RunOutcome.record().model_validate(found.document())
    assert "p95 was not measured" in str(found.failure())
    assert "0" in str(found.figures())


def test_a_curve_without_any_result_is_shown() -> None:
    found, screen = RunOutcome((Outcome(None, "gone"), Outcome(None, "gone"))), io.StringIO()
    found.show(Console(file=screen))
    assert "no run of the curve has a result" in screen.getvalue()
    assert found.document()["curve"]["knee_users"] is None
    assert (found.figures(), found.csv().count("\n")) == ({}, 1)
