"""The command line's contract: exit codes, what goes to which stream, and the help texts."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import pwd
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer.main

from hotset import cli
from hotset.core.machines.base import PrerequisiteMissingError
from hotset.core.machines.cleanup import exclusive
from hotset.core.machines.programs import PROGRAMS, lacking_argv
from hotset.core.paths import repository_file
from hotset.core.record import SCHEMA_VERSION
from hotset.lab import doctor, image
from hotset.lab.lab import choose, lab_folder
from hotset.operations import table
from hotset.reports.archive import DOCUMENT, Archive
from hotset.reports.model.document import RunDocument
from tests import documents
from tests.cli_server import CommandLine, Done
from tests.support import processes
from tests.support.flash_devices import FLASH, Keeping

DEMO = str(repository_file("experiments/demo.toml"))
ENTRY = Path(sys.executable).parent / "hotset"


@pytest.fixture
def run() -> RunDocument:
    """A run in this test's archive."""
    archive = Archive.default()
    name = archive.new("demo", datetime(2026, 11, 21, 12, tzinfo=UTC))
    document = documents.complete(5).model_copy(update={"run": name})
    archive.save(document)
    return document


def usage_error(done: Done, *words: str) -> None:
    """Code 2, nothing on standard output, one clear text on standard error."""
    assert done.code == 2
    assert done.out == ""
    assert "Traceback" not in done.err
    assert "hotset: unexpected" not in done.err
    for word in words:
        assert word in done.err


# Help


def _verbs(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            yield from _verbs(inner, (*path, name))


VERBS = dict(_verbs(typer.main.get_command(cli.create())))


def words_of(text: str) -> set[str]:
    """What stands in columns is broken after any of these."""
    return set(re.findall(r"(?:--|\[)?\w+", text))


def test_help(hotset: CommandLine, subtests: pytest.Subtests) -> None:
    """It holds whatever `docs/reference/cli.md` says of the command, and fits a terminal."""
    for verb, command in VERBS.items():
        with subtests.test(verb=" ".join(verb)):
            done = hotset(*verb, "--help")
            assert (done.code, done.err) == (0, "")
            assert done.out.split()[: 2 + len(verb)] == ["Usage:", "hotset", *verb]
            inner = {
                name: one
                for name, one in getattr(command, "commands", {}).items()
                if not one.hidden
            }
            options = [one for each in command.params for one in each.opts if one.startswith("-")]
            parts = [one.get_short_help_str(1000) for one in inner.values()]
            told = " ".join(
                filter(None, [command.help, *parts, *(one.help for one in command.params)])
            )
            due = words_of(" ".join([*inner, *options, re.sub(r"\S*://\S*", "", told)]))
            assert not due - words_of(done.out)
            assert max(map(len, done.out.splitlines())) <= 100


def test_all_verbs_are_tested() -> None:
    for verb in (("demo",), ("experiment", "run"), ("runs", "rm"), ("lab", "down"), ("doctor",)):
        assert verb in VERBS


def test_exit_codes_stand_in_the_help(hotset: CommandLine) -> None:
    text = " ".join(hotset("--help").out.split())
    for meaning in (
        "0 success",
        "2 wrong usage",
        "3 something is missing",
        "4 run failed",
        "5 threshold missed",
        "130 interrupted",
    ):
        assert meaning in text


# Usage


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--nonsense"], ["--nonsense"]),
        (["frobnicate"], ["frobnicate"]),
        (["runs", "list", "--colour"], ["--colour"]),
        (["runs", "list", "--format", "xml"], ["--format", "xml"]),
        (["runs", "show"], ["RUN"]),
        (["runs", "show", "a", "b"], ["b"]),
        (["experiment", "run"], ["FILE"]),
        (["experiment", "run", DEMO, "--set"], ["--set"]),
        (["experiment", "run", DEMO, "--set", "tpcc.users"], ["--set: tpcc.users", "key=value"]),
        (["experiment", "run", DEMO, "--set", "tpcc.user=1"], ["unknown key tpcc.user"]),
        (["experiment", "run", DEMO, "--resume", "nonsense"], ["no runs yet"]),
        (["experiment", "plan", DEMO, "--set", "tier.cache=4GiB"], ["larger than flash.size"]),
        (["experiment", "run", "missing.toml"], ["missing.toml: no such experiment file"]),
        (["experiment", "plan", "."], ["no such experiment file"]),
        (["demo", "--set", "repeats=0"], ["repeats = 0"]),
        (["disk", "calibrate", "--size", "big"], ["--size", "'big' is not a size"]),
        (["disk", "calibrate", "--machine", "cloud"], ["--machine", "'cloud'", "'image'", "'uml'"]),
        (["tpch", "run"], ["--dsn"]),
        (["tpch", "run", "--dsn", "nonsense"], ["--dsn: the DSN is neither a URI"]),
        (["tpch", "run", "--dsn", "host=x password=s3"], ["the DSN holds a password"]),
        (["tpch", "run", "--dsn", "host=x port=54x"], ["port '54x'", "1 to 65535"]),
        (["tpch", "run", "--dsn", "host=x sslmod=no"], ["libpq does not know", "sslmod"]),
        (["tpch", "run", "--dsn", "postgresql://h/d?sslmod=no"], ["does not know", "sslmod"]),
        (["tpch", "run", "--dsn", "host=x sslpassword=s3"], ["the DSN holds sslpassword"]),
        (["tpch", "build", "--dsn", "host=x", "--scale", "0.00001"], ["--scale", "from 0.01"]),
        (["tpch", "build", "--dsn", "host=x", "--engine", "oracle"], ["--engine", "'oracle'"]),
        (["tpch", "run", "--dsn", "host=x", "--queries", "1,23"], ["--queries", "'23'", "1 to 22"]),
        (["tpch", "run", "--dsn", "host=x", "--streams", "41"], ["--streams", "1 to 40, or min"]),
        (["tpch", "run", "--dsn", "host=x", "--streams", "2", "--queries", "1"], ["all 22"]),
        (["tpch", "run", "--dsn", "host=x", "--driver", "hammerdb"], ["--scale", "what is loaded"]),
        (["tpch", "run", "--dsn", "host=x", "--timeout", "0"], ["--timeout"]),
        (["tpch", "check", "--dsn", "host=x", "--password-file", "missing"], ["missing", "read"]),
    ],
    ids=lambda value: " ".join(value).replace(DEMO, "demo.toml") if isinstance(value, list) else "",
)
def test_wrong_usage(hotset: CommandLine, argv: list[str], words: list[str]) -> None:
    usage_error(hotset(*argv), *words)


