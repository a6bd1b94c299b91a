"""Pictures of every page of the console, for docs/: ``make screenshots``, as root.

It starts a lab with a loaded database on this computer, and a console; has the console plan a
warm-up and run TPC-C; takes a picture of each page meanwhile; and stops both. The week before, in
the charts, is simulated. The pages *Runs* and *Sizing* show your own archive: run `make demo`
first.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page, ViewportSize, expect, sync_playwright

from hotset.core.machines.local import Local
from hotset.core.paths import data_dir
from hotset.monitoring.history import opening
from hotset.monitoring.history.observation import Facts
from hotset.operations import activity

from . import simulated_week

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/images"
CHROMIUM = "/usr/bin/chromium"
HOTSET = str(Path(sys.executable).with_name("hotset"))
SIZE: ViewportSize = {"width": 1100, "height": 480}
PASSWORD = "pictures of every page"  # noqa: S105 - of a console that lives for a minute
TPCC_S, SHOWN_AFTER_S = 60, 40


def main() -> None:
    """Take the pictures."""
    with tempfile.TemporaryDirectory(prefix="hotset-screenshots-") as folder:
        kept = data_dir() / "runs"
        os.environ |= {"XDG_STATE_HOME": f"{folder}/state", "XDG_DATA_HOME": f"{folder}/data"}
        if kept.is_dir():
            shutil.copytree(kept, data_dir() / "runs")
        try:
            subprocess.run([HOTSET, "lab", "up", "--machine", "local"], check=True)
            _simulate_week()
            with _console(Path(folder)) as url, sync_playwright() as driver:
                browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
                page = browser.new_page(base_url=url, viewport=SIZE)
                page.set_default_timeout(60_000)
                _take(page)
                browser.close()
        finally:
            subprocess.run([HOTSET, "lab", "down"], check=True)


def _take(page: Page) -> None:
    page.goto("/login")
    _keep(page, "login")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Log out")).to_be_visible()
    page.goto("/warmup")
    page.fill("#f-targets", "database:tpcc")
    page.get_by_role("button", name="Plan", exact=True).click()
    expect(page.locator("#plan")).to_contain_text("to fetch")
    _keep(page, "warmup")
    page.goto("/benchmarks")  # the lab's database is filled in
    page.fill("#f-c-duration", str(TPCC_S))
    page.get_by_role("button", name="Run", exact=True).first.click()
    page.wait_for_url("**/jobs/*")
    job = page.url
    page.goto("/")
    page.wait_for_selector("section.disk .answer")
    time.sleep(SHOWN_AFTER_S)
    page.goto("/?span=24h")
    page.wait_for_selector("#told .events")
    page.wait_for_selector("section.disk .answer")
    _keep(page, "overview")
    page.goto("/disks")
    page.wait_for_selector("section.disk")
    _keep(page, "disks")
    page.goto("/disks/lab/history?span=7d")
    page.wait_for_selector("#told .events")
    _keep(page, "history")
    page.goto("/flash")
    page.wait_for_selector("#f-flash")
    _keep(page, "flash")
    page.goto(job)
    expect(page.locator("h1 .state")).to_have_text("done", timeout=120_000)
    _keep(page, "job")
    pages = {"benchmarks": "#f-c-dsn", "hits": "#hits table", "heat": "#heat table"}
    for name, ready in (pages | {"audit": "table", "health": ".findings"}).items():
        page.goto(f"/{name}")
        page.wait_for_selector(ready)
        _keep(page, name)
    _take_runs(page)


def _simulate_week() -> None:
    """The week before the lab was up, as if its disk had been there."""
    (lab,) = activity.disks(Local())
    facts = Facts(lab.identity, lab.name, lab.kind, lab.policy, lab.mode, lab.cache)
    simulated_week.write(opening.path_of("local"), time.time(), facts)


def _take_runs(page: Page) -> None:
    page.goto("/runs")
    page.wait_for_selector("table")
    _keep(page, "runs")
    page.goto("/sizing")
    page.get_by_label("Disk").select_option(index=1)
    page.get_by_label("Price of a GiB").fill("0.20")
    page.get_by_role("button", name="Show").click()
    # What a disk needs is worked out from its counts.
    expect(page.get_by_role("columnheader", name="Price")).to_be_visible(timeout=60_000)
    _keep(page, "sizing")


def _keep(page: Page, name: str) -> None:
    page.screenshot(path=FOLDER / f"console-{name}.png", full_page=True)


@contextmanager
def _console(folder: Path) -> Iterator[str]:
    """A console; gives its address."""
    password = folder / "password"
    password.write_text(f"{PASSWORD}\n")
    with subprocess.Popen(
        [HOTSET, "console", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOTSET_CONSOLE_PASSWORD_FILE": str(password)},
    ) as process:
        assert process.stderr is not None
        match = re.search(r"https?://\S+", process.stderr.readline())
        assert match is not None
        try:
            yield match[0].rstrip("/")
        finally:
            process.send_signal(signal.SIGINT)


if __name__ == "__main__":
    main()
