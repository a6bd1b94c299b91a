"""The version is in one place, and all that is released says the same one."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from pathlib import Path

import pytest

import hotset
from tests.support import processes

ROOT = Path(__file__).parents[3]


def test_a_checkout_knows_its_version_without_having_been_installed() -> None:
    folders = (ROOT / one for one in ("harness", "reports", "tpch", "tpcc", "cache-layer"))
    code = "import hotset, hotset.core.errors, hotset.tpch.words; print(hotset.__version__)"
    done = processes.run(
        [sys.executable, "-S", "-c", code],  # -S: no packages, and so no metadata of any
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
    )
    assert (done.stdout, done.stderr) == (f"{hotset.__version__}\n", "")


def test_python_takes_it_from_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in project["project"]
    assert project["tool"]["hatch"]["version"]["path"] == "cache-layer/hotset/__init__.py"


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("cache-layer/crates/Cargo.toml", r'^version = "(.+)"'),
        ("tpcc/driver/Cargo.toml", r'^version = "(.+)"'),
    ],
)
def test_what_cannot_take_it_from_there_has_the_same(file: str, said: str) -> None:
    (version,) = re.findall(said, (ROOT / file).read_text(), re.MULTILINE)
    assert version == hotset.__version__
