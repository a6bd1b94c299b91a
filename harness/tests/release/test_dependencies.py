"""What the packages import is what pyproject.toml declares, no less and no more."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).parents[3]
PARTS = ("cache-layer", "tpcc", "tpch", "reports", "harness")
# pydantic pins its core to one version, and documents it as the place of its schema functions.
BROUGHT_ALONG = {"pydantic_core"}
# A shared library in a package, which the ODBC manager loads; what Starlette reads forms with.
LOADED_BY_OTHERS = {"mssql-python-odbc", "python-multipart"}
DISTRIBUTIONS = packages_distributions()
# Distributions that hold a program and no module, and the file that runs it.
PROGRAMS = {"tpchgen-cli": ROOT / "tpch/hotset/tpch/data.py"}


def imported() -> Iterator[str]:
    """Top-level names of other people's modules, in every file of the packages."""
    for part in PARTS:
        for file in (ROOT / part / "hotset").rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Import):
                    yield from (alias.name.partition(".")[0] for alias in node.names)
                elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                    yield node.module.partition(".")[0]


def normal(name: str) -> str:
    """A distribution's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_imported_is_declared_and_declared_is_imported() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"].items()
    extras = [line for name, one in optional if name != "all" for line in one]
    lines = [*project["dependencies"], *extras]
    declared = {normal(re.split(r"[\[<>=!~ ]", line)[0]) for line in lines} - LOADED_BY_OTHERS
    foreign = set(imported()) - sys.stdlib_module_names - {"hotset"} - BROUGHT_ALONG
    needed = {normal(name) for module in foreign for name in DISTRIBUTIONS[module]}
    run = {name for name, file in PROGRAMS.items() if f'"{name}"' in file.read_text()}
    assert needed | run == declared
