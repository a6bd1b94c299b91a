"""A benchmark's result as a page shows it: in the words of the command line."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from hotset.console import results
from hotset.console.pages import jobs as pages
from hotset.console.results import UnreadableError
from hotset.reports.model.windows import Transaction
from hotset.reports.render.page import Page, Table
from tests.benchmark_results import outcome, run_of, tpcc_document, tpch_document

CONDITIONS = "TPC-C's consistency conditions"


def told(operation: str, document: object) -> Page:
    """By way of JSON, as a job's result comes."""
    found = results.tell(operation, json.loads(json.dumps(document)))
    assert found is not None
    return found


def tables(found: Page) -> dict[str, Table]:
    return {one.caption: one for section in found.sections for one in section.tables}


def texts(found: Page) -> list[str]:
    lines = [*found.headlines, *(text for text, _ in found.judged), *found.gaps]
    lines += [f"{one.text} {one.advice}" for one in found.caveats]
    lines += [note for section in found.sections for note in section.notes]
    grids = tables(found).values()
    heads = [name for grid in grids for name in (grid.caption, *grid.columns)]
    return [*lines, *heads, *(cell for grid in grids for row in grid.rows for cell in row)]


def test_the_kinds_and_conditions_are_on_the_command_line_as_well() -> None:
    screen = io.StringIO()
    run_of(outcome()).show(Console(file=screen, width=120))
    for words in ("consistency: 12 of 12", "order-status", "57014: ", "age 3,082 orders", "50.00"):
        assert words in screen.getvalue()


def test_whether_the_conditions_hold_comes_first() -> None:
    found = told("tpcc run", tpcc_document(outcome(broken=True)))
    assert ("consistency: 11 of 12 conditions hold", False) in found.judged
    assert ("nopm>=5000: missed, measured 2,400", False) in found.judged
    assert tables(found)[CONDITIONS].rows[2] == (" 3 condition 3", "1", "1, 2")


def test_the_kinds_have_counts_and_percentiles() -> None:
    found = tables(told("tpcc run", tpcc_document(outcome())))
    counts, latency = found["Transactions by kind"], found["Latency by kind, ms"]
    assert counts.columns[:4] == ("transaction", "per s", "committed", "rolled back")
    assert counts.rows[0][:4] == ("new-order", "2", "4", "1")
    assert (
        counts.rows[0][-1] == "retries: deadlock 2; failed: error 57014: canceled [by the user] 1"
    )
    assert (counts.rows[-1][0], counts.rows[-1][2]) == ("all", "20")
    assert latency.columns[:5] == ("transaction", "mean", "p50", "p90", "p95")
    assert latency.rows[0][0] == "new-order"
    assert [latency.is_text(at) for at in range(3)] == [True, False, False]


def test_a_curve_has_a_line_for_each_number_of_users_and_each_by_kind() -> None:
    found = told("tpcc run", tpcc_document(outcome(1), outcome(2)))
    curve = next(one for one in found.sections if one.key == "over-users").tables[0]
    assert [row[:2] for row in curve.rows] == [("1", "600"), ("2", "1,200")]
    kinds = tables(found)["Transactions by kind"]
    assert kinds.columns[:2] == ("users", "transaction")
    assert [row[:2] for row in kinds.rows if row[1] == "all"] == [("1", "all"), ("2", "all")]


def test_limits_on_response_times_are_not_known_of_what_was_not_done() -> None:
    one = outcome()
    assert one.result is not None
    kept = "TPC-C's limits on response times: kept, 90 % of each kind within 5 s, of stock-level"
    assert any(text.startswith(kept) for text in texts(told("tpcc run", tpcc_document(one))))
    kinds = {**one.result.transactions, "delivery": Transaction(committed=0)}
    slow = replace(one, result=one.result.model_copy(update={"transactions": kinds}))
    text = texts(told("tpcc run", tpcc_document(slow)))
    assert not any(line.startswith(kept) for line in text)
    assert any("delivery was not measured" in line for line in text)


def test_tpch_is_told_query_by_query() -> None:
    found = told("tpch run", tpch_document())
    table = tables(found)["TPC-H power run at scale 0.01, validation parameters"]
    assert table.rows[6] == ("7", "0.700", "5", "ok", "ab")
    assert any("geometric mean" in text for text in texts(found))


def test_a_result_of_another_hotset_is_refused_and_one_that_nobody_tells_is_none() -> None:
    with pytest.raises(UnreadableError, match="another hotset"):
        results.tell("tpcc run", {"lines": ["killed"]})
    assert results.tell("warmup run", {"a": 1}) is None
    assert results.tell("tpcc run", None) is None


def test_only_what_is_kept_has_a_report() -> None:
    job: Any = SimpleNamespace(id="1", verb="tpcc run")
    document = tpcc_document(outcome())
    assert pages._report_of(job, document) == ""
    document["measurement"]["kept"] = True
    assert pages._report_of(job, document) == f"/runs/{document['run']}/report"
