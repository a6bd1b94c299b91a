"""Eight days of a disk's requests, hour by hour, with what differs from day to day by chance."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from hotset.core.units import Bytes
from hotset.monitoring.history.amounts import Amounts
from hotset.monitoring.history.readings import Span

DAYS, STEP_S, HOUR_S = 8, 300, 3600
SIZE = Bytes(64 << 30)
LEVELS = Bytes(1 << 30), Bytes(60 << 30), SIZE
Ratio = Callable[[int], float]


@dataclass(frozen=True)
class Shop:
    """A database by day and night.

    :ivar seed: of what is random.
    :ivar day_spread: of a day's hit ratio, as a standard deviation; ``hour_spread``: of an hour's.
    :ivar weekend: what it has less on two days of seven, and it is a third as busy then.
    """

    seed: int
    day_spread: float = 0.006
    hour_spread: float = 0.01
    weekend: float = 0.0

    def hours(self, ratio: Ratio, end_hour: int) -> Iterator[tuple[int, int, float]]:
        """Hours since 1970, their requests and their hit ratios.

        :param ratio: by hours before the end (1: the last hour).
        """
        drawn = random.Random(self.seed)
        of_day = [drawn.gauss(0, self.day_spread) for _ in range(DAYS + 1)]
        for back in range(DAYS * 24, 0, -1):
            number = end_hour - back
            light = 0.5 - 0.5 * math.cos(2 * math.pi * (number % 24) / 24)
            is_weekend = (number // 24) % 7 in (2, 3)
            load = (20_000 + 300_000 * light) * drawn.uniform(0.6, 1.4)
            base = ratio(back) - 0.04 * (1 - light) + of_day[back // 24]
            base += drawn.gauss(0, self.hour_spread) - self.weekend * is_weekend
            requests = round(load / 3 if is_weekend and self.weekend else load)
            yield number, requests, min(1.0, max(0.0, base))

    def spans(self, ratio: Ratio, end: int) -> list[Span]:
        """As a history keeps them, until a time."""
        return [
            Span(number * HOUR_S + at, _amounts(requests // 12, share), *LEVELS)
            for number, requests, share in self.hours(ratio, end // HOUR_S)
            for at in range(0, HOUR_S, STEP_S)
        ]


def steady(_: int) -> float:
    """A cache that holds what is asked for."""
    return 0.95


def outgrown(back: int) -> float:
    """A table that is read evenly grows by 40 % beyond the cache half a day ago: as much of it as
    fits is hit."""
    return 0.95 if back > 12 else 0.95 / 1.4


def _amounts(requests: int, share: float) -> Amounts:
    reads = requests * 7 // 10
    writes = requests - reads
    hits, write_hits = round(reads * share), round(writes * share)
    return Amounts(1000 * STEP_S, hits, reads - hits, write_hits, writes - write_hits, 0)
