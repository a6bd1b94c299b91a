"""Commands in a bare system: run, logged with their times, and shown as a table."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from .unpack import USER_ID

NETWORK = (
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "PIP_INDEX_URL",
    "PIP_CERT",
    "UV_DEFAULT_INDEX",
    "SSL_CERT_FILE",
    "HOTSET_DEBIAN_MIRROR",
)
"""How this computer reaches package archives; taken along into the bare one."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command as it ran in a bare system. ``expected`` is whether it ended as it should."""

    system: str
    user: str
    command: str
    seconds: float
    code: int
    expected: bool
    last_line: str


def execute(
    system: str, user: str, command: str, log: TextIO, folder: Path, code: int = 0
) -> tuple[Step, str]:
    """Run a command as root or the system's user; returns how it went, and what it said.

    :param folder: where it is run.
    :param code: with which it is to end.
    """
    home = "/root" if user == "root" else "/home/user"
    path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    kept = {name: os.environ[name] for name in NETWORK if name in os.environ}
    who = None if user == "root" else USER_ID
    began, text = time.monotonic(), []
    process = subprocess.Popen(
        ["bash", "-lc", command],
        cwd=folder,
        env={"HOME": home, "USER": user, "PATH": path, "TERM": "dumb", **kept},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        user=who,
        group=who,
        extra_groups=None if who is None else [],
    )
    assert process.stdout is not None
    print(f"== {system} {user}: {command}", file=log, flush=True)
    for line in process.stdout:
        text.append(line)
        seconds = time.monotonic() - began
        print(f"{seconds:7.1f} {line}", end="", file=log, flush=True)
    ended = process.wait()
    seconds = round(time.monotonic() - began, 1)
    print(f"{seconds:7.1f} == code {ended}", file=log, flush=True)
    last = next((line.strip() for line in reversed(text) if line.strip()), "")
    return Step(system, user, command, seconds, ended, ended == code, last[:100]), "".join(text)


def write(steps: Sequence[Step], results: int) -> None:
    """So that callers outside know them.

    :param results: an open folder, which is no part of the system that was entered.
    """
    handle = os.open("steps.json", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644, dir_fd=results)
    with os.fdopen(handle, "w") as file:
        json.dump([asdict(step) for step in steps], file, indent=1)


def table(steps: Sequence[Step]) -> str:
    """Format the steps as Markdown."""
    lines = ["| system | as | command | seconds | code | last line |", "|---|---|---|---|---|---|"]
    for step in steps:
        command = step.command if len(step.command) < 60 else f"{step.command[:57]}…"
        mark = "" if step.expected else " **wrong**"
        shown = [
            step.system,
            step.user,
            f"`{command}`",
            f"{step.seconds:.0f}",
            f"{step.code}{mark}",
            step.last_line.replace("|", "\\|"),
        ]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)
