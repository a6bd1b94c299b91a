"""Every test has folders of its own: nothing of the user's cache, archive or lab is touched."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli_server import XDG, CommandLine, plain_environment


@pytest.fixture(autouse=True)
def own_folders(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """XDG folders below the test's own; returns their root.

    Tests of the lab share the user's cache: its image takes a minute to build.
    """
    root = tmp_path / "xdg"
    shared = {"XDG_CACHE_HOME"} if request.node.get_closest_marker("lab") else set()
    for variable in set(XDG) - shared:
        monkeypatch.setenv(variable, str(root / variable))
    return root


@pytest.fixture(scope="session")
def cli_server() -> Iterator[subprocess.Popen[str]]:
    program = Path(__file__).parent / "cli_server.py"
    with subprocess.Popen(
        [sys.executable, str(program)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=plain_environment(),
    ) as server:
        yield server
        assert server.stdin is not None
        server.stdin.close()


@pytest.fixture
def hotset(cli_server: subprocess.Popen[str], tmp_path: Path) -> CommandLine:
    """The command line, in folders of the test's own."""
    root = tmp_path / "cli"
    root.mkdir()
    return CommandLine(cli_server, root, plain_environment())
