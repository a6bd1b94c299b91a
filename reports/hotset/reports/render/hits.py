"""The hit-ratio report as text: table, JSON or CSV. It prints what its ratios are a share of."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime

from ..model.words import ABSENT, percent, size
from .plain import csv_text, text_table

SCHEMA_VERSION = 1
"""Of the JSON of `hotset report` and `hotset heat`. 1: first."""


@dataclass(frozen=True, slots=True)
class HitRow:
    """One line. Counts are requests, ``…_bytes`` bytes at the end of the time; None: not counted,
    or not known of this line."""

    name: str
    reads: int
    writes: int | None
    read_hit_ratio: float | None
    write_hit_ratio: float | None
    hit_ratio: float | None
    bypassed: int | None
    promotions: int | None = None
    demotions: int | None = None
    dirty_bytes: int | None = None
    used_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class HitReport:
    """Hit ratios of one disk, ``begun`` to ``ended`` (seconds since 1970; None: since the tier's
    counters began).

    ``total`` is the sum of ``rows`` by construction; ``notes`` are whole sentences.
    """

    disk: str
    tier: str
    by: str
    begun: float | None
    ended: float
    denominator: str
    rows: tuple[HitRow, ...]
    total: HitRow
    notes: tuple[str, ...] = ()


_COLUMNS = tuple(field.name for field in fields(HitRow))
_HEADS = {
    "read_hit_ratio": "read hits",
    "write_hit_ratio": "write hits",
    "hit_ratio": "hits",
    "dirty_bytes": "dirty",
    "used_bytes": "used",
}


def render(report: HitReport, form: str) -> str:
    """The report in a form: ``table``, ``json`` or ``csv`` (the total is the last line)."""
    lines = (*report.rows, report.total) if report.by != "total" else (report.total,)
    if form == "json":
        times = {"begun": iso(report.begun), "ended": iso(report.ended)}
        return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(report), **times}, indent=1)
    if form == "csv":
        return csv_text(("disk", *_COLUMNS), [(report.disk, *_values(row)) for row in lines])
    shown = [column for column in _COLUMNS if column == "name" or _known(lines, column)]
    what = "disk" if report.by == "total" else report.by
    heads = [what if one == "name" else _HEADS.get(one, one) for one in shown]
    cells = [[_cell(column, getattr(row, column)) for column in shown] for row in lines]
    since = "the tier's counters started" if report.begun is None else local(report.begun)
    return "\n".join(
        (
            f"disk {report.disk} ({report.tier}), since {since}, until {local(report.ended)}",
            text_table(heads, cells),
            f"ratios: {report.denominator}",
            *report.notes,
        )
    )


def iso(at: float | None) -> str | None:
    """A time for machines, UTC.

    >>> iso(0.0)
    '1970-01-01T00:00:00Z'
    """
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def local(at: float) -> str:
    """A time for people, in their own zone."""
    return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _known(lines: Iterable[HitRow], column: str) -> bool:
    return any(getattr(row, column) is not None for row in lines)


def _values(row: HitRow) -> Sequence[object]:
    return [getattr(row, column) for column in _COLUMNS]


def _cell(column: str, value: str | float | None) -> str:
    if value is None or isinstance(value, str):
        return ABSENT if value is None else value
    if column.endswith("ratio"):
        return percent(value)
    return size(value) if column.endswith("bytes") else f"{value:,}"
