"""The HTTP API in process: who may, what is answered, and how a refusal reads."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from hotset.api import app, tokens
from hotset.api.values import BODY_MAX_BYTES
from hotset.cli import tokens as tokens_cli
from hotset.core import operation as registry
from hotset.core.clock import wait_until
from hotset.core.machines.local import free_port
from hotset.core.paths import data_dir, repository_file
from hotset.core.rights import Right
from hotset.operations import run, table
from hotset.operations.jobs import store as jobs
from hotset.reports.archive import Archive
from hotset.reports.model.document import RunDocument
from tests import documents
from tests.api_server import wait_for_port
from tests.silent_server import silent_server

ROOT = "/api/v1"
CLOSED = "host=127.0.0.1 port=1 user=tester dbname=shop"
Ask = Callable[..., httpx.Response]


@pytest.fixture
def token() -> str:
    return tokens.create("test", Right.ADMIN)


@pytest.fixture
def ask(token: str) -> Ask:
    """A request with a token, unless other headers are given."""
    whole = Starlette(routes=[Mount(ROOT, app=app.create()), app.metrics_route()])
    bearer = {"Authorization": f"Bearer {token}"}

    def send(method: str, path: str, **how: Any) -> httpx.Response:  # noqa: ANN401
        async def at_once() -> httpx.Response:
            transport = httpx.ASGITransport(whole, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                headers = how.pop("headers", bearer)
                return await client.request(method, path, headers=headers, timeout=60, **how)

        return asyncio.run(at_once())

    return send


@pytest.fixture
def runs() -> list[str]:
    """Two runs in this test's archive, the older first."""
    archive, names = Archive.default(), []
    for hour in (10, 11):
        name = archive.new("demo", datetime(2026, 11, 21, hour, tzinfo=UTC))
        document: RunDocument = documents.complete(hour).model_copy(update={"run": name})
        archive.save(document)
        names.append(name)
    return names


def problem(answer: httpx.Response, status: int, *words: str) -> dict[str, Any]:
    """One clear problem of that status whose detail holds the words."""
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert (answer.status_code, found["status"]) == (status, status), found
    assert {"type", "title", "detail"} <= set(found)
    for word in words:
        assert word in found["detail"]
    return found


# Who may


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic abc", "Bearer nonsense"])
@pytest.mark.parametrize("path", [f"{ROOT}/jobs", f"{ROOT}/nope", f"{ROOT}/runs/x", "/metrics"])
def test_nothing_without_a_token(ask: Ask, header: str, path: str) -> None:
    answer = ask("GET", path, headers={"Authorization": header} if header else {})
    problem(answer, 401, "token", "hotset console token create")
    assert answer.headers["www-authenticate"].startswith("Bearer")


def test_a_revoked_token_opens_nothing(ask: Ask) -> None:
    assert ask("GET", f"{ROOT}/jobs").status_code == 200
    tokens.revoke("test")
    problem(ask("GET", f"{ROOT}/jobs"), 401, "revoked")


TOKEN = {"name": "test", "created": "2026-11-20T00:00:00+00:00", "sha256": "0" * 64}


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 2},
        {"schema_version": 0},
        {"tokens": [{"hereafter": 1}]},
        # Of before there were rights: it had all of them.
        {"tokens": [TOKEN]},
        {"tokens": [{**TOKEN, "right": "god", "expires": None}]},
    ],
    ids=["later", "earlier", "a field more", "no right", "an unknown right"],
)
def test_tokens_of_another_version_open_nothing_and_are_not_rewritten(
    ask: Ask, change: dict[str, object]
) -> None:
    """Their version was not looked at: what a later one lets a token do less was not heeded, and
    the next change wrote them without it. A field more was a traceback."""
    file = data_dir() / "tokens.json"
    later = json.dumps({**json.loads(file.read_text()), **change})
    file.write_text(later)
    answer = ask("GET", "/api/v1/jobs")
    assert answer.status_code == 503
    assert "written by another version" in answer.json()["detail"]
    for change_them in (lambda: tokens.create("more"), lambda: tokens.revoke("test")):
        with pytest.raises(tokens.TokenError, match=r"tokens\.json.*another version.*again"):
            change_them()
    assert file.read_text() == later


