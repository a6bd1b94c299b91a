"""A lab is not taken from under what runs in it, without a word."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hotset.core.clock import wait_until
from hotset.core.errors import DECLINED, RequestError, of_command_line
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.experiment.site import live
from hotset.lab import lab as labs
from hotset.lab import standing
from hotset.operations import audit, lab_use, run, table
from hotset.operations.jobs import store as jobs
from tests.console_client import client, hashed, token_on, try_password
from tests.silent_server import silent_server

__all__ = ["client", "hashed"]

HOTSET = (sys.executable, "-c", "from hotset.cli import main; main()")


@pytest.fixture
def dsn() -> Iterator[str]:
    """Of the database of a lab that is up, as its journal and facts have it. It never answers, so
    that whatever asks it goes on until it is ended."""
    folder = labs.lab_folder()
    with silent_server() as place, subprocess.Popen(["sleep", "600"]) as served:
        cleanup = Cleanup(folder, Local())
        cleanup.owner(labs.LEFT_UP)
        cleanup.process("slow disk", served.pid, at_once=True)
        port = dict(word.split("=") for word in place.split())["port"]
        own = f"postgresql://postgres@127.0.0.1:{port}/tpcc"
        names = ("device", "slow", "flash", "volume")
        facts = {"disk": live.DISK, **dict.fromkeys(names, "/dev/null"), "dsn": own}
        (folder / "live.json").write_text(
            json.dumps({**facts, "password_file": "", "warehouses": 2})
        )
        yield f"{own}?connect_timeout=600"
        for job in jobs.every():
            if job.running:
                jobs.cancel(job.id)
        served.kill()


def command(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*HOTSET, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOTSET_PASSWORD": "x"},
    )


@pytest.fixture
def benchmark(dsn: str) -> Iterator[subprocess.Popen[str]]:
    """One of the lab's database, begun on the command line."""
    with command("tpcc", "run", "--users", "1", "--dsn", dsn) as running:
        assert wait_until(lambda: bool(lab_use.in_use()) or running.poll() is not None, 60)
        yield running
        running.kill()


def test_it_asks_and_names_what_runs(benchmark: subprocess.Popen[str]) -> None:
    """It once took the database from under a running benchmark, and said nothing."""
    with command("lab", "down") as down:
        _, err = down.communicate("n\n", timeout=60)
    assert down.returncode == DECLINED, err
    assert "in this lab runs tpcc run (" in err
    assert "it fails if the lab is taken down" in err
    assert "nothing was changed" in err
    assert benchmark.poll() is None
    assert labs.status(labs.lab_folder()).state == "up"


@pytest.mark.night
def test_who_cannot_be_asked_is_told_the_way_out(benchmark: subprocess.Popen[str]) -> None:
    with command("lab", "down") as down:
        _, err = down.communicate("", timeout=60)
    assert down.returncode == 2
    assert "add --yes" in err
    with pytest.raises(RequestError, match=r"runs tpcc run \(") as refused:
        run.start("lab down", {})
    assert refused.value.field == "yes"
    assert benchmark.poll() is None


def test_yes_takes_it_down(benchmark: subprocess.Popen[str]) -> None:
    with command("lab", "down", "--yes") as down:
        _, err = down.communicate(timeout=60)
    assert (down.returncode, "is not" in err) == (0, False), err
    assert labs.status(labs.lab_folder()).state == "down"
    assert benchmark.poll() is None, "it was its database that went, not the benchmark"


def test_a_lab_on_this_computer_is_not_denied_to_who_names_another_machine(dsn: str) -> None:
    """`--machine vm` said that no lab was up, beside one that was."""
    assert dsn
    with pytest.raises(PrerequisiteMissingError, match="the lab that is up is 'local'") as refused:
        standing.guest("vm")
    assert "--machine local" in of_command_line(refused.value)


def test_a_job_in_it_is_named_too(dsn: str) -> None:
    job = run.start("tpcc check", {"dsn": dsn})
    (said,) = lab_use.in_use()
    assert said.startswith(f"tpcc check (job {job.id}, since ")


@pytest.mark.night
def test_what_was_killed_or_is_elsewhere_does_not_use_it(
    dsn: str, benchmark: subprocess.Popen[str]
) -> None:
    """A killed command leaves an entry that says \"started\" for ever."""
    benchmark.send_signal(signal.SIGKILL)
    benchmark.wait()
    assert audit.entries(1)[0].outcome == "started"
    with silent_server() as other, command("tpcc", "run", "--dsn", other) as elsewhere:
        assert wait_until(lambda: bool(audit.running()), 60)
        assert lab_use.in_use() == ()
        elsewhere.kill()
    found = table.find("lab down")
    assert not found.asked(found.parse({}))
    del dsn


def test_a_warm_up_of_its_disk_uses_it(dsn: str) -> None:
    del dsn
    who, values = audit.Caller("me"), {"targets": ["database:tpcc"]}
    for more, is_of_it in (({}, True), ({"disk": "lab"}, True), ({"disk": "shop"}, False)):
        with audit.keeping(who, "warmup run", {**values, **more}):
            assert bool(lab_use.in_use()) == is_of_it, more
    with audit.keeping(who, "warmup run", {**values, "machine": "ssh://db1"}):
        assert not lab_use.in_use()


@pytest.mark.night
def test_the_page_names_what_runs_and_takes_it_down_only_when_told_so(
    dsn: str, client: TestClient
) -> None:
    try_password(client)
    tick = 'type="checkbox" name="yes"'
    assert tick not in client.get("/lab").text
    job = run.start("tpcc check", {"dsn": dsn})
    page = client.get("/lab").text
    assert tick in page
    assert f"Running in it: tpcc check (job {job.id}" in page
    form = {"csrf": token_on(page)}
    refused = client.post("/lab/down", data=form)
    assert refused.status_code == 422
    assert "in this lab runs tpcc check" in refused.text
    assert labs.status(labs.lab_folder()).state == "up"
    assert client.post("/lab/down", data={**form, "yes": "on"}).status_code == 303


def test_no_lab_is_used_by_nobody() -> None:
    assert not Path(labs.lab_folder() / "live.json").exists()
    with audit.keeping(audit.Caller("me"), "warmup run", {}):
        assert lab_use.in_use() == ()
