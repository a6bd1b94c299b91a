"""Whatever changes something is in the audit log: every operation, route and command, as the
program lists them, so that a new one cannot be forgotten."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from typing import Any, ClassVar

import httpx
import pytest
import typer
from starlette.routing import Mount, Route
from starlette.testclient import TestClient
from typer.testing import CliRunner

from hotset import cli
from hotset.api import app as api
from hotset.api import tokens
from hotset.console import passwords
from hotset.console.app import create
from hotset.console.web import Settings
from hotset.core.errors import HotsetError
from hotset.core.operation import FieldKind, Kind, Operation
from hotset.core.rights import Right
from hotset.operations import audit, run, table
from hotset.operations.jobs import store
from hotset.reports.archive import Archive
from tests import documents
from tests.console_client import HERE, PASSWORD, token_of, try_password
from tests.operations.test_remote import NEEDED, allow

RUN = "20261121-100000-demo"
CHANGING = [one for one in table.every() if not Right.READ.includes(one.right)]
READS = {"audit"}


class FakeJob:
    id = "a-job"
    words = ("tier", "flush")
    verb = "tier flush"
    values: ClassVar[dict[str, object]] = {}
    running = True

    def as_dict(self) -> dict[str, object]:
        return {"id": self.id}


@pytest.fixture(autouse=True)
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are accepted, and not run."""

    def accept(task: store.Task, module: str, request: str, before: Any) -> FakeJob:  # noqa: ANN401, ARG001
        before(uuid.uuid4().hex)
        return FakeJob()

    monkeypatch.setattr(store, "start", accept)
    for name in ("find", "cancel", "remove"):
        monkeypatch.setattr(store, name, lambda id_: FakeJob())  # noqa: ARG005


def needed(found: Operation) -> dict[str, Any]:
    values = {name: NEEDED[name] for name, one in found.fields.items() if one.is_required()}
    values |= {"targets": ["heat"]} if "targets" in found.fields else {}
    for name, value in values.items():
        if FieldKind.from_field(found.fields[name]).is_list and not isinstance(value, list):
            values[name] = [value]
    return values | ({"yes": True} if "yes" in found.fields else {})


def whats() -> list[str]:
    return [entry.what for entry in audit.entries(100)]


@pytest.mark.parametrize("found", CHANGING, ids=lambda one: one.name)
def test_every_operation_that_needs_more_than_to_read_is_kept(found: Operation) -> None:
    allow('folders = ["/srv/allowed"]')
    status = 0
    try:
        (run.start if found.kind is Kind.JOB else run.answer)(found.name, needed(found))
    except HotsetError as error:
        status = error.http_status
    assert status not in (403, 422)
    assert whats() == ([] if found.name in READS else [found.name])


# The API

OF_ITS_OWN = {
    ("POST", "/jobs/{id}/cancel"): "jobs cancel",
    ("DELETE", "/jobs/{id}"): "jobs rm",
    ("DELETE", "/runs/{run}"): "runs rm",
}
"""Routes that change something, beside those of operations."""


def archived() -> None:
    Archive.default().path(RUN).mkdir(parents=True)
    Archive.default().save(documents.complete(5).model_copy(update={"run": RUN}))


def test_every_route_of_the_api_that_changes_something_is_kept() -> None:
    served = api.create()
    words = {"/" + "/".join(one.words) for one in table.every()}
    found = {
        (method, route.path)
        for route in served.routes
        if isinstance(route, Route)
        for method in route.methods or ()
        if method not in ("GET", "HEAD", "OPTIONS") and route.path not in words
    }
    found |= {
        (method.upper(), path)
        for path, methods in served.openapi()["paths"].items()
        for method in methods
        if method != "get" and path not in words
    }
    assert found == OF_ITS_OWN.keys()
    archived()
    headers = {"Authorization": f"Bearer {tokens.create('chief', Right.ADMIN)}"}

    async def ask(method: str, path: str) -> httpx.Response:
        transport = httpx.ASGITransport(served)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.request(method, path, headers=headers)

    for (method, path), what in OF_ITS_OWN.items():
        before = len(whats())
        answer = asyncio.run(ask(method, path.format(id=FakeJob.id, run=RUN)))
        assert answer.status_code < 300, answer.text
        assert whats()[: len(whats()) - before] == [what]


# The console

