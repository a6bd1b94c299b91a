"""What a run of TPC-C shows where it measured nothing."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from hotset.bench import tpcc as workload
from hotset.bench import tpcc_metrics
from hotset.bench.window import Outcome
from hotset.core.progress import Reporter
from hotset.reports.analysis.caveats import Code
from hotset.reports.model.document import RunDocument
from hotset.reports.model.windows import Measure, PlanChange, Repeat, Steadiness, Transaction
from tests.benchmark_results import run_of

STOOD_STILL = Repeat(
    users=2,
    rampup_s=0,
    duration_s=2,
    nopm=0.0,
    tpm=0.0,
    nopm_by_district=0.0,
    transactions={"new_order": Transaction(committed=0)},
    failed=0,
    retries=0,
)


def stood_still(**more: object) -> Outcome:
    return Outcome(STOOD_STILL.model_copy(update=more))


@pytest.mark.parametrize("windows", [1, 3])
def test_a_window_without_a_transaction_is_shown_in_every_form(windows: int) -> None:
    limits = tpcc_metrics.limits(["p95<20ms"])
    outcomes = [
        workload.Runs(Reporter(quiet=True)).with_verdicts(stood_still(users=users), limits)
        for users in range(1, windows + 1)
    ]
    found, screen = run_of(*outcomes), io.StringIO()
    found.show(Console(file=screen))
    assert "p95<20ms: p95 was not measured" in screen.getvalue()
    assert "failed" in found.csv() or "second" in found.csv()
    assert RunDocument.model_validate(found.document()) == found.run
    assert "p95 was not measured" in str(found.failure())
    assert "0" in str(found.figures())


def test_one_user_is_one_and_the_age_names_what_the_run_itself_did() -> None:
    """A fresh lab's first run was "3,082 orders since the load" old: all of them its ramp-up's."""
    found = run_of(stood_still(users=1, orders_before=3082))
    screen = io.StringIO()
    found.show(Console(file=screen, width=500))
    assert "TPC-C with 1 user: 0 NOPM (0 by the server's count) in 2.0 s." in screen.getvalue()
    assert "age 3,082 orders since the load, with those of the ramp-up\n" in screen.getvalue()


@pytest.mark.parametrize("windows", [1, 2])
def test_what_makes_a_run_doubtful_is_in_its_json_as_people_read_it(windows: int) -> None:
    flat = steadiness("all", "tpm", (100.0, 130.0, 90.0, 100.0, 110.0), None)
    known = steadiness("stock_level", "latency_ms", (1.9, 2.0, 2.1, 51.0, 50.0), False)
    change = PlanChange(kind="stock_level", what="slev", before="an index scan", after="a scan")
    doubtful = stood_still(
        steadiness=(flat, known),
        plan_changes=(change,),
        warnings=(Code.STATEMENT_TIMEOUT.fill(cancelled="3", limit="2,500 ms"),),
    )
    found, screen = run_of(*(doubtful,) * windows), io.StringIO()
    found.show(Console(file=screen, width=500))
    codes = [one.code for one in found.run.warnings]
    doubts = ["NOT_STEADY", "PLAN_CHANGED", "STEADINESS_UNKNOWN", "STATEMENT_TIMEOUT"]
    assert set(doubts) < set(codes)
    for text in ("Not steady", "Not known whether the windows were steady", "2,500 ms."):
        assert screen.getvalue().count(text) == 1
    assert "stock-level, slev: an index scan became a scan." in screen.getvalue()


def steadiness(
    of: str, measure: Measure, rounds: tuple[float, ...], steady: bool | None
) -> Steadiness:
    return Steadiness(
        of=of, measure=measure, rounds=rounds, excursion=0.9, slope=0.9, second=1, steady=steady
    )


def test_a_curve_without_any_result_is_shown() -> None:
    found, screen = run_of(Outcome(None, "gone"), Outcome(None, "gone")), io.StringIO()
    found.show(Console(file=screen))
    assert "Nothing was measured" in screen.getvalue()
    assert found.run.failure is not None
    assert found.run.failure.text == "gone"
    assert (found.figures(), found.csv().count("\n")) == ({}, 1)
