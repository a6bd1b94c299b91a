"""Published pages beside the documents that they are of: a sentence and its figure do not part."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotset.core import words
from hotset.reports.analysis import stats
from hotset.reports.model.document import RunDocument

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


@pytest.mark.parametrize("name", COMPARED)
def test_a_published_page_says_the_figures_of_its_document(name: str) -> None:
    run = load(name)
    pages = [(FOLDER / name / page).read_text() for page in ("README.md", "report.md")]
    factor = run.factors["tpcc"]
    assert factor
    for page in pages:
        assert words.factor(factor.ratio) in page
    for arm in run.arms:
        for repeat in arm.repeats:
            assert words.count(repeat.rate) in pages[1], (arm.name, repeat.repeat)
    if queries := run.factors.get("tpch"):
        assert words.factor(queries.ratio) in pages[1]