def test_tokens_are_kept_as_hashes(token: str) -> None:
    file = data_dir() / "tokens.json"
    assert token.removeprefix(tokens.PREFIX) not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    found = tokens.find(token)
    assert found is not None
    assert (found.name, found.right) == ("test", Right.ADMIN)
    assert tokens.find(f"{token}x") is tokens.find("") is None
    for name in ("test", "", "a b", "é", "x" * 65):
        with pytest.raises(tokens.TokenError, match=r"is not a name|already"):
            tokens.create(name, Right.ADMIN)
    with pytest.raises(tokens.TokenError, match="no token 'nope'; there are: test"):
        tokens.revoke("nope")


BUILD = {"dsn": CLOSED, "warehouses": 1}


@pytest.mark.parametrize(
    ("has", "method", "path", "body", "needs"),
    [
        (Right.READ, "GET", "/lab/status", None, None),
        (Right.READ, "GET", "/jobs", None, None),
        (Right.READ, "GET", "/token", None, None),
        (Right.READ, "POST", "/tpcc/check", {"dsn": CLOSED}, Right.OPERATE),
        (Right.READ, "POST", "/jobs/x/cancel", None, Right.OPERATE),
        (Right.READ, "DELETE", "/jobs/x", None, Right.OPERATE),
        (Right.OPERATE, "POST", "/tpcc/check", {"dsn": CLOSED}, None),
        (Right.OPERATE, "POST", "/tpcc/build", BUILD, None),
        (Right.OPERATE, "POST", "/tpcc/build", BUILD | {"replace": True}, Right.ADMIN),
        (Right.OPERATE, "POST", "/tier/create", {}, Right.ADMIN),
        (Right.ADMIN, "POST", "/tpcc/build", BUILD | {"replace": True, "yes": True}, None),
    ],
)
def test_a_token_does_what_its_right_includes(
    ask: Ask, has: Right, method: str, path: str, body: dict[str, Any] | None, needs: Right | None
) -> None:
    headers = {"Authorization": f"Bearer {tokens.create('limited', has)}"}
    answer = ask(method, ROOT + path, headers=headers, json=body)
    if needs is None:
        assert answer.status_code in (200, 202), answer.text
        for job in jobs.every():
            jobs.cancel(job.id)
    else:
        problem(answer, 403, f"needs the right '{needs}', and yours is '{has}'")
        assert jobs.every() == []


@pytest.mark.parametrize("values", [{"replace": True, "yes": True}, {}], ids=["admin's", "own"])
def test_a_job_is_ended_by_who_may_start_it(ask: Ask, values: dict[str, Any]) -> None:
    with silent_server() as dsn:
        body = {"dsn": dsn, "warehouses": 1, **values}
        started = ask("POST", f"{ROOT}/tpcc/build", json=body)
        assert started.status_code == 202, started.text
        url = f"{ROOT}/jobs/{started.json()['id']}"
        headers = {"Authorization": f"Bearer {tokens.create('limited', Right.OPERATE)}"}
        for method, end in (("POST", "/cancel"), ("DELETE", "")):
            answer = ask(method, url + end, headers=headers)
            if values:
                problem(answer, 403, "needs the right 'admin', and yours is 'operate'")
                assert jobs.every()[0].running
            else:
                assert answer.status_code in (202, 204, 409), answer.text
        jobs.cancel(started.json()["id"])


def test_only_who_may_destroy_deletes_a_run(ask: Ask, runs: list[str]) -> None:
    for right, status in ((Right.OPERATE, 403), (Right.ADMIN, 204)):
        headers = {"Authorization": f"Bearer {tokens.create(right, right)}"}
        answer = ask("DELETE", f"{ROOT}/runs/{runs[0]}", headers=headers)
        assert answer.status_code == status


def test_a_scrapers_token_fetches_the_metrics_alone(ask: Ask) -> None:
    headers = {"Authorization": f"Bearer {tokens.create('grafana', Right.METRICS)}"}
    assert ask("GET", "/metrics", headers=headers).status_code == 200
    for path in ("/lab/status", "/jobs", "/runs", "/tier/status"):
        refused = ask("GET", f"{ROOT}{path}", headers=headers)
        problem(refused, 403, "needs the right 'read'", "yours is 'metrics'")


