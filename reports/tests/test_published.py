"""Published pages beside the documents that they are of: a sentence and its figure do not part."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from hotset.reports.analysis import stats
from hotset.reports.model.document import RunDocument
from hotset.reports.render import markdown, publish

FOLDER = Path(__file__).resolve().parents[1] / "published"
RUNS = sorted(file.parent.name for file in FOLDER.glob("*/result.json"))
COMPARED = [name for name in RUNS if "demo" in name or "curve" in name or "zdxl" in name]


def load(name: str) -> RunDocument:
    return RunDocument.model_validate_json((FOLDER / name / "result.json").read_text())


def test_every_published_run_is_looked_at() -> None:
    assert len(RUNS) >= 9
    assert len(COMPARED) >= 7


@pytest.mark.parametrize("name", COMPARED)
def test_a_published_factor_is_that_of_its_repeats(name: str) -> None:
    run = load(name)
    before, after, alone = (run.arm(arm) for arm in ("baseline", "accelerated", "all-flash"))
    assert before
    assert after
    kept = run.factors["tpcc"]
    assert kept
    found = stats.factor(after, before, alone)
    for figure in ("ratio", "of_all_flash"):
        assert getattr(found, figure) == pytest.approx(getattr(kept, figure)), figure
    slow, quick = run.power_arm("baseline"), run.power_arm("accelerated")
    if (queries := run.factors.get("tpch")) and slow and quick:
        assert stats.power_factor(quick, slow).ratio == pytest.approx(queries.ratio)


def figures_of(page: str) -> Counter[str]:
    """All of three digits or more, however prices are written."""
    return Counter(
        found for found in re.findall(r"\d+(?:\.\d+)?", page.replace(",", "")) if told(found)
    )


@pytest.mark.parametrize("name", RUNS)
def test_a_published_page_says_the_figures_of_its_document(name: str) -> None:
    """Each as often as the page that is made of the document now: one digit changed is red."""
    run = load(name)
    for page, made in (("README.md", publish._readme(run)), ("report.md", markdown.render(run))):
        text = (FOLDER / name / page).read_text()
        assert not figures_of(text) - figures_of(made), page


# Pages of measurements: a line of a table is of one record of the document beside it.

MEASURED = {
    "20261122-small-caches": 6,
    "20261122-what-if": 10,
    "20261123-fresh": 5,
    "20261123-sampling": 8,
    "20261126-fresh": 5,
    "20261127-agreement": 12,
    "20261127-sampling": 40,
    "20261127-watching": 5,
}
"""The pages, and how many lines of their tables at least have a record of their own."""
FIGURE = re.compile(r"(?<![\w.,])[-+−]?\d[\d,]*(?:\.\d+)?(?![\w.])")


def numbers(value: object) -> list[float]:
    """All that a record holds."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for one in value for number in numbers(one)]
    if isinstance(value, str):  # such as TPC-C, 256 MiB
        return [float(one) for one in re.findall(r"[0-9]+", value)]
    return [] if isinstance(value, bool) or not isinstance(value, int | float) else [float(value)]


def hit_ratios(counts: dict[str, Any]) -> dict[str, float]:
    """Of reads, of writes and of both, in percent; and what moved."""
    reads, writes = (
        (counts.get(f"{of}_hits") or 0, counts.get(f"{of}_misses") or 0) for of in ("read", "write")
    )
    both = tuple(map(sum, zip(reads, writes, strict=True)))
    named = {"reads": reads, "writes": writes, "all": both}
    moved = {of: float(counts.get(of) or 0) for of in ("promotions", "demotions")}
    return moved | {of: 100 * hit / (hit + miss or 1) for of, (hit, miss) in named.items()}


def told_of(record: Any) -> list[float]:  # noqa: ANN401 - JSON
    """The numbers that a line about a record may have."""
    if not isinstance(record, dict):
        return numbers(record)
    found = numbers(record)
    if "nopm_with" in record:
        found.append(record["nopm_with"] / record["nopm_without"])
    replays = record.get("replays", [record])
    for tier in ("kernel", "ours", "at_once"):
        own = record.get(tier) or [one[tier] for one in replays if one.get(tier)]
        every = [hit_ratios(one) for one in (own if isinstance(own, list) else [own])]
        for of in every[0] if every else ():
            each = [one[of] for one in every]
            found += [fmean(each), min(each), max(each)]
    return found


