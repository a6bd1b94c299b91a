"""A browser without scripts at a console in this process, for tests of its pages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hotset.console import passwords
from hotset.console.app import create
from hotset.console.sessions import Limits
from hotset.console.web import Settings

PASSWORD = "correct horse battery"  # noqa: S105 - of a test
HERE = "http://localhost"
LIMITS = Limits(wrong_passwords=3)


@pytest.fixture(scope="module")
def hashed() -> str:
    """Made once: a hash is slow on purpose."""
    return passwords._HASHER.hash(PASSWORD)


@pytest.fixture
def client(own_folders: Path, hashed: str) -> Iterator[TestClient]:
    file = own_folders / "XDG_DATA_HOME/hotset/console/password"
    file.parent.mkdir(parents=True)
    file.write_text(hashed)
    app = create(Settings(limits=LIMITS))
    with TestClient(app, base_url=HERE, follow_redirects=False) as browser:
        yield browser


def token_on(text: str) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', text)
    assert found, text
    return found[1]


def token_of(browser: TestClient) -> str:
    return token_on(browser.get("/runs").text)


def try_password(browser: TestClient, password: str = PASSWORD, target: str = "/") -> object:
    token = token_on(browser.get("/login").text)
    return browser.post("/login", data={"password": password, "csrf": token, "next": target})
