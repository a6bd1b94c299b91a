"""The command line as processes of its own, quickly: imported once, forked for every call.

``python cli_server.py`` reads one JSON request a line and answers with the exit code. Each call is
a real process with its own streams, environment and folder, running the program's real entry.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn


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

    def __call__(self, *argv: str, stdin: str = "", env: Mapping[str, str] | None = None) -> Done:
        files = [self._root / name for name in ("stdin", "stdout", "stderr")]
        files[0].write_text(stdin)
        request = {
            "argv": argv,
            "env": {**self.environment, **(env or {})},
            "cwd": str(self._root),
            "files": [str(file) for file in files],
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
                (os.O_RDONLY, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, os.O_WRONLY | os.O_CREAT
                 | os.O_TRUNC),
                strict=True,
            )
        ):  # fmt: skip
            os.dup2(os.open(file, flags, 0o600), number)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        sys.argv = ["hotset", *request["argv"]]
        from hotset.harness import cli  # noqa: PLC0415 - imported by the parent already

        cli.main()
    except SystemExit as leaving:
        code = leaving.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))


def main(requests: Sequence[str]) -> None:
    import hotset.harness.cli  # noqa: F401, PLC0415 - the costly part, once

    for line in requests:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _child(request)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main(sys.stdin)  # type: ignore[arg-type]
