"""This computer as a machine."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO

from hotset.cachelayer.machine import (
    DEFAULT_TIMEOUT_S,
    CommandError,
    CommandTimeoutError,
    Result,
    declared,
    missing,
)

_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def search_path() -> str:
    """PATH with the system folders that ordinary users lack (mke2fs, dmsetup, tgtd lie there)."""
    parts = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join([*parts, *(folder for folder in _SBIN if folder not in parts)])


def free_port() -> int:
    """A TCP port of the loopback address that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class OwnPorts:
    """Ports for services on this computer's network, where the usual ones may be taken."""

    def __init__(self) -> None:
        self._given: dict[int, int] = {}

    def port(self, wanted: int) -> int:
        return self._given.setdefault(wanted, free_port())


class Local:
    """Commands on this computer, each in a process group of its own."""

    kind = "local"

    def __init__(self) -> None:
        self._ports = OwnPorts()

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        check: bool = True,
        user: str | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> Result:
        begun = time.monotonic()
        # Into a file, not a pipe that could fill up while only standard output is followed.
        with tempfile.TemporaryFile() as errors, self._popen(argv, user, stdin, errors) as process:
            try:
                out = _communicate(process, stdin, timeout_s, on_line)
            except subprocess.TimeoutExpired:
                _end_group(process)
                raise CommandTimeoutError(self.kind, argv, timeout_s) from None
            except BaseException:
                _end_group(process)
                raise
            errors.seek(0)
            err = errors.read().decode(errors="replace")
        result = Result(tuple(argv), process.returncode, out, err, time.monotonic() - begun)
        if check and result.rc != 0:
            raise CommandError(self.kind, result)
        return result

    @contextmanager
    def stream(self, argv: Sequence[str]) -> Iterator[Iterator[str]]:
        with tempfile.TemporaryFile() as errors, self._popen(argv, None, None, errors) as process:
            assert process.stdout is not None
            try:
                yield (line.rstrip("\n") for line in process.stdout)
            finally:
                _end_group(process)

    def spawn(
        self, argv: Sequence[str], log: Path, env: dict[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start a daemon that outlives this call; both its streams go to ``log``.

        It has a session of its own, so that Ctrl-C reaches hotset alone, which ends it in order.
        """
        try:
            with log.open("wb") as file:
                return subprocess.Popen(
                    declared(argv, None),
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "PATH": search_path(), **(env or {})},
                    start_new_session=True,
                )
        except FileNotFoundError:
            raise missing("this computer", argv) from None

    def which(self, name: str) -> Path | None:
        """Where a program lies on this computer."""
        found = shutil.which(name, path=search_path())
        return Path(found) if found else None

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        shutil.copyfile(source, target)
        Path(target).chmod(mode)

    def get(self, source: PurePosixPath, target: Path) -> None:
        shutil.copyfile(source, target)

    def port(self, wanted: int) -> int:
        return self._ports.port(wanted)

    def address(self, port: int) -> tuple[str, int]:
        return "127.0.0.1", port

    def _popen(
        self, argv: Sequence[str], user: str | None, stdin: str | None, errors: IO[bytes]
    ) -> subprocess.Popen[str]:
        try:
            return subprocess.Popen(
                declared(argv, user),
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",
                env={**os.environ, "PATH": search_path(), "LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
        except FileNotFoundError:
            raise missing("this computer", argv) from None


def _communicate(
    process: subprocess.Popen[str],
    stdin: str | None,
    timeout_s: float,
    on_line: Callable[[str], None] | None,
) -> str:
    """Feed a command and collect its output; lines go to ``on_line`` as they come."""
    if on_line is None:
        return process.communicate(stdin, timeout=timeout_s)[0]
    assert stdin is None, "a command whose lines are followed reads nothing"
    assert process.stdout is not None
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        _end_group(process)

    # A killed process closes its pipe, which ends the loop below.
    guard = threading.Timer(timeout_s, expire)
    guard.start()
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            on_line(line.rstrip("\n"))
        process.wait(timeout=5)
    finally:
        guard.cancel()
    if expired.is_set():
        raise subprocess.TimeoutExpired(process.args, timeout_s)
    return "".join(lines)


def _end_group(process: subprocess.Popen[str]) -> None:
    """End a command with everything it started, also what outlived the command itself."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