def test_an_expired_token_opens_nothing(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    headers = {"Authorization": f"Bearer {tokens.create('guest', valid_days=7)}"}
    assert ask("GET", f"{ROOT}/lab/status", headers=headers).status_code == 200
    assert tokens.last_uses()["guest"].startswith(f"{datetime.now(UTC):%Y-%m-}")
    later = datetime.now(UTC) + timedelta(days=7, seconds=1)
    monkeypatch.setattr(tokens, "_now", lambda: later)
    problem(ask("GET", f"{ROOT}/lab/status", headers=headers), 401, "has expired")


def test_who_did_what_is_kept(ask: Ask) -> None:
    ask("POST", f"{ROOT}/lab/down", json={})
    ask("GET", f"{ROOT}/lab/status", headers={"Authorization": "Bearer guessed"})
    (down,) = ask("GET", f"{ROOT}/audit").json()["entries"]
    assert (down["who"], down["what"]) == ("token test", "lab down")
    job = jobs.find("last")

    def outcome() -> str:
        return str(ask("GET", f"{ROOT}/audit").json()["entries"][0]["outcome"])

    assert wait_until(lambda: outcome() == "done", 60), (outcome(), jobs.find(job.id))


def test_what_nobody_known_sends_is_only_counted(ask: Ask) -> None:
    mine = ask("POST", f"{ROOT}/lab/down", json={}).json()["id"]
    for number in range(50):
        ask("GET", f"{ROOT}/{'%C3%BF' * 5000}{number}", headers={})
        ask("GET", f"{ROOT}/lab/status", headers={"Authorization": "Bearer guessed"})
    assert [one["id"] for one in ask("GET", f"{ROOT}/audit").json()["entries"]] == [mine]
    found = ask("GET", f"{ROOT}/audit?unknown=true").json()["entries"]
    counts = {one["what"]: 0 for one in found}
    for one in found:
        counts[one["what"]] += one["values"]["count"]
        assert (one["who"], one["address"]) == ("unknown", "127.0.0.1")
    assert counts == {"no token": 50, "unknown token": 50}
    assert sum(file.stat().st_size for file in data_dir().glob("*.jsonl")) < 4096


def test_tokens_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    tokens_cli.create_token("nightly", Right.READ)
    shown = capsys.readouterr().out.strip()
    found = tokens.find(shown)
    assert found is not None
    assert (found.name, found.right) == ("nightly", Right.READ)
    tokens_cli.list_tokens(tokens_cli.Format.JSON)
    listed = capsys.readouterr().out
    assert [(one["name"], one["right"]) for one in json.loads(listed)["tokens"]] == [
        ("nightly", "read")
    ]
    assert shown not in listed
    tokens_cli.revoke_token("nightly")
    assert tokens.every() == []


# Verbs


def test_a_verb_answers_as_the_command_line(ask: Ask) -> None:
    assert ask("GET", f"{ROOT}/lab/status").json()["state"] == "down"
    assert ask("POST", f"{ROOT}/lab/status", json={}).json()["state"] == "down"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "field", "said"),
    [
        ("GET", "/nope", None, 404, None, "/api/v1/nope"),
        ("GET", "/lab/shell", None, 404, None, "/lab/shell"),
        ("PUT", "/jobs", None, 405, None, "GET"),
        ("GET", "/database/show", None, 405, None, "POST"),
        ("GET", "/tier/status?cloud=1", None, 422, "cloud", "it has: disk, machine"),
        ("GET", "/tier/status?disk=a&disk=b", None, 422, "disk", "twice"),
        ("GET", "/tier/status?disk=shop", None, 404, "disk", "disk 'shop'"),
        ("GET", "/tier/status?machine=cloud", None, 422, "machine", "write local"),
        ("GET", "/heat/top?count=x", None, 422, "count", "'x' is refused"),
        ("GET", "/heat/top?count=0", None, 422, "count", "greater than or equal to 1"),
        ("GET", f"/heat/top?dsn={CLOSED}", None, 422, "dsn", "POST it"),
        ("GET", "/report/hit-ratio?since=nope", None, 422, "since", "write boot"),
        ("POST", "/tier/create", {"disk": "shop"}, 422, "flash", "needs it"),
        ("POST", "/tier/flush", {"disk": 5}, 422, "disk", "5 is refused"),
        ("POST", "/tpcc/run", {"dsn": CLOSED, "users": "8,4"}, 422, "users", "a rising list"),
        ("POST", "/tpcc/run", {"dsn": CLOSED, "seed": "8"}, 422, "seed", "'8' is refused"),
        ("POST", "/tpcc/run", {"dsn": f"{CLOSED} password=x"}, 422, "dsn", "holds a password"),
        ("POST", "/tpcc/drop", {"dsn": CLOSED}, 422, "yes", "add yes=true"),
        ("POST", "/database/show", {"engine": "postgres", "dsn": CLOSED}, 424, None, "port 1"),
        ("POST", "/tpcc/run", [], 400, None, "not an object"),
        ("POST", "/jobs/nope/cancel", {}, 404, "job", "'nope'"),
        ("GET", "/jobs?limit=0", None, 422, "limit", "from 1 to 500"),
        ("GET", "/jobs?page=3", None, 422, "page", "there is: limit"),
        ("GET", "/runs/x", None, 404, "run", "no runs yet"),
        ("GET", "/runs/compare?run=a", None, 422, "run", "two runs or more"),
        ("GET", "/runs/last/trend", None, 404, "run", "there are no runs yet"),
        ("GET", "/runs/last/trend?limit=3", None, 422, "limit", "there is: metric"),
        ("GET", "/runs/x/report?format=pdf", None, 422, "format", "'pdf'"),
    ],
)
def test_a_refusal_names_field_value_and_remedy(
    ask: Ask, method: str, path: str, body: object, status: int, field: str | None, said: str
) -> None:
    how = {} if body is None else {"json": body}
    found = problem(ask(method, ROOT + path, **how), status, said)
    assert found.get("field") == field


