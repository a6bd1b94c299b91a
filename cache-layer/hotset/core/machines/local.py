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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO

from .base import Command, CommandTimeoutError, Machine, Result, check_declared, missing

_TIDY_UP_S = 5.0
_KILLED_WAIT_S = 5.0
_SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def search_path() -> str:
    """PATH with the system folders that ordinary users lack (mke2fs, dmsetup, tgtd lie there)."""
    parts = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join([*parts, *(folder for folder in _SBIN if folder not in parts)])


def start_time(pid: int) -> str | None:
    """When a process began, in clock ticks since boot (field 22 of /proc/PID/stat).

    Together with the pid it names one process for good; None when there is none (or a zombie).
    """
    try:
        # The command name in parentheses may hold spaces: count the fields after it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]


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


class Local(Machine):
    """Commands on this computer, each in a process group of its own."""

    kind = "local"

    def __init__(self) -> None:
        self._ports = OwnPorts()

    def execute(self, command: Command) -> Result:
        begun = time.monotonic()
        # Into a file, not a pipe that could fill up while only standard output is followed.
        with tempfile.TemporaryFile() as errors:
            process = self._popen(command, errors)
            try:
                out = _communicate(process, command)
            except subprocess.TimeoutExpired:
                _end_group(process)
                raise CommandTimeoutError(self.kind, command.argv, command.timeout_s) from None
            except BaseException:
                _end_group(process)
                raise
            errors.seek(0)
            err = errors.read().decode(errors="replace")
        return Result(command.argv, process.returncode, out, err, time.monotonic() - begun)

    @contextmanager
    def stream(self, argv: Sequence[str]) -> Iterator[Iterator[str]]:
        with tempfile.TemporaryFile() as errors:
            # Its standard input stays open: a program that reads it ends when this one does.
            process = self._popen(Command(tuple(argv), stdin=""), errors)
            assert process.stdout is not None
            try:
                yield (line.rstrip("\n") for line in process.stdout)
            finally:
                _end_group(process)

    def spawn(
        self,
        argv: Sequence[str],
        log: Path,
        env: dict[str, str] | None = None,
        pass_fds: Sequence[int] = (),
    ) -> subprocess.Popen[bytes]:
        """Start a daemon that outlives this call; both its streams go to ``log``.

        It has a session of its own, so that Ctrl-C reaches hotset alone, which ends it in order.

        :param pass_fds: descriptors that it is handed down, under the same numbers.
        """
        try:
            with log.open("wb") as file:
                return subprocess.Popen(
                    check_declared(argv, None),
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "PATH": search_path(), **(env or {})},
                    start_new_session=True,
                    pass_fds=pass_fds,
                )
        except FileNotFoundError:
            raise missing("this computer", argv) from None

    def which(self, name: str) -> Path | None:
        """Where a program lies on this computer."""
        path = shutil.which(name, path=search_path())
        return Path(path) if path else None

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        shutil.copyfile(source, target)
        Path(target).chmod(mode)

    def get(self, source: PurePosixPath, target: Path) -> None:
        shutil.copyfile(source, target)

    def port(self, wanted: int) -> int:
        return self._ports.port(wanted)

    def _popen(self, command: Command, errors: IO[bytes]) -> subprocess.Popen[str]:
        try:
            return subprocess.Popen(
                check_declared(command.argv, command.user),
                stdin=subprocess.DEVNULL if command.stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                errors="replace",
                env={**os.environ, "PATH": search_path(), "LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
        except FileNotFoundError:
            raise missing("this computer", command.argv) from None


def _communicate(process: subprocess.Popen[str], command: Command) -> str:
    """Feed a command and collect its output; lines go to ``on_line`` as they come."""
    if command.on_line is None:
        return process.communicate(command.stdin, timeout=command.timeout_s)[0]
    assert command.stdin is None, "a command whose lines are followed reads nothing"
    assert process.stdout is not None
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        _end_group(process)

    # A killed process closes its pipe, which ends the loop below.
    guard = threading.Timer(command.timeout_s, expire)
    guard.start()
    lines = []
    try:
        for line in process.stdout:
            lines.append(line)
            command.on_line(line.rstrip("\n"))
        process.wait(timeout=5)
    finally:
        guard.cancel()
    if expired.is_set():
        raise subprocess.TimeoutExpired(process.args, command.timeout_s)
    return "".join(lines)


def _end_group(process: subprocess.Popen[str]) -> None:
    """End a command with everything it started, also what outlived the command itself."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=_TIDY_UP_S)
        os.killpg(process.pid, signal.SIGKILL)
    # One that waits for a dead device (state D) dies when the device does; nobody waits for it.
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=_KILLED_WAIT_S)
    if process.stdout is not None:
        process.stdout.close()


def lacks_device(device: str, module: str) -> str | None:
    """Why this user cannot use a device of this computer's kernel, with what helps; None: they can.

    :param module: the kernel's, that makes it.
    """
    try:
        # A container may show a device that nobody may open in it, whatever its mode says.
        os.close(os.open(device, os.O_RDWR | os.O_CLOEXEC))
    except PermissionError:
        helps = (
            "run hotset as root, or have root allow it (chmod 0666 {})"
            if os.geteuid()
            else "a container has to be given it (docker run --device {} --cap-add SYS_ADMIN)"
        )
        return f"{device} may not be opened by this user: {helps.format(device)}"
    except OSError:
        return f"{device} is missing: modprobe {module}"
    return None
