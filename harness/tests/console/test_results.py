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
from hotset.console.results import Grid, Line, Told, UnreadableError
from hotset.reports.model.windows import Transaction
from tests.benchmark_results import outcome, run_of, tpcc_document, tpch_document


def told(operation: str, document: object) -> Told:
    """By way of JSON, as a job's result comes."""
    found = results.tell(operation, json.loads(json.dumps(document)))
    assert found is not None
    return found


def texts(found: Told) -> list[str]:
    every = [*found.judged, *found.measured, *(part for _, some in found.more for part in some)]
    lines = [one.text for one in every if isinstance(one, Line)]
    grids = [one for one in every if isinstance(one, Grid)]
    heads = [column.name for grid in grids for column in grid.columns]
    return [*lines, *heads, *(cell for grid in grids for row in grid.rows for cell in row)]


@pytest.mark.parametrize("curve", [False, True])
def test_the_page_has_every_word_that_the_command_line_prints(curve: bool) -> None:
    run = run_of(*(outcome(1), outcome(2, broken=True)) if curve else (outcome(),))
    screen = io.StringIO()
    run.show(Console(file=screen, width=500))
    found = told("tpcc run", run.document())
    words = {word for text in texts(found) for word in text.split()}
    missing = [word for word in screen.getvalue().split() if word not in words]
    assert missing == []
    assert "consistency:" in screen.getvalue()
    assert "57014:" in screen.getvalue() or curve


def test_whether_the_conditions_hold_comes_first() -> None:
    found = told("tpcc run", tpcc_document(outcome(broken=True)))
    assert Line("consistency: 11 of 12 conditions hold", doubt=True) in found.judged
    assert Line("nopm>=5000: missed, measured 2,400", doubt=True) in found.judged
    (conditions,) = (some for title, some in found.more if title == "The 12 conditions")
    assert isinstance(conditions[0], Grid)
    assert conditions[0].rows[2] == (" 3 condition 3", "1", "1, 2")


def test_the_kinds_have_counts_and_percentiles() -> None:
    found = told("tpcc run", tpcc_document(outcome()))
    counts, latency = (one for one in found.measured if isinstance(one, Grid))
    assert (counts.caption, counts.rows[0][:2]) == ("transactions", ("new-order", "4"))
    assert [column.name for column in latency.columns][:6] == [
        "latency, ms", "mean", "p50", "p90", "p95", "p99",
    ]  # fmt: skip
    assert latency.rows[0][0] == "new-order"
    assert all(column.figure for column in latency.columns[1:])


def test_a_curve_has_a_line_for_each_number_of_users_and_each_to_open() -> None:
    found = told("tpcc run", tpcc_document(outcome(1), outcome(2)))
    (curve,) = (one for one in found.measured if isinstance(one, Grid))
    assert [row[:2] for row in curve.rows] == [("1", "600"), ("2", "1,200")]
    assert [title for title, _ in found.more] == ["1 user", "2 users", "The 12 conditions"]


def test_limits_on_response_times_are_not_known_of_what_was_not_done() -> None:
    one = outcome()
    assert one.result is not None
    kept = "TPC-C's limits on response times: kept, 90 % of each kind within 5 s, of stock-level"
    assert any(text.startswith(kept) for text in texts(told("tpcc run", tpcc_document(one))))
    kinds = {**one.result.transactions, "delivery": Transaction(committed=0)}
    slow = replace(one, result=one.result.model_copy(update={"transactions": kinds}))
    text = texts(told("tpcc run", tpcc_document(slow)))
    assert not any(line.startswith(kept) for line in text)
    assert any("p90(delivery) was not measured" in line for line in text)


def test_tpch_is_told_query_by_query() -> None:
    found = told("tpch run", tpch_document())
    (table,) = (one for one in found.measured if isinstance(one, Grid))
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
