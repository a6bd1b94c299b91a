"""Waiting for what happens elsewhere: a process that starts, a device that appears."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path


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
