"""A machine's history in one SQLite file, in tiers of resolution.

Every count is added to a span of each resolution at once, so that all of them add up to the same.
What is kept is bounded by the number of spans and of events, not by their age alone: a clock that
is set to a wrong year deletes nothing at once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field

from hotset.core.units import Bytes

from .amounts import NAMES, Amounts, Levels, Load
from .observation import EVENT_KINDS, TEXT_MAX, Event, Facts

VERSION = 1
DAY_S = 24 * 3600
RESOLUTIONS = ((10, 2 * 3600), (60, 26 * 3600), (300, 8 * DAY_S))
"""Seconds of a span, each a multiple of the one before, and for how long such spans are kept."""
FINEST_S = RESOLUTIONS[0][0]
EVENTS_KEPT = 500
"""Of each kind."""
_COUNTS = ", ".join(f"{name} INTEGER" for name in NAMES)
SCHEMA = f"""
CREATE TABLE disk (id INTEGER PRIMARY KEY, identity TEXT UNIQUE, name TEXT, kind TEXT, policy TEXT,
  mode TEXT, size INTEGER, present INTEGER);
CREATE TABLE span (step INTEGER, start INTEGER, disk INTEGER, {_COUNTS}, dirty INTEGER,
  used INTEGER, size INTEGER, PRIMARY KEY (step, start, disk)) WITHOUT ROWID;
CREATE TABLE machine (step INTEGER, start INTEGER, known_ms INTEGER, transactions REAL,
  running_ms INTEGER, PRIMARY KEY (step, start)) WITHOUT ROWID;
CREATE TABLE event (key TEXT PRIMARY KEY, at REAL, until REAL, kind TEXT, disk TEXT, text TEXT);
CREATE INDEX event_at ON event (at);
PRAGMA user_version = {VERSION};
"""
_MARKS = ", ".join("?" for _ in range(len(NAMES) + 6))
_ADDED = ", ".join(f"{name} = {name} + excluded.{name}" for name in NAMES)
_ADD_SPAN = f"""
INSERT INTO span VALUES ({_MARKS}) ON CONFLICT (step, start, disk) DO UPDATE SET {_ADDED},
  dirty = max(dirty, excluded.dirty), used = max(used, excluded.used), size = excluded.size
"""
_ADD_MACHINE = """
INSERT INTO machine VALUES (?, ?, ?, ?, ?) ON CONFLICT (step, start) DO UPDATE SET
  known_ms = known_ms + excluded.known_ms, transactions = transactions + excluded.transactions,
  running_ms = running_ms + excluded.running_ms
"""
_KEEP_DISK = """
INSERT INTO disk (identity, name, kind, policy, mode, size, present) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (identity) DO UPDATE SET name = excluded.name, kind = excluded.kind,
  policy = excluded.policy, mode = excluded.mode, size = coalesce(excluded.size, size),
  present = excluded.present
