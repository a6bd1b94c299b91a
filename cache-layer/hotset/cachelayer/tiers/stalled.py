"""A flush that makes no progress: noticed, explained, and ended."""

from __future__ import annotations

import re
import time
from pathlib import PurePosixPath

from ..hosts.base import Machine
from .dmcache_status import CacheStatus

_FIXED_IN = (6, 5)
_ERRORS = re.compile(r"I/O error|critical (?:medium|target) error|hung|timed out", re.IGNORECASE)


class StallWatch:
    """Looks on while a number is to become smaller."""

    def __init__(self, stall_s: float, limit_s: float) -> None:
        """:param stall_s: so long without progress is a stall, told each time it has passed again.
        :param limit_s: so long without progress is the end.
        """
        self._stall_s, self._limit_s = stall_s, limit_s
        self._least: int | None = None
        self._since = self._told = time.monotonic()

    @property
    def seconds(self) -> float:
        """Without progress."""
        return time.monotonic() - self._since

    def stalls(self, left: int) -> bool:
        """Whether it is time to say something."""
        now = time.monotonic()
        if self._least is None or left < self._least:
            self._least, self._since, self._told = left, now, now
            return False
        if now - self._told < self._stall_s:
            return False
        self._told = now
        return True

    def is_over(self) -> bool:
        return self.seconds >= self._limit_s


def reasons(machine: Machine, origin: PurePosixPath, status: CacheStatus | None) -> str:
    """Why nothing is written back, as far as can be seen, and what helps."""
    found = []
    if status is not None and (status.metadata_mode == "ro" or status.needs_check):
        found.append(
            "the cache's metadata is read-only: deactivate the disk, then activate it, which checks"
            " it"
        )
    log = machine.run(["dmesg"], check=False).stdout.splitlines()[-200:]
    errors = [line for line in log if _ERRORS.search(line)]
    if errors:
        found.append(f"the kernel says {errors[-1].strip()!r}: see to {origin}")
    release = machine.run(["uname", "-r"], check=False).stdout.strip()
    if status is not None and _is_before_fix(release):
        found.append(
            f"kernel {release} may write back only while the disk is idle (mended in Linux 6.5 and"
            " in the stable kernels of August 2023): stop the database or unmount for a while"
        )
    if not found:
        found.append(
            f"{origin} is as busy as it can be, or does not answer (`iostat -x 5` shows which):"
            " give it less to do for a while"
        )
    return "; ".join(found)


def _is_before_fix(release: str) -> bool:
    """
    >>> _is_before_fix("6.1.0-18-amd64"), _is_before_fix("6.12.1"), _is_before_fix("odd")
    (True, False, False)
    """
    match = re.match(r"(\d+)\.(\d+)", release)
    return match is not None and (int(match[1]), int(match[2])) < _FIXED_IN
