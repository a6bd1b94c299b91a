"""Every page in a real browser: when there is nothing yet, and with runs in the archive."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from hotset.operations.jobs import store as jobs
from hotset.reports.archive import Archive
from tests import documents
from tests.cli_server import XDG
from tests.console_browser import PASSWORD, PHONE, Served, Visitor, faults, served
from tests.silent_server import silent_server

OFFER = ".empty:has(a:text-is('Accelerate a disk')):has(button:text-is('Start the lab'))"
PAGES = {
    "/": f"#live {OFFER}",
    "/health": OFFER,
    "/flash": f"main:has({OFFER}):has(#split-form, .empty:has-text('No block device'))",
    "/disks": OFFER,
    "/warmup": OFFER,
    "/hits": OFFER,
    "/heat": OFFER,
    "/lab": "text=Start the lab",
    "/benchmarks": OFFER,
    "/runs": ".empty",
    "/sizing": ".empty",
    "/audit": "table",
}
"""What makes each whole where nothing was done yet."""


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One that nothing is ever done with: its pages stay empty."""
    root = tmp_path_factory.mktemp("console")
    with served(root, env={variable: str(root / variable) for variable in XDG}) as found:
        yield found


@pytest.fixture
def visitor(browser: Browser, console: Served) -> Iterator[Visitor]:
    yield from visiting(browser, console)


@pytest.fixture
def archivist(browser: Browser, tmp_path: Path) -> Iterator[Visitor]:
    """At a console of the test's own, with the test's archive."""
    with served(tmp_path) as found:
        yield from visiting(browser, found)


def visiting(browser: Browser, console: Served) -> Iterator[Visitor]:
    found = Visitor(browser, console)
    found.log_in()
    yield found
    found.close()


def archive(name: str, users: int = 16) -> None:
    document = documents.complete(5).model_copy(update={"run": name}, deep=True)
    document.experiment.spec["tpcc"]["users"] = users  # type: ignore[index,call-overload]
    Archive.default().path(name).mkdir(parents=True)
    Archive.default().save(document)


def test_each_page_says_what_to_do_first(visitor: Visitor, tmp_path: Path) -> None:
    for path, ready in PAGES.items():
        visitor.inspect(path, ready, tmp_path)
    visitor.page.goto("/")
    visitor.page.get_by_role("link", name="Accelerate a disk").click()
    expect(visitor.page.get_by_role("heading", name="Accelerate a disk")).to_be_visible()


@pytest.mark.night
@pytest.mark.parametrize(
    "options", [{"color_scheme": "dark"}, {"viewport": PHONE}], ids=["dark", "phone"]
)
def test_also_in_the_dark_and_on_a_phone(
    browser: Browser, console: Served, tmp_path: Path, options: dict[str, object]
) -> None:
    visitor = Visitor(browser, console, **options)
    visitor.page.goto("/login")
    visitor.keep(tmp_path, "login")
    assert faults(visitor.page) == []
    visitor.log_in()
    for path, ready in PAGES.items():
        visitor.inspect(path, ready, tmp_path)
    visitor.close()


@pytest.mark.night
def test_by_keyboard_alone(visitor: Visitor) -> None:
    page = visitor.page
    page.goto("/runs")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    names = []
    for _ in range(9):
        page.keyboard.press("Tab")
        names.append(page.evaluate("document.activeElement.textContent.trim()"))
    assert names == [
        "hotset",
        "Log out",
        "Overview",
        "Health",
        "Flash",
        "Disks",
        "Warm-up",
        "Hit ratios",
        "Hot data",
    ]
    page.get_by_role("link", name="Disks").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Disks")).to_be_visible()
    page.get_by_role("button", name="Log out").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_a_wrong_password_is_said_and_the_field_is_ready(browser: Browser, console: Served) -> None:
    visitor = Visitor(browser, console)
    page = visitor.page
    page.goto("/runs")
    expect(page.locator("input[type=password]")).to_be_focused()
    page.keyboard.type("not the password")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("That is not the password.")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url("**/runs")
    visitor.close()


