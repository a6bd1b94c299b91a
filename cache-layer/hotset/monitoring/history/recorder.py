"""Records what is read of a machine, and what happened.

Nothing that becomes of the file stops it: what cannot be written now is kept in memory for a while,
and :attr:`Recorder.notice` says what is wrong.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from . import opening
from .amounts import MINUTE_MS
from .changes import Changes, event
from .observation import Event, EventKind, Observation, SeenDisk
from .opening import DamagedError, RefusedError, WriterLock
from .readings import GAP_MS, Reading, course, returns, values_of
from .store import FINEST_S, Store

HELD_MS = 3_600_000
"""Time for which unwritten readings wait in memory; older readings are lost."""
EVENTS_HELD = 360
"""… and at most so many events."""
_TOLD = {
    "restarted": "its counters restarted",
    "contradiction": "its counters restarted, or a reading of them was wrong",
}
_log = logging.getLogger("hotset.history")


@dataclass(frozen=True, slots=True)
class _Last:
    """The last reading of a disk (None: of the machine), which waits for the next one: that may
    contradict it. ``is_contradictory``: it contradicts the one before, and may be wrong."""

    reading: Reading
    disk: SeenDisk | None
    is_contradictory: bool


class Recorder:
    """The history of one machine. Its methods may be called from any thread."""

    def __init__(self, path: Path) -> None:
        """:param path: of the file; its folder may not be there, or not be writable."""
        self._path = path
        self._guard = threading.Lock()
        self._lock = WriterLock(path)
        self._file: opening.FileId | None = None
        self._owner = self._closed = self._was_set_aside = False
        self._changes = Changes()
        self._run = uuid.uuid4().hex
        self._last: dict[str, _Last] = {}
        self._before: dict[str, tuple[int | None, ...]] = {}
        """Counters of the disks in the file, until they are read again twice."""
        self._watched_ms = self._running_ms = 0
        self._transactions = 0.0
        self._readings: list[Reading] = []
        self._events: dict[str, Event] = {}
        self._notice = self._damage = ""

    @property
    def notice(self) -> str:
        """Why nothing is recorded here, or what was lost, in a sentence; empty: all is well."""
        return self._notice or self._damage

    def take(self, seen: Observation, events: Iterable[Event] = ()) -> None:
        """Record a reading, and what happened besides."""
        with self._guard:
            seen = replace(seen, disks=tuple(self._identify(disk) for disk in seen.disks))
            ahead = seen.moment.wall - seen.moment.up
            # They are told once, and may be needed by the one who takes over.
            self._note(event.later(-ahead) for event in events)
            if not self._closed and self._owns():
                self._go_on(seen)
                self._note(self._changes.since(seen))
                if not seen.error:
                    self._count(seen)
                self._write(seen)
            self._bound(seen)

    def close(self, seen: Observation) -> None:
        """End it; ``seen`` says when. The last reading is not kept: none bears it out."""
        with self._guard:
            if self._owner and not self._closed:
                self._note([event("console", seen.moment.up, "this console ended")])
                self._write(seen)
            self._closed = True
            self._lock.release()

    def _identify(self, disk: SeenDisk) -> SeenDisk:
        """One without an identity has one for as long as this console runs: whether it is the same
        as before is not known."""
        identity = disk.facts.identity or f"?{self._run}:{disk.facts.name}"
        return replace(disk, facts=replace(disk.facts, identity=identity))

    def _count(self, seen: Observation) -> None:
        ms, last = round(1000 * seen.moment.up), self._last.get("")
        passed = 1 if last is None else ms - last.reading.ms
        if passed < 1:
            return
        is_watched = last is not None and passed <= GAP_MS
        self._watched_ms += passed if is_watched else 1
        if is_watched and seen.tpm is not None:
            self._transactions += seen.tpm * passed / MINUTE_MS
            self._running_ms += passed
        load = round(self._transactions), self._running_ms
        self._add(Reading("", ms, self._watched_ms, False, (0, 0, *[None] * 9, *load)))
        for disk in seen.disks:
            values = values_of(disk)
            if values is not None:
                place = disk.facts.identity, ms, self._watched_ms
                self._add(Reading(*place, False, *values), disk)

    def _add(self, reading: Reading, disk: SeenDisk | None = None) -> None:
        last, outcome, wrong = self._last.get(reading.disk), "goes on", False
        if last is not None and last.disk is not None and disk is not None:
            outcome = course(last.disk, disk)
            wrong = outcome == "contradiction"
            before = self._before.pop(reading.disk, None)
            # Then the last one may be wrong, but not this one.
            if before is not None and returns(before, last.disk, disk):
                outcome = "contradiction"
            if outcome in _TOLD:
                text = f"{disk.facts.name}: {_TOLD[outcome]}"
                self._note([event("reset", reading.ms / 1000, text, reading.disk)])
        self._last[reading.disk] = _Last(reading, disk, wrong)
        if last is None:
            return
        is_next = reading.ms - last.reading.ms <= GAP_MS and not last.is_contradictory
        reading.goes_on = is_next and outcome == "goes on"
        last.reading.goes_on &= outcome == "goes on"
        if last.reading.goes_on or reading.goes_on:
            self._readings.append(last.reading)

    def _note(self, events: Iterable[Event]) -> None:
        self._events.update({event.key: event for event in events})

    def _owns(self) -> bool:
        """True if this one records; tries to become the one who does."""
        if self._owner:
            return True
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._owner = self._lock.acquire()
        except OSError as error:
            self._say(f"nothing is recorded: {self._path.parent}: {error.strerror}")
            return False
        self._say(
            ""
            if self._owner
            else f"another console (process {self._lock.owner}) records this machine; this one"
            " shows what it records, and takes over when it ends"
        )
        return self._owner

    def _go_on(self, seen: Observation) -> None:
        """Begin with what the file knows, if it is another one than before."""
        file = opening.file_id(self._path)
        if file is None or file != self._file:
            self._use(seen, lambda store: self._begin(store, seen, was_there=file is not None))

    def _begin(self, store: Store, seen: Observation, was_there: bool) -> None:
        if (message := store.check()) != "ok":
            raise DamagedError(f"{self._path}: {message}")
        last, watched_ms = store.latest("console"), store.watched_ms
        self._changes.begin(store.disks())
        self._before = store.last_values()
        if not self._was_set_aside:
            kind, text = self._news(last, was_there)
            self._note([event(kind, seen.moment.up, text)])
        waiting = [*self._readings, *(last.reading for last in self._last.values())]
        later = (
            watched_ms
            + 1
            - min((reading.watched_ms for reading in waiting), default=self._watched_ms)
        )
        for reading in waiting:
            reading.watched_ms += later
        self._watched_ms += later
        _begin_again(waiting)
        self._file, self._was_set_aside = opening.file_id(self._path), False

    def _news(self, last: str, was_there: bool) -> tuple[EventKind, str]:
        """Why a file is another one than before.

        :param last: last message of its last console.
        """
        if self._file is None:
            ended = "; the one before ended without a word" if "started" in last else ""
            return "console", f"this console started{ended}"
        text = "the file of the history was removed, and a new one begun"
        if was_there:
            text = "the file of the history was replaced by another, which goes on from here"
        return "history", text

    def _write(self, seen: Observation) -> None:
        waits_s = seen.moment.up - self._readings[0].ms / 1000 if self._readings else 0
        if self._file is None or not (self._events or waits_s >= FINEST_S):
            return
        events, disks = self._events.values(), self._changes.disks.values()
        if self._use(seen, lambda store: store.keep(seen.moment, self._readings, events, disks)):
            self._readings.clear()
            self._events.clear()

    def _use(self, seen: Observation, act: Callable[[Store], None]) -> bool:
        """Do something with the history; True if nothing hindered it."""
        try:
            with opening.writing(self._path) as store:
                act(store)
        except RefusedError as error:
            self._say(f"nothing is recorded: {error}")
        except DamagedError as error:
            self._set_aside(error, seen)
        except (OSError, sqlite3.Error) as error:
            self._say(f"nothing can be written to {self._path} now ({error})")
        else:
            self._say("")
            return True
        return False

    def _set_aside(self, error: DamagedError, seen: Observation) -> None:
        """Rename the damaged history and begin a new one."""
        try:
            aside = opening.set_aside(self._path, seen.moment.wall)
        except OSError as hindered:
            self._say(f"nothing is recorded: {error}, and it cannot be renamed: {hindered}")
            return
        self._damage = f"the history was damaged and a new one begun; the old one is {aside}"
        _log.warning("%s (%s)", self._damage, error)
        self._was_set_aside = self._file is not None
        self._note([event("history", seen.moment.up, self._damage)])

    def _bound(self, seen: Observation) -> None:
        """Let go of the oldest that waits for room."""
        kept = [
            reading for reading in self._readings if 1000 * seen.moment.up - reading.ms <= HELD_MS
        ]
        if len(kept) < len(self._readings):
            _begin_again(kept)
            self._readings = kept
        for key in list(self._events)[:-EVENTS_HELD]:
            del self._events[key]

    def _say(self, notice: str) -> None:
        if notice not in ("", self._notice):
            _log.warning("%s", notice)
        self._notice = notice


def _begin_again(readings: Iterable[Reading]) -> None:
    """The first of each disk goes on from none: the one before it may not be in the file."""
    for reading in {reading.disk: reading for reading in reversed(list(readings))}.values():
        reading.goes_on = False
