"""The three daily acts in the console, by somebody who types nothing: a warm-up, a TPC-C run, the
hit-ratio report. And what else a form does there: a share is set, a table pinned."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from hotset.block import programs
from hotset.core.machines.local import Local
from hotset.experiment.site import live
from hotset.tier import pins
from tests.console_browser import Served, Visitor, chromium, served
from tests.one_lab import ON_ONE_LAB, one_lab

pytestmark = ON_ONE_LAB
WINDOW_S = 5


@pytest.fixture
def console(tmp_path: Path) -> Iterator[Served]:
    with one_lab(), served(tmp_path, "local") as found:
        yield found


class Hand:
    """Counts what an operator does."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, role: str, name: str) -> None:
        self.page.get_by_role(role, name=name, exact=True).first.click()  # type: ignore[arg-type]
        self.clicks += 1

    def job_is_done(self) -> None:
        self.page.wait_for_url("**/jobs/*")
        expect(self.page.locator("h1 .state")).to_have_text("done", timeout=300_000)


def test_the_daily_acts_take_few_clicks_and_no_reading(console: Served, tmp_path: Path) -> None:
    with chromium() as browser:
        visitor = Visitor(browser, console)
        page = visitor.log_in()
        hand = Hand(page)
        visitor.inspect("/", "#live .empty", tmp_path)
        hand.click("button", "Start the lab")
        hand.job_is_done()
        hand.clicks, begun = 0, time.monotonic()

        hand.click("link", "Warm-up")
        hand.click("button", "Start warm-up")
        hand.job_is_done()
        expect(page.locator("dl.figures")).to_contain_text("cached")

        hand.click("link", "Benchmarks")
        for field, text in {"rampup": "1", "duration": str(WINDOW_S)}.items():
            page.fill(f"#f-c-{field}", text)  # or the test would take a minute more
        hand.click("button", "Run")
        hand.job_is_done()
        expect(page.locator("dl.figures")).to_contain_text("TPM", ignore_case=True)

        expect(page.locator(".verdicts")).to_contain_text("12 of 12 conditions hold")
        expect(page.get_by_role("rowheader", name="order-status").first).to_be_visible()

        hand.click("link", "Hit ratios")
        expect(page.get_by_role("row", name=re.compile(r"^hotset_tpcc\.stock "))).to_be_visible()
        took = time.monotonic() - begun
        print(f"{hand.clicks} clicks, {took:.0f} s")
        assert hand.clicks <= 5
        assert took < 180
        visitor.inspect("/hits", "#hits table", tmp_path)
        shared(page)
        pinned(page)
        sized(page)
        visitor.inspect("/lab", "text=Take the lab down", tmp_path)
        expect(page.get_by_role("link", name="Lab", exact=True)).to_be_visible()
        hand.click("button", "Take the lab down")
        hand.job_is_done()
        page.goto("/runs")
        expect(page.get_by_role("link", name="Lab", exact=True)).to_have_count(0)
        visitor.close()
    # The next lab has no share of this one's.
    assert pins.read_preferences(Local(), live.DISK) == pins.Preferences()
    assert not Path(programs.SCRIPTS, f"{live.DISK}.shares.json").exists()


def sized(page: Page) -> None:
    """Without a run to learn from, by the heat that is counted; and before a size is asked for,
    the present one."""
    page.goto("/sizing")
    expect(page.get_by_text(f"hottest regions of {live.DISK}")).to_be_visible()
    page.goto(f"/disks/{live.DISK}/resize")
    expect(
        page.get_by_text(re.compile(r"It is [\d.]+ MiB now, and .* of the flash is free"))
    ).to_be_visible()


def pinned(page: Page) -> None:
    """From the page of what is hot, and from there no more."""
    for verb, kept in (("Pin", ("table:hotset_tpcc.item",)), ("Unpin", ())):
        page.goto("/heat")
        page.get_by_role("button", name=f"{verb} table:hotset_tpcc.item").click()
        page.wait_for_url("**/jobs/*")
        expect(page.locator("h1 .state")).to_have_text("done")
        assert pins.read_preferences(Local(), live.DISK).pinned == kept


def shared(page: Page) -> None:
    page.goto("/warmup")
    page.get_by_text("Pinned, excluded and shared").click()
    page.fill("#f-g-target", "table:hotset_tpcc.stock")
    page.fill("#f-g-guarantee", "10%")
    page.fill("#f-g-limit", "40%")
    page.get_by_role("button", name="Set the share").click()
    page.wait_for_url("**/jobs/*")
    expect(page.locator("h1 .state")).to_have_text("done")
    (share,) = pins.read_preferences(Local(), live.DISK).shares
    assert (share.target, share.guarantee, share.limit) == ("table:hotset_tpcc.stock", "10%", "40%")
    page.goto("/warmup")
    page.get_by_text("Pinned, excluded and shared").click()
    expect(page.get_by_text("guaranteed 10%, limit 40%")).to_be_visible()
