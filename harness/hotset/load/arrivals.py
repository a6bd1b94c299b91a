"""When transactions are due in an open load: a Poisson process, whether or not a user is free.

A transaction's latency counts from the moment it was due. Counted from when a user came round to
it, a second in which the server stood still would be one slow transaction, and not the hundreds
that waited meanwhile (coordinated omission). The compiled driver draws the same (`arrivals.rs`).
"""

import threading
from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from .record import PATIENCE_S
from .streams import stream

LATE_S = 0.001
"""One that starts later than this after it was due is late."""


class Arrivals:
    """The arrivals for the users of one process, who share them; any thread may take one."""

    def __init__(
        self, seed: int, crew: int, rate_per_s: float, patience_s: float = PATIENCE_S
    ) -> None:
        """`crew` numbers the process; `rate_per_s` is its share of the run's."""
        self._random = stream(seed, "arrivals", crew)
        self._rate_per_s = rate_per_s
        self._patience_s = patience_s
        self._next = self._end = 0.0
        self._lock = threading.Lock()

    def begin(self, start: float, end: float) -> None:
        """The first transaction is due some time after `start`, the last before `end`."""
        self._next, self._end = start, end
        self._draw()

    def _draw(self) -> float:
        due = self._next
        self._next += self._random.expovariate(self._rate_per_s)
        return due

    def take(self, now: float, skipped: Callable[[float], None]) -> float | None:
        """When the next transaction is due for a user who is free now; None when the run is over.

        What was due before the window closed is served after it, too; `skipped` is told of those
        that waited beyond patience.
        """
        with self._lock:
            while self._next < self._end:
                due = self._draw()
                if now - due <= self._patience_s:
                    return due
                skipped(due)
            return None


def growth(edges: Sequence[float], due: Sequence[int], done: Sequence[int]) -> float:
    """By how many transactions the backlog (what waits or is under way) grew, by the best line
    through it at each edge: one instant says little about a queue.

    `due` and `done` lie between the `edges`, which are in seconds.

    >>> round(growth([0, 1, 2, 3], [10, 10, 10], [8, 8, 8]), 3)
    6.0
    """
    backlog = list(accumulate((a - b for a, b in zip(due, done, strict=True)), initial=0))
    if len(backlog) < 3:
        return float(backlog[-1])
    slope = np.polynomial.Polynomial.fit(edges, backlog, 1).convert().coef
    return float(slope[1] if len(slope) > 1 else 0.0) * (edges[-1] - edges[0])
