"""Setting up a flash device: what the command line refuses, the review refuses."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from hotset.block import devices
from hotset.console.backend import Offer
from hotset.core.machines.local import Local
from hotset.disk import flash_devices
from tests.console_client import client, hashed, try_password

__all__ = ["client", "hashed"]


def test_the_review_refuses_one_device_for_both(client: TestClient) -> None:
    """By the operation's own dry run: nothing of it is known to the page."""
    found = devices.every(Local())
    if not found:
        pytest.skip("this computer has no block device")
    try_password(client)
    path = str(found[0].path)
    asked = {"flash": path, "origin": path, "disk": "shop", "kind": "userspace"}
    answer = client.get("/flash/review", params=asked)
    assert answer.status_code in (409, 422)
    assert "Set up the cache" not in answer.text
    assert flash_devices.list_all(Local()) == []


def test_the_first_kind_is_one_that_the_machine_can_have() -> None:
    lacks = {"dm-cache": "the kernel's dm-cache", "bcache": "", "userspace": ""}
    found = Offer(lacks)  # type: ignore[arg-type]
    assert found.first == "bcache"
    assert found.choices[0] == ("dm-cache", "dm-cache: this machine lacks the kernel's dm-cache")
    none = Offer({"dm-cache": "root"})
    assert none.first is None
