"""Counts in a span of time, in numbers that can be added up.

A ratio of a long span is never the mean of ratios of short ones: it is made of their added counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from hotset.tier.base import HitRatios

MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Amounts(HitRatios):
    """A disk in a span of time, of which ``known_ms`` milliseconds were watched, or the machine.

    Hits, misses and ``bypassed`` are requests as the tier counts them. Bytes, requests
    (``read_ios``) and the milliseconds that these took together are of the accelerated device, as
    the kernel counts them (Documentation/block/stat.rst). ``transactions`` are of TPC-C on the
    machine, which ran for ``running_ms``. None: this kind of tier does not count it, or the device
    shows none.
    """

    known_ms: int
    read_hits: int
    read_misses: int
    write_hits: int | None = None
    write_misses: int | None = None
    bypassed: int | None = None
    read_bytes: int | None = None
    read_ios: int | None = None
    read_io_ms: int | None = None
    written_bytes: int | None = None
    write_ios: int | None = None
    write_io_ms: int | None = None
    transactions: int | None = None
    running_ms: int | None = None

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

    @property
    def tpm(self) -> float | None:
        """Transactions a minute, while TPC-C ran; None where none ran."""
        per_ms = _mean(self.transactions, self.running_ms)
        return None if per_ms is None else MINUTE_MS * per_ms

    def rate(self, count: int | None) -> float | None:
        """A count of this span a second."""
        return None if count is None or not self.known_ms else 1000 * count / self.known_ms


NAMES = tuple(field.name for field in fields(Amounts))


def total(parts: Sequence[Amounts]) -> Amounts:
    """The sum; what one of them does not count, the sum does not either.

    :raises ValueError: there is none.
    """
    if not parts:
        raise ValueError("there is nothing to add up")
    columns = ([getattr(part, name) for part in parts] for name in NAMES)
    sums = [None if None in column else sum(column) for column in columns]
    return Amounts(*sums)  # type: ignore[arg-type]


def _mean(whole: int | None, count: int | None) -> float | None:
    return whole / count if whole is not None and count else None
