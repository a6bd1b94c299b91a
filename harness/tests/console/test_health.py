"""The page of what is to be done: the gravest first, each with its command; what is not known has a
part of its own."""

from __future__ import annotations

import re

import pytest
from starlette.testclient import TestClient

from hotset.console.pages.reports import health as page_of_health
from hotset.console.web import NAVIGATION
from hotset.core.errors import Remedy
from hotset.core.record import document_of
from hotset.health import examination
from hotset.health.findings import Finding, Health
from tests.console_client import client, hashed, token_on, try_password

__all__ = ["client", "hashed"]
FOUND = Health(
    "local",
    ("shop",),
    (
        Finding("shop", "state", "ok", "active"),
        Finding(
            "shop",
            "hot data",
            "advice",
            "public.<orders> became hot",
            (Remedy("keep it", "warmup pin", {"disk": "shop", "targets": "table:public.orders"}),),
        ),
        Finding("shop", "flash wear", "unknown", "/dev/loop0 is no drive"),
        Finding(
            "shop",
            "dirty data",
            "warning",
            "dirty data has not fallen for a day",
            (Remedy("write it back", "tier flush", {"disk": "shop"}),),
        ),
        Finding("shop", "metadata", "critical", "96 % of the room for metadata is used"),
    ),
)


def test_what_is_grave_comes_first_and_what_is_not_known_is_not_in_order() -> None:
    parts = dict(page_of_health._parts(document_of(FOUND)))
    assert list(parts) == ["To be done", "Could be better", "Not known", "In order"]
    assert [one.state for one in parts["To be done"]] == ["critical", "warning"]
    assert [one.text for one in parts["In order"]] == ["active"]


def test_the_page_names_the_commands_and_is_called_as_in_the_navigation(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(examination, "examine", lambda *_: FOUND)
    try_password(client)
    page = client.get("/health").text
    assert ("Health", "/health") in NAVIGATION
    assert "<h1>Health</h1>" in page
    token = token_on(client.get("/health/form").text)
    shown = client.post("/health/show", data={"csrf": token}).text
    assert "<code>hotset tier flush shop</code>" in shown
    assert "<code>hotset warmup pin --disk shop table:public.orders</code>" in shown
    assert "public.&lt;orders&gt; became hot" in shown
    assert re.search(r"<strong>2</strong> to be done", shown)


def test_it_changes_nothing_by_a_look_and_a_foreign_form_is_refused(client: TestClient) -> None:
    try_password(client)
    assert client.post("/health/show", data={"csrf": "0" * 64}).status_code == 403
