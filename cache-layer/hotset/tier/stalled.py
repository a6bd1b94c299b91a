"""A flush that makes no progress: noticed, explained, and ended."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import PurePosixPath

from hotset.core.machines.base import Machine

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
        """True if it is time to report a stall."""
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


def reasons(machine: Machine, origin: PurePosixPath, known: Sequence[str] = ()) -> str:
    """Why nothing is written back, as far as can be seen, and what helps.

    :param known: status of the tier.
    """
    reasons = list(known)
    log = machine.run(["dmesg"], check=False).stdout.splitlines()[-200:]
    errors = [line for line in log if _ERRORS.search(line)]
    if errors:
        reasons.append(f"the kernel says {errors[-1].strip()!r}: see to {origin}")
    if not reasons:
        reasons.append(
            f"{origin} is as busy as it can be, or does not answer (`iostat -x 5` shows which):"
            " give it less to do for a while"
        )
    return "; ".join(reasons)