@pytest.mark.parametrize("argv", [[], ["runs"], ["experiment"], ["lab"], ["disk"], ["tpch"]])
def test_a_verb_that_is_missing_shows_the_help(hotset: CommandLine, argv: list[str]) -> None:
    done = hotset(*argv)
    assert done.code in (0, 2)
    assert "Usage: hotset" in done.out + done.err


LOG = {"audit.jsonl", "audit.lock"}
"""What is kept of every call that may change something."""


def test_nothing_is_made_by_wrong_usage(hotset: CommandLine, own_folders: Path) -> None:
    hotset("experiment", "run", "missing.toml")
    hotset("experiment", "run", DEMO, "--set", "nonsense=1")
    assert {path.name for path in own_folders.rglob("*") if path.is_file()} <= LOG
    assert Archive.default().listing() == []


# The archive


def test_an_empty_archive(hotset: CommandLine) -> None:
    assert hotset("runs", "list").code == 0
    listed = hotset("runs", "list", "--format", "json")
    assert (listed.code, listed.err) == (0, "")
    assert json.loads(listed.out) == {"schema_version": SCHEMA_VERSION, "runs": []}
    rows = hotset("runs", "list", "--format", "csv")
    assert (rows.code, rows.err) == (0, "")
    assert [len(row) > 3 for row in csv.reader(io.StringIO(rows.out))] == [True]
    usage_error(hotset("runs", "show", "last"), "no runs yet")


