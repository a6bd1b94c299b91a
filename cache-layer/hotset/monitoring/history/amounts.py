"""What is counted in a span of time, in numbers that can be added up.

A ratio of a long span is never the mean of ratios of short ones: it is made of their added counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields

from hotset.block.io_counters import IoCounters
from hotset.core.units import Bytes
from hotset.tier.base import Counters, Counting, HitRatios, hits_between

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Amounts(HitRatios):
    """A disk in a span of time, of which ``known_ms`` milliseconds were watched.

    Hits, misses and ``bypassed`` are requests as the tier counts them. Bytes, requests
    (``read_ios``) and the milliseconds that these took together are of the accelerated device, as
    the kernel counts them (Documentation/block/stat.rst). None: this kind of tier does not count
    it, or the device shows none.
    """

    known_ms: int
    read_hits: int
    read_misses: int
    write_hits: int | None
    write_misses: int | None
    bypassed: int | None
    read_bytes: int | None = None
    read_ios: int | None = None
    read_io_ms: int | None = None
    written_bytes: int | None = None
    write_ios: int | None = None
    write_io_ms: int | None = None

    @property
    def reads(self) -> float | None:
        """Reads a second, bypassed ones among them; None where nothing was watched."""
        return self.rate(self.read_hits + self.read_misses + (self.bypassed or 0))

    @property
    def writes(self) -> float | None:
        """Writes a second."""
        if self.write_hits is None or self.write_misses is None:
            return None
        return self.rate(self.write_hits + self.write_misses)

    @property
    def read_ms(self) -> float | None:
        """Milliseconds that a read took on average; None where none ended."""
        return _mean(self.read_io_ms, self.read_ios)

    @property
    def write_ms(self) -> float | None:
        """Milliseconds that a write took on average."""
        return _mean(self.write_io_ms, self.write_ios)

    def rate(self, count: int | None) -> float | None:
        """A count of this span a second."""
        return None if count is None or not self.known_ms else 1000 * count / self.known_ms


NAMES = tuple(field.name for field in fields(Amounts))


@dataclass(frozen=True, slots=True)
class Levels:
    """How full a cache is. Of a span: ``dirty`` and ``used`` at their highest, ``size`` at its
    end."""

    dirty: Bytes
    used: Bytes
    size: Bytes

    def followed_by(self, later: Levels) -> Levels:
        """Of both spans together."""
        return Levels(max(self.dirty, later.dirty), max(self.used, later.used), later.size)


@dataclass(frozen=True, slots=True)
class Load:
    """TPC-C in a span: transactions, and the milliseconds in which it ran and that was told."""

    transactions: float
    running_ms: int

    def followed_by(self, later: Load) -> Load:
        """Of both spans together."""
        return Load(self.transactions + later.transactions, self.running_ms + later.running_ms)

    @property
    def tpm(self) -> float | None:
        """Transactions a minute, while it ran; None where none ran."""
        return MINUTE_MS * self.transactions / self.running_ms if self.running_ms else None


def between(
    before: tuple[Counters, IoCounters | None],
    now: tuple[Counters, IoCounters | None],
    seconds: float,
    counting: Counting,
) -> Amounts:
    """What was counted between two readings in a row.

    :param counting: as of :func:`hits_between`.
    """
    hits = hits_between(before[0], now[0], counting)
    device: list[int | None] = [None] * 6
    if before[1] is not None and now[1] is not None:
        pairs = ((before[1].read, now[1].read), (before[1].write, now[1].write))
        device = [
            number
            for old, new in pairs
            for number in (
                int(new.size) - int(old.size),
                new.requests - old.requests,
                # The kernel shows its sums of milliseconds with 32 bits.
                round(new.ms - old.ms) % 2**32,
            )
        ]
    return Amounts(
        round(1000 * seconds),
        hits.read_hits,
        hits.read_misses,
        hits.write_hits,
        hits.write_misses,
        hits.bypassed,
        *device,
    )


def split(amounts: Amounts, end_ms: int, step_ms: int) -> Iterator[tuple[int, Amounts]]:
    """The parts of a span that lie in each step of the clock, as (when the step begins, amounts).

    What is counted between two readings is taken as spread evenly; the parts add up to the whole,
    to the last request.

    :param end_ms: when the span ended, milliseconds since 1970.
    """
    begin, length = end_ms - amounts.known_ms, amounts.known_ms
    at, given = begin, [0] * len(NAMES)
    while at < end_ms:
        start = at - at % step_ms
        at = min(start + step_ms, end_ms)
        parts: list[int | None] = []
        for place, name in enumerate(NAMES):
            whole = getattr(amounts, name)
            if whole is None:
                parts.append(None)
                continue
            until = whole * (at - begin) // length
            parts.append(until - given[place])
            given[place] = until
        yield start, Amounts(*parts)  # type: ignore[arg-type]


def total(parts: list[Amounts]) -> Amounts:
    """The sum; what one of them does not count, the sum does not either.

    :raises ValueError: there is none.
    """
    if not parts:
        raise ValueError("there is nothing to add up")
    sums: list[int | None] = []
    for name in NAMES:
        column = [getattr(part, name) for part in parts]
        sums.append(None if None in column else sum(column))
    return Amounts(*sums)  # type: ignore[arg-type]


def _mean(whole: int | None, count: int | None) -> float | None:
    return whole / count if whole is not None and count else None
