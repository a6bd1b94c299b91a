"""What pages say of other people's programs and questions has its source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
CACHES = ("dm-cache", "bcache", "hotset's engine", "Open CAS", "ZFS L2ARC")
LINK = re.compile(r"\]\([^)]+\)|\]\[[^\]]+\]")


def rows(page: str) -> Iterator[tuple[str, str, str]]:
    """What a row is about, of which cache a cell is, and the cell."""
    head: list[str] = []
    for line in page.splitlines():
        cells = [one.strip() for one in line.strip("|").split(" | ")] if line[:1] == "|" else []
        if not cells:
            head = []
        elif "dm-cache" in cells[1:2]:
            head = cells
        elif head and not line.startswith("|---"):
            assert len(cells) == len(head), line
            yield from (
                (cells[0], cache, cell) for cache, cell in zip(head[1:], cells[1:], strict=True)
            )


def unsourced(page: str) -> list[tuple[str, str]]:
    """Cells that have no link where their row has none, and do not repeat their neighbour."""
    return [
        (about, cache)
        for about, cache, cell in rows(page)
        if not LINK.search(about) and not LINK.search(cell)
        if cell != "–" and not cell.startswith("likewise")
    ]


def test_whatever_is_said_of_a_cache_has_its_source() -> None:
    """A figure of ours: the page that has it. Of others: their documentation. Else a dash."""
    page = (DOCS / "which-cache.md").read_text()
    assert {cache for _, cache, _ in rows(page)} == set(CACHES)
    assert unsourced(page) == []


def test_a_cell_without_a_source_is_found() -> None:
    page = "| | dm-cache | bcache |\n|---|---|---|\n| speed | fast | – |\n| [x](y.md) | 1 | 2 |\n"
    assert unsourced(page) == [("speed", "dm-cache")]


def test_no_figure_of_ours_stands_beside_a_cache_that_was_not_measured() -> None:
    page = (DOCS / "which-cache.md").read_text()
    measured = page.partition("## What was measured here")[2].partition("\n## ")[0]
    of = {cache for _, cache, _ in rows(measured)}
    assert of == {"dm-cache", "bcache", "hotset's engine"}
    assert all("(" in about and ".md" in about for about, _, _ in rows(measured))


def test_every_reference_is_defined_and_every_definition_used() -> None:
    page = (DOCS / "which-cache.md").read_text()
    defined = set(re.findall(r"^\[([\w-]+)\]: https://", page, re.MULTILINE))
    assert defined == set(re.findall(r"\]\[([\w-]+)\]", page))


def test_every_question_has_its_thread_and_a_command_that_answers() -> None:
    page = (DOCS / "questions.md").read_text()
    questions = re.split(r"^### ", page, flags=re.MULTILINE)[1:]
    assert len(questions) >= 10
    for question in questions:
        title, _, text = question.partition("\n")
        assert "](https://" in text, f"{title}: no address"
        assert re.search(r"^hotset ", text, re.MULTILINE), f"{title}: no command"
