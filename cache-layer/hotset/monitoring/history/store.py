"""A machine's history in one SQLite file: a table of readings, and one of events.

All that is counted comes out of differences of readings, so readings are thinned out as they grow
old, and no request is lost by it. Their age is for how long the machine was watched since: no clock
that is set to a wrong year deletes anything.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable
from dataclasses import astuple, fields

from hotset.core.clock import Moment
from hotset.core.units import Bytes

from .observation import Event, Facts
from .readings import COUNTED, LEVELS, Reading

VERSION = 1
DAY_S = 24 * 3600
RESOLUTIONS = ((10, 2 * 3600), (60, 26 * 3600), (300, 8 * DAY_S))
"""Seconds between two readings, and for how long they are kept so."""
FINEST_S = RESOLUTIONS[0][0]
READINGS_KEPT = 10_000
"""Readings kept of each disk, however often what it counted was not known in between."""
EVENTS_KEPT = 500
"""Events kept of each kind."""
TEXT_MAX = 300
"""Characters of an event's text; a longer one is cut."""
_NEAR_MS = 2_000 * RESOLUTIONS[-1][0]
"""No two readings of which one goes on from the other are further apart."""
_THIN_EVERY_MS = 1_000 * RESOLUTIONS[-1][0]
_FACTS = ", ".join(field.name for field in fields(Facts))
_COLUMNS = ", ".join((*COUNTED, *LEVELS))
_MARKS = ", ".join("?" for _ in range(5 + len(COUNTED) + len(LEVELS)))
SCHEMA = f"""
CREATE TABLE disk (id INTEGER PRIMARY KEY, identity TEXT UNIQUE, name TEXT, kind TEXT, policy TEXT,
  mode TEXT, size INTEGER, present INTEGER);
CREATE TABLE boot (id INTEGER PRIMARY KEY, name TEXT UNIQUE, ahead_ms INTEGER);
CREATE TABLE reading (disk INTEGER, watched_ms INTEGER, boot INTEGER, ms INTEGER, goes_on INTEGER,
  {_COLUMNS.replace(",", " INTEGER,")} INTEGER,
  PRIMARY KEY (disk, watched_ms)) WITHOUT ROWID;
CREATE TABLE event (key TEXT PRIMARY KEY, boot INTEGER, at REAL, until REAL, kind TEXT, disk TEXT,
  text TEXT);
PRAGMA user_version = {VERSION};
"""
_KEEP_DISK = f"""
INSERT INTO disk ({_FACTS}) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (identity) DO UPDATE SET name = excluded.name, kind = excluded.kind,
  policy = excluded.policy, mode = excluded.mode, size = coalesce(excluded.size, size),
  present = excluded.present
"""
_KEEP_BOOT = """
INSERT INTO boot (name, ahead_ms) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET ahead_ms = excluded.ahead_ms RETURNING id
"""
_KEEP_EVENT = """
INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE SET
  boot = excluded.boot, at = excluded.at, until = excluded.until, text = excluded.text
"""
_PLACED = """
WITH runs AS (SELECT *, sum(NOT goes_on) OVER line AS run, watched_ms / :step AS part,
    lead(goes_on) OVER line AS is_continued, lead(watched_ms) OVER line / :step AS next_part
    FROM reading WHERE watched_ms >= :begin AND watched_ms < :end
    WINDOW line AS (PARTITION BY disk ORDER BY watched_ms)),
  placed AS (SELECT disk, watched_ms, goes_on, is_continued, part = next_part AS is_inner,
    max(dirty) OVER since AS dirty, max(used) OVER since AS used
    FROM runs WINDOW since AS (PARTITION BY disk, run, part ORDER BY watched_ms))
"""
_RAISE_LEVELS = f"""{_PLACED}
UPDATE reading SET dirty = placed.dirty, used = placed.used FROM placed
WHERE reading.disk = placed.disk AND reading.watched_ms = placed.watched_ms
  AND (reading.dirty, reading.used) IS NOT (placed.dirty, placed.used)
"""
_THIN_OUT = f"""{_PLACED}
DELETE FROM reading WHERE (disk, watched_ms) IN (SELECT disk, watched_ms FROM placed
  WHERE goes_on AND is_continued AND is_inner OR NOT goes_on AND NOT is_continued)
"""
_BEYOND = f"""
DELETE FROM reading WHERE watched_ms <= ? - {1000 * RESOLUTIONS[-1][1]}
  OR (disk, watched_ms) IN (SELECT disk, watched_ms FROM (SELECT disk, watched_ms,
    row_number() OVER (PARTITION BY disk ORDER BY watched_ms DESC) AS place FROM reading)
    WHERE place > {READINGS_KEPT})
"""
_BEYOND_EVENTS = f"""
DELETE FROM event WHERE rowid IN (SELECT rowid FROM (SELECT rowid,
  row_number() OVER (PARTITION BY kind ORDER BY rowid DESC) AS place FROM event)
  WHERE place > {EVENTS_KEPT})
"""
_FORGET = (
    "DELETE FROM disk WHERE NOT present AND id NOT IN (SELECT disk FROM reading)",
    "DELETE FROM boot WHERE id < (SELECT max(id) FROM boot) AND id NOT IN"
    " (SELECT boot FROM reading UNION SELECT boot FROM event)",
)


