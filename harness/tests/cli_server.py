"""The command line as processes of its own, quickly: imported once, forked for every call.

``python cli_server.py`` reads one JSON request a line and answers with the exit code. Each call is
a real process with its own streams, environment and folder, running the program's real entry.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from hotset.core.clock import wait_until
from hotset.operations import table

XDG = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
PLAIN = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "LC_ALL": "C.UTF-8"}
# What the verbs import when they are called; here, once for all calls.
_COSTLY = (
    "hotset.cli",
    "hotset.experiment.plan",
    "hotset.lab.doctor",
    "hotset.reports.render.terminal",
    "hotset.reports.render.html",
    "asyncssh",
    "rich.table",
)
# What a terminal or a build server sets and what would change the output.
_LOUD = ("FORCE_COLOR", "PY_COLORS", "GITHUB_ACTIONS", "TERMINAL_WIDTH", "LINES", "HOTSET_DEBUG")


def plain_environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name not in _LOUD}
    return {**kept, **PLAIN}


@dataclass(frozen=True)
class Done:
    """What a call came to."""

    code: int
    out: str
    err: str


class CommandLine:
    """``hotset`` in folders of its own."""

    def __init__(
        self, server: subprocess.Popen[str], root: Path, environment: Mapping[str, str]
    ) -> None:
        self._server = server
        self._root = root
        self.environment = dict(environment)

    def __call__(
        self,
        *argv: str,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        interrupt: tuple[str, int] | None = None,
    ) -> Done:
        """:param interrupt: once this text stands on standard error, send this signal; until
        then standard input stays open and empty."""
        files = [self._root / name for name in ("stdin", "stdout", "stderr")]
        files[0].write_text(stdin)
        request = {
            "argv": argv,
            "env": {**self.environment, **(env or {})},
            "cwd": str(self._root),
            "files": [str(file) for file in files],
            "interrupt": interrupt,
        }
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        code = int(self._server.stdout.readline())
        return Done(code, files[1].read_text(), files[2].read_text())


def _child(request: dict[str, Any]) -> NoReturn:
    code: Any = 99
    try:
        for number, (file, flags) in enumerate(
            zip(
                request["files"],
                (
                    os.O_RDONLY,
                    os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
                    os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
                ),
                strict=True,
            )
        ):
            os.dup2(os.open(file, flags, 0o600), number)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        if request["interrupt"]:
            os.dup2(os.pipe()[0], 0)
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        sys.argv = ["hotset", *request["argv"]]
        from hotset import cli

        cli.main()
    except SystemExit as leaving:
        code = leaving.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def _interrupt(pid: int, errors: Path, text: str, number: int) -> None:
    wait_until(lambda: errors.exists() and text in errors.read_text(), 10)
    time.sleep(0.05)
    os.kill(pid, number)


def main(requests: Sequence[str]) -> None:
    for name in _COSTLY:
        import_module(name)

    list(table.every())

    for line in requests:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _child(request)
        if request["interrupt"]:
            _interrupt(pid, Path(request["files"][2]), *request["interrupt"])
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main(sys.stdin)  # type: ignore[arg-type]
