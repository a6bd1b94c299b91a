"""The hit-ratio report: its record, a table that says what ratios are a share of, and CSV."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from hotset.core.record import Record, columns_of
from hotset.core.words import ABSENT, csv_text, percent, size, text_table


@dataclass(frozen=True, slots=True)
class HitRow:
    """One line. Counts are requests, ``…_bytes`` bytes at the end of the time; None: not counted,
    or not known of this line. ``system``: no table, file or database of the user's, but the
    server's catalog or log, the file system, or what no owner could be found for."""

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
    system: bool = False

    @property
    def requests(self) -> int:
        """Reads and writes, as far as they are counted."""
        return self.reads + (self.writes or 0)


@dataclass(frozen=True)
class HitRatios(Record):
    """Hit ratios of one disk, ``begun`` to ``ended`` (UTC; None: since the tier's counters began).

    ``total`` is the sum of ``rows`` by construction; ``notes`` are whole sentences.
    """

    csv_rows = "rows"

    disk: str
    tier: str
    by: str
    begun: datetime | None
    ended: datetime
    denominator: str
    rows: tuple[HitRow, ...]
    total: HitRow
    notes: tuple[str, ...] = ()

    def to_text(self) -> str:
        """Format hit ratios as a table; the total is the last line."""
        lines = _lines(self)
        columns = [column for column in columns_of(HitRow) if column != "system"]
        shown = [column for column in columns if column == "name" or _is_known(lines, column)]
        of = "flash device" if self.by == "volume" else "disk"
        what = "disk" if self.by == "total" else self.by
        heads = [what if column == "name" else _HEADS.get(column, column) for column in shown]
        cells = [[_cell(column, getattr(row, column)) for column in shown] for row in lines]
        since = "the tier's counters started" if self.begun is None else local(self.begun)
        return "\n".join(
            (
                f"{of} {self.disk} ({self.tier}), since {since}, until {local(self.ended)}",
                text_table(heads, cells),
                f"ratios: {self.denominator}",
                *self.notes,
            )
        )

    def csv(self) -> str:
        """A row a line, and the total as the last, each with its disk."""
        columns = columns_of(HitRow)
        rows = ([self.disk, *(getattr(row, column) for column in columns)] for row in _lines(self))
        return csv_text(("disk", *columns), rows)


_HEADS = {
    "read_hit_ratio": "read hits",
    "write_hit_ratio": "write hits",
    "hit_ratio": "hits",
    "dirty_bytes": "dirty",
    "used_bytes": "used",
}


def _lines(report: HitRatios) -> tuple[HitRow, ...]:
    return (*report.rows, report.total) if report.by != "total" else (report.total,)


def moment(at: float) -> datetime:
    """Seconds since 1970 as a time in UTC, to the second.

    >>> moment(0.5).isoformat()
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(int(at), UTC)


def local(at: datetime) -> str:
    """A time for people, in their own zone."""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S")


def _is_known(lines: Iterable[HitRow], column: str) -> bool:
    return any(getattr(row, column) is not None for row in lines)


def _cell(column: str, value: str | float | None) -> str:
    if value is None or isinstance(value, str):
        return ABSENT if value is None else value
    if column.endswith("ratio"):
        return percent(value)
    return size(value) if column.endswith("bytes") else f"{value:,}"
