"""A machine reached over SSH, its host key checked.

The lab's virtual machine is one, a user's own server another. asyncssh speaks the
protocol; its event loop lives in one background thread so that the phases above read from top to
bottom without ``await``.
"""

from __future__ import annotations

import asyncio
import queue
import shlex
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

from .base import (
    Command,
    CommandError,
    CommandTimeoutError,
    Machine,
    MachineGoneError,
    PrerequisiteMissingError,
    Result,
    check_declared,
    missing,
)

if TYPE_CHECKING:
    import asyncssh

T = TypeVar("T")
Outcome = tuple[int | None, str, str]
"""Exit code (None: the machine went away), standard output, standard error."""
_NOT_FOUND = 127
_CONNECT_TIMEOUT_S = 20.0
_ENDING_S = 1.0
_COPY_TIMEOUT_S = 600.0
_RECEIVE = 'cat > "$1" && chmod "$2" "$1"'
_waits: set[Future[Any]] = set()
"""Pending operations of this process, on all machines."""


def give_up() -> None:
    """End whatever this process waits for on any machine, for a process that is about to end:
    waiters get :class:`MachineGoneError`, at once."""
    for wait in tuple(_waits):
        wait.cancel()


@dataclass(frozen=True, slots=True)
class Account:
    """Where and as whom to connect: the key pair's private file (None: those of the user's agent
    and ~/.ssh) and the host keys to accept."""

    host: str
    port: int
    user: str
    client_key: Path | None
    known_hosts: Path

    def __str__(self) -> str:
        return f"ssh://{self.user}@{self.host}:{self.port}"


