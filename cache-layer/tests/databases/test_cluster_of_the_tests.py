"""The PostgreSQL of the tests themselves: it ends with them, whatever ends them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hotset.core.clock import wait_until
from hotset.core.machines.local import start_time

pytestmark = pytest.mark.database

ROOT = Path(__file__).parents[3]
LIMIT_S = 120.0
WAITS = """
import json, os, pathlib, signal
from tests.postgres_cluster import children

def test_that_waits(cluster):
    (server,) = (one for one in children(os.getpid()))
    said = pathlib.Path(os.environ["SAID"])
    part = said.with_suffix(".part")
    part.write_text(json.dumps([str(cluster.root), [server, *children(server)]]))
    part.rename(said)
    signal.pause()
"""


@pytest.mark.parametrize(
    ("number", "workers"),
    [
        (signal.SIGTERM, 0),
        pytest.param(signal.SIGTERM, 1, marks=pytest.mark.night),
        (signal.SIGKILL, 0),
    ],
)
def test_tests_that_are_ended_take_their_server_with_them(
    tmp_path: Path, number: signal.Signals, workers: int
) -> None:
    """Servers of tests that a limit had ended went on for days; and what they held was left."""
    test, said = tmp_path / "test_waits.py", tmp_path / "said"
    test.write_text(WAITS)
    argv = [sys.executable, "-m", "pytest", f"--config-file={ROOT / 'pyproject.toml'}"]
    argv += [f"--rootdir={tmp_path}", "-p", "conftest", "-p", "xdist", f"-n{workers}", str(test)]
    environment = os.environ | {"SAID": str(said), "PYTHONPATH": str(ROOT)}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # they take seconds
    with subprocess.Popen(
        argv, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True
    ) as tests:
        try:
            assert wait_until(said.exists, LIMIT_S, 0.1, ended=tests.poll)
            folder, pids = json.loads(said.read_text())
            # Those that the server starts for a moment may have ended.
            begun = {pid: at for pid in pids if (at := start_time(pid)) is not None}
            assert len(begun) > 3
            tests.send_signal(number)
            tests.communicate()
        finally:
            tests.kill()
    try:
        ended = wait_until(
            lambda: not any(start_time(pid) == at for pid, at in begun.items()), LIMIT_S
        )
        assert ended
        assert number == signal.SIGKILL or not Path(folder).exists()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
