"""Readings of counters, and what was counted between them.

A reading holds what the counters said, and its place is that of the kernel's clock, which nobody
sets. What was counted is the difference of two readings of which one goes on from the other: where
counters began again, and where two readings contradict one another, it is not known.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Literal

from hotset.core.units import Bytes
from hotset.tier import kinds
from hotset.tier.base import Counting, counters_restarted, is_contradicted

from .amounts import NAMES, Amounts, total
from .observation import SeenDisk

GAP_MS = 35_000
"""Between two readings that are further apart, what happened when is not known."""
COUNTED = NAMES[1:]
"""Counters of a reading, in this order; the levels come after them."""
LEVELS = ("dirty", "used", "size")
_OF_TIER = COUNTED[:5]
_NARROW = ("read_io_ms", "write_io_ms")
"""The kernel shows these sums with 32 bits."""
_PART_BITS = 4
"""From one reading to the next no more than one of 2^4 parts of a counter's range is counted: of 32
bits 7 million requests a second."""
_VALUE_MAX = 2**63 - 1
_NO_TIER = Counting(64)
Counts = tuple[int | None, ...]
"""Values of :data:`COUNTED`."""
Course = Literal["goes on", "unknown", "restarted", "contradiction"]


@dataclass(slots=True)
class Reading:
    """Counters of a disk at one moment.

    :ivar disk: its identity; empty: the machine, whose counters are of TPC-C.
    :ivar ms: when; as it is kept, milliseconds since the computer started, as it is read, since
        1970 by the wall clock as it goes now.
    :ivar watched_ms: for how long the machine had been watched in all: the order of all readings.
    :ivar goes_on: what was counted since the reading before it is known.
    :ivar values: of :data:`COUNTED`; ``levels``: bytes dirty and used, the highest since the
        reading before, and the size of the cache.
    """

    disk: str
    ms: int
    watched_ms: int
    goes_on: bool
    values: tuple[int | None, ...]
    levels: tuple[int, int, int] = (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Span:
    """Amounts of a step that begins at ``start``, seconds since 1970; ``dirty`` and
    ``used`` at their highest, ``size`` of the cache at the end."""

    start: int
    amounts: Amounts
    dirty: Bytes
    used: Bytes
    size: Bytes


Values = tuple[tuple[int | None, ...], tuple[int, int, int]]


def values_of(seen: SeenDisk) -> Values | None:
    """Return a disk's counters and levels; None: nothing that can be compared."""
    counters, device = seen.counters, seen.device
    if counters is None or counters.stale:
        return None
    directions = () if device is None else (device.read, device.write)
    moved: list[int | None] = [
        value
        for direction in directions
        for value in (int(direction.size), direction.requests, round(direction.ms))
    ]
    values = (*(getattr(counters, name) for name in _OF_TIER), *(moved or [None] * 6), None, None)
    cached = (counters.dirty, counters.used, counters.total)
    dirty, used, size = (int(level.bytes(seen.block)) for level in cached)
    is_absurd = any(value is not None and value > _VALUE_MAX for value in (*values, dirty, used))
    return None if is_absurd else (values, (dirty, used, size))


def course(before: SeenDisk, now: SeenDisk) -> Course:
    """How a reading with values goes on from one before it.

    A count that began at another time is another one, where the kind tells. Else a counter that
    falls contradicts the one before, whichever of the two is wrong: unless it wrapped around, or
    its kind takes back what it counted early.
    """
    first, last = before.counters, now.counters
    was, is_ = values_of(before), values_of(now)
    if first is None or last is None or was is None or is_ is None:
        return "unknown"
    if None not in (first.begun, last.begun) and first.begun != last.begun:
        return "restarted"
    counting = kinds.kind_of_name(now.facts.kind).counting
    if counters_restarted(replace(first, begun=None), replace(last, begun=None), counting):
        return "contradiction"
    pairs = list(zip(COUNTED, was[0], is_[0], strict=True))
    known = [(name, a, b) for name, a, b in pairs if a is not None and b is not None]
    if any(_fell(name, a, b, counting) for name, a, b in known):
        return "contradiction"
    is_alike = all((a is None) == (b is None) for _, a, b in pairs)
    return "goes on" if is_alike else "unknown"


