"""A run that is under way is told from one that was cut short by what its process holds."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from hotset.lab.lab import Status
from hotset.operations import activity
from hotset.reports.archive import Archive
from tests.cli_server import CommandLine
from tests.console_client import client, hashed, try_password  # noqa: F401 - fixtures

EXPERIMENT = """
import sys
from hotset.core.paths import repository_file
from hotset.experiment.file.spec import read
from hotset.experiment.journal import Journal
from hotset.lab.lab import Status
from hotset.operations import activity
from hotset.reports.archive import Archive
journal = Journal.begin(Archive.default(), read(repository_file("experiments/demo.toml")))
with journal.phase("lab"):
    pass
with journal.phase("baseline 1"):
    print(journal.document.run, flush=True)
    sys.stdin.readline()
journal.finish(())
journal.write_report()
"""
RESUMED = """
import sys
from hotset.core.paths import repository_file
from hotset.experiment.file.spec import read
from hotset.experiment.journal import Journal
from hotset.lab.lab import Status
from hotset.operations import activity
from hotset.reports.archive import Archive
spec = read(repository_file("experiments/demo.toml"))
journal = Journal.resume(Archive.default(), spec, "last")
with journal.phase("accelerated 1"):
    print(journal.document.run, flush=True)
    sys.stdin.readline()
"""
MEASUREMENT = """
import sys
from hotset.bench.kept.measurement import Subject, begin
kept = begin(True, Subject("tpcc run", "tpcc", "TPC-C", {}))
print(kept.document.run, flush=True)
sys.stdin.readline()
kept.finish("complete", None)
"""


@contextmanager
def under_way(program: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process that makes a run; ends well with its input."""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
            process.stdin.close()
        finally:
            if sys.exc_info()[0] is not None:
                process.kill()


def shown(hotset: CommandLine, run: str) -> tuple[str, str]:
    """Its state by the list and by itself."""
    (row,) = json.loads(hotset("runs", "list", "--format", "json").out)["runs"]
    assert row["run"] == run
    found = json.loads(hotset("runs", "show", run, "--format", "json").out)
    return row["state"], found["state"]


@pytest.mark.parametrize(
    ("program", "phase"),
    [(EXPERIMENT, "baseline 1"), (MEASUREMENT, "tpcc run")],
    ids=["an experiment", "a measurement"],
)
def test_a_run_is_running_until_its_process_ends_well(
    hotset: CommandLine, program: str, phase: str
) -> None:
    with under_way(program) as (_, run):
        assert shown(hotset, run) == ("running", "running")
        began = f"{Archive.default().load(run).started_at:%Y-%m-%d %H:%M}"
        listed = hotset("runs", "list").out
        assert f"running: {phase}" in listed
        assert began in listed
        said = hotset("runs", "show", run).out
        assert f"RUNNING since {began} UTC in {phase}" in " ".join(said.split())
        assert "interrupted" not in listed + said.lower()
    assert shown(hotset, run) == ("complete", "complete")


def test_a_killed_run_was_interrupted_and_its_phase_is_known(hotset: CommandLine) -> None:
    """What it started lives on, as a modelled disk may, and holds nothing."""
    child = (
        "import subprocess\n"
        'subprocess.Popen(["cat"], stdout=subprocess.DEVNULL, close_fds=False)\n'
        "journal = "
    )
    with under_way(EXPERIMENT.replace("journal = ", child, 1)) as (process, run):
        process.kill()
        process.wait()
        assert shown(hotset, run) == ("interrupted", "interrupted")
    phase = Archive.default().load(run).phases[-1]
    assert (phase.name, phase.state) == ("baseline 1", "interrupted")


def test_what_a_run_was_stopped_by_is_told_while_it_still_writes(hotset: CommandLine) -> None:
    program = EXPERIMENT.replace("journal.finish(())", "").replace(
        'with journal.phase("baseline 1"):\n',
        "from contextlib import suppress\n"
        'with suppress(KeyboardInterrupt), journal.phase("baseline 1"):\n'
        "    raise KeyboardInterrupt\n"
        "if True:\n",
    )
    with under_way(program) as (_, run):
        assert shown(hotset, run) == ("interrupted", "interrupted")


@pytest.mark.night
def test_a_resumed_run_is_running_again(hotset: CommandLine) -> None:
    with under_way(EXPERIMENT) as (process, run):
        process.kill()
        process.wait()
    with under_way(RESUMED) as (_, again):
        assert again == run
        assert shown(hotset, run) == ("running", "running")
        refused = hotset("demo", "--resume", run)
        assert refused.code == 2, refused.err
        assert f"run {run} is running" in refused.err
        assert shown(hotset, run) == ("running", "running")
    assert shown(hotset, run) == ("interrupted", "interrupted")


def test_a_running_run_is_neither_deleted_nor_changed(hotset: CommandLine) -> None:
    deleted, changed = ("runs", "rm", "last"), ("report", "last", "--price", "server=1")
    with under_way(EXPERIMENT) as (_, run):
        before = sorted(Archive.default().path(run).iterdir())
        for words in ((*deleted, "--yes"), deleted, changed):
            refused = hotset(*words)
            assert (refused.code, refused.out) == (2, "")
            assert f"run {run} is running" in refused.err
            assert "Delete run" not in refused.err
            assert sorted(Archive.default().path(run).iterdir()) == before
    assert shown(hotset, run) == ("complete", "complete")
    assert hotset("runs", "rm", "last", "--yes").code == 0


@pytest.mark.night
def test_report_and_comparison_say_that_a_run_goes_on(hotset: CommandLine, tmp_path: Path) -> None:
    with under_way(EXPERIMENT) as (_, run):
        text = hotset("report", "last", "--format", "md").out
        assert "RUNNING since" in text
        assert "interrupted" not in text
        page = tmp_path / "page.html"
        assert hotset("report", "last", "--output", str(page)).code == 0
        assert "is running" in page.read_text()
        assert "interrupted" not in page.read_text()
        refused = hotset("report", "last", "--publish", str(tmp_path))
        assert "is running" in refused.err
        refused = hotset("runs", "compare", run, run)
        assert refused.code == 2
        assert f"run {run} is running" in refused.err


@pytest.mark.night
def test_the_console_lists_it_as_running(client: TestClient) -> None:  # noqa: F811
    try_password(client)
    with under_way(EXPERIMENT) as (_, run):
        page = client.get("/runs").text
        assert "state running" in page
        assert "baseline 1" in page
        assert "interrupted" not in page
        assert f"/runs/{run}/delete" not in page


def test_what_goes_on_in_the_lab_is_the_experiment_and_no_other_run(
    hotset: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was the newest run of all: one that failed before this one began, or a measurement."""
    del hotset
    status = Status("running", "experiment demo", ())
    monkeypatch.setattr(activity.labs, "status", lambda _: status)
    with under_way(EXPERIMENT) as (process, run), under_way(MEASUREMENT):
        (line,) = activity.running()
        assert line == f"experiment demo  run {run}: baseline 1 running"
        process.kill()
        process.wait()
        assert activity.running() == ("experiment demo  beginning",)
