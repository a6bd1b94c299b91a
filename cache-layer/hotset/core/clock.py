"""Time that nobody can set: the kernel's, beside the wall clock that people read; and waiting for
what happens, with a limit."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Moment:
    """``wall``: seconds since 1970, by a clock that may be set. ``up``: seconds since the start of
    this computer that ``boot`` names, its sleep included (clock_gettime(2), CLOCK_BOOTTIME)."""

    wall: float
    boot: str = ""
    up: float = 0.0

    def since(self, earlier: Moment) -> float:
        """Seconds from an earlier moment to this one, by the wall clock only where the computer
        was started in between; 0 where that was set back."""
        if self.boot and self.boot == earlier.boot:
            return max(0.0, self.up - earlier.up)
        return max(0.0, self.wall - earlier.wall)

    def later(self, seconds: float) -> Moment:
        """After so many seconds of the same start, in which no clock is set."""
        return replace(self, wall=self.wall + seconds, up=self.up + seconds)


def boot_id() -> str:
    """Return the id of this computer's current boot."""
    return BOOT_ID.read_text(encoding="ascii").strip()


def moment() -> Moment:
    """Now."""
    return Moment(time.time(), boot_id(), time.clock_gettime(time.CLOCK_BOOTTIME))


def wait_until(
    ready: Callable[[], object],
    limit_s: float,
    poll_s: float = 0.02,
    ended: Callable[[], object] = lambda: False,
) -> bool:
    """Ask until it is ready; returns whether it was.

    :param ended: whether nothing can come any more: then the limit is not waited out.
    """
    deadline = time.monotonic() + limit_s
    while True:
        # Asked first: what got ready and ended in between is ready.
        over = ended() or time.monotonic() >= deadline
        if ready():
            return True
        if over:
            return False
        time.sleep(poll_s)


def wait_for_word(
    process: subprocess.Popen[bytes], log: Path, word: str, limit_s: float, poll_s: float = 0.02
) -> bool:
    """Wait until a process has written a word into its log; returns whether it did."""
    return wait_until(
        lambda: word in log.read_text(errors="replace"),
        limit_s,
        poll_s,
        lambda: process.poll() is not None,
    )
