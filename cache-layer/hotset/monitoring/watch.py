"""`hotset tier watch`: a line an interval from the tier's own counters, as vmstat does it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from hotset.core.record import Record, columns_of, document_of
from hotset.core.units import Bytes
from hotset.core.words import ABSENT, percent, size
from hotset.hitratio.heat import Tally
from hotset.hitratio.report import moment
from hotset.tier.base import Counters, Counting, Tier, hits_between

HEADER_EVERY = 20
COLUMNS = (
    "time",
    "reads/s",
    "read hits",
    "writes/s",
    "write hits",
    "hits",
    "bypassed/s",
    "promoted/s",
    "demoted/s",
    "dirty",
    "used",
)
_WIDTHS = (8, 9, 9, 9, 10, 7, 10, 10, 9, 10, 10)


@dataclass(frozen=True)
class Line(Record):
    """One interval. Rates are a second; ratios of what was asked in it; levels at its end."""

    at: datetime
    seconds: float
    reads: float
    writes: float | None
    read_hit_ratio: float | None
    write_hit_ratio: float | None
    hit_ratio: float | None
    bypassed: float | None
    promotions: float | None
    demotions: float | None
    dirty_bytes: int
    used_bytes: int


def lines(
    tier: Tier,
    interval_s: float,
    count: int | None,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Line]:
    """One line an interval, for ever or ``count`` times.

    Intervals keep to a grid, so that slow readings do not add up.
    """
    before, since = tier.counters(), clock()
    begun, number = since, 0
    while count is None or number < count:
        number += 1
        # A reading that took longer than an interval is not made up for by a burst of short ones.
        sleep(max(0.0, begun + number * interval_s - clock()))
        now, at = tier.counters(), clock()
        yield line(before, now, at, at - since, tier.counting, tier.spec.block)
        before, since = now, at


def line(
    before: Counters, now: Counters, at: float, seconds: float, counting: Counting, block: Bytes
) -> Line:
    """Compare two readings, ``seconds`` apart; ``at`` is the time of the second."""
    seconds = max(seconds, 1e-9)
    counted = hits_between(before, now, counting)
    tally = Tally.from_hits(counted)

    def rate(value: int | None) -> float | None:
        return None if value is None else round(value / seconds, 1)

    return Line(
        moment(at),
        round(seconds, 3),
        tally.reads / seconds,
        None if counted.write_hits is None else tally.writes / seconds,
        tally.read_ratio,
        tally.write_ratio,
        tally.ratio,
        rate(counted.bypassed),
        rate(counted.promotions),
        rate(counted.demotions),
        int(now.dirty.bytes(block)),
        int(now.used.bytes(block)),
    )


def as_json(line: Line) -> str:
    """One object a line."""
    return json.dumps(document_of(line))


def header() -> str:
    return " ".join(name.rjust(width) for name, width in zip(COLUMNS, _WIDTHS, strict=True))


def as_text(line: Line) -> str:
    cells = (
        f"{line.at.astimezone():%H:%M:%S}",
        _rate(line.reads),
        percent(line.read_hit_ratio),
        _rate(line.writes),
        percent(line.write_hit_ratio),
        percent(line.hit_ratio),
        _rate(line.bypassed),
        _rate(line.promotions),
        _rate(line.demotions),
        size(line.dirty_bytes),
        size(line.used_bytes),
    )
    return " ".join(cell.rjust(width) for cell, width in zip(cells, _WIDTHS, strict=True))


def values(line: Line) -> tuple[object, ...]:
    """For CSV, with :data:`FIELDS` above."""
    document = document_of(line)
    return tuple(document[name] for name in FIELDS)


FIELDS = tuple(name for name in columns_of(Line) if name != "schema_version")


def _rate(value: float | None) -> str:
    return ABSENT if value is None else f"{value:,.0f}"
