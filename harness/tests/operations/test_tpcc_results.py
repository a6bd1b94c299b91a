"""What a run of TPC-C shows where it measured nothing."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from hotset.bench import tpcc as workload
from hotset.bench import tpcc_metrics
from hotset.bench.commands.tpcc import RunOutcome
from hotset.bench.tpcc import Outcome
from hotset.bench.window import Warned
from hotset.core.progress import Reporter
from hotset.core.record import model_of
from hotset.load.record import KindResult, Latency
from hotset.load.steady import Steadiness
from hotset.tpcc.plans import Flip
from hotset.tpcc.record import RunOptions, RunResult

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
        workload.Runs(Reporter(quiet=True)).with_verdicts(
            Outcome(replace(STOOD_STILL, options=replace(STOOD_STILL.options, users=users))), limits
        )
        for users in range(1, windows + 1)
    ]
    found, screen = RunOutcome(tuple(outcomes)), io.StringIO()
    found.show(Console(file=screen))
    assert "p95<20ms: p95 was not measured" in screen.getvalue()
    assert "failed" in found.csv() or "second" in found.csv()
    assert model_of(RunOutcome.record()).model_validate(found.document())
    assert "p95 was not measured" in str(found.failure())
    assert "0" in str(found.figures())


def test_one_user_is_one_and_the_age_names_what_the_run_itself_did() -> None:
    """A fresh lab's first run was "3,082 orders since the load" old: all of them its ramp-up's."""
    alone = replace(STOOD_STILL.options, users=1)
    found = RunOutcome((Outcome(replace(STOOD_STILL, options=alone, orders_before=3082)),))
    screen = io.StringIO()
    found.show(Console(file=screen, width=500))
    assert "; 1 user, 1 warehouse, 2.0 s" in screen.getvalue()
    assert (
        "age: 3,082 orders since the load, with those of this run's ramp-up\n" in screen.getvalue()
    )


@pytest.mark.parametrize("windows", [1, 2])
def test_what_makes_a_run_doubtful_is_in_its_json_as_people_read_it(windows: int) -> None:
    flat = Steadiness("all", "tpm", [100.0, 130.0, 90.0, 100.0, 110.0], 0.1, 0.1, 3, None)
    known = Steadiness(
        "stock_level", "latency_ms", [1.9, 2.0, 2.1, 51.0, 50.0], 0.9, 0.9, 72, False
    )
    doubtful = Outcome(
        replace(STOOD_STILL, steadiness=[flat, known]),
        flips=(Flip("stock_level", "slev", "an index scan", "a scan", None),),
        warned=(Warned("STATEMENT_TIMEOUT", "the server cancelled 3 statements"),),
    )
    found, screen = RunOutcome((doubtful,) * windows), io.StringIO()
    found.show(Console(file=screen, width=500))
    document = found.document()
    assert model_of(RunOutcome.record()).model_validate(document)
    runs = document["curve"]["points"] if windows > 1 else [document]
    for run in runs:
        codes = [one["code"] for one in run["warnings"]]
        assert codes == ["NOT_STEADY", "STEADINESS_UNKNOWN", "STATEMENT_TIMEOUT", "PLAN_CHANGED"]
        shown = run["warnings"] if windows == 1 else run["warnings"][2:]
        for one in shown:
            with_users = "" if windows == 1 else " with 2 users"
            assert f"{one['code']}{with_users}: {one['text']}" in screen.getvalue()


def test_a_curve_without_any_result_is_shown() -> None:
    found, screen = RunOutcome((Outcome(None, "gone"), Outcome(None, "gone"))), io.StringIO()
    found.show(Console(file=screen))
    assert "no run of the curve has a result" in screen.getvalue()
    assert found.document()["curve"]["knee_users"] is None
    assert (found.figures(), found.csv().count("\n")) == ({}, 1)
