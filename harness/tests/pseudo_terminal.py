"""A program in a pseudo-terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping
from pathlib import Path

HOTSET = Path(sys.executable).with_name("hotset")


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

    def until_written(self, text: str, limit_s: float = 60) -> None:
        """Wait for a line of a program that has no screen."""
        deadline = time.monotonic() + limit_s
        while text not in self.written:
            assert time.monotonic() < deadline, f"waited too long for it: {self.written}"
            self._read()

    def end(self, signal_: int) -> int:
        """Its exit code."""
        os.kill(self.pid, signal_)
        return self.ended(10)

    def ended(self, limit_s: float = 60) -> int:
        """Its exit code, once it has come to its end."""
        deadline = time.monotonic() + limit_s
        while (found := os.waitpid(self.pid, os.WNOHANG))[0] == 0:
            assert time.monotonic() < deadline, f"it does not end: {self.written}"
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
