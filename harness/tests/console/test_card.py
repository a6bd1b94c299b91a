"""Setting up a card: what the command line refuses, the review refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hotset.block import devices
from hotset.console import passwords
from hotset.console.app import create
from hotset.console.backend import Backend
from hotset.console.web import Settings
from hotset.core.machines.local import Local
from hotset.disk import cache_device as cards

HERE = "http://127.0.0.1"
WORDS = "a password of the tests"


@pytest.fixture
def client(own_folders: Path) -> Iterator[TestClient]:
    file = own_folders / "XDG_DATA_HOME/hotset/console/password"
    file.parent.mkdir(parents=True)
    file.write_text(passwords._HASHER.hash(WORDS))
    with TestClient(create(Settings()), base_url=HERE, follow_redirects=False) as browser:
        page = browser.get("/login").text
        token = page.partition('name="csrf" value="')[2][:64]
        browser.post("/login", data={"password": WORDS, "csrf": token})
        yield browser


def test_the_review_refuses_one_device_for_both(client: TestClient) -> None:
    """By the operation's own dry run: nothing of it is known to the page."""
    found = devices.every(Local())
    if not found:
        pytest.skip("this computer has no block device")
    path = str(found[0].path)
    asked = {"flash": path, "origin": path, "disk": "shop", "kind": "userspace"}
    answer = client.get("/card/review", params=asked)
    assert answer.status_code in (409, 422)
    assert "Set up the cache" not in answer.text
    assert cards.known_cards(Local()) == []


def test_the_first_kind_is_one_that_the_machine_can_have() -> None:
    lacks = {"dm-cache": "the kernel's dm-cache", "bcache": "", "userspace": ""}
    found = Backend((), (), lacks)  # type: ignore[arg-type]
    assert found.first_kind == "bcache"
    assert found.kinds[0] == ("dm-cache", "dm-cache: this machine lacks the kernel's dm-cache")
    none = Backend((), (), {"dm-cache": "root"})
    assert none.first_kind is None
