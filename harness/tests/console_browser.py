"""A console of a test's own, as a process, and a browser that looks at it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, TimeoutError, expect, sync_playwright

PASSWORD = "correct horse battery"  # noqa: S105 - of a console that lives for a minute
CHROMIUM = Path("/usr/bin/chromium")
PHONE = {"width": 390, "height": 844}
LIMIT_MS = 240_000
"""Of a machine whose CPU may be emulated, on a busy computer."""

expect.set_options(timeout=LIMIT_MS)


@dataclass(frozen=True)
class Served:
    """A console that answers at ``url``."""

    url: str
    pid: int


@contextmanager
def served(
    folder: Path, machine: str = "local", env: Mapping[str, str] | None = None, *options: str
) -> Iterator[Served]:
    """``hotset console``, from its first start to Ctrl-C, which ends it in good order."""
    password = folder / "password"
    password.write_text(f"{PASSWORD}\n")
    program = Path(sys.executable).with_name("hotset")
    with subprocess.Popen(
        [str(program), "console", "--port=0", "--machine", machine, *options],
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "HOTSET_CONSOLE_PASSWORD_FILE": str(password), **(env or {})},
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"https?://\S+", line)
        try:
            assert found, line + process.stderr.read()
            if found[0].startswith("https"):
                assert process.stderr.readline().startswith("certificate, SHA-256: ")
            yield Served(found[0].rstrip("/"), process.pid)
        finally:
            process.send_signal(signal.SIGINT)
            code = process.wait(20)
            said = process.stderr.read()
    assert (code, said) == (0, ""), f"code {code}: {said}"


@contextmanager
def chromium() -> Iterator[Browser]:
    """The system's. Its own context, as the driver keeps an event loop in this thread."""
    if not CHROMIUM.exists() and "ID=ubuntu\n" in Path("/etc/os-release").read_text():
        pytest.skip("Ubuntu has chromium only as a snap, which tests cannot steer")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


class Visitor:
    """A browser of its own that is logged in; what it complains about fails the test."""

    def __init__(self, browser: Browser, console: Served, **options: object) -> None:
        self._context = browser.new_context(base_url=console.url, **options)  # type: ignore[arg-type]
        self._context.set_default_timeout(LIMIT_MS)
        self.complaints: list[str] = []
        self.page = self.opened()

    def opened(self) -> Page:
        """A further page of the same session."""
        page = self._context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda said: self._heard(said.type, said.text))
        return page

    def log_in(self, password: str = PASSWORD) -> Page:
        """By keyboard."""
        self.page.goto("/login")
        # A busy browser takes a while until the field has the keyboard.
        expect(self.page.get_by_label("The console's password")).to_be_focused()
        self.page.keyboard.type(password)
        self.page.keyboard.press("Enter")
        expect(self.page.get_by_role("button", name="Log out")).to_be_visible()
        return self.page

    def inspect(self, path: str, ready: str, picture: Path, axe: bool = True) -> Page:
        """Go there, wait for what makes it whole, keep a picture, and look for faults.

        :param picture: the folder for it.
        """
        self.page.goto(path)
        try:
            self.page.wait_for_selector(ready)
        except TimeoutError as error:
            raise AssertionError(f"no {ready} in: {self.page.inner_text('main')}") from error
        self.keep(picture, urlsplit(path).path.strip("/").replace("/", "-") or "overview")
        if axe:
            assert faults(self.page) == []
        return self.page

    def keep(self, folder: Path, name: str) -> None:
        """A picture, in folders of the test; the page may not be wider than the screen."""
        size = self.page.viewport_size
        assert size is not None
        self.page.screenshot(path=folder / f"{name}-{size['width']}.png", full_page=True)
        assert self.page.evaluate("document.documentElement.scrollWidth") <= size["width"], name

    def close(self) -> None:
        self._context.close()
        assert self.complaints == []

    def _heard(self, kind: str, text: str) -> None:
        # An answer of 4xx is what some tests ask for; the browser reports each.
        if kind in ("error", "warning") and "the server responded with a status of 4" not in text:
            self.complaints.append(text)


def faults(page: Page) -> list[str]:
    """Serious and critical faults of accessibility."""
    found = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]}"
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
