"""The progress of a flush; and one that makes none: noticed, explained, and ended."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import PurePosixPath

from hotset.core.machines.base import Machine
from hotset.core.progress import Measured, Reporter
from hotset.core.units import Blocks, Bytes, mb_per_s

_ERRORS = re.compile(r"I/O error|critical (?:medium|target) error|hung|timed out", re.IGNORECASE)


class FlushWatch:
    """Progress of a flush, with the time it will still take by the rate measured so far.

    The kernel writes back, and counts, in batches, and takes its time to begin: a rate is taken
    from the first drop of the count to its latest, and between drops the estimate only counts down.
    """

    def __init__(self, reporter: Reporter, block: Bytes) -> None:
        self._reporter = reporter
        self._block = block
        self._drops: list[tuple[float, int]] = []
        self.estimates: list[tuple[float, float]] = []
        """(when by ``time.monotonic()``, seconds it will still take)."""

    def __call__(self, left: Blocks) -> None:
        """:param left: dirty blocks; the first call says how many there were."""
        now = time.monotonic()
        if not self._drops or left < self._drops[-1][1]:
            self._drops.append((now, int(left)))
        text = f"{left.bytes(self._block)} dirty"
        if len(self._drops) > 2:
            (begun, first), (last, known) = self._drops[1], self._drops[-1]
            rate = (first - known) / (last - begun)
            rest = max(0.0, known / rate - (now - last))
            self.estimates.append((now, rest))
            speed = mb_per_s(Blocks(first - known).bytes(self._block), last - begun)
            text += f", {speed:.1f} MB/s, ETA {rest:.0f} s"
        first, eta = self._drops[0][1], self.estimates[-1][1] if len(self._drops) > 2 else None
        done, total = (
            int(Blocks(number).bytes(self._block)) for number in (max(0, first - int(left)), first)
        )
        self._reporter.figure(text, Measured(done, total, "bytes", eta))


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