class Remote(Machine):
    """Commands on another machine over one SSH connection."""

    def __init__(
        self, account: Account, kind: str, address: Callable[[int], tuple[str, int]]
    ) -> None:
        """:param address: where this computer reaches a TCP port of the machine.

        :raises MachineGoneError: nothing answers.
        :raises PrerequisiteMissingError: its host key is not a known one, or it refuses the login.
        """
        self.kind = kind
        self._account = account
        self._address = address
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="ssh")
        self._thread.start()
        try:
            self.reconnect()
        except BaseException:
            self._stop_loop()
            raise

    def reconnect(self) -> None:
        """Connect again, to a machine that was away and is back.

        :raises MachineGoneError: nothing answers.
        """
        self._connection = self._wait(_connect(self._account), _CONNECT_TIMEOUT_S + 5)
        self._full: list[asyncssh.SSHClientConnection] = []

    def execute(self, command: Command) -> Result:
        begun = time.monotonic()
        line = _line(check_declared(command.argv, command.user))
        try:
            # The outer limit guards a link that is gone.
            limit_s = command.timeout_s + 15
            if command.on_line is None:
                rc, out, err = self._wait(self._finish(line, command), limit_s)
            else:
                rc, out, err = self._follow(line, command, command.on_line, limit_s)
        except TimeoutError:
            raise CommandTimeoutError(self.kind, command.argv, command.timeout_s) from None
        if rc is None:
            raise MachineGoneError(f"{self.kind}: the machine went away during `{line[:200]}`")
        if rc == _NOT_FOUND and "not found" in err:
            raise missing(self.kind, command.argv)
        return Result(command.argv, rc, out, err, time.monotonic() - begun)

    @contextmanager
    def stream(self, argv: Sequence[str]) -> Iterator[Iterator[str]]:
        import asyncssh

        lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        process = self._wait(self._start(_line(check_declared(argv, None))), 30)

        async def pump() -> None:
            with suppress(asyncssh.Error, OSError):
                while line := await process.stdout.readline():
                    lines.put(line.rstrip("\n"))
            lines.put(None)

        asyncio.run_coroutine_threadsafe(pump(), self._loop)
        try:
            yield iter(lines.get, None)
        finally:
            self._loop.call_soon_threadsafe(process.close)

    @contextmanager
    def talk(self, argv: Sequence[str]) -> Iterator[Callable[[str, float], str]]:
        """A program that answers each line with a line, for the length of a ``with`` block; yields
        what asks it, with a limit in seconds. The answer is empty when it has ended."""
        process = self._wait(self._start(_line(check_declared(argv, None))), 30)

        async def ask(line: str) -> str:
            process.stdin.write(f"{line}\n")
            return str(await process.stdout.readline())

        try:
            yield lambda line, limit_s: self._wait(ask(line), limit_s)
        finally:
            self._loop.call_soon_threadsafe(process.close)

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        argv = ["sh", "-c", _RECEIVE, "receive", str(target), f"{mode:o}"]
        self._require_copied(argv, self._wait(self._copy(argv, stdin=source), _COPY_TIMEOUT_S))

    def get(self, source: PurePosixPath, target: Path) -> None:
        argv = ["cat", str(source)]
        self._require_copied(argv, self._wait(self._copy(argv, stdout=target), _COPY_TIMEOUT_S))

    def _require_copied(self, argv: Sequence[str], outcome: Outcome) -> None:
        rc, out, err = outcome
        if rc is None:
            raise MachineGoneError(f"{self.kind}: the machine went away during a copy")
        if rc != 0:
            raise CommandError(self.kind, Result(tuple(argv), rc, out, err, 0.0))

    def address(self, port: int) -> tuple[str, int]:
        return self._address(port)

    def abort(self) -> None:
        """Break the connection: waiters for an answer get :class:`MachineGoneError`."""
        if self._loop.is_running():
            for connection in (self._connection, *self._full):
                self._loop.call_soon_threadsafe(connection.abort)

    def close(self) -> None:
        """Drop the connection; commands that still run there are left to the machine."""
        self.abort()
        with suppress(MachineGoneError, TimeoutError):
            self._wait(self._connection.wait_closed(), 5)
        self._stop_loop()

    async def _finish(self, line: str, command: Command) -> Outcome:
        process = await self._start(line, command.stdin or "")
        try:
            done = await process.wait(timeout=command.timeout_s)
        except BaseException:
            # Without this it would go on over there. (Its traps run, as on this computer.)
            process.terminate()
            process.close()
            raise
        return done.exit_status, str(done.stdout or ""), str(done.stderr or "")

    def _follow(
        self, line: str, command: Command, on_line: Callable[[str], None], limit_s: float
    ) -> Outcome:
        """Do as :meth:`_finish`. Lines are handed out here, not in the connection's thread: callers
        that get them may use the machine."""
        queued: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        work = asyncio.run_coroutine_threadsafe(
            self._read_lines(line, command.timeout_s, queued), self._loop
        )
        work.add_done_callback(lambda _: queued.put(None))
        lines = []
        try:
            while (text := queued.get(timeout=limit_s)) is not None:
                lines.append(text)
                on_line(text.rstrip("\n"))
        except queue.Empty:
            work.cancel()
            raise TimeoutError from None
        except BaseException:
            work.cancel()
            raise
        rc, err = self._outcome(work, limit_s)
        return rc, "".join(lines), err

    async def _read_lines(
        self, line: str, timeout_s: float, queued: queue.SimpleQueue[str | None]
    ) -> tuple[int | None, str]:
        async with asyncio.timeout(timeout_s), await self._start(line) as process:
            try:
                # asyncssh hands out one empty string at the end.
                while text := await process.stdout.readline():
                    queued.put(text)
                done = await process.wait()
            except BaseException:
                # As in `_finish`.
                process.terminate()
                raise
        return done.exit_status, str(done.stderr or "")

    async def _start(
        self, command: str, stdin: str | None = None
    ) -> asyncssh.SSHClientProcess[str]:
        return await self._with_control(
            lambda connection: connection.create_process(command, input=stdin, errors="replace")
        )

    async def _with_control(
        self, begin: Callable[[asyncssh.SSHClientConnection], Awaitable[T]]
    ) -> T:
        """Begin a session, on a further connection where this one has as many as it may have
        (sshd_config(5), MaxSessions): commands that wait for a dead device never give theirs
        back."""
        import asyncssh

        tried = self._connection
        try:
            return await begin(tried)
        except asyncssh.ChannelOpenError:
            if tried.is_closed():
                raise
            if tried is self._connection:
                self._full.append(tried)
                self._connection = await _connect(self._account)
            return await begin(self._connection)

    async def _copy(
        self, argv: Sequence[str], *, stdin: Path | None = None, stdout: Path | None = None
    ) -> Outcome:
        """A command that reads or writes a file of this computer, through the channel of commands:
        not every server has sftp."""
        import asyncssh

        process = await self._with_control(
            lambda connection: connection.create_process(
                _line(argv),
                stdin=asyncssh.DEVNULL if stdin is None else str(stdin),
                stdout=asyncssh.PIPE if stdout is None else str(stdout),
                encoding=None,
            )
        )
        try:
            done = await process.wait()
        except BaseException:
            process.close()
            raise
        stderr = done.stderr or b""
        return (
            done.exit_status,
            "",
            stderr.decode(errors="replace") if type(stderr) is bytes else "",
        )

    def _wait(self, work: Coroutine[object, object, T], timeout_s: float) -> T:
        return self._outcome(asyncio.run_coroutine_threadsafe(work, self._loop), timeout_s)

    def _outcome(self, future: Future[T], timeout_s: float) -> T:
        import asyncssh

        _waits.add(future)
        try:
            return future.result(timeout_s)
        except CancelledError:
            raise MachineGoneError(f"{self.kind}: given up, as this process ends") from None
        except (asyncssh.DisconnectError, asyncssh.ChannelOpenError, ConnectionError) as error:
            raise MachineGoneError(f"{self.kind}: connection lost: {error}") from error
        except BaseException:
            future.cancel()
            raise
        finally:
            _waits.discard(future)

    def _stop_loop(self) -> None:
        async def end() -> None:
            left = asyncio.all_tasks() - {asyncio.current_task()}
            for task in left:
                task.cancel()
            if left:
                # What was given up has its own things to close.
                await asyncio.wait(left, timeout=_ENDING_S)
            self._loop.stop()

        asyncio.run_coroutine_threadsafe(end(), self._loop)
        self._thread.join(timeout=5)