def returns(before: Counts, first: SeenDisk, now: SeenDisk) -> bool:
    """True if a counter that fell is back where it was: then not all of it was counted since, and
    the reading in between may have been wrong."""
    if first.counters is None or now.counters is None:
        return False
    read_hits, read_misses, write_hits, write_misses, bypassed = before[: len(_OF_TIER)]
    known = replace(
        first.counters,
        begun=None,
        read_hits=read_hits or 0,
        read_misses=read_misses or 0,
        write_hits=write_hits,
        write_misses=write_misses,
        bypassed=bypassed,
    )
    wrong, right = (replace(counters, begun=None) for counters in (first.counters, now.counters))
    return is_contradicted(known, wrong, right, kinds.kind_of_name(now.facts.kind).counting)


def spans(
    readings: Sequence[Reading], starts: range, counting: Counting = _NO_TIER
) -> dict[int, Span]:
    """Compute the span of each step, by its start; a step of which nothing is known has none.

    :param readings: readings of a single disk, in their order.
    :param starts: seconds since 1970, one step apart.
    """
    parts: dict[int, list[Span]] = {}
    for run in _runs(readings):
        for span in _of_run(run, starts, counting):
            parts.setdefault(span.start, []).append(span)
    return {start: join(some) for start, some in parts.items()}


def join(some: Sequence[Span]) -> Span:
    """Spans, oldest first, as one."""
    return Span(
        some[0].start,
        total([span.amounts for span in some]),
        max(span.dirty for span in some),
        max(span.used for span in some),
        some[-1].size,
    )


def _runs(readings: Sequence[Reading]) -> Iterator[Sequence[Reading]]:
    begins = [place for place, reading in enumerate(readings) if place == 0 or not reading.goes_on]
    for begin, end in pairwise([*begins, len(readings)]):
        if end - begin > 1:
            yield readings[begin:end]


def _of_run(run: Sequence[Reading], starts: range, counting: Counting) -> Iterator[Span]:
    """Split readings that go on from one another into spans: between two of them requests count
    as spread evenly, and the spans add up to what was counted from the first to the last."""
    times = [reading.ms for reading in run]
    sums = [_sums(name, place, run, counting) for place, name in enumerate(COUNTED)]
    first = max(starts.start, times[0] // 1000 // starts.step * starts.step)
    for start in range(first, min(starts.stop, times[-1] // 1000 + 1), starts.step):
        low, high = max(times[0], 1000 * start), min(times[-1], 1000 * (start + starts.step))
        if low >= high:
            continue
        gained = (
            None if counts is None else _at(counts, times, high) - _at(counts, times, low)
            for counts in sums
        )
        amounts = Amounts(high - low, *gained)  # type: ignore[arg-type]
        # The levels of a reading are those since the one before it.
        seen = run[bisect_right(times, low) : bisect_left(times, high) + 1]
        dirty, used = (Bytes(max(reading.levels[place] for reading in seen)) for place in (0, 1))
        yield Span(start, amounts, dirty, used, Bytes(seen[-1].levels[2]))


def _sums(
    name: str, place: int, readings: Sequence[Reading], counting: Counting
) -> list[int] | None:
    """Accumulate a counter over the readings since the first; None: it is not counted.

    Of two sums the later one is right: what a counter took back was never made.
    """
    values = [reading.values[place] for reading in readings]
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return None
    gains = [_gain(name, a, b, counting) for a, b in pairwise(known)]
    sums = [0, *accumulate(gains)]
    if name == "read_hits" and counting.early:
        # Nothing comes after the last ones that would take back what was counted early.
        late = readings[-1].ms - 1000 * counting.lag_s
        first = bisect_left(readings, late, key=lambda reading: reading.ms)
        is_early = any(gain > counting.early_step // 2 for gain in gains[max(0, first - 1) :])
        sums[-1] -= counting.early * is_early
    return list(accumulate(reversed(sums), min))[::-1]


def _at(sums: list[int], times: list[int], ms: int) -> int:
    place = bisect_right(times, ms) - 1
    if place == len(times) - 1:
        return sums[-1]
    more, passed = sums[place + 1] - sums[place], ms - times[place]
    return sums[place] + more * passed // (times[place + 1] - times[place])


def _gain(name: str, was: int, now: int, counting: Counting, part_bits: int = 1) -> int:
    """Subtract two values of a counter, around its end if need be; below zero where that is more
    than one of 2^``part_bits`` parts of its range: it fell."""
    bits = 32 if name in _NARROW else counting.bits if name in _OF_TIER else 64
    gain = (now - was) % (1 << bits)
    return gain if gain < 1 << bits - part_bits else gain - (1 << bits)


def _fell(name: str, was: int, now: int, counting: Counting) -> bool:
    # Where hits are counted early, `counters_restarted` looks at them together with the misses.
    may_fall = name == "read_hits" and now < was and counting.early > 0
    return not may_fall and _gain(name, was, now, counting, _PART_BITS) < 0