@pytest.mark.night
def test_runs_are_listed_compared_read_and_deleted(archivist: Visitor, tmp_path: Path) -> None:
    page = archivist.page
    archive("20261120-100000-demo")
    archive("20261121-100000-demo")
    archivist.inspect("/runs", "table", tmp_path)
    expect(page.locator("tbody tr")).to_have_count(2)
    with page.context.expect_page() as opened:
        page.get_by_role("link", name=re.compile("^demo")).first.click()
    report = opened.value
    expect(report.locator(".chart svg").first).to_be_visible()
    assert report.evaluate("self.origin") == "null", "a report cannot reach the console"
    report.close()

    for box in page.get_by_role("checkbox").all():
        box.check()
    page.get_by_role("button", name="Compare selected runs").click()
    expect(page.get_by_role("heading", name="Runs compared")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("accelerated"))).to_contain_text(
        ["not significant"]
    )
    archivist.keep(tmp_path, "compared")
    assert faults(page) == []

    page.goto("/runs")
    page.get_by_role("link", name="Trend of 20261121-100000-demo").click()
    expect(page.get_by_text("No change of level")).to_be_visible()
    expect(page.locator("svg.trend circle")).to_have_count(2)
    page.get_by_label("Value", exact=True).select_option("factor")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("heading", name="Trend of factor")).to_be_visible()
    archivist.keep(tmp_path, "trend")
    assert faults(page) == []

    page.goto("/runs")
    page.get_by_role("link", name="Delete 20261121-100000-demo").click()
    page.get_by_role("button", name="Delete").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    assert [row.run for row in Archive.default().listing()] == ["20261120-100000-demo"]

    archive("20261122-100000-demo", users=32)
    page.goto("/runs/compare?run=20261120-100000-demo&run=20261122-100000-demo")
    expect(page.get_by_role("row", name="tpcc.users 16 32")).to_be_visible()
    page.get_by_role("button", name="Compare anyway").click()
    expect(page.get_by_role("row", name=re.compile("accelerated"))).to_be_visible()


@pytest.mark.night
def test_a_job_survives_a_reload_and_a_restart_of_the_console(
    browser: Browser, tmp_path: Path
) -> None:
    """It waits for a server that never answers, until it is cancelled by another console."""
    with silent_server() as dsn:
        with served(tmp_path) as console:
            visitor = Visitor(browser, console)
            page = visitor.log_in()
            page.goto("/benchmarks")
            form = page.locator("form[action='/benchmarks/tpcc']")
            form.locator("[name=dsn]").fill(f"{dsn} password=visible")
            form.get_by_role("button", name="Check the tables").click()
            expect(form.get_by_role("alert")).to_contain_text("dsn")
            assert jobs.every() == [], "a password in a DSN never gets that far"
            form.locator("[name=dsn]").fill(dsn)
            form.get_by_role("button", name="Check the tables").click()
            page.wait_for_url("**/jobs/*")
            page.reload()
            expect(page.locator("h1 .state")).to_have_text("running")
            path = page.url.removeprefix(console.url)
            visitor.close()
        assert jobs.every()[0].running
        with served(tmp_path) as console:
            visitor = Visitor(browser, console)
            page = visitor.log_in()
            expect(page.locator("#running")).to_contain_text("TPC-C check")
            visitor.inspect(path, "h1 .state.running", tmp_path)
            page.get_by_role("button", name="Cancel").click()
            expect(page.locator("h1 .state")).to_have_text("interrupted")
            assert faults(page) == []
            page.get_by_role("button", name="Remove from list").click()
            page.wait_for_url("**/benchmarks")
            visitor.close()
    assert jobs.every() == []


@pytest.mark.night
def test_a_session_that_ends_elsewhere_ends_the_live_page(visitor: Visitor) -> None:
    visitor.page.goto("/")
    expect(visitor.page.locator("#live .empty")).to_be_visible()
    other = visitor.opened()
    other.goto("/runs")
    other.get_by_role("button", name="Log out").click()
    expect(visitor.page.get_by_text("You were logged out")).to_be_visible()