CHANGES = {
    "/login": ("/login", {}, "log in"),
    "/jobs/{job}/cancel": ("/jobs/x/cancel", {}, "jobs cancel"),
    "/jobs/{job}/remove": ("/jobs/x/remove", {}, "jobs rm"),
    "/runs/{run}/delete": (f"/runs/{RUN}/delete", {}, "runs rm"),
    "/warmup/plan": ("/warmup/plan", {"targets": "heat"}, "warmup plan"),
    "/warmup/run": ("/warmup/run", {"targets": "heat"}, "warmup run"),
    "/warmup/prefer": ("/warmup/prefer", {"verb": "pin", "targets": "heat"}, "warmup pin"),
    "/warmup/share": ("/warmup/share", {"target": "heat", "limit": "1GiB"}, "warmup share"),
    "/warmup/schedule": (
        "/warmup/schedule",
        {"targets": "heat", "at": "Mon 07:00"},
        "warmup schedule add",
    ),
    "/warmup/unschedule": ("/warmup/unschedule", {"name": "x"}, "warmup schedule remove"),
    "/lab/{verb}": ("/lab/down", {}, "lab down"),
    "/heat/pin": ("/heat/pin", {"verb": "unpin", "targets": "heat"}, "warmup unpin"),
    "/heat/count": ("/heat/count", {"verb": "start"}, "heat start"),
    "/flash/create": (
        "/flash/create",
        {
            "disk": "shop",
            "flash": "/dev/sdb",
            "origin": "/dev/sdc",
            "cache": "1GiB",
            "database": "oltp",
            "kind": "dm-cache",
            "typed": "sdb",
            "yes": "true",
        },
        "tier create",
    ),
    "/flash/{name}/{action}": (
        "/flash/main/destroy",
        {"typed": "main", "yes": "true"},
        "tier destroy",
    ),
    "/disks/{name}/{action}": ("/disks/shop/flush", {}, "tier flush"),
    "/benchmarks/{benchmark}": (
        "/benchmarks/tpcc",
        {"dsn": NEEDED["dsn"], "verb": "check"},
        "tpcc check",
    ),
}
SHOWS = {"/logout", "/health/show", "/hits/report", "/heat/show", "/heat/live"}
"""Forms that change nothing but what is shown."""


@pytest.fixture
def browser() -> Iterator[TestClient]:
    passwords.save(PASSWORD)
    with TestClient(create(Settings()), base_url=HERE, follow_redirects=False) as found:
        yield found


def test_every_form_of_the_console_that_changes_something_is_kept(browser: TestClient) -> None:
    routes = [one for one in browser.app.routes if not isinstance(one, Mount)]
    forms = {one.path for one in routes if "POST" in one.methods}
    assert forms == CHANGES.keys() | SHOWS
    archived()
    try_password(browser)
    assert whats() == ["log in"]
    token = token_of(browser)
    for url, form, what in CHANGES.values():
        if what == "log in":
            continue
        before = len(whats())
        answer = browser.post(url, data={**form, "csrf": token})
        assert whats()[: len(whats()) - before] == [what], (url, answer.text)


# The command line

KEPT = {
    "console password": "console password",
    "console token create": "console token create",
    "console token revoke": "console token revoke",
    "jobs cancel": "jobs cancel",
    "jobs rm": "jobs rm",
}
LOOKS = {
    *("console token list", "jobs list", "jobs show", "top", "tier watch"),
    # What it lets people do, it keeps.
    *("console", "lab shell", "runs alternate"),
}


def commands(group: Any, before: str = "") -> Iterator[str]:  # noqa: ANN401 - typer's own click
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            if command.invoke_without_command:
                yield f"{before}{name}"
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}"


def test_every_command_that_changes_something_is_kept(tmp_path: Any) -> None:  # noqa: ANN401
    whole = typer.main.get_command(cli.create())
    operations = {one.name for one in table.every()}
    assert set(commands(whole)) - operations == KEPT.keys() | LOOKS
    word = tmp_path / "word"
    word.write_text(PASSWORD)
    more = {
        "console password": ["--password-file", str(word)],
        "console token create": ["nightly"],
        "console token revoke": ["nightly"],
        "jobs cancel": ["x"],
        "jobs rm": ["x"],
    }
    for name, what in KEPT.items():
        before = len(whats())
        done = CliRunner().invoke(cli.create(), [*name.split(), *more[name]])
        assert done.exit_code == 0, done.output
        assert whats()[: len(whats()) - before] == [what]
