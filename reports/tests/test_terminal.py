"""What the terminal and CSV show, pinned as text. HOTSET_UPDATE_GOLDEN=1 rewrites the files."""

from __future__ import annotations

import csv
import io
import os
import re
from pathlib import Path

import pytest
from rich.console import Console

from hotset.reports.analysis import stats
from hotset.reports.analysis.comparison import compare
from hotset.reports.model.document import RunDocument
from hotset.reports.render import html, markdown, tables, terminal
from hotset.reports.render.tables import ListingRow
from tests import documents

GOLDEN = Path(__file__).parent / "golden"
RUNS = {
    "complete": documents.complete,
    "queries": documents.with_queries,
    "curve": documents.with_curve,
    "policies": documents.with_policies,
    "sql": documents.with_sql,
    "rate": documents.at_a_rate,
    "queries-alone": documents.queries_alone,
    "interrupted": documents.interrupted,
    "failed": documents.failed_early,
    "plain": documents.plain,
}


def console(width: int = 110) -> Console:
    return Console(file=io.StringIO(), width=width, no_color=True, force_terminal=False)


def text_of(used: Console) -> str:
    assert isinstance(used.file, io.StringIO)
    lines = used.file.getvalue().splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def pinned(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("HOTSET_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", RUNS)
def test_summary(name: str) -> None:
    used = console()
    terminal.summary(RUNS[name](), used)
    pinned(f"summary-{name}.txt", text_of(used))


@pytest.mark.parametrize("name", ["complete", "curve", "sql"])
def test_summary_on_a_narrow_terminal_loses_no_figure(name: str) -> None:
    used = console(80)
    terminal.summary(RUNS[name](), used)
    text = text_of(used)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text


@pytest.mark.parametrize("width", [80, 150])
def test_listing(width: int) -> None:
    used = console(width)
    terminal.listing([ListingRow.from_document(make()) for make in RUNS.values()], used)
    text = text_of(used)
    assert "…" not in text
    pinned(f"listing-{width}.txt", text)


def two_rates() -> RunDocument:
    document = documents.with_sql()
    arms = {
        arm.name: arm.model_copy(update={"repeats": arm.repeats[:2], "rates": arm.rates[:2]})
        for arm in document.arms
    }
    of = arms["accelerated"], arms["baseline"]
    return documents.changed(
        document,
        arms=tuple(arm.model_dump() for arm in arms.values()),
        factors={"sql": stats.factor(*of).model_dump()},
        rate_factor=stats.rate_factor(*of).model_dump(),
    )


UNTESTED = {
    "plain": documents.plain,
    "queries-alone": documents.queries_alone,
    "highest-rate": two_rates,
}
"""Runs with fewer than three repeats."""


@pytest.mark.parametrize("name", UNTESTED)
def test_what_has_not_been_tested_is_nowhere_called_not_significant(name: str) -> None:
    """Nor would a reader learn it from a program's output."""
    document = UNTESTED[name]()
    row = ListingRow.from_document(document)
    used = console(150)
    terminal.summary(document, used)
    terminal.listing([row], used)
    terminal.comparison(list(compare.lines([document, document])), (), used)
    said = [
        text_of(used),
        markdown.render(document),
        re.sub("(?s)<script.*?</script>|<[^>]*>", "", html.render(document)),
        tables.summary_csv(document),
    ]
    for text in said:
        assert "significant" not in text.lower()
    assert row.significant is None
    assert "how far runs lie apart is not known" in " ".join(said[0].split())


def test_empty_listing() -> None:
    used = console()
    terminal.listing([], used)
    assert text_of(used) == "No runs yet.\n"


def test_markup_in_names_is_shown_as_it_is() -> None:
    experiment = {"name": "[bold]x", "title": "[red]title[/red]", "spec": {}}
    document = documents.changed(documents.complete(), experiment=experiment)
    used = console()
    terminal.summary(document, used)
    terminal.listing([ListingRow.from_document(document)], used)
    assert "[red]title[/red]" in text_of(used)
    assert "[bold]x" in text_of(used)


def test_csv_is_pinned() -> None:
    runs: list[RunDocument] = [make() for make in RUNS.values()]
    pinned("summary-complete.csv", tables.summary_csv(runs[0]))


def test_csv_figures_are_the_documents() -> None:
    document = documents.complete()
    rows = list(csv.DictReader(io.StringIO(tables.summary_csv(document))))
    repeats = [repeat for arm in document.arms for repeat in arm.repeats]
    assert [float(row["nopm"]) for row in rows] == [repeat.nopm for repeat in repeats]
    assert all("User-Mode Linux" in row["labels"] for row in rows)
