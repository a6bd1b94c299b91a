"""Every test has folders of its own: nothing of the user's cache, archive or lab is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli_server import CommandLine

XDG = ("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "LC_ALL": "C.UTF-8"}
# What a terminal or a build server sets and what would change the output.
_LOUD = ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TERMINAL_WIDTH", "LINES", "HOTSET_DEBUG")


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """XDG folders below the test's own; returns their root."""
    root = tmp_path / "xdg"
    for variable in XDG:
        monkeypatch.setenv(variable, str(root / variable))
    return root


def plain_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _LOUD}
    return {**kept, **PLAIN}


@pytest.fixture(scope="session")
def cli_server() -> Iterator[subprocess.Popen[str]]:
    program = Path(__file__).parent / "cli_server.py"
    with subprocess.Popen(
        [sys.executable, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env=plain_environment(),
    ) as server:  # fmt: skip
        yield server
        assert server.stdin is not None
        server.stdin.close()


@pytest.fixture
def hotset(cli_server: subprocess.Popen[str], tmp_path: Path) -> CommandLine:
    """The command line, in folders of the test's own."""
    root = tmp_path / "cli"
    root.mkdir()
    return CommandLine(cli_server, root, plain_environment())
