"""The Markdown of a run: pinned as text, and as a Markdown parser sees it."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from hotset.reports.analysis import answer
from hotset.reports.render import markdown, sections
from tests.test_terminal import RUNS, pinned


@pytest.mark.parametrize("name", RUNS)
def test_the_text(name: str) -> None:
    pinned(f"report-{name}.md", markdown.render(RUNS[name]()))


def test_its_tables_are_tables() -> None:
    document = RUNS["queries"]()
    tokens = MarkdownIt().enable("table").parse(markdown.render(document))
    heads = [token.tag for token in tokens if token.type == "table_open"]
    shown = sections.page_of(document)
    assert len(heads) == sum(len(one.tables) for one in shown.sections) + len(shown.setup)
    assert len(shown.setup) == 6
    text = " ".join(token.content for token in tokens if token.type == "inline")
    assert answer.headline(document) in text
    rows = sum(token.type == "tr_open" for token in tokens)
    cells = sum(token.type in ("td_open", "th_open") for token in tokens)
    assert cells > 5 * rows / 2