@pytest.mark.parametrize(
    ("content", "kind", "status", "said"),
    [
        (b"{", "application/json", 400, "not JSON"),
        (b'{"users": NaN}', "application/json", 400, "NaN"),
        (b"[" * 50_000, "application/json", 400, "not JSON"),
        (b"\xff", "application/json", 400, "not JSON"),
        (b"dsn=x", "application/x-www-form-urlencoded", 415, "send application/json"),
        (b" " * (BODY_MAX_BYTES + 1), "application/json", 413, "larger than 65536 bytes"),
    ],
    ids=["cut short", "no number", "nested", "no UTF-8", "a form", "too large"],
)
def test_bodies_that_are_none(ask: Ask, content: bytes, kind: str, status: int, said: str) -> None:
    headers = {"Authorization": f"Bearer {tokens.create('b', Right.ADMIN)}", "Content-Type": kind}
    answer = ask("POST", f"{ROOT}/tpcc/run", content=content, headers=headers)
    problem(answer, status, said)


# Jobs


def test_a_job_from_its_start_to_its_end(ask: Ask) -> None:
    file = str(repository_file("experiments") / "nope.toml")
    started = ask("POST", f"{ROOT}/experiment/plan", json={"file": file})
    assert (started.status_code, started.json()["state"]) == (202, "running")
    place = started.headers["location"]
    assert place == f"{ROOT}/jobs/{started.json()['id']}"
    events = heard(ask("GET", f"{place}/events"))
    assert [event["kind"] for event in events] == ["error", "end"]
    assert events[-1]["state"] == "failed"
    again = ask(
        "GET",
        f"{place}/events",
        headers={
            "Authorization": f"Bearer {tokens.create('b', Right.ADMIN)}",
            "Last-Event-ID": str(events[0]["id"]),
        },
    )
    assert heard(again) == events[1:]
    shown = ask("GET", place).json()
    assert (shown["code"], shown["cause"], shown["result"]) == (2, events[0]["text"], None)
    assert [job["id"] for job in ask("GET", f"{ROOT}/jobs").json()["jobs"]] == [shown["id"]]
    problem(ask("DELETE", f"{ROOT}/jobs/last"), 422, shown["id"])
    assert ask("DELETE", place).status_code == 204
    problem(ask("GET", f"{place}/events"), 404, shown["id"])


