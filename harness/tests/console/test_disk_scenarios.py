"""What a hybrid disk gains, started on the Benchmarks page and read as its report."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.console_browser import Visitor, chromium, faults, served

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/dev/fuse").exists(), reason="needs root and /dev/fuse"
)


def test_a_scenario_is_run_and_its_report_is_read(tmp_path: Path) -> None:
    with chromium() as browser, served(tmp_path) as console:
        visitor = Visitor(browser, console)
        visitor.log_in()
        page = visitor.page
        page.goto("/benchmarks")
        form = page.locator("form[action='/benchmarks/disk']", has_text="hybrid")
        form.get_by_label("Size of each file").fill("1MB")
        form.get_by_label("Passes").fill("1")
        form.get_by_role("button", name="Run").click()
        page.wait_for_url("**/jobs/*")
        expect(page.locator("h1 .state")).to_have_text("done", timeout=120_000)
        path = page.get_by_role("link", name="Open the report").get_attribute("href")
        assert path is not None
        assert faults(page) == []
        page.goto(path)
        page.wait_for_selector("html[data-drawn='3']")
        expect(page.locator("h1")).to_contain_text("read again")
        for chart in page.locator("[data-chart]").all():
            expect(chart.locator("svg")).to_be_visible()
        visitor.keep(tmp_path, "report")
        page.goto("/benchmarks")
        expect(page.get_by_role("link", name="disk reread")).to_be_visible()
        visitor.close()
