"""What an installation may leave out: `import hotset` and `hotset --help` work without any extra,
and whoever needs one is told which, before the work and not after it."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Set
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from hotset.core.errors import LACKS
from hotset.core.extras import MODULES, Extra, ExtraMissingError, explained, require
from hotset.core.operation import Kind, Operation
from hotset.operations import table
from pages.rooms import imports, modules, targets, tree

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, check=False, capture_output=True, text=True, env={**os.environ, **environment}
    )


def installed(folder: Path, *extras: Extra) -> Path:
    """The folder of programs of an environment that has the wheel and these extras alone."""
    argv = ["uv", "sync", "--quiet", "--locked", "--no-dev", "--no-editable", f"--project={ROOT}"]
    # Of what is here now, not of what was built of it before.
    argv += ["--refresh-package=hotset", "--reinstall-package=hotset"]
    argv += [f"--extra={one}" for one in extras]
    done = run(*argv, UV_PROJECT_ENVIRONMENT=str(folder), VIRTUAL_ENV="")
    assert done.returncode == 0, done.stderr
    return folder / "bin"


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Without an extra."""
    return installed(tmp_path_factory.mktemp("base") / "venv")


def test_the_base_has_no_module_of_an_extra(base: Path) -> None:
    """Or the tests below would see nothing missing."""
    names = sorted({name for each in MODULES.values() for name in each})
    code = "import sys; from importlib.util import find_spec as f; print(*filter(f, sys.argv[1:]))"
    assert run(str(base / "python"), "-c", code, *names).stdout.split() == []


# Where each command is needed, what it says in the base; None: it is not about an extra.
COMMANDS: dict[tuple[str, ...], str | None] = {
    ("--help",): None,
    ("--version",): None,
    ("tier", "list"): None,
    ("tier", "health"): None,
    ("runs", "list"): None,
    ("demo",): "bench,report",
    ("experiment", "run", "x.toml", "--yes"): "bench,report",
    ("tpcc", "run", "--dsn", "postgresql:///x", "--duration", "1"): "bench",
    ("whatif", "flash", "shop"): "bench",
    ("report", "last"): "report",
    ("console",): "console",
}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_that_needs_an_extra_names_it(
    base: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    done = run(str(base / "hotset"), *command, HOME=str(tmp_path), XDG_DATA_HOME=str(tmp_path))
    extra = COMMANDS[command]
    assert "unexpected" not in done.stderr
    if extra is None:
        assert "pip install" not in done.stdout + done.stderr
    else:
        assert (done.returncode, done.stdout) == (LACKS, "")
        assert done.stderr.endswith(f": pip install 'hotset[{extra}]'\n")
        assert done.stderr.count("\n") == 1


def test_every_command_has_its_help_in_the_base(base: Path) -> None:
    """Completion and the API make them all: none may need an extra only to be declared."""
    code = "from hotset.operations import table; print(len(list(table.every())))"
    done = run(str(base / "python"), "-c", code)
    assert (done.stdout, done.stderr) == (f"{len(list(table.every()))}\n", "")


@pytest.mark.parametrize(
    ("extra", "modules"),
    [
        (Extra.BENCH, "hotset.experiment.runner, hotset.tpch.reference, hotset.whatif.advice"),
        (Extra.REPORT, "hotset.reports.render.publish, hotset.experiment.history"),
        (Extra.CONSOLE, "hotset.console.app, hotset.console.serving"),
    ],
)
def test_an_extra_is_enough_for_what_it_is_for(tmp_path: Path, extra: Extra, modules: str) -> None:
    done = run(str(installed(tmp_path / "venv", extra) / "python"), "-c", f"import {modules}")
    assert done.stderr == ""


def test_the_table_has_what_the_package_declares() -> None:
    declared = {name for name in PROJECT["optional-dependencies"] if name != "all"}
    assert set(Extra) == declared
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert set(everything.removeprefix("hotset[").removesuffix("]").split(",")) == declared


@pytest.mark.parametrize("extra", Extra)
def test_an_extra_brings_its_modules(extra: Extra) -> None:
    names = {line.split(">")[0].split("[")[0] for line in PROJECT["optional-dependencies"][extra]}
    for module in MODULES[extra]:
        assert names & {one.lower() for one in packages_distributions()[module]}, module


def test_another_missing_module_stays_what_it_is() -> None:
    with pytest.raises(ModuleNotFoundError, match="nobody_has_this"), explained():
        import nobody_has_this  # type: ignore[import-not-found]  # noqa: F401


def test_all_that_is_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("numpy", "altair"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ExtraMissingError, match=r"'hotset\[bench,report\]'$"):
        require(Extra.BENCH, Extra.REPORT, Extra.SEARCH)


@cache
def needs(module: str) -> frozenset[str]:
    """Modules of extras that are loaded with a module of hotset's."""
    found: set[str] = set()
    for one in {module, *_loaded(module)}:
        for node in tree(modules()[one]).body:
            found |= foreign(node)
    return frozenset(found & {name for each in MODULES.values() for name in each})


def _loaded(module: str) -> Set[str]:
    found: set[str] = set()
    left = {module}
    while left:
        one = left.pop()
        found.add(one)
        left |= imports(one, lazy=False) - found
    return found


def foreign(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return {node.module.partition(".")[0]}
    return set()


def used(operation: Operation) -> Iterator[ast.AST]:
    """All that a job's function, and its result, reach by name in their own module."""
    named = {
        node.name: node for node in tree(modules()[operation.module]).body if hasattr(node, "name")
    }
    left, seen = {operation.function.__name__, operation.result.__name__}, set[str]()
    while left:
        name = left.pop()
        seen.add(name)
        for node in ast.walk(named[name]) if name in named else ():
            yield node
            if isinstance(node, ast.Name) and node.id in named and node.id not in seen:
                left.add(node.id)


JOBS = [one for one in table.every() if one.kind is Kind.JOB]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_job_asks_for_its_extras_before_it_begins(job: Operation) -> None:
    """Not after an hour of measuring, when it comes to its report."""
    lacking = {
        module: target
        for node in used(job)
        for target in targets(job.module, node)
        for module in needs(target)
        if not any(module in MODULES[extra] for extra in job.extras)
    }
    assert not lacking