def _line(argv: Sequence[str]) -> str:
    """SSH carries one line for the far shell: every word quoted, so it stays the argv it was."""
    return "LC_ALL=C.UTF-8 exec " + shlex.join(argv)


async def _connect(account: Account) -> asyncssh.SSHClientConnection:
    import asyncssh

    keys = (
        {}
        if account.client_key is None
        else {"client_keys": [str(account.client_key)], "agent_path": None}
    )
    try:
        return await asyncssh.connect(
            account.host,
            account.port,
            username=account.user,
            known_hosts=str(account.known_hosts) if account.known_hosts.exists() else b"",
            config=None,
            keepalive_interval=5,
            keepalive_count_max=6,
            connect_timeout=_CONNECT_TIMEOUT_S,
            compression_algs=None,
            encryption_algs=["aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"],
            **keys,
        )
    except asyncssh.HostKeyNotVerifiable:
        raise PrerequisiteMissingError(
            f"{account}: its host key is not in {account.known_hosts}; connect once by"
            f" `ssh -p {account.port} {account.user}@{account.host}` and compare the fingerprint"
        ) from None
    except asyncssh.PermissionDenied:
        raise PrerequisiteMissingError(
            f"{account}: the login was refused; load a key into the agent, or name its file in"
            " HOTSET_SSH_KEY"
        ) from None
    except (OSError, TimeoutError, asyncssh.Error) as error:
        raise MachineGoneError(f"{account}: no connection: {error or 'no answer'}") from None
