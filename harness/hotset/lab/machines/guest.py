"""Common parts of the lab's two machines with a kernel of their own.

QEMU's virtual machine and User-Mode Linux boot the same image, say the same word on the console
when they are up, and are then reached over SSH and SQL through ports of the loopback address.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hotset.core.clock import wait_until
from hotset.core.machines.base import Command, CommandError, MachineGoneError, Result
from hotset.core.machines.local import start_time
from hotset.core.machines.ssh import Account, Remote

from ..image import Image

SSH_PORT = 22
POSTGRES_PORT = 5432
PORTS = (SSH_PORT, POSTGRES_PORT)
"""The guest's ports that this computer's loopback address leads to."""

READY = b"hotset-ready"
"""Message of the image's first process on the console when SSH answers."""

FLASH, SAVED = "flash", "saved"
_LAST_WORDS_S = 2.0
_LAST_LINES = 25
_SILENCES_MAX = 10
_PANIC = "Kernel panic"


class KernelPanicError(MachineGoneError):
    """The guest's kernel gave up while booting."""


@dataclass(frozen=True, slots=True)
class Disk:
    """A file of this computer that the guest sees as :func:`disk_path` of its serial."""

    serial: str
    path: Path
    readonly: bool = False


def disk_path(serial: str) -> PurePosixPath:
    """Where a disk is in the guest; its first process sees to the name."""
    return PurePosixPath(f"/dev/disk/by-id/lab-{serial}")


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a guest in the lab's folder."""

    folder: Path

    @property
    def console(self) -> Path:
        return self.folder / "console.log"

    @property
    def known_hosts(self) -> Path:
        return self.folder / "known_hosts"

    @property
    def ports(self) -> Path:
        """Which port of this computer leads to which of the guest's, as JSON."""
        return self.folder / "ports.json"

    def last_words(self) -> str:
        """The end of the console, from a panic on; empty when it said nothing."""
        if not self.console.exists():
            return ""
        lines = self.console.read_text(errors="replace").splitlines()
        panic = next((at for at, line in enumerate(lines) if _PANIC in line), len(lines))
        first = min(panic, max(0, len(lines) - _LAST_LINES))
        return "\n".join(lines[first : first + _LAST_LINES])


class Guest(Remote):
    """A running guest, steered over SSH."""

    def __init__(
        self, image: Image, files: Files, kind: str, ports: dict[int, int], pid: int
    ) -> None:
        """:param ports: the guest's port → the loopback port that leads there.
        :param pid: the process that is the guest.
        """
        files.known_hosts.write_text(f"[127.0.0.1]:{ports[SSH_PORT]} {image.host_key}\n")
        files.ports.write_text(json.dumps(ports))
        self._files = files
        super().__init__(
            account(image, files, ports), kind, lambda port: parse_forwarding(ports, port)
        )
        self._begin(pid)

    def _begin(self, pid: int) -> None:
        """From now on this process is the guest."""
        self.pid = pid
        self._started = start_time(pid)
        self._watcher = threading.Thread(target=self._watch, daemon=True, name="guest")
        self._watcher.start()

    def _watch(self) -> None:
        """Break the connection when the guest ends: nobody there would.

        A command that waits for an answer is told at once, not after the keep-alive's half minute.
        """
        with contextlib.suppress(ProcessLookupError):
            process = os.pidfd_open(self.pid)
            select.select([process], [], [])
            os.close(process)
        self.abort()

    def execute(self, command: Command) -> Result:
        try:
            return super().execute(command)
        except MachineGoneError as error:
            # A kernel that panicked says so on its console before its process ends.
            wait_until(lambda: not self.alive(), _LAST_WORDS_S)
            words = self._files.last_words()
            raise MachineGoneError(
                f"{error}; the last lines of its console:\n{words}" if words else str(error)
            ) from error

    def alive(self) -> bool:
        return self._started is not None and start_time(self.pid) == self._started

    def power_cut(self) -> None:
        """Pull the plug: SIGKILL to its process is an honest power cut for all that is inside.

        What it has written to its disks is in this computer's page cache and stays.
        """
        if self.alive():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, 9)
        while self.alive():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, os.WNOHANG)
            time.sleep(0.01)
        self._watcher.join()


def account(image: Image, files: Files, ports: dict[int, int]) -> Account:
    """How SSH reaches a guest that is up."""
    return Account("127.0.0.1", ports[SSH_PORT], "root", image.client_key, files.known_hosts)


def parse_forwarding(ports: dict[int, int], port: int) -> tuple[str, int]:
    return "127.0.0.1", ports[port]


def wait_until_ready(
    files: Files,
    log: Path,
    ended: Callable[[], int | None],
    silence_s: float,
    after_start: Callable[[], None] = lambda: None,
) -> None:
    """Wait until the guest says that it is up.

    :param log: of the process that is the guest, beside its console.
    :param silence_s: how long its console may say nothing; on a busy computer a boot takes minutes.
    :param after_start: runs once the console has said its first word.
    :raises KernelPanicError: its kernel panicked.
    :raises MachineGoneError: it ended, or is silent or at it for too long; its last words are told.
    """
    console, size, heard_at = files.console, 0, time.monotonic()

    def has_ended() -> bool:
        return ended() is not None

    def is_silent() -> bool:
        nonlocal size, heard_at
        now, size_before = time.monotonic(), size
        size = console.stat().st_size
        if size > size_before:
            heard_at = now
        return now - heard_at > silence_s

    wait_until(lambda: console.stat().st_size, silence_s, ended=has_ended)
    if not has_ended():
        try:
            after_start()
        except CommandError:
            # What it needs of the guest goes away with one that panicked in its first moments:
            # then the message below says so.
            if not wait_until(has_ended, _LAST_WORDS_S):
                raise
    said_ready = wait_until(
        lambda: READY in console.read_bytes(),
        _SILENCES_MAX * silence_s,
        0.05,
        lambda: has_ended() or is_silent(),
    )
    if not said_ready:
        own = log.read_text(errors="replace") if log != console else ""
        words = (own + console.read_text(errors="replace"))[-1500:]
        kind = KernelPanicError if _PANIC in words else MachineGoneError
        raise kind(f"the machine did not come up; its last words:\n{words}")
