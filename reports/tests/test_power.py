"""TPC-H in the report: totals, means, the factor and its doubts."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from rich.console import Console

from hotset.reports.analysis import caveats, power, published, stats
from hotset.reports.model.document import PowerArm, RunDocument
from hotset.reports.model.measurement import Measurement
from hotset.reports.model.setup import Published, PublishedFigure
from hotset.reports.model.windows import (
    PowerRun,
    Query,
    QueryStream,
    ThroughputRun,
    geometric_mean,
)
from hotset.reports.render import html, markdown, sections, tables, terminal
from tests import documents


def arm_of(name: Any, *repeats: dict[int, float]) -> PowerArm:  # noqa: ANN401 - an arm's name
    runs = [
        documents.power_run("baseline", number).model_copy(
            update={"queries": tuple(Query(number=q, seconds=s) for q, s in seconds.items())}
        )
        for number, seconds in enumerate(repeats, 1)
    ]
    return PowerArm(name=name, repeats=tuple(runs))


def edited(run: PowerRun, number: int, **changes: object) -> PowerRun:
    queries = tuple(
        query.model_copy(update=changes) if query.number == number else query
        for query in run.queries
    )
    return run.model_copy(update={"queries": queries})


def with_accelerated(change: Callable[[PowerRun], PowerRun]) -> RunDocument:
    document = documents.with_queries(5)
    base, fast, flash = document.power_arms
    fast = fast.model_copy(update={"repeats": tuple(change(run) for run in fast.repeats)})
    return documents.changed(document, power_arms=(base, fast, flash), warnings=())


def test_the_factor_is_of_the_totals() -> None:
    slow = arm_of("baseline", {1: 90, 2: 10}, {1: 110, 2: 10}, {1: 100, 2: 10})
    fast = arm_of("accelerated", {1: 4, 2: 5}, {1: 6, 2: 5}, {1: 5, 2: 5})
    factor = stats.power_factor(fast, slow, arm_of("all-flash", *[{1: 4, 2: 4}] * 3))
    assert factor.ratio == pytest.approx(110 / 10)
    assert factor.ci_low < 11 < factor.ci_high
    assert factor.significant
    assert factor.of_all_flash == pytest.approx(8 / 10)


def test_queries_that_rise_and_fall_together_are_one_value_a_run() -> None:
    """Of runs 10 % apart the totals are 10 % apart, however many queries they have."""
    levels = (0.9, 1.0, 1.1)
    slow = arm_of("baseline", *(dict.fromkeys(range(1, 23), 10 * level) for level in levels))
    one = arm_of("baseline", *({1: 220 * level} for level in levels))
    fast = arm_of("accelerated", *[{1: 10.0}] * 3)
    assert stats.ratio_of_totals(slow, fast) == pytest.approx(stats.ratio_of_totals(one, fast))


def test_one_repeat_has_no_interval_and_no_significance() -> None:
    factor = stats.power_factor(arm_of("accelerated", {1: 1.0}), arm_of("baseline", {1: 9.0}))
    assert (factor.ratio, factor.ci_low, factor.ci_high) == (9, 9, 9)
    assert not factor.significant
    document = documents.with_queries(5, repeats=1)
    assert "one repeat: how far runs lie apart is not known" in (power.headline(document) or "")


def test_a_query_that_did_not_end_leaves_no_total() -> None:
    document = with_accelerated(lambda run: edited(run, 9, outcome="timed out"))
    base, fast, _ = document.power_arms
    with pytest.raises(stats.NoFactor, match="accelerated"):
        stats.power_factor(fast, base)
    said = power.headline(documents.changed(document, factors={})) or ""
    assert "in accelerated query 9 did not finish" in said
    assert fast.repeats[0].geometric_mean_s is None
    rows = {row[0]: row for row in power.rows(document)}
    assert rows["9"][2] == rows["total"][2] == rows["geometric mean"][2] == "–"
    assert rows["total"][-1] == rows["9"][-1] == "–"
    assert rows["8"][-1] != "–"
    found = {caveat.code: caveat.text for caveat in caveats.derive(document)}
    assert "query 9" in found["QUERIES_UNFINISHED"]


@pytest.mark.parametrize("change", [{"rows": 1}, {"checksum": "other"}])
def test_answers_that_differ_are_a_caveat(change: dict[str, object]) -> None:
    assert power.differing(documents.with_queries(5)) == []
    document = with_accelerated(lambda run: edited(run, 21, **change))
    assert power.differing(document) == [21]
    found = {caveat.code: caveat.text for caveat in caveats.derive(document)}
    assert "query 21" in found["ANSWERS_DIFFER"]


def test_rows_are_the_documents_figures() -> None:
    document = documents.with_queries(5)
    rows = {row[0]: row for row in power.rows(document)}
    assert len(rows) == 24
    base = power.figures(document.power_arms[0])
    assert rows["7"][1] == power.seconds(base.seconds[7])
    assert base.total_s == pytest.approx(
        sum(query.seconds for run in base.repeats for query in run.queries) / 2
    )
    means = [geometric_mean(query.seconds for query in run.queries) for run in base.repeats]
    assert base.geometric_mean_s == pytest.approx(sum(means) / 2)


def test_the_headline_names_both_means() -> None:
    document = documents.with_queries(5)
    base, fast, _ = power.arms(document)
    assert base.geometric_mean_s
    assert fast.geometric_mean_s
    said = power.headline(document) or ""
    assert f"geometric means {base.geometric_mean_s / fast.geometric_mean_s:.1f}×" in said
    assert power.headline(documents.complete(5)) is None


def test_csv_has_a_line_per_query() -> None:
    document = documents.with_queries(5)
    rows = list(csv.DictReader(io.StringIO(tables.queries_csv(document))))
    assert len(rows) == 3 * 2 * 22
    last = rows[-1]
    query = document.power_arms[-1].repeats[-1].queries[-1]
    assert (last["arm"], last["repeat"], last["query"]) == ("all-flash", "2", "22")
    assert float(last["seconds"]) == query.seconds


def measured(run: PowerRun, throughput: ThroughputRun | None = None) -> RunDocument:
    """A measurement of the queries alone."""
    document = documents.queries_alone()
    arm = PowerArm(name="measured", repeats=(run,), throughput=throughput)
    of = Measurement(of="tpch run", tier_unknown="nobody has looked")
    of_it = {"power_arms": (arm.model_dump(),), "measurement": of.model_dump()}
    return documents.changed(document, factors={}, **of_it)


def test_a_measurement_tells_each_query_and_what_became_of_it() -> None:
    """Those that did not finish were in its JSON alone."""
    run = documents.power_run("baseline", 1).model_copy(update={"scale": 1.0, "seed": 7})
    run = edited(run, 5, outcome="timed out", rows=None, checksum=None)
    page = sections.page_of(measured(run))
    (section,) = (one for one in page.sections if one.key == "queries")
    (table,) = section.tables
    assert table.caption == "TPC-H power run at scale 1, seed 7"
    assert [row[0] for row in table.rows] == [str(query.number) for query in run.queries]
    assert table.rows[4][2:] == ("", "timed out", "")
    none = run.model_copy(update={"queries": run.queries[4:5]})
    assert "timed out" in printed(measured(none))


def test_a_run_that_ended_early_is_not_complete_though_its_queries_are() -> None:
    first = documents.power_run("baseline", 1)
    run = first.model_copy(update={"queries": first.queries[:3], "cause": "interrupted"})
    text = printed(measured(run))
    assert "3 TPC-H queries took" in text
    assert "and not all of them ended" in text
    assert "what was to follow did not finish" in text
    assert "geometric mean" not in text


def test_a_throughput_run_stands_below_its_power_run() -> None:
    first = documents.power_run("baseline", 1)
    run = first.model_copy(update={"refresh_s": (1.5, 0.5), "tproc_h_power": 9.0})
    at = datetime(2026, 11, 1, tzinfo=UTC)
    stream = QueryStream(number=2, opened_at=at, duration_s=50, queries=run.queries[:2])
    streams = ThroughputRun(
        opened_at=at,
        duration_s=60,
        streams=(stream,),
        cause="stream 2: the server went away",
        tproc_h_throughput=4.0,
        tproc_h_composite=6.0,
    )
    document = measured(run, streams)
    text = printed(document)
    for words in (
        "RF1 took 1.500 s, RF2 0.500 s.",
        "1 stream took 60.000 s, and ended early: stream 2: the server went away.",
        "TPROC-H power 9.0, throughput 4.0 and composite 6.0.",
        "not audited TPC results",
    ):
        assert words in text
    rows = list(csv.DictReader(io.StringIO(tables.queries_csv(document))))
    assert [row["stream"] for row in rows] == ["0"] * 22 + ["2"] * 2


def printed(document: RunDocument) -> str:
    screen = io.StringIO()
    terminal.summary(document, Console(file=screen, width=120))
    return screen.getvalue()


def test_published_figures_stand_beside_the_measured() -> None:
    document = documents.with_queries(5)
    assert published.rows(document) == []
    theirs = Published(
        source="a test",
        nopm=PublishedFigure(before=10624, after=136232),
        tpm=PublishedFigure(before=49127, after=631513),
        queries_s=PublishedFigure(before=23400, after=1560),
        hit_ratio="96-99 %",
    )
    experiment = document.experiment.model_copy(update={"published": theirs})
    changed = documents.changed(document, experiment=experiment)
    rows = published.rows(changed)
    assert rows[0][:4] == ("NOPM", "10,624", "136,232", "12.8×")
    base, fast, _ = power.arms(document)
    assert rows[1][1:4] == ("23,400", "1,560", "15.0×")
    assert rows[1][4:] == (
        f"{base.total_s:,.0f}",
        f"{fast.total_s:,.0f}",
        f"{base.total_s / fast.total_s:.1f}×",
    )
    assert rows[2][2] == "96-99 %"
    assert "Compared with a test" in html.render(changed)


def test_transactions_that_are_counted_otherwise_share_no_column() -> None:
    """Their TPM are what their server counts (SQL Server: batch requests), ours are commits."""
    document = documents.with_queries(5)
    assert published.notes(document) == []
    theirs = Published(
        source="a test",
        nopm=PublishedFigure(before=10624, after=136232),
        tpm=PublishedFigure(before=49127, after=631513),
    )
    experiment = document.experiment.model_copy(update={"published": theirs})
    changed = documents.changed(document, experiment=experiment)
    assert [row[0] for row in published.rows(changed)] == ["NOPM"]
    assert not any("49,127" in cell for row in published.rows(changed) for cell in row)
    (note,) = published.notes(changed)
    assert "49,127 and 631,513 TPM" in note
    console = Console(width=400, record=True, file=io.StringIO())
    terminal.summary(changed, console)
    for text in (html.render(changed), markdown.render(changed), console.export_text()):
        assert note in text


def test_geometric_mean() -> None:
    assert geometric_mean([2, 8]) == pytest.approx(4)
    assert math.isfinite(geometric_mean([0, 1]))
