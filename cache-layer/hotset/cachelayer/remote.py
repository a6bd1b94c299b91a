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
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

from hotset.cachelayer.machine import (
    DEFAULT_TIMEOUT_S,
    CommandError,
    CommandTimeoutError,
    EnvironmentLacksError,
    MachineGoneError,
    Result,
    declared,
    missing,
)

if TYPE_CHECKING:
    import asyncssh

T = TypeVar("T")
_NOT_FOUND = 127
_CONNECT_TIMEOUT_S = 20.0


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


class Remote:
    """Commands on another machine over one SSH connection."""

    def __init__(
        self, account: Account, kind: str, address: Callable[[int], tuple[str, int]]
    ) -> None:
        """:param address: where this computer reaches a TCP port of the machine.

        :raises MachineGoneError: nothing answers.
        :raises EnvironmentLacksError: its host key is not a known one, or it refuses the login.
        """
        self.kind = kind
        self._address = address
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="ssh")
        self._thread.start()
        try:
            self._connection = self._wait(_connect(account), _CONNECT_TIMEOUT_S + 5)
        except BaseException:
            self._stop_loop()
            raise

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
        command = _line(declared(argv, user))
        try:
            # The outer limit guards a link that is gone.
            rc, out, err = self._wait(
                self._finish(command, stdin, timeout_s, on_line), timeout_s + 15
            )
        except TimeoutError:
            raise CommandTimeoutError(self.kind, argv, timeout_s) from None
        if rc is None:
            raise MachineGoneError(f"{self.kind}: the machine went away during `{command[:200]}`")
        result = Result(tuple(argv), rc, out, err, time.monotonic() - begun)
        if result.rc == _NOT_FOUND and "not found" in result.stderr:
            raise missing(self.kind, argv)
        if check and result.rc != 0:
            raise CommandError(self.kind, result)
        return result

    @contextmanager
    def stream(self, argv: Sequence[str]) -> Iterator[Iterator[str]]:
        import asyncssh

        lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        process = self._wait(self._start(_line(declared(argv, None))), 30)

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

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        self._wait(self._copy_in(source, target, mode), 600)

    def get(self, source: PurePosixPath, target: Path) -> None:
        self._wait(self._copy_out(source, target), 600)

    def port(self, wanted: int) -> int:
        return wanted

    def address(self, port: int) -> tuple[str, int]:
        return self._address(port)

    def close(self) -> None:
        """Drop the connection; commands that still run there are left to the machine."""
        self._loop.call_soon_threadsafe(self._connection.abort)
        with suppress(MachineGoneError, TimeoutError):
            self._wait(self._connection.wait_closed(), 5)
        self._stop_loop()

    async def _finish(
        self,
        command: str,
        stdin: str | None,
        timeout_s: float,
        on_line: Callable[[str], None] | None,
    ) -> tuple[int | None, str, str]:
        """Exit code (None: the machine went away), standard output, standard error."""
        if on_line is None:
            done = await self._connection.run(
                command, input=stdin or "", timeout=timeout_s, errors="replace"
            )
            return done.exit_status, str(done.stdout or ""), str(done.stderr or "")
        lines = []
        async with asyncio.timeout(timeout_s), await self._start(command) as process:
            # asyncssh hands out one empty string at the end.
            while line := await process.stdout.readline():
                lines.append(line)
                on_line(line.rstrip("\n"))
            done = await process.wait()
        return done.exit_status, "".join(lines), str(done.stderr or "")

    async def _start(self, command: str) -> asyncssh.SSHClientProcess[str]:
        return await self._connection.create_process(command, errors="replace")

    async def _copy_in(self, source: Path, target: PurePosixPath, mode: int) -> None:
        async with self._connection.start_sftp_client() as sftp:
            await sftp.put(str(source), str(target))
            await sftp.chmod(str(target), mode)

    async def _copy_out(self, source: PurePosixPath, target: Path) -> None:
        async with self._connection.start_sftp_client() as sftp:
            await sftp.get(str(source), str(target))

    def _wait(self, work: Coroutine[object, object, T], timeout_s: float) -> T:
        import asyncssh

        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except (asyncssh.DisconnectError, asyncssh.ChannelOpenError, ConnectionError) as error:
            raise MachineGoneError(f"{self.kind}: connection lost: {error}") from error
        except BaseException:
            future.cancel()
            raise

    def _stop_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)


def _line(argv: Sequence[str]) -> str:
    """SSH carries one line for the far shell: every word quoted, so it stays the argv it was."""
    return "LC_ALL=C.UTF-8 exec " + shlex.join(argv)


async def _connect(account: Account) -> asyncssh.SSHClientConnection:
    import asyncssh

    keys = {} if account.client_key is None else {
        "client_keys": [str(account.client_key)], "agent_path": None
    }  # fmt: skip
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
        raise EnvironmentLacksError(
            f"{account}: its host key is not in {account.known_hosts}; connect once by"
            f" `ssh -p {account.port} {account.user}@{account.host}` and compare the fingerprint"
        ) from None
    except asyncssh.PermissionDenied:
        raise EnvironmentLacksError(
            f"{account}: the login was refused; load a key into the agent, or name its file in"
            " HOTSET_SSH_KEY"
        ) from None
    except (OSError, TimeoutError, asyncssh.Error) as error:
        raise MachineGoneError(f"{account}: no connection: {error or 'no answer'}") from None
