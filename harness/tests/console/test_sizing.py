"""How much flash: a curve learned from a run, with a slider over it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from rich.console import Console

from hotset.console import web
from hotset.console.filters import rate
from hotset.console.pages import sizing
from hotset.core.units import Bytes
from hotset.hitratio.heat import Grid
from hotset.reports.archive import Archive
from hotset.whatif.commands import models
from hotset.whatif.doubt import doubt_of, in_words
from hotset.whatif.flash import FlashNeeds, needs
from tests.console_browser import Visitor, faults, served
from tests.whatif.published import published

DEMO = "20261121-220932-demo"


@pytest.fixture
def visitor(browser: Browser, tmp_path: Path) -> Iterator[Visitor]:
    run = published(DEMO)
    with served(tmp_path) as console:
        Archive.default().path(run.run).mkdir(parents=True)
        Archive.default().save(run)
        found = Visitor(browser, console)
        found.log_in()
        yield found
        found.close()


def slide(page: Page, to: float) -> None:
    """``to``: of its whole length."""
    slider = page.get_by_role("slider", name="Hit ratio")
    first, last = (float(slider.get_attribute(end) or "") for end in ("min", "max"))
    slider.fill(str(first + to * (last - first)))


def nopm(page: Page) -> float:
    said = page.locator("#chosen").inner_text()
    found = re.search(r"hits: ([0-9,.]+) NOPM", said)
    assert found, said
    return float(found[1].replace(",", ""))


@pytest.mark.night
def test_the_slider_walks_along_the_curve(visitor: Visitor, tmp_path: Path) -> None:
    page = visitor.inspect("/sizing", "#chosen", tmp_path)
    rows = page.locator("#curve tbody tr")
    expect(rows).to_have_count(19)
    enough = nopm(page)
    slide(page, 1)
    most = nopm(page)
    assert 0.95 * most <= enough < most
    expect(page.locator("#curve tr[aria-current]")).to_contain_text("100.0 %")
    right = page.locator("#marker").bounding_box()
    slide(page, 0)
    left = page.locator("#marker").bounding_box()
    assert right
    assert left
    assert right["x"] > left["x"]
    assert right["y"] < left["y"], "more NOPM stand higher"
    assert nopm(page) == float(
        page.locator("tr[aria-current] td").first.inner_text().replace(",", "")
    )
    assert "1× nothing cached" in page.locator("#chosen").inner_text()
    page.get_by_role("slider").press("ArrowRight")
    expect(page.locator("tr[aria-current]")).to_contain_text("20.0 %")
    slide(page, 0.926)
    expect(page.locator("tr[aria-current] th")).to_have_text("92.0 %")
    assert faults(page) == []


def test_another_set_up_gives_another_curve(visitor: Visitor) -> None:
    page = visitor.page
    page.goto("/sizing")
    expect(page.locator("#chosen")).to_be_visible()
    slide(page, 0)
    slow = nopm(page)
    page.get_by_label("Slow storage").select_option("hdd-raid5-2014")
    expect(page.get_by_text("Slow storage: hdd-raid5-2014")).to_be_visible()
    slide(page, 0)
    assert nopm(page) != slow
    # While earlier answers are under way: the last question counts.
    page.get_by_label("Users").evaluate("it => it.form.noValidate = true")
    page.get_by_label("Slow storage").select_option("")
    page.get_by_label("Cores").fill("4")
    page.get_by_label("Users").fill("2001")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#curve")).to_contain_text("less than or equal to 2000")


def test_without_a_run_the_flash_of_a_disk_whose_heat_is_counted_is_shown() -> None:
    """The page once wanted a run first, which `whatif flash` does not need."""
    grid = Grid(Bytes(10 << 30), Bytes(1 << 30), Bytes(0))
    counted = needs({0: 81.0} | dict.fromkeys(range(1, 10), 1.0), grid, [0.9, 1.0])
    found = FlashNeeds("shop", grid.region, tuple(counted), None).document()
    page = web.template("sizing_needs.html").render(found=found, price=0.25)
    assert "hottest regions of shop" in page
    assert re.search(r"90.0 %</th><td[^>]*>1 GiB</td><td[^>]*>10.0 %</td><td[^>]*>0.25</td>", page)
    form = web.template("sizing.html").render(
        path="/sizing",
        navigation=(),
        machine="local",
        csrf="",
        runs=[],
        disks=["shop"],
        storages=["nas-2014"],
    )
    assert 'hx-get="/sizing/curve"' in form
    assert "There is no run yet to learn NOPM from" in form
    assert 'name="run"' not in form


def test_with_flash_the_curve_goes_by_its_size() -> None:
    run = published(DEMO)
    Archive.default().path(run.run).mkdir(parents=True)
    Archive.default().save(run)
    # The hottest tenth of a disk of 10 GiB gets nine tenths of the requests.
    grid, ratios = Grid(Bytes(10 << 30), Bytes(1 << 30), Bytes(0)), [0.0, 0.9, 1.0]
    heats = {0: 81.0} | dict.fromkeys(range(1, 10), 1.0)
    predicted = models.predict_run(run.run, models.Predict(run=run.run), ratios)
    flash = tuple(needs(heats, grid, ratios))
    found = FlashNeeds("shop", grid.region, flash, predicted)
    shown = sizing._show(found.document(), 0.25)
    points = shown["points"]
    assert [one.x for one in points] == ["20.0", "116.0", "980.0"]
    assert [one.price for one in points] == [0.0, 0.25, 2.5]
    assert points[2].words.endswith("10 GiB of flash at least. That flash costs 2.50.")
    assert shown["best"] == 2
    page = web.template("sizing_curve.html").render(**shown)
    assert re.search(r"90.0 %</th>\s*<td[^>]*>1 GiB</td>\s*<td[^>]*>0.25</td>", page)
    # One model: the range of the command, and what it is made of.
    line = predicted.lines[1]
    assert line.nopm_high / line.nopm_low == pytest.approx(doubt_of("hit ratio").factor ** 2)
    assert f"({rate(line.nopm_low)} to {rate(line.nopm_high)})" in points[1].words
    shown_text = StringIO()
    found.show(Console(width=1000, file=shown_text))
    for text in (html.unescape(page), shown_text.getvalue()):
        assert in_words(predicted.doubts) in text
    assert "how many misses promote a block" in page