def is_told(figure: str, known: list[float]) -> bool:
    digits = figure.replace(",", "").lstrip("-+−")
    half = 0.5 * 10.0 ** -len(digits.partition(".")[2]) + 1e-9
    scales = (1.0, 100.0, 1e-6)
    return any(abs(abs(one) * scale - float(digits)) <= half for one in known for scale in scales)


def records(document: Any) -> list[Any]:  # noqa: ANN401 - JSON
    """The parts that lines are of: those of a list (caches by policy), or side by side of several
    as long."""
    if isinstance(document, list):
        return document
    if caches := document.get("caches"):
        return [list(each) for _, each in groupby(caches, itemgetter("policy"))]
    lists = [one for one in document.values() if isinstance(one, list)]
    most = max(map(len, lists))
    together = [one for one in lists if len(one) == most]
    return (
        together[0] if len(together) == 1 else [list(each) for each in zip(*together, strict=True)]
    )


def told(figure: str) -> bool:
    """Of three digits or more: fewer may be any number."""
    return len(figure.replace(",", "").replace(".", "").lstrip("-+−0")) > 2


def lines_of_records(page: str, document: Any) -> list[str]:  # noqa: ANN401 - JSON
    """The lines of tables all of whose figures one record has, each record once."""
    known = [told_of(record) for record in records(document)]
    found = []
    for line in page.splitlines():
        figures = list(filter(told, FIGURE.findall(line)))
        if not line.startswith("| ") or not figures:
            continue
        of = next((one for one in known if all(is_told(f, one) for f in figures)), None)
        if of is not None:
            known.remove(of)
            found.append(line)
    return found


def published(name: str) -> tuple[str, Any]:
    (file,) = (FOLDER / name).glob("*.json")
    return (FOLDER / name / "README.md").read_text(), json.loads(file.read_text())


@pytest.mark.parametrize("name", MEASURED)
def test_a_line_of_a_published_table_says_the_figures_of_its_record(name: str) -> None:
    assert len(lines_of_records(*published(name))) >= MEASURED[name]


def broken(value: Any) -> Any:  # noqa: ANN401 - JSON
    """A record whose figures are all others."""
    if isinstance(value, dict):
        return {key: broken(one) for key, one in value.items()}
    if isinstance(value, list):
        return [broken(one) for one in value]
    is_count = isinstance(value, int | float) and not isinstance(value, bool)
    return abs(value) ** 1.2 + 3 if is_count else value


@pytest.mark.parametrize("name", MEASURED)
def test_a_figure_that_parts_from_its_document_is_noticed(name: str) -> None:
    """One digit of each line of a table, and one record of the document."""
    page, document = published(name)
    whole = lines_of_records(page, document)
    for line in whole:
        figure = list(filter(told, FIGURE.findall(line)))[-1]
        last = figure[-1]
        other = line[::-1].replace(figure[::-1], (figure[:-1] + str((int(last) + 4) % 10))[::-1], 1)
        found = lines_of_records(page.replace(line, other[::-1]), document)
        assert len(found) < len(whole), line
    assert not lines_of_records(page, broken(document))


@pytest.mark.parametrize(
    "name", sorted(file.parent.name for file in FOLDER.glob("*/outcomes.json"))
)
def test_a_page_of_kills_has_as_many_of_each_command_as_its_document(name: str) -> None:
    page, outcomes = published(name)
    done, cut = Counter[str](), Counter[str]()
    for one in outcomes:
        done[one["verb"]] += len(one.get("tried", "1"))
    for line in page.splitlines():
        if (verb := line.strip("| ").split(" | ")[0]) in done and line.startswith("| "):
            each = re.findall(r"(\d+) (?:of|killed|within|rebooted|power)", line)
            cut[verb] += sum(map(int, each))
    assert len(cut) >= 8
    assert cut == {verb: done[verb] for verb in cut}
