"""Programs that measurements run, and the CPU time of processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hotset.core.machines.base import Machine

HOTSET = str(Path(sys.executable).with_name("hotset"))


def run(argv: Sequence[str], cwd: Path | None = None) -> str:
    """Run to the end; its standard output.

    :raises subprocess.CalledProcessError: with all that it said.
    """
    return subprocess.run(
        argv, cwd=cwd, stdin=subprocess.DEVNULL, check=True, capture_output=True, text=True
    ).stdout


def hotset(*words: str) -> Any:  # noqa: ANN401 - JSON
    """Run a command of hotset's, and return its JSON.

    :raises subprocess.CalledProcessError: with all of its output.
    """
    return json.loads(run([HOTSET, *words, "--format", "json"]))


def fio(machine: Machine, *words: str, limit_s: float = 300) -> dict[str, dict[str, Any]]:
    """fio's jobs by name, each direct and asynchronous, as its JSON has them."""
    argv = ["fio", "--direct=1", "--ioengine=libaio", "--norandommap", "--output-format=json"]
    text = machine.run([*argv, *words], timeout_s=limit_s).stdout
    jobs = json.loads(text[text.index("{") :])["jobs"]
    return {job["jobname"]: job for job in jobs}


def cpu_s(pid: int) -> float:
    """Seconds of CPU of a process and of its children that have ended (proc_pid_stat(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def tree_cpu_s(pid: int) -> float:
    """The same, with all processes below it."""
    seconds = cpu_s(pid)
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):  # one that has ended meanwhile
            seconds += sum(tree_cpu_s(int(child)) for child in file.read_text().split())
    return seconds
