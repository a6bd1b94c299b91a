"""Prices, hit ratios by table, and published runs: what is added up, said and written."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from hotset.core import words
from hotset.reports.analysis import prices
from hotset.reports.analysis.breakdown import parts
from hotset.reports.model.document import Arm, Cost, RunDocument
from hotset.reports.model.setup import Prices
from hotset.reports.model.windows import Part
from hotset.reports.render import html, markdown, publish, sections, terminal
from tests import documents
from tests.test_terminal import text_of

GB = 1e9
ASKED = Prices(currency="EUR", server=6000, origin=2500, flash_per_gb=1.2)


def priced(given: Prices = ASKED) -> RunDocument:
    return prices.with_prices(documents.complete(5), given)


def cost(document: RunDocument, arm: str) -> Cost:
    return next(one for one in document.costs if one.arm == arm)


def test_an_arm_costs_the_sum_of_its_parts() -> None:
    document = priced()
    tier, storage = document.tier, document.storage
    assert tier is not None
    assert storage is not None
    cache = tier.cache_bytes + tier.metadata_bytes + tier.volume_bytes
    flash = storage.size_bytes + tier.volume_bytes
    assert cost(document, "baseline").price == 8500
    assert cost(document, "accelerated").price == pytest.approx(8500 + 1.2 * cache / GB)
    assert cost(document, "all-flash").price == pytest.approx(6000 + 1.2 * flash / GB)
    assert cost(document, "all-flash").flash_bytes == flash


def test_what_a_new_order_costs_and_what_flash_gains() -> None:
    document = priced()
    slow, fast = cost(document, "baseline"), cost(document, "accelerated")
    nopm = {arm.name: sum(one.nopm for one in arm.repeats) / 3 for arm in document.arms}
    gained = nopm["accelerated"] - nopm["baseline"]
    assert slow.price_per_nopm == pytest.approx(8500 / nopm["baseline"])
    assert (slow.gained_nopm_per_flash_gb, slow.price_per_gained_nopm) == (None, None)
    assert fast.price is not None
    assert fast.gained_nopm_per_flash_gb == pytest.approx(gained * GB / fast.flash_bytes)
    assert fast.price_per_gained_nopm == pytest.approx((fast.price - 8500) / gained)


def test_what_has_no_price_makes_none_up() -> None:
    document = priced(Prices(server=6000, flash_per_gb=1.2))
    assert cost(document, "baseline").price is None
    assert cost(document, "accelerated").price is None
    assert cost(document, "all-flash").price is not None
    first = dict(zip(prices.columns(document), prices.rows(document)[0], strict=True))
    assert first["price"] == words.ABSENT


@pytest.mark.parametrize(
    ("arm", "given", "more"),
    [
        ("split-disks", {"split_disk": 90}, 90),
        ("in-memory", {"memory_per_gb": 4}, 4 * documents.complete(5).database.bytes / GB),  # type: ignore[union-attr]
        ("flash-volume", {}, 1.2 * 2 * documents.GIB / GB),
    ],
)
def test_the_alternatives_have_prices_too(arm: str, given: dict[str, float], more: float) -> None:
    document = documents.complete(5)
    other = Arm.model_validate(document.arms[0].model_dump() | {"name": arm})
    document = document.model_copy(update={"arms": (*document.arms, other)})
    asked = Prices.model_validate(ASKED.model_dump() | given)
    assert cost(prices.with_prices(document, asked), arm).price == pytest.approx(8500 + more)
    if given:
        assert cost(prices.with_prices(document, ASKED), arm).price is None


def test_all_three_say_the_same_and_what_it_is_not() -> None:
    document = priced()
    page, text = html.render(document), markdown.render(document)
    used = Console(file=io.StringIO(), width=140, no_color=True)
    terminal.summary(document, used)
    for said in (page, text, text_of(used)):
        assert all(cell in said for cell in prices.rows(document)[1])
        assert "not a TPC price/performance" in said
    assert RunDocument.model_validate_json(document.model_dump_json()).costs == document.costs
    (figure,) = [one for one in sections.page_of(document).sections if one.key == "price"]
    assert figure.tables[0].rows == tuple(prices.rows(document))


def test_without_prices_it_says_how_to_give_them() -> None:
    document = documents.complete(5)
    for said in (html.render(document), markdown.render(document)):
        assert "server=6000" in said
    (section,) = [one for one in sections.page_of(document).sections if one.key == "price"]
    assert (section.tables, section.panels) == ((), ())


def with_parts() -> RunDocument:
    """Two repeats of the accelerated arm, counted by table."""
    first = (
        Part(name="stock", reads=90, writes=10, hit_ratio=0.5, read_hit_ratio=0.5),
        Part(name="(not in a file)", reads=500, writes=0, hit_ratio=1),
    )
    second = (
        Part(name="stock", reads=300, writes=0, hit_ratio=0.9, read_hit_ratio=0.9),
        Part(name="item", reads=1000, writes=0, hit_ratio=0.99),
    )
    document = documents.complete(5)
    arms = list(document.arms)
    repeats = [
        one.model_copy(update={"parts": of})
        for one, of in zip(arms[1].repeats, (first, second), strict=False)
    ]
    arms[1] = arms[1].model_copy(update={"repeats": tuple(repeats)})
    return document.model_copy(update={"arms": tuple(arms)})


def test_tables_over_the_repeats_the_busiest_first() -> None:
    document = with_parts()
    found = parts.summarize_parts(document)
    assert [part.name for part in found] == ["item", "stock", "(not in a file)"]
    stock = found[1]
    assert (stock.reads, stock.writes) == (390, 10)
    assert stock.hit_ratio == pytest.approx((0.5 * 100 + 0.9 * 300) / 400)
    assert stock.write_hit_ratio is None
    (figure,) = [one for one in sections.page_of(document).sections if one.key == "hits"]
    assert "stock 80.0 %" in figure.panels[0].alt
    assert "| stock | 390 | 10 | 80.0 % |" in markdown.render(document)


def test_a_published_run_can_be_repeated(tmp_path: Path) -> None:
    command = ("hotset", "demo", "--set", "title=two words")
    document = documents.complete(5).model_copy(update={"command": command})
    folder = publish.write(document, tmp_path)
    assert {one.name for one in folder.iterdir()} == {"README.md", "report.md", "result.json"}
    readme = (folder / "README.md").read_text()
    assert "hotset demo --set 'title=two words'" in readme
    assert "Example CPU @ 2.90GHz" in readme
    assert "95 % interval" in readme
    assert "not audited TPC results" in readme
    assert (folder / "report.md").read_text() == markdown.render(document)
    assert RunDocument.model_validate(json.loads((folder / "result.json").read_text())) == document


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (documents.interrupted(), "is interrupted"),
        (documents.complete(5), "does not record its command"),
    ],
)
def test_what_nobody_could_repeat_is_not_published(
    document: RunDocument, says: str, tmp_path: Path
) -> None:
    with pytest.raises(publish.NotPublishable, match=says):
        publish.write(document, tmp_path)
    assert not list(tmp_path.iterdir())
