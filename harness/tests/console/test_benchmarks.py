"""TPC-C through the Benchmarks page on a real server: watched live, cancelled, and read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from hotset.databases.postgres.product import PostgresDatabase
from hotset.operations.jobs import store as jobs
from tests.console_browser import PHONE, Visitor, chromium, faults, served
from tests.postgres_cluster import PASSWORD, WAREHOUSES

pytestmark = [pytest.mark.database, pytest.mark.night]


@pytest.fixture
def visitors(tmp_path: Path) -> Iterator[tuple[Visitor, Visitor]]:
    """Two browsers at one console: a desk and, in the dark, a phone."""
    with chromium() as browser, served(tmp_path) as console:
        desk = Visitor(browser, console)
        phone = Visitor(browser, console, viewport=PHONE, color_scheme="dark")
        for one in (desk, phone):
            one.log_in()
        yield desk, phone
        for one in (desk, phone):
            one.close()


def begin(page: Page, database: PostgresDatabase, seconds: int) -> str:
    """Start a run from the page; returns its path."""
    page.goto("/benchmarks")
    form = page.locator("form[action='/benchmarks/tpcc']")
    name_database(form, database)
    form.get_by_label("Warehouses").fill(str(WAREHOUSES))
    form.get_by_label("Users").fill("2")
    form.get_by_label("Ramp-up").fill("0")
    form.get_by_label("Window").fill(str(seconds))
    form.get_by_label("Consistency").select_option("false")
    form.get_by_role("button", name="Run").click()
    page.wait_for_url("**/jobs/*")
    return "/jobs/" + page.url.rpartition("/")[2]


def name_database(form: Locator, database: PostgresDatabase) -> None:
    form.get_by_label("Database").fill(
        f"postgresql://{database.user}@{database.host}:{database.port}/{database.dbname}"
    )
    form.get_by_label("Its password").fill(PASSWORD)


def test_a_run_is_watched_by_two_and_another_is_cancelled(
    visitors: tuple[Visitor, Visitor], database: PostgresDatabase, tmp_path: Path
) -> None:
    desk, phone = visitors
    path = begin(desk.page, database, 5)
    phone.page.goto("/")
    figure = phone.page.locator("#running dl.figures div", has_text="TPM").locator("dd")
    expect(figure).to_have_text(re.compile(r"^[1-9][\d,]*$"))
    expect(phone.page.locator("#tpm canvas")).to_be_visible()
    phone.keep(tmp_path, "overview-with-a-run")
    expect(desk.page.locator("#tpm canvas")).to_be_visible()
    expect(desk.page.locator("#progress")).to_contain_text("NOPM")
    desk.keep(tmp_path, "running")

    phone.page.goto(path)
    for page in (desk.page, phone.page):
        expect(page.locator("h1 .state")).to_have_text("done")
        figure = page.locator("dl.figures div", has_text="TPM").locator("dd")
        assert int(figure.inner_text().replace(",", "")) > 0
        expect(page.locator("#latency canvas")).to_be_visible()
        expect(page.get_by_role("rowheader", name="order-status").first).to_be_visible()
        expect(
            page.locator(".told p").filter(has_text="TPC-C's limits on response times")
        ).to_be_visible()
        expect(page.locator(".told p").filter(has_text="the users' time:")).to_be_visible()
        assert faults(page) == []
    phone.keep(tmp_path, "done")

    begin(desk.page, database, 600)
    expect(desk.page.locator("#tpm canvas")).to_be_visible()
    desk.page.get_by_role("button", name="Cancel").click()
    expect(desk.page.locator("h1 .state")).to_have_text("interrupted")
    desk.inspect("/benchmarks", "table", tmp_path)
    expect(desk.page.locator("td.latest", has_text="NOPM")).to_be_visible()
    cancelled, finished = jobs.every()
    assert (cancelled.state, finished.state) == ("interrupted", "done")
    for file in (tmp_path / "xdg").rglob("*"):
        assert not file.is_file() or PASSWORD not in file.read_text(errors="replace"), file


def test_tpch_is_built_checked_and_run(
    visitors: tuple[Visitor, Visitor], empty: PostgresDatabase, tmp_path: Path
) -> None:
    desk, _ = visitors
    page = desk.page
    for button in ("Build the tables", "Check the tables", "Run"):
        page.goto("/benchmarks")
        form = page.locator("form[action='/benchmarks/tpch']")
        name_database(form, empty)
        form.get_by_label("Scale").fill("0.01" if button.startswith("Build") else "")
        form.get_by_role("button", name=button).click()
        page.wait_for_url("**/jobs/*")
        expect(page.locator("h1 .state")).to_have_text("done")
    figure = page.locator("dl.figures div", has_text="22 queries").locator("dd")
    assert float(figure.inner_text().removesuffix(" s")) > 0
    expect(page.get_by_role("row", name=re.compile("^22 ")).first).to_be_visible()
    desk.keep(tmp_path, "tpch")
    assert faults(page) == []