def test_a_list_of_runs(hotset: CommandLine, run: RunDocument) -> None:
    listed = hotset("runs", "list", "--format", "json")
    assert (listed.code, listed.err) == (0, "")
    loaded = json.loads(listed.out)
    assert loaded["schema_version"] == SCHEMA_VERSION
    assert [row["run"] for row in loaded["runs"]] == [run.run]
    rows = list(csv.DictReader(io.StringIO(hotset("runs", "list", "--format", "csv").out)))
    assert [row["run"] for row in rows] == [run.run]
    assert rows[0]["state"] == "complete"
    assert set(rows[0]) == set(loaded["runs"][0])
    table = hotset("runs", "list")
    assert (table.code, table.err) == (0, "")
    assert run.run in table.out


def test_runs_side_by_side(hotset: CommandLine, run: RunDocument) -> None:
    spec = {**run.experiment.spec, "seed": 9}
    other = run.model_copy(
        update={
            "run": f"{run.run}.2",
            "experiment": run.experiment.model_copy(update={"spec": spec}),
        }
    )
    archive = Archive.default()
    archive.path(other.run).mkdir()
    archive.save(other)
    both = ("runs", "compare", run.run, other.run)
    usage_error(hotset(*both), "seed: – / 9", "--force")
    usage_error(hotset("runs", "compare", run.run), "two runs")
    usage_error(hotset("runs", "compare", run.run, "nowhere"), "nowhere")
    found = json.loads(hotset(*both, "--force", "--format", "json").out)
    assert found["schema_version"] == SCHEMA_VERSION
    assert found["differences"] == ["seed: – / 9"]
    assert {line["verdict"] for line in found["lines"]} == {"not significant"}
    rows = list(csv.DictReader(io.StringIO(hotset(*both, "--force", "-f", "csv").out)))
    # In a pipe, verdicts were once folded as on a terminal of 80 columns.
    piped = hotset(*both, "--force", env={"COLUMNS": ""}).out.splitlines()
    assert [line.rstrip().endswith("not significant") for line in piped].count(True) == len(rows)
    assert [row["arm"] for row in rows] == [line["arm"] for line in found["lines"]]
    table = hotset(*both, "--force")
    assert (table.code, table.err) == (0, "")
    assert "not significant" in table.out


def test_the_report_of_a_run(hotset: CommandLine, run: RunDocument, tmp_path: Path) -> None:
    text = hotset("report", "last", "--format", "md")
    assert (text.code, text.err) == (0, "")
    assert text.out.startswith(f"# {run.experiment.title}")
    assert hotset("report", "run", run.run, "-f", "md").out == text.out
    figures = hotset("report", "last", "-f", "json", "-o", str(tmp_path / "all.json"))
    assert (figures.code, figures.out) == (0, "")
    assert RunDocument.model_validate_json((tmp_path / "all.json").read_text()) == run
    page = Path(hotset("report", "last").out.strip())
    assert page == Archive.default().path(run.run) / "report.html"
    assert run.run in page.read_text()
    usage_error(hotset("report", "nowhere"), "nowhere")
    usage_error(hotset("report", "last", "-o", str(tmp_path)), "--output")
    usage_error(hotset("report", "last", "-f", "pdf"), "--format", "pdf")


def test_prices_are_given_to_a_run_and_stay(hotset: CommandLine, run: RunDocument) -> None:
    for wrong, words in (
        ("server", ["--price: server", "key=value"]),
        ("flash=1", ["server is missing", "flash = '1': Extra"]),
        ("server=-1", ["server = '-1'", "greater than 0"]),
    ):
        usage_error(hotset("report", "last", "--price", wrong), *words)
    assert Archive.default().load("last") == run
    text = hotset("report", "last", "-f", "md", "--price", "server=6000", "--price", "origin=2500")
    assert "| baseline | none | 8,500 |" in text.out
    hotset("report", "last", "--price", "flash_per_gb=1.2")
    kept = Archive.default().load("last")
    assert kept.prices is not None
    assert (kept.prices.server, kept.prices.flash_per_gb) == (6000, 1.2)
    assert all(cost.price is not None for cost in kept.costs)


