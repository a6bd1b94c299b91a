"""A run as Markdown: the same answer, tables and limits as the page, for a ticket or a wiki."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ..model.document import RunDocument
from . import sections
from .page import Page, Section


def render(document: RunDocument) -> str:
    """The whole text."""
    return "\n\n".join(_parts(sections.page_of(document))) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is aligned to the left, the others to the right.

    >>> print(table(("arm", "NOPM"), [("a|b", "1")]))
    | arm | NOPM |
    |:---|---:|
    | a\\|b | 1 |
    """
    lines = [columns, *rows]
    head, *body = ("| " + " | ".join(map(_cell, line)) + " |" for line in lines)
    return "\n".join((head, "|:---|" + "---:|" * (len(columns) - 1), *body))


def bullets(items: Iterable[str]) -> str:
    """A list, an item a line."""
    return "\n".join(f"- {item}" for item in items)


def _parts(page: Page) -> Iterator[str]:
    yield f"# {page.title}"
    yield ", ".join(page.about)
    if page.state:
        yield f"**{page.state}**"
    for sentence in page.headlines:
        yield f"**{sentence}**"
    if labels := (*page.verdicts, *page.conditions):
        yield " · ".join(f"*{label}*" for label in labels)
    if page.judged:
        yield bullets(sentence for sentence, _ in page.judged)
    for section in page.sections:
        yield from _section(section)
    if page.gaps:
        yield "## Missing\n\n" + bullets(page.gaps)
    limits = [f"{caveat.text} {caveat.advice}" for caveat in page.caveats]
    yield "## Limits of this result\n\n" + bullets((*limits, *page.notes))
    yield "## How it was measured"
    if page.command:
        yield f"Command: `{page.command}`."
    for group, rows in page.setup:
        yield table((group, ""), rows)


def _section(section: Section) -> Iterator[str]:
    yield f"## {section.title}"
    yield from section.notes
    for shown in section.tables:
        rows = (
            [f"**{cell}**" if at in shown.sums and cell else cell for cell in row[:1]]
            + list(row[1:])
            for at, row in enumerate(shown.rows)
        )
        yield table(shown.columns, rows)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
