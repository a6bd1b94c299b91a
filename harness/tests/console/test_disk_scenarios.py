"""The scenarios on modelled disks, started on the Benchmarks page and read as their reports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.console_browser import PHONE, Visitor, chromium, faults, served
from tests.support.marks import needs_root

pytestmark = [pytest.mark.night, needs_root]


@dataclass(frozen=True)
class Scenario:
    """``form``: what its form is known by; ``small``: what makes it short; ``charts``: how many its
    report has."""

    form: str
    small: dict[str, str]
    operation: str
    title: str
    charts: int


SCENARIOS = (
    Scenario("hybrid", {"Size of each file": "1MB", "Passes": "1"}, "disk reread", "read again", 3),
    Scenario(
        "SSD arrays",
        {"Size of the test file": "64MiB", "Seconds": "0.5", "Repeats": "1"},
        "disk arrays",
        "SSDs in their place",
        1,
    ),
)


WHOLE = (
    "[...document.querySelectorAll('.scroll')].every((one) => one.scrollWidth <= one.clientWidth)"
)
"""No column of a table is out of sight."""


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda one: one.operation.split()[1])
def test_a_scenario_is_run_and_its_report_is_read(scenario: Scenario, tmp_path: Path) -> None:
    with chromium() as browser, served(tmp_path) as console:
        visitor = Visitor(browser, console)
        visitor.log_in()
        page = visitor.page
        page.goto("/benchmarks")
        form = page.locator("form[action='/benchmarks/disk']", has_text=scenario.form)
        for label, value in scenario.small.items():
            form.get_by_label(label).fill(value)
        form.get_by_role("button", name="Run").click()
        page.wait_for_url("**/jobs/*")
        expect(page.locator("h1 .state")).to_have_text("done", timeout=240_000)
        visitor.keep(tmp_path, "job")
        assert "{'" not in page.locator("main").inner_text(), "its records are the report's"
        path = page.get_by_role("link", name="Open the report").get_attribute("href")
        assert path is not None
        assert faults(page) == []
        for size in (page.viewport_size, PHONE):
            assert size is not None
            page.set_viewport_size(size)  # type: ignore[arg-type]
            page.goto(path)
            page.wait_for_selector(f"html[data-drawn='{scenario.charts}']")
            expect(page.locator("h1")).to_contain_text(scenario.title)
            for chart in page.locator("[data-chart]").all():
                expect(chart.locator("svg")).to_be_visible()
            visitor.keep(tmp_path, "report")
            assert faults(page) == []
            assert size == PHONE or page.evaluate(WHOLE)
        visitor.inspect("/benchmarks", "form", tmp_path)
        listed = f"Modelled disks: {scenario.operation.split()[1]}"
        expect(page.get_by_role("link", name=listed)).to_be_visible()
        visitor.close()
