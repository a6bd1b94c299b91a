"""`hotset top` in a real terminal, over a real tier and a database."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hotset.cachelayer.common.units import Bytes
from hotset.cachelayer.hosts.cleanup import Cleanup
from hotset.cachelayer.hosts.local import Local
from hotset.cachelayer.testbed import lab as labs
from hotset.cachelayer.testbed.backend import ModelledBackend
from hotset.cachelayer.tiers.base import TierSpec
from tests.postgres_cluster import Cluster

HOTSET = Path(sys.executable).with_name("hotset")
MIB = 2**20
BLOCK = Bytes(65536)


class Terminal:
    """A program in a pseudo-terminal, and what its screen shows."""

    def __init__(self, argv: list[str], environment: Mapping[str, str], columns: int) -> None:
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.execve(argv[0], argv, dict(environment))  # noqa: S606 - that is the point
        self.columns = columns
        self.resize(columns)
        self.written = ""

    def resize(self, columns: int) -> None:
        size = struct.pack("HHHH", 24, columns, 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)
        self.columns = columns

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def screen(self) -> str:
        """The last whole frame: each begins at the screen's home; the last begun may lack lines."""
        begun = self.written.split("\x1b[H")
        frame = begun[-2] if len(begun) > 1 else ""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", frame).replace("\r", "")

    def until(self, condition: Callable[[str], object], limit_s: float = 60) -> str:
        deadline = time.monotonic() + limit_s
        while not condition(self.screen()):
            assert time.monotonic() < deadline, f"waited too long for it: {self.screen()}"
            self._read()
        return self.screen()

    def end(self, signal_: int) -> int:
        """Its exit code."""
        os.kill(self.pid, signal_)
        deadline = time.monotonic() + 10
        while (found := os.waitpid(self.pid, os.WNOHANG))[0] == 0:
            assert time.monotonic() < deadline, "it does not end"
            self._read()
        self._read()
        return os.waitstatus_to_exitcode(found[1])

    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self.master)[3] & termios.ECHO)

    def _read(self) -> None:
        ready, _, _ = select.select([self.master], [], [], 0.05)
        if ready:
            try:
                self.written += os.read(self.master, 65536).decode(errors="replace")
            except OSError:  # EIO: nobody has the other side open any more
                time.sleep(0.05)


@contextmanager
def modelled_tier() -> Iterator[Path]:
    """A tier between models where the lab has its own; the accelerated disk."""
    folder, local = labs.lab_folder(), Local()
    cleanup = Cleanup(folder, local)
    cleanup.owner("test")
    backend = ModelledBackend(local, local, "pcie-flash-2014", folder)
    sizes = (Bytes(number * MIB) for number in (5, 64, 16))
    try:
        origin = backend.slow_disk("nas-2014", Bytes(128 * MIB), 1)
        spec = TierSpec("writeback", "smq", BLOCK, *sizes)
        yield Path(backend.tier(spec, origin, cleanup).prepare())
    finally:
        cleanup.undo()


@pytest.mark.lab
@pytest.mark.database
def test_a_live_screen_in_a_terminal(cluster: Cluster) -> None:
    base = cluster.database()
    dsn = f"host={base.host} port={base.port} user={base.user} dbname={base.dbname}"
    loud = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment = {**loud, "TERM": "xterm-256color", "HOTSET_PASSWORD": base.password}
    with modelled_tier() as device, closing(base.session()) as session, device.open("rb") as disk_:
        terminal = Terminal([str(HOTSET), "top", "0.3", "--dsn", dsn], environment, 100)

        def busy(screen: str) -> bool:
            """Keeps disk and database at work until they are on the screen."""
            os.posix_fadvise(disk_.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            os.pread(disk_.fileno(), 4 * MIB, 0)
            session.script("SELECT 1")
            found = re.search(r"reads ([\d,]+)/s.*transactions ([\d,]+)/s", screen, re.DOTALL)
            return bool(found and found[1] != "0" and found[2] != "0")

        first = terminal.until(busy)
        assert "lab  userspace, writeback, smq" in first
        assert re.search(r"hits +\d+\.\d % ▕.*▏ now +\d+\.\d % since start", first)
        assert re.search(r"used .* of 64\.0 MiB +dirty", first)
        assert "\x1b[?1049h" in terminal.written, "the screen before it is kept"
        assert not terminal.echoes()
        terminal.press("s")
        terminal.until(lambda screen: "by hit ratio" in screen)
        terminal.press("?")
        terminal.until(lambda screen: "this help, and back" in screen)
        terminal.press("?")
        terminal.resize(60)
        narrow = terminal.until(
            lambda screen: "lab" in screen and max(map(len, screen.splitlines())) == 60
        )
        assert "used" in narrow
        assert terminal.end(signal.SIGINT) == 0
        assert terminal.written.rstrip().endswith("\x1b[?1049l"), "and shown again"
        assert "Traceback" not in terminal.written
        assert terminal.echoes()
        assert base.password not in terminal.written
