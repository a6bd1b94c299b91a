"""Parts of measurements: turns, ratios of pairs, pages; and each case can be called."""

from __future__ import annotations

import argparse
import json
import math
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import StatisticsError

import pytest

from hotset.core import words
from hotset.reports.analysis import stats
from hotset.reports.model.document import RunDocument
from measure import __main__ as table
from measure import page, paired
from measure.cases import part_cached

ROOT = Path(__file__).resolve().parents[3]


def test_sides_take_turns_and_the_order_changes() -> None:
    order: list[tuple[str, int]] = []

    def side(name: str, number: int) -> int:
        order.append((name, number))
        return 10 * number

    sides = {name: partial(side, name) for name in ("a", "b")}
    assert paired.turns(sides, 3) == {"a": [10, 20, 30], "b": [10, 20, 30]}
    assert order == [("a", 1), ("b", 1), ("b", 2), ("a", 2), ("a", 3), ("b", 3)]


def test_a_ratio_is_that_of_pairs_and_has_an_interval() -> None:
    """A computer that becomes twice as fast changes nothing: both of a pair saw it."""
    assert paired.ratio([3, 6, 12], [1, 2, 4]) == pytest.approx((3, 3, 3))
    mean, low, high = paired.ratio([1.0, 4.0], [1.0, 1.0])
    assert mean == pytest.approx(2)
    # Student's t of one degree of freedom is 12.706.
    assert math.log(high / mean) == pytest.approx(12.706 * math.log(2), rel=1e-4)
    assert low * high == pytest.approx(mean**2)
    with pytest.raises(StatisticsError):
        paired.ratio([1.0], [1.0])


def test_a_page_is_printed_and_published_with_its_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = argparse.Namespace(case="heat", computer="A computer", rounds=3, publish=tmp_path)
    rows = page.table(("what", "value"), [("all", 1)])
    page.publish(page.Page("hot", "Title", "Claim.", "Set up.", rows, {"value": 1}), options)
    (folder,) = tmp_path.iterdir()
    text = (folder / "README.md").read_text()
    assert text == (
        "# Title\n\nClaim.\n\nSet up. A computer. Again: `scripts/bench.sh heat`.\n\n"
        "| what | value |\n| --- | ---: |\n| all | 1 |\n"
    )
    assert capsys.readouterr().out.startswith(text)
    numbers = json.loads((folder / "hot.json").read_text())
    assert numbers == {"case": "heat", "computer": "A computer", "rounds": 3, "value": 1}


def test_the_main_run_and_what_the_readme_says_of_it_are_of_their_documents() -> None:
    folder = ROOT / "reports/published/part-cached"
    runs = part_cached.read(folder)
    assert (folder / "README.md").read_text() == part_cached.page(runs)
    said = " ".join((ROOT / "README.md").read_text().split("## Two commands")[0].split())
    for _, pooled in part_cached.tables(runs):
        cached, alone = pooled.arm("accelerated"), pooled.arm("baseline")
        assert cached
        assert alone
        assert words.factor(stats.factor(cached, alone, None).ratio) in said
    _, first = next(part_cached.tables(runs))
    cached, alone, volume, flash = (
        first.arm(name) for name in ("accelerated", "baseline", "flash-volume", "all-flash")
    )
    assert cached
    assert alone
    assert volume
    found = stats.factor(cached, alone, flash)
    demo = RunDocument.model_validate_json(
        (ROOT / "reports/published/20261126-061610-demo/result.json").read_text()
    ).factors["tpcc"]
    assert demo
    for figure in (
        words.interval(found.ci_low, found.ci_high),
        f"{words.percent(found.of_all_flash, 0)} of all-flash",
        f"{words.factor(stats.factor(volume, alone, None).ratio)} of that",
        f"[{words.factor(demo.ratio)}](reports/published/20261126-061610-demo/",
    ):
        assert figure in said, figure


@pytest.mark.night
def test_every_case_can_be_called() -> None:
    for case in table.CASES.values():
        assert callable(import_module(f"measure.cases.{case.module}").measure)
        for other in case.then:
            assert other.split()[0] in table.CASES


@pytest.mark.parametrize(
    "words",
    [["what"], ["fresh", "--rounds", "1"], ["heat", "--users", "4"], ["scan", "--for", "1"]],
)
def test_what_is_no_case_or_option_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        table.main(words)
    assert ended.value.code == 2
