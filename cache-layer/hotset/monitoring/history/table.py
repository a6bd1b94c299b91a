"""A disk's recorded history as a table: one row for each step of time, also where nothing is known.

A row in which nothing was recorded has no values: nothing is taken from the rows beside it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime

from hotset.core.clock import Moment
from hotset.core.errors import NotFoundError, Remedy, RequestError
from hotset.core.record import Record
from hotset.core.units import Bytes
from hotset.core.words import ABSENT, count, duration, percent, size, text_table

from . import opening, series
from .observation import Facts
from .readings import Span
from .series import Choice, DiskSeries, Series
from .store import DAY_S, RESOLUTIONS

KEPT_S = RESOLUTIONS[-1][1]
ROWS_MAX = 3000
"""Most rows of a reply: eight days in the finest steps that are kept of them have 2,304."""
_ROWS_SHOWN = 100
"""About as many rows come without a step of one's own."""
_HEADS = (
    *("from", "watched", "hits", "read hits", "write hits", "reads/s", "writes/s"),
    *("read ms", "write ms", "used", "dirty"),
)


class NoHistoryError(NotFoundError):
    """Nothing was recorded of it; the message says what records."""


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A disk in a step of time, of which ``watched_s`` seconds were recorded; None: not recorded,
    or not counted by its kind. Requests as the tier counts them, bytes and milliseconds as the
    kernel counts the accelerated device; ``dirty_bytes`` and ``used_bytes`` at their highest."""

    begun: datetime
    watched_s: float
    hit_ratio: float | None
    read_hit_ratio: float | None
    write_hit_ratio: float | None
    reads_per_s: float | None
    writes_per_s: float | None
    bypassed_per_s: float | None
    read_bytes_per_s: float | None
    written_bytes_per_s: float | None
    read_ms: float | None
    write_ms: float | None
    used_bytes: Bytes | None
    dirty_bytes: Bytes | None
    cache_bytes: Bytes | None


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """Event of a disk; ``until``: when it ended, None: at once, not yet, or not known."""

    at: datetime
    until: datetime | None
    kind: str
    text: str


@dataclass(frozen=True)
class DiskHistory(Record):
    """History of a disk from a console: steps of ``step_s`` seconds, oldest first.

    :ivar watched_s: recorded part of the time; the rest is not known.
    :ivar present: the disk was there when the machine was read last.
    """

    csv_rows = "rows"

    machine: str
    disk: str
    present: bool
    begun: datetime
    ended: datetime
    step_s: int
    watched_s: float
    rows: tuple[HistoryRow, ...]
    events: tuple[HistoryEvent, ...]

    def to_text(self) -> str:
        """A table, what happened below it, and how much of the time is known."""
        rows = [_cells(row) for row in self.rows]
        events = [f"{_when(event.at)}  {event.text}" for event in self.events]
        whole = (self.ended - self.begun).total_seconds()
        known = (
            f"hits / (hits + misses) of requests; {duration(self.watched_s)} of"
            f" {duration(whole)} were recorded, and of the rest nothing is known"
        )
        parts = [text_table(_HEADS, rows), "", *events, *([""] if events else []), known]
        return "\n".join(parts)


def step_for(length_s: float) -> int:
    """The step that shows a span in a table that people read.

    >>> step_for(3600), step_for(24 * 3600), step_for(8 * 24 * 3600)
    (60, 900, 7200)
    """
    steps = (10, 60, 300, 900, 3600, 2 * 3600)
    return next((step for step in steps if length_s / step <= _ROWS_SHOWN), steps[-1])


def check(length_s: float, step_s: float) -> Choice:
    """A span and its step, as a history is read.

    :raises RequestError: more than is kept, a step that is none of whole ten seconds or finer than
        what is kept of that time, or more rows than one answer has.
    """
    if length_s > KEPT_S:
        kept = f"{KEPT_S // DAY_S} days"
        raise RequestError(f"a history is kept for {kept}: ask for at most as much", field="since")
    finest = next(step for step, kept in RESOLUTIONS if length_s <= kept)
    if step_s < finest or step_s % finest:
        raise RequestError(
            f"of the last {duration(length_s)} spans of {finest} s are kept: give a multiple of it",
            field="step",
        )
    if length_s / step_s > ROWS_MAX:
        raise RequestError(f"that is more than {ROWS_MAX:,} rows: give a longer step", field="step")
    return Choice("", duration(length_s), int(length_s), int(step_s))


def of_disk(machine: str, disk: str | None, choice: Choice, now: Moment) -> DiskHistory:
    """The history of a disk until now; nothing of it is changed.

    :param machine: as ``--machine`` names it.
    :param disk: None: the only one that was recorded in that time.
    :raises NoHistoryError: nothing was recorded of the machine, or of this disk in that time.
    :raises RefusedError: the file is of a later hotset, or no history; and as :func:`opening.look`.
    """
    path = opening.path_of(machine)
    history = opening.look(path, lambda store: series.load(store, choice, now, disk))
    if history is None:
        raise NoHistoryError(
            f"nothing was ever recorded of machine {machine} here ({path}): the console records it"
            " for as long as it runs, for the user who starts it"
        )
    return _to_record(machine, _only(history, machine, disk), history)


def _only(history: Series, machine: str, disk: str | None) -> DiskSeries:
    if not history.disks:
        what = f"disk {disk}" if disk else "a disk"
        recorded = opening.look(opening.path_of(machine), lambda store: store.disks()) or {}
        raise NoHistoryError(
            f"nothing was recorded of {what} of machine {machine} in the last"
            f" {history.choice.words}; recorded ever: {_heading(recorded.values())}",
            field="disk" if disk else "since",
        )
    if len(history.disks) > 1:
        known = sorted({entry.name for entry in history.disks})
        raise RequestError(
            f"there are several: {', '.join(known)}",
            Remedy("see one of them", parameters={"disk": known[0]}),
            field="disk",
        )
    return history.disks[0]


def _heading(known: Collection[Facts]) -> str:
    """The disks of a history by name, those that are gone as such."""
    present = {disk.name: False for disk in known}
    present |= {disk.name: True for disk in known if disk.present}
    names = (
        name if is_present else f"{name} (gone)" for name, is_present in sorted(present.items())
    )
    return ", ".join(names) or "no disk"


def _to_record(machine: str, disk: DiskSeries, history: Series) -> DiskHistory:
    shown = zip(history.starts, disk.spans, strict=True)
    rows = tuple(_row(start, span) for start, span in shown)
    events = tuple(
        HistoryEvent(
            _at(event.at), None if event.until is None else _at(event.until), event.kind, event.text
        )
        for event in history.events
        if event.disk in ("", disk.identity)
    )
    begun, ended = _at(history.starts[0]), _at(history.end)
    watched = sum(row.watched_s for row in rows)
    step = history.choice.step_s
    return DiskHistory(machine, disk.name, disk.present, begun, ended, step, watched, rows, events)


def _row(start: int, span: Span | None) -> HistoryRow:
    if span is None:
        return HistoryRow(_at(start), 0.0, *(None,) * 13)
    seen = span.amounts
    return HistoryRow(
        _at(start),
        seen.known_ms / 1000,
        seen.ratio,
        seen.read_ratio,
        None if seen.write_hits is None else seen.write_ratio,
        seen.reads,
        seen.writes,
        seen.rate(seen.bypassed),
        seen.rate(seen.read_bytes),
        seen.rate(seen.written_bytes),
        seen.read_ms,
        seen.write_ms,
        span.used,
        span.dirty,
        span.size,
    )


def _cells(row: HistoryRow) -> tuple[str, ...]:
    ratios = (row.hit_ratio, row.read_hit_ratio, row.write_hit_ratio)
    rates = (row.reads_per_s, row.writes_per_s)
    times = (row.read_ms, row.write_ms)
    return (
        _when(row.begun),
        duration(row.watched_s) if row.watched_s else "not recorded",
        *(percent(ratio) for ratio in ratios),
        *(count(rate) for rate in rates),
        *(ABSENT if time is None else f"{time:.2f}" for time in times),
        *(size(amount) for amount in (row.used_bytes, row.dirty_bytes)),
    )


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _when(at: datetime) -> str:
    return f"{at.astimezone():%a %d %b %H:%M:%S}"