"""
_KEEP_EVENT = """
INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (key) DO UPDATE SET until = excluded.until, text = excluded.text
"""


@dataclass(frozen=True, slots=True)
class KnownDisk:
    """A disk that the history has; ``present``: it was there when the machine was last read."""

    facts: Facts
    present: bool


@dataclass(frozen=True, slots=True)
class Span:
    """What was counted of a disk in one span; ``start`` in seconds since 1970."""

    start: int
    amounts: Amounts
    levels: Levels


@dataclass(frozen=True, slots=True)
class MachineSpan:
    """The machine in one span, of which ``known_ms`` milliseconds were watched."""

    start: int
    known_ms: int
    load: Load


@dataclass(slots=True)
class Batch:
    """What is to be kept next: spans of the finest resolution (their start and the disk's
    identity), the machine's, events, and the disks with whether they are there.

    :ivar at: when the machine was read last, seconds since 1970; None: when the newest span began.
    """

    spans: dict[tuple[int, str], tuple[Amounts, Levels]] = field(default_factory=dict)
    machine: dict[int, tuple[int, Load]] = field(default_factory=dict)
    events: dict[str, Event] = field(default_factory=dict)
    disks: dict[str, KnownDisk] = field(default_factory=dict)
    at: float | None = None

    def __bool__(self) -> bool:
        return bool(self.spans or self.machine or self.events or self.disks)


class Store:
    """An open history."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def close(self) -> None:
        self._connection.close()

    def keep(self, batch: Batch) -> None:
        """Add it, all or nothing, and let go of what is beyond the bounds.

        :raises sqlite3.Error: it cannot be written.
        """
        with self._connection:
            for known in batch.disks.values():
                self._execute(_KEEP_DISK, _disk_row(known))
            numbers = dict(self._execute("SELECT identity, id FROM disk"))
            for step, _ in RESOLUTIONS:
                for (start, identity), (amounts, levels) in batch.spans.items():
                    at = step, start - start % step, numbers[identity]
                    self._execute(_ADD_SPAN, (*at, *_values(amounts), *_levels(levels)))
                for start, (known_ms, load) in batch.machine.items():
                    found = known_ms, load.transactions, load.running_ms
                    self._execute(_ADD_MACHINE, (step, start - start % step, *found))
            for event in batch.events.values():
                text = event.text if len(event.text) <= TEXT_MAX else f"{event.text[:TEXT_MAX]}…"
                row = event.key, event.at, event.until, event.kind, event.disk, text
                self._execute(_KEEP_EVENT, row)
            starts = [*batch.machine, *(start for start, _ in batch.spans)]
            if starts:
                self._prune_spans(max(starts) if batch.at is None else int(batch.at))
            if batch.events:
                self._prune_events()

    def disks(self) -> dict[str, KnownDisk]:
        """All that the history knows, by their identity."""
        rows = self._execute("SELECT identity, name, kind, policy, mode, size, present FROM disk")
        found = {}
        for identity, name, kind, policy, mode, size, present in rows:
            cache = None if size is None else Bytes(size)
            facts = Facts(identity, name, kind, policy, mode, cache)
            found[identity] = KnownDisk(facts, bool(present))
        return found

    def spans(self, step: int, begin: float, end: float) -> Mapping[str, list[Span]]:
        """What was counted in the spans that begin in [begin, end), by the disk's identity."""
        names = ", ".join(NAMES)
        found: dict[str, list[Span]] = {}
        for identity, start, *row in self._execute(
            f"SELECT identity, start, {names}, dirty, used, span.size FROM span"
            " JOIN disk ON disk.id = span.disk"
            " WHERE step = ? AND start >= ? AND start < ? ORDER BY start",
            (step, begin, end),
        ):
            levels = Levels(*map(Bytes, row[len(NAMES) :]))
            span = Span(start, Amounts(*row[: len(NAMES)]), levels)
            found.setdefault(identity, []).append(span)
        return found

    def machine(self, step: int, begin: float, end: float) -> list[MachineSpan]:
        """The machine in those spans."""
        rows = self._execute(
            "SELECT start, known_ms, transactions, running_ms FROM machine"
            " WHERE step = ? AND start >= ? AND start < ? ORDER BY start",
            (step, begin, end),
        )
        return [MachineSpan(start, known, Load(*load)) for start, known, *load in rows]

    def events(self, begin: float, end: float) -> list[Event]:
        """What happened then, or had begun before and went on, oldest first."""
        rows = self._execute(
            "SELECT key, at, kind, text, until, disk FROM event"
            " WHERE at < ? AND coalesce(until, at) >= ? ORDER BY at, rowid",
            (end, begin),
        )
        return [Event(*row) for row in rows]

    def latest(self, kind: str) -> Event | None:
        """The last event of a kind."""
        row = self._execute(
            "SELECT key, at, kind, text, until, disk FROM event WHERE kind = ?"
            " ORDER BY rowid DESC LIMIT 1",
            (kind,),
        ).fetchone()
        return None if row is None else Event(*row)

    def _prune_spans(self, now: int) -> None:
        """Of the spans until now the newest stay. Those of a clock that was ahead take none of
        their places, and of them the nearest stay."""
        for step, kept_s in RESOLUTIONS:
            for side, order, beyond in (("<=", "DESC", "<="), (">", "ASC", ">=")):
                row = self._execute(
                    f"SELECT start FROM machine WHERE step = ? AND start {side} ?"
                    f" ORDER BY start {order} LIMIT 1 OFFSET ?",
                    (step, now, kept_s // step),
                ).fetchone()
                if row is not None:
                    for table in ("machine", "span"):
                        self._execute(
                            f"DELETE FROM {table} WHERE step = ? AND start {beyond} ?", (step, *row)
                        )
        self._execute("DELETE FROM disk WHERE NOT present AND id NOT IN (SELECT disk FROM span)")

    def _prune_events(self) -> None:
        for kind in EVENT_KINDS:
            self._execute(
                "DELETE FROM event WHERE kind = ? AND rowid NOT IN"
                " (SELECT rowid FROM event WHERE kind = ? ORDER BY rowid DESC LIMIT ?)",
                (kind, kind, EVENTS_KEPT),
            )

    def _execute(self, statement: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)


def _disk_row(known: KnownDisk) -> tuple[object, ...]:
    facts = known.facts
    size = None if facts.size is None else int(facts.size)
    return facts.identity, facts.name, facts.kind, facts.policy, facts.mode, size, known.present


def _values(amounts: Amounts) -> tuple[int | None, ...]:
    return tuple(getattr(amounts, name) for name in NAMES)


def _levels(levels: Levels) -> tuple[int, int, int]:
    return int(levels.dirty), int(levels.used), int(levels.size)
