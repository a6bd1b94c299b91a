"""The command line starts at once: what takes long to import waits until a verb needs it."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path
from typing import get_args

import pytest

from hotset.bench.commands.disk import LabMachine
from hotset.cli.groups import GROUPS
from hotset.lab.lab import ExperimentMachine
from tests.support import processes

HEAVY = {"altair", "asyncssh", "jinja2", "numpy", "psycopg", "vl_convert"}
WORKERS = (
    "asyncio",
    "duckdb",
    "fastapi",
    "hotset.block",
    "hotset.disk",
    "hotset.lab",
    "hotset.tier.engine.tier",
    "hotset.warmup",
    "hotset.reports.model.document",
    "hotset.reports.render",
    "numpy",
    "starlette",
    "vl_convert",
)
LIGHT = {
    "hotset.disk",
    "hotset.disk.places",
    "hotset.lab",
    "hotset.reports.render",
    "hotset.warmup",
    "hotset.warmup.schedule_request",
}
"""They load nothing themselves; nor do the modules that declare commands."""
# A process of its own: this one has long imported everything.
PROGRAM = """
import sys
from hotset.cli import main

try:
    main()
except SystemExit as leaving:
    names = {name.partition(".")[0] for name in sys.modules}
    print(leaving.code, *sorted(names), file=sys.stderr)
"""


def call(*argv: str) -> tuple[str, int, set[str]]:
    """Standard output, exit code and the top-level modules that are imported in the end."""
    done = processes.run([sys.executable, "-c", PROGRAM, *argv])
    code, *names = done.stderr.splitlines()[-1].split()
    return done.stdout, int(code), set(names)


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["experiment", "run", "--help"], 0),
        (["runs", "list"], 0),
        (["runs", "show", "nonsense"], 2),
        (["lab", "status"], 0),
        (["lab", "shell"], 3),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_measures_nothing_imports_nothing_heavy(argv: list[str], code: int) -> None:
    _, left_with, names = call(*argv)
    assert left_with == code
    assert "hotset" in names
    assert names & HEAVY == set()


def test_help_needs_no_validation_and_draws_no_markdown_or_code() -> None:
    """The latter two were a third of its time, by way of typer."""
    for word in ("--help", "--version"):
        assert call(word)[2] & {"pydantic", "markdown_it", "pygments"} == set()


@pytest.mark.parametrize(
    "words", [(word,) for word in GROUPS] + [("tier", "status"), ("warmup", "schedule", "add")]
)
def test_help_loads_nothing_that_works(words: tuple[str, ...]) -> None:
    """Neither the code of the cache layer's operations nor what reaches other machines."""
    loaded = processes.run(
        [sys.executable, "-c", f"{PROGRAM}print(*sys.modules)", *words, "--help"]
    ).stdout.split()
    assert "hotset.core.operation" in loaded
    working = (name for name in {*loaded} - LIGHT if name.startswith(WORKERS))
    assert [name for name in working if ".commands" not in name] == []


def test_the_version() -> None:
    assert call("--version")[:2] == (f"hotset {version('hotset')}\n", 0)


def test_a_report_is_heavy(tmp_path: Path) -> None:
    """The libraries above are those that a run imports: the list has not gone stale."""
    program = "import sys; import hotset.experiment.plan, hotset.lab.image as i;"
    program += "import hotset.reports.render.html, hotset.reports.analysis.stats;"
    program += "from pathlib import Path;"
    program += "i._write_inputs(Path(sys.argv[1])); print(*sys.modules)"
    done = processes.run([sys.executable, "-c", program, str(tmp_path)])
    assert set(done.stdout.split()) >= HEAVY


def test_machines_of_the_command_line_are_those_of_the_lab() -> None:
    lab = {name for part in get_args(ExperimentMachine) for name in get_args(part)}
    assert set(get_args(LabMachine)) == lab