def heard(answer: httpx.Response) -> list[dict[str, Any]]:
    """The events of a stream, whose own fields say the same as their data."""
    assert answer.headers["content-type"].startswith("text/event-stream")
    found = []
    for block in answer.text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines())
        if "data" in fields:
            event = json.loads(fields["data"])
            assert (fields["id"], fields["event"]) == (str(event["id"]), event["kind"])
            found.append(event)
    return found


@pytest.mark.parametrize("last", ["-1", "x", "1.5", "9" * 30, "²"])
def test_ids_of_no_event(ask: Ask, token: str, last: str) -> None:
    bearer = {"Authorization": f"Bearer {token}", "Last-Event-ID": last.encode()}
    found = problem(ask("GET", f"{ROOT}/jobs/x/events", headers=bearer), 422, "whole number")
    assert found["field"] == "Last-Event-ID"


def test_a_second_job_on_the_same_is_refused(ask: Ask) -> None:
    with silent_server() as dsn:
        first = ask("POST", f"{ROOT}/tpcc/check", json={"dsn": dsn}).json()["id"]
        problem(ask("POST", f"{ROOT}/tpcc/run", json={"dsn": dsn}), 409, first)
        problem(ask("DELETE", f"{ROOT}/jobs/{first}"), 409, "is running")
        group = int((data_dir() / "jobs" / first / "process").read_text().split()[0])
        os.killpg(group, signal.SIGKILL)
        assert heard(ask("GET", f"{ROOT}/jobs/{first}/events"))[-1]["state"] == "lost"


# Runs and metrics


def test_runs(ask: Ask, runs: list[str]) -> None:
    older, newer = runs
    listed = ask("GET", f"{ROOT}/runs").json()["runs"]
    assert [one["run"] for one in listed] == [newer, older]
    assert ask("GET", f"{ROOT}/runs/last").json()["run"] == newer
    page = ask("GET", f"{ROOT}/runs/{older}/report")
    assert (page.headers["content-type"], older in page.text) == ("text/html; charset=utf-8", True)
    text = ask("GET", f"{ROOT}/runs/{older}/report?format=md")
    assert text.headers["content-type"].startswith("text/markdown")
    assert text.text.startswith("# ")
    query = f"run={older}&run={newer}"
    compared = ask("GET", f"{ROOT}/runs/compare?{query}&force=true").json()
    assert {line["run"] for line in compared["lines"]} >= {newer}
    followed = ask("GET", f"{ROOT}/runs/{newer}/trend?metric=factor").json()
    assert (followed["metric"], followed["worse"], len(followed["runs"])) == ("factor", False, 2)
    problem(ask("DELETE", f"{ROOT}/runs/last"), 404, "whole name")
    assert ask("DELETE", f"{ROOT}/runs/{older}").status_code == 204
    problem(ask("GET", f"{ROOT}/runs/{older}"), 404, older)


def test_runs_whose_set_ups_differ_are_a_conflict(ask: Ask, runs: list[str]) -> None:
    archive = Archive.default()
    archive.save(archive.load(runs[0]).model_copy(update={"hotset_version": "0.0.1"}))
    answer = ask("GET", f"{ROOT}/runs/compare?run={runs[0]}&run={runs[1]}")
    problem(answer, 409, "different set-ups", "force=true")