class Store:
    """An open history."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def check(self) -> str:
        """``ok``, or what is damaged, also in a part that is seldom read."""
        ((message,),) = self._execute("PRAGMA quick_check(1)")
        return str(message)

    def keep(
        self,
        moment: Moment,
        readings: Iterable[Reading] = (),
        events: Collection[Event] = (),
        disks: Iterable[Facts] = (),
    ) -> None:
        """Add them atomically, and remove what is beyond the bounds.

        :param moment: now; its boot is that of the readings and events, whose times are since it.
        :raises sqlite3.Error: it cannot be written.
        """
        with self._connection:
            before = self.watched_ms
            for disk in disks:
                self._execute(_KEEP_DISK, astuple(disk))
            ahead_ms = round(1000 * (moment.wall - moment.up))
            ((boot,),) = self._execute(_KEEP_BOOT, (moment.boot, ahead_ms)).fetchall()
            numbers = {"": 0, **dict(self._execute("SELECT identity, id FROM disk"))}
            for reading in readings:
                place = numbers[reading.disk], reading.watched_ms, boot, reading.ms, reading.goes_on
                row = *place, *reading.values, *reading.levels
                self._execute(f"INSERT OR REPLACE INTO reading VALUES ({_MARKS})", row)
            for event in events:
                text = event.text if len(event.text) <= TEXT_MAX else f"{event.text[:TEXT_MAX]}…"
                row = event.key, boot, event.at, event.until, event.kind, event.disk, text
                self._execute(_KEEP_EVENT, row)
            self._prune(before // _THIN_EVERY_MS, self.watched_ms // _THIN_EVERY_MS)

    @property
    def watched_ms(self) -> int:
        """For how long the machine was watched in all."""
        ((last,),) = self._execute("SELECT max(watched_ms) FROM reading").fetchall()
        return last or 0

    def last_values(self) -> dict[str, tuple[int | None, ...]]:
        """Return the last counters of each disk, in the order of :data:`COUNTED`."""
        names = dict(self._execute("SELECT id, identity FROM disk"))
        rows = self._execute(
            f"SELECT disk, max(watched_ms), {', '.join(COUNTED)} FROM reading GROUP BY disk"
        )
        return {names[disk]: tuple(values) for disk, _, *values in rows if disk in names}

    def disks(self) -> dict[str, Facts]:
        """All that the history knows, by their identity."""
        known = {}
        for identity, *words, size, present in self._execute(f"SELECT {_FACTS} FROM disk"):
            name, kind, policy, mode = words
            cache = None if size is None else Bytes(size)
            known[identity] = Facts(identity, name, kind, policy, mode, cache, bool(present))
        return known

    def readings(self, begin: float, end: float, now: Moment) -> dict[str, list[Reading]]:
        """List the readings of that time (seconds since 1970) and the next around it, in order, by
        the disk's identity; the machine's by none."""
        names = {0: "", **dict(self._execute("SELECT id, identity FROM disk"))}
        readings: dict[str, list[Reading]] = {}
        for boot, ahead_ms in self._boots(now).items():
            first, last = (round(1000 * at) - ahead_ms for at in (begin, end))
            for disk, ms, watched_ms, goes_on, *row in self._execute(
                f"SELECT disk, ms + ?, watched_ms, goes_on, {_COLUMNS} FROM reading"
                " WHERE boot = ? AND ms BETWEEN ? AND ? ORDER BY disk, watched_ms",
                (ahead_ms, boot, first - _NEAR_MS, last + _NEAR_MS),
            ):
                values, levels = tuple(row[: len(COUNTED)]), tuple(row[len(COUNTED) :])
                reading = Reading(names[disk], ms, watched_ms, bool(goes_on), values, levels)
                readings.setdefault(reading.disk, []).append(reading)
        return readings

    def events(self, begin: float, end: float, now: Moment) -> list[Event]:
        """List the events that happened then, or had begun before and went on, oldest first."""
        ahead_s = {boot: ahead_ms / 1000 for boot, ahead_ms in self._boots(now).items()}
        rows = self._execute(
            "SELECT boot, key, at, kind, text, until, disk FROM event ORDER BY rowid"
        )
        events = [Event(*row).later(ahead_s[boot]) for boot, *row in rows]
        shown = [event for event in events if event.at < end and (event.until or event.at) >= begin]
        return sorted(shown, key=lambda event: event.at)

    def latest(self, kind: str) -> str:
        """The text of the last event of a kind; empty: there is none."""
        rows = self._execute(
            "SELECT text FROM event WHERE kind = ? ORDER BY rowid DESC LIMIT 1", (kind,)
        )
        return next((str(text) for (text,) in rows), "")

    def _boots(self, now: Moment) -> dict[int, int]:
        """By how many milliseconds the wall clock is ahead of the time since each start of the
        computer, as it went last; no start's readings came after those of the next one."""
        offsets: dict[int, int] = {}
        limit = round(1000 * now.wall)
        for boot, name, ahead_ms, first, last in self._execute(
            "SELECT boot.id, name, ahead_ms, min(ms), max(ms) FROM boot"
            " LEFT JOIN reading ON boot.id = boot GROUP BY boot.id ORDER BY boot.id DESC"
        ):
            own = round(1000 * (now.wall - now.up)) if name == now.boot else ahead_ms
            offsets[boot] = own if last is None else min(own, limit - last)
            if first is not None:
                limit = offsets[boot] + first
        return dict(reversed(offsets.items()))

    def _prune(self, first: int, last: int) -> None:
        """Remove what is beyond the bounds; readings grew old from one time to another (in units of
        ``_THIN_EVERY_MS``)."""
        if first < last:
            begin, end = first * _THIN_EVERY_MS, last * _THIN_EVERY_MS
            ages = (0, *(1000 * kept_s for _, kept_s in RESOLUTIONS))
            for (step_s, _), age in zip(RESOLUTIONS, ages, strict=False):
                part = {"begin": begin - age, "end": end - age, "step": 1000 * step_s}
                for statement in (_RAISE_LEVELS, _THIN_OUT):
                    self._connection.execute(statement, part)
            self._execute(_BEYOND, (end,))
            for statement in _FORGET:
                self._execute(statement)
        self._execute(_BEYOND_EVENTS)

    def _execute(self, statement: str, values: tuple[object, ...] = ()) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)