def test_a_run_is_published(hotset: CommandLine, run: RunDocument, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    usage_error(hotset("report", "last", "--publish", str(folder)), "does not record its command")
    Archive.default().save(run.model_copy(update={"command": ("hotset", "demo")}))
    usage_error(hotset("report", "last", "--publish", str(folder), "-o", "x"), "--publish")
    done = hotset("report", "last", "--publish", str(folder))
    assert (done.code, done.out.strip()) == (0, str(folder / run.run))
    assert "hotset demo" in (folder / run.run / "README.md").read_text()
    fields = table.find("report run").fields
    assert not {"publish", "output"} & set(fields), "no folder of the server's is written to"


def test_one_run(hotset: CommandLine, run: RunDocument) -> None:
    shown = hotset("runs", "show", "last", "--format", "json")
    assert (shown.code, shown.err) == (0, "")
    assert RunDocument.model_validate_json(shown.out) == run
    rows = list(csv.DictReader(io.StringIO(hotset("runs", "show", "2026", "-f", "csv").out)))
    assert len(rows) >= 9
    assert {row["arm"] for row in rows} >= {"baseline", "accelerated", "all-flash"}
    queries = hotset("runs", "show", run.run, "--format", "csv", "--queries").out
    assert queries.startswith("run,state,labels,arm,repeat,stream,query,seconds,")
    usage_error(hotset("runs", "show", run.run, "--queries"), "--queries", "CSV")
    table = hotset("runs", "show", run.run)
    assert (table.code, table.err) == (0, "")
    assert "baseline" in table.out


def test_a_run_that_is_not_there(hotset: CommandLine, run: RunDocument) -> None:
    assert run.run != "nonsense"
    for verb in ("show", "rm"):
        usage_error(hotset("runs", verb, "nonsense"), "no run named 'nonsense'", "runs list")


def test_no_colour_and_no_control_characters_outside_a_terminal(
    hotset: CommandLine, run: RunDocument
) -> None:
    for argv in (["runs", "list"], ["runs", "show", run.run], ["--help"], ["doctor"], ["--wrong"]):
        env = {"TERM": "xterm-256color", "NO_COLOR": ""}
        done = hotset(*argv, env=env)
        assert "\x1b" not in done.out + done.err


@pytest.mark.parametrize(
    ("argv", "answer", "left"),
    [(["--yes"], "", 0), ([], "y\n", 0), ([], "n\n", 1), ([], "", 1)],
)
def test_a_run_is_deleted_when_the_user_says_so(
    hotset: CommandLine, run: RunDocument, argv: list[str], answer: str, left: int
) -> None:
    done = hotset("runs", "rm", run.run, *argv, stdin=answer)
    assert done.out.strip() == ""  # the prompt leaves a blank there
    assert len(Archive.default().listing()) == left
    assert (done.code == 0) == (left == 0)
    if left == 0:
        assert f"deleted {run.run}" in done.err


def test_a_no_is_no_interruption(hotset: CommandLine, run: RunDocument) -> None:
    done = hotset("runs", "rm", run.run, stdin="n\n")
    assert done.code != 130
    assert "taken down" not in done.err


def test_a_broken_run_can_be_deleted(hotset: CommandLine, run: RunDocument) -> None:
    folder = Archive.default().path(run.run)
    (folder / DOCUMENT).write_text("{")
    assert hotset("runs", "rm", run.run, "--yes").code == 0
    assert not folder.exists()


def test_a_broken_run_is_one_clear_error(hotset: CommandLine, run: RunDocument) -> None:
    (Archive.default().path(run.run) / DOCUMENT).write_text("{")
    usage_error(hotset("runs", "show", run.run), "cannot be read")
    assert hotset("runs", "list").code == 0


# The lab, as far as it goes without one


def test_no_lab(hotset: CommandLine) -> None:
    status = hotset("lab", "status")
    assert (status.code, status.out, status.err) == (0, "lab: down\n", "")
    listed = json.loads(hotset("lab", "status", "--format", "json").out)
    assert listed == {
        "schema_version": SCHEMA_VERSION,
        "state": "down",
        "purpose": "",
        "processes": [],
        "live": None,
    }
    columns, only = csv.reader(io.StringIO(hotset("lab", "status", "--format", "csv").out))
    assert columns == ["state", "purpose", "process", "pid", "running"]
    assert only == ["down", "", "", "", ""]
    down = hotset("lab", "down")
    assert (down.code, down.out) == (0, "")
    assert "nothing was up" in down.err
    quiet = hotset("lab", "down", "--quiet")
    assert (quiet.code, quiet.out, quiet.err) == (0, "", "")


def test_a_shell_needs_a_lab(hotset: CommandLine) -> None:
    done = hotset("lab", "shell")
    assert (done.code, done.out) == (3, "")
    assert "hotset lab up" in done.err


@pytest.fixture
def able() -> None:
    """Only where nothing but the lab being in use can refuse a run."""
    try:
        doctor.require(choose("auto"))
    except PrerequisiteMissingError as lacks:
        pytest.skip(str(lacks))


@pytest.mark.usefixtures("able")
def test_one_at_a_time(hotset: CommandLine) -> None:
    with exclusive(lab_folder()):
        for argv in (["lab", "down"], ["lab", "up"], ["disk", "calibrate"]):
            done = hotset(*argv)
            assert (done.code, done.out) == (3, "")
            assert f"another hotset (pid {os.getpid()})" in done.err


# The doctor


def test_the_doctor(hotset: CommandLine) -> None:
    done = hotset("doctor", "--format", "json")
    assert done.err == ""
    loaded = json.loads(done.out)
    assert loaded["schema_version"] == SCHEMA_VERSION
    states = {finding["state"] for finding in loaded["findings"]}
    assert states <= {"ok", "missing", "note"}
    assert done.code == (3 if "missing" in states else 0)
    names = {finding["what"] for finding in loaded["findings"]}
    assert {"environment", "lab image", "flashdev", "hotset-engine", "mmdebstrap"} <= names
    assert hotset("doctor").code == done.code


def test_the_doctor_names_what_installs_a_missing_program(
    hotset: CommandLine, tmp_path: Path
) -> None:
    empty = {"PATH": str(tmp_path / "empty")}
    done = hotset("doctor", "--format", "json", env=empty)
    findings = {one["what"]: one for one in json.loads(done.out)["findings"]}
    # These lie in /usr/bin, which an empty PATH leaves out.
    for name in ("mmdebstrap", "cp", "env"):
        assert findings[name]["state"] == "missing"
        assert findings[name]["detail"].endswith(f"apt-get install {PROGRAMS[name].package}")
        assert PROGRAMS[name].purpose in findings[name]["detail"]
    table = hotset("doctor", env=empty)
    assert "apt-get install mmdebstrap" in " ".join(table.out.split())
    assert (done.code, table.code) == (3, 3)


def test_the_doctor_looks_at_a_server() -> None:
    """What a disk of it lacks is missing, what another kind would need is a note."""
    there = Keeping()
    there.answers |= {"id -u": "0\n", "uname -m": f"{platform.machine()}\n"}
    there.keep(FLASH)
    found = {one.what: (one.state, one.detail) for one in doctor.examine_server(there)}
    possible = ("ok", "possible")
    state, fits = found.pop("hotset's programs")
    assert (state, fits.partition(":")[0]) == ("ok", "for Linux on x86_64, as this machine is")
    assert found == {"dm-cache": ("ok", "in use"), "bcache": possible, "userspace": possible}
    for first in ("cache_check", "bcache-super-show"):
        there.answers[shlex.join(lacking_argv([first]))] = f"{first}\n"
    found = {one.what: (one.state, one.detail) for one in doctor.examine_server(there)}
    del found["hotset's programs"]
    assert found == {
        "dm-cache": ("missing", "cache_check (apt-get install thin-provisioning-tools)"),
        "bcache": ("note", "bcache-super-show (apt-get install bcache-tools)"),
        "userspace": possible,
    }
    there.answers["uname -m"] = "riscv64\n"
    _, *kinds = doctor.examine_server(there)
    assert {one.state for one in kinds} == {"missing"}, "no kind works"
    there.answers["id -u"] = "1000\n"
    assert [one.what for one in doctor.examine_server(there)] == ["root"]


@pytest.mark.parametrize(
    ("argv", "lacks"),
    [
        (["demo"], "mmdebstrap"),
        (["disk", "calibrate"], "mmdebstrap"),
        (["lab", "up", "--machine", "vm"], "qemu-system-x86_64"),
    ],
    ids=str,
)
def test_a_run_without_its_programs_is_refused_before_anything_is_made(
    hotset: CommandLine, own_folders: Path, tmp_path: Path, argv: list[str], lacks: str
) -> None:
    done = hotset(*argv, env={"PATH": str(tmp_path / "empty")})
    assert (done.code, done.out) == (3, "")
    assert "prerequisites of a run are missing on this computer" in done.err
    needed = PROGRAMS[lacks]
    said = f"{lacks}: needed to {needed.purpose}; apt-get install {needed.package}"
    assert said in done.err
    assert "unexpected" not in done.err
    assert "openssh-client" not in done.err, "no run needs it"
    files = {path.name for path in own_folders.rglob("*") if path.is_file()}
    assert files <= {"lock", *LOG}
    assert Archive.default().listing() == []


@pytest.mark.parametrize(
    ("path", "remedy"), [("/dev/fuse", "modprobe fuse"), ("/dev/net/tun", "modprobe tun")]
)
def test_a_device_that_is_missing_is_named_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch, path: str, remedy: str
) -> None:
    opened = os.open

    def found(asked: str, flags: int, mode: int = 0o777) -> int:
        if asked == path:
            raise FileNotFoundError(asked)
        return opened(asked, flags, mode)

    monkeypatch.setattr(os, "open", found)
    monkeypatch.setattr(Path, "exists", lambda asked: str(asked) != path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(PrerequisiteMissingError, match=rf"missing .*\n  {path}: .*{remedy}"):
        doctor.require("vm")


def test_what_an_image_that_is_there_needs_no_more_is_a_note(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("hotset.core.machines.local._SBIN", ())

    def lacks() -> str:
        with pytest.raises(PrerequisiteMissingError) as refused:
            doctor.require("vm")
        return str(refused.value)

    assert "mmdebstrap" in lacks()
    monkeypatch.setattr(image, "find_built", lambda: image.Image(tmp_path))
    assert "mmdebstrap" not in lacks()


# The entry point itself


def test_the_installed_program(tmp_path: Path) -> None:
    done = processes.run([str(ENTRY), "runs", "show", "nonsense"], cwd=tmp_path, timeout_s=30)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "hotset: there are no runs yet; to make the first: `hotset demo`\n"


@pytest.mark.usefixtures("able")
def test_a_run_that_finds_the_lab_in_use_leaves_nothing(own_folders: Path) -> None:
    with exclusive(lab_folder()):
        done = subprocess.run(
            [str(ENTRY), "demo"], capture_output=True, text=True, timeout=60, check=False
        )
    assert (done.returncode, done.stdout) == (3, "")
    assert f"another hotset (pid {os.getpid()})" in done.stderr
    assert Archive.default().listing() == []
    files = {path.name for path in own_folders.rglob("*") if path.is_file()}
    assert files == {"lock", "runs.lock", "runs.sqlite", *LOG}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption(hotset: CommandLine, run: RunDocument, number: signal.Signals) -> None:
    done = hotset("runs", "rm", run.run, interrupt=("Delete run", number))
    assert done.code == 130
    assert "interrupted" in done.err
    assert len(Archive.default().listing()) == 1


def test_top_refuses_what_is_no_terminal(hotset: CommandLine) -> None:
    done = hotset("top")
    assert done.code == 2
    assert "hotset tier watch" in done.err
    assert done.out == ""


def test_what_a_command_with_sudo_left_to_root_is_told_with_the_way_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was "unexpected PermissionError"."""
    (tmp_path / "audit.jsonl").touch()
    owner = (tmp_path / "audit.jsonl").owner()
    other = next(one for one in pwd.getpwall() if one.pw_name != owner)
    monkeypatch.setattr(os, "geteuid", lambda: other.pw_uid)
    said = cli._of_another(tmp_path / "audit.jsonl")
    assert f"it belongs to {owner}" in said
    assert said.endswith(f"sudo chown -R {pwd.getpwuid(other.pw_uid).pw_name} {tmp_path}")