def test_metrics(ask: Ask) -> None:
    answer = ask("GET", "/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert answer.text.endswith("# EOF\n")
    problem(ask("GET", "/metrics?machine=cloud"), 422, "'cloud'")


# The description


def test_the_description_needs_no_token_and_names_every_route(ask: Ask) -> None:
    described = ask("GET", f"{ROOT}/openapi.json", headers={}).json()
    assert described["servers"] == [{"url": ROOT}]
    routes = {
        ("/jobs", "get"),
        ("/token", "get"),
        ("/jobs/{id}", "get"),
        ("/jobs/{id}", "delete"),
        ("/jobs/{id}/events", "get"),
        ("/jobs/{id}/cancel", "post"),
        ("/runs", "get"),
        ("/runs/compare", "get"),
        ("/runs/{run}", "get"),
        ("/runs/{run}", "delete"),
        ("/runs/{run}/report", "get"),
        ("/runs/{run}/trend", "get"),
    }
    for found in table.every():
        if found.name not in app.PLACED:
            routes.add(("/" + "/".join(found.words), "post"))
            names_a_database = "dsn" in found.fields and found.fields["dsn"].is_required()
            if found.kind is registry.Kind.QUERY and not names_a_database:
                routes.add(("/" + "/".join(found.words), "get"))
    named = {(path, method) for path, methods in described["paths"].items() for method in methods}
    assert named == routes
    ids = [
        one["operationId"] for methods in described["paths"].values() for one in methods.values()
    ]
    assert len(ids) == len(set(ids))


def test_the_description_tells_which_labels_are_taken() -> None:
    described = app.create().openapi()["paths"]
    body = described["/tpcc/run"]["post"]["requestBody"]
    label = body["content"]["application/json"]["schema"]["properties"]["label"]
    text = next(form for form in label["anyOf"] if form["type"] == "string")
    assert [bool(re.match(text["pattern"], word)) for word in ("before", "", "1st")] == [
        True,
        False,
        False,
    ]


def test_a_job_is_as_described() -> None:
    file = str(repository_file("experiments") / "nope.toml")
    job = run.start("experiment plan", {"file": file})
    schemas = app.create().openapi()["components"]["schemas"]
    assert set(job.as_dict()) == set(schemas["JobRecord"]["properties"])


def test_no_password_and_no_dsn_in_a_url() -> None:
    described = app.create().openapi()["paths"]
    for methods in described.values():
        for parameter in methods.get("get", {}).get("parameters", []):
            assert parameter["name"] not in ("dsn", "password")
    body = described["/tpcc/run"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["password"]["writeOnly"] is True


# A server that dies


@contextmanager
def served(port: int) -> Iterator[subprocess.Popen[str]]:
    """The API by uvicorn, as a process that can be killed."""
    argv = [
        sys.executable,
        "-m",
        "uvicorn",
        "--factory",
        "hotset.api.app:create",
        "--port",
        str(port),
        "--log-level",
        "warning",
    ]
    with subprocess.Popen(argv, text=True) as server:
        try:
            wait_for_port(server, port)
            yield server
        finally:
            server.kill()


def test_a_stream_ends_with_its_token(token: str) -> None:
    """Whoever was shut out hears nothing more, though the connection was there before."""
    port = free_port()
    url, mine = (
        f"http://127.0.0.1:{port}",
        {"Authorization": f"Bearer {tokens.create('b', Right.ADMIN)}"},
    )
    owner = {"Authorization": f"Bearer {token}"}
    with silent_server() as dsn, served(port), httpx.Client(base_url=url, timeout=60) as client:
        id_ = client.post("/tpcc/check", json={"dsn": dsn}, headers=owner).json()["id"]
        with client.stream("GET", f"/jobs/{id_}/events", headers=mine) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "retry: 2000"
            tokens.revoke("b")
            deadline = time.monotonic() + 60
            # Ended in good order, not torn off, and without the end of a job that goes on.
            for line in lines:
                assert '"end"' not in line
                assert time.monotonic() < deadline, "it goes on"
        assert jobs.find(id_).running
        assert client.get(f"/jobs/{id_}", headers=mine).status_code == 401
        assert client.post(f"/jobs/{id_}/cancel", headers=owner).status_code == 202


def test_a_job_outlives_the_server(token: str) -> None:
    port = free_port()
    client = httpx.Client(
        base_url=f"http://127.0.0.1:{port}",
        timeout=30,
        headers={"Authorization": f"Bearer {token}"},
    )
    with silent_server() as dsn:
        with served(port) as server:
            id_ = client.post("/tpcc/check", json={"dsn": dsn}).json()["id"]
            server.kill()
        assert jobs.find(id_).running
        with served(port), client.stream("GET", f"/jobs/{id_}/events") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "retry: 2000"
            process = Path(
                f"/proc/{(data_dir() / 'jobs' / id_ / 'process').read_text().split()[0]}"
            )

            def is_connected() -> bool:
                return any("socket:" in os.readlink(fd) for fd in (process / "fd").iterdir())  # noqa: PTH115

            assert wait_until(is_connected, 20)
            assert client.post(f"/jobs/{id_}/cancel").status_code == 202
            last = [json.loads(line[6:]) for line in lines if line.startswith("data: ")][-1]
    assert (last["kind"], last["state"]) == ("end", "interrupted")
