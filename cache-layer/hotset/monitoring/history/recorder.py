"""Records what is read of a machine: counts between two readings, and what happened.

Nothing that becomes of the file stops it: what cannot be written now is kept in memory for a while,
and :attr:`Recorder.notice` says what is wrong.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from . import amounts, opening
from .amounts import Amounts, Levels, Load
from .changes import Changes
from .observation import Event, EventKind, Observation, SeenDisk
from .opening import DamagedError, RefusedError, WriterLock
from .store import FINEST_S, Batch, Store

GAP_S = 35.0
"""Between two readings that are further apart, what happened when is not known."""
RETRY_S = 15.0
"""What could not be opened is tried again after so long, and a lock of another console too: at the
second reading after it, however late that is by some milliseconds."""
SPANS_HELD = 360
"""Spans that wait in memory while they cannot be written: an hour's; older ones are lost."""
_log = logging.getLogger("hotset.history")


class Recorder:
    """The history of one machine. Its methods may be called from any thread."""

    def __init__(self, path: Path) -> None:
        """:param path: of the file; its folder may not be there, or not be writable."""
        self._path = path
        self._guard = threading.Lock()
        self._lock = WriterLock(path)
        self._store: Store | None = None
        self._file: opening.FileId | None = None
        self._owner = self._closed = self._began = False
        self._tried: float | None = None
        self._before: Observation | None = None
        self._changes = Changes()
        self._batch = Batch()
        self._notice = self._damage = ""

    @property
    def notice(self) -> str:
        """Why nothing is recorded here, or what was lost, in a sentence; empty: all is well."""
        return self._notice or self._damage

    def take(self, seen: Observation, events: Iterable[Event] = ()) -> None:
        """Record a reading, and what happened besides."""
        with self._guard:
            if self._closed or not self._owns(seen):
                self._before = None
                # They are told once, and may be needed by the one who takes over.
                self._note(events)
                self._bound()
                return
            self._open(seen)
            before, self._before = self._before, None if seen.error else seen
            if self._changes.since(before, seen) and before is not None:
                self._count(before, seen)
            self._note([*self._changes.drain(), *events])
            self._write(seen, begun=int(seen.at) // FINEST_S * FINEST_S)

    def close(self, seen: Observation) -> None:
        """End it; ``seen`` says when."""
        with self._guard:
            try:
                if self._owner and not self._closed:
                    self._note([_event("console", seen.at, "this console ended")])
                    self._write(seen)
            finally:
                self._closed = True
                if self._store is not None:
                    with suppress(sqlite3.Error):
                        self._store.close()
                self._lock.release()

    def _owns(self, seen: Observation) -> bool:
        """Whether this one records; tries to become the one who does."""
        if self._owner or not self._is_due(seen):
            return self._owner
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._owner = self._lock.acquire()
        except OSError as error:
            self._say(f"nothing is recorded: {self._path.parent}: {error.strerror}")
            return False
        if self._owner:
            self._tried, self._notice = None, ""
        else:
            self._say(
                f"another console (process {self._lock.owner or 'unknown'}) records this machine;"
                " this one shows what it records, and takes over when it ends"
            )
        return self._owner

    def _is_due(self, seen: Observation) -> bool:
        if self._tried is not None and seen.elapsed - self._tried < RETRY_S:
            return False
        self._tried = seen.elapsed
        return True

    def _open(self, seen: Observation) -> None:
        if self._store is not None:
            now = opening.file_id(self._path)
            if now == self._file:
                return
            self._removed(self._store, seen, was_replaced=now is not None)
        if not self._is_due(seen):
            return
        try:
            store = opening.open_to_write(self._path)
            self._begin(store, seen)
            self._store, self._file = store, opening.file_id(self._path)
        except RefusedError as error:
            self._say(f"nothing is recorded: {error}")
        except DamagedError as error:
            self._set_aside(error, seen)
        except (OSError, sqlite3.Error) as error:
            self._say(f"nothing is recorded: {self._path}: {error}")

    def _begin(self, store: Store, seen: Observation) -> None:
        """Go on from what the file knows; close it where it cannot tell."""
        try:
            last, known = store.latest("console"), store.disks()
        except sqlite3.Error:
            store.close()
            raise
        self._notice = ""
        self._changes.begin(known.values())
        if self._began:
            return
        self._began = True
        text = "this console started"
        if last is not None and "started" in last.text:
            text += "; the one before ended without a word"
        self._note([_event("console", seen.at, text)])

    def _removed(self, store: Store, seen: Observation, was_replaced: bool) -> None:
        """Another file is there, or none: what is written to the one that was opened would be lost
        with this process."""
        with suppress(sqlite3.Error):
            store.close()
        self._store = self._tried = None
        text = "the file of the history was removed, and a new one begun"
        if was_replaced:
            text = "the file of the history was replaced by another, which goes on from here"
        _log.warning("%s: %s", self._path, text)
        self._note([_event("history", seen.at, text)])

    def _set_aside(self, error: DamagedError, seen: Observation) -> None:
        """What is damaged gets another name, and a new history begins."""
        try:
            aside = opening.set_aside(self._path, seen.at)
        except OSError as hindered:
            self._say(f"nothing is recorded: {error}, and it cannot be renamed: {hindered}")
            return
        self._damage = f"the history was damaged and a new one begun; the old one is {aside}"
        _log.warning("%s (%s)", self._damage, error)
        self._note([_event("history", seen.at, self._damage)])
        self._tried = None
        self._open(seen)

    def _count(self, before: Observation, seen: Observation) -> None:
        seconds = seen.elapsed - before.elapsed
        if not 0.001 <= seconds <= GAP_S:
            return
        earlier = {disk.identity or disk.name: disk for disk in before.disks}
        for disk in seen.disks:
            old = earlier.get(disk.identity or disk.name)
            if old is not None and old.identity == disk.identity:
                self._add_disk(old, disk, seconds, seen.at)
        whole = Amounts(round(1000 * seconds), 0, 0, None, None, None)
        for start, part in amounts.split(whole, round(1000 * seen.at), 1000 * FINEST_S):
            self._add_machine(start // 1000, part.known_ms, seen.tpm)

    def _add_disk(self, old: SeenDisk, disk: SeenDisk, seconds: float, at: float) -> None:
        if old.counters is None or disk.counters is None:
            return
        if old.counters.stale or disk.counters.stale:
            return
        if self._changes.began_anew(old, disk, at):
            return
        counted = amounts.between(
            (old.counters, old.device), (disk.counters, disk.device), seconds, disk.counting
        )
        now = disk.counters
        levels = Levels(*(one.bytes(disk.block) for one in (now.dirty, now.used, now.total)))
        identity, spans = self._changes.identity_of(disk), self._batch.spans
        for start, part in amounts.split(counted, round(1000 * at), 1000 * FINEST_S):
            key = start // 1000, identity
            kept = spans.get(key)
            if kept is None:
                spans[key] = part, levels
            else:
                spans[key] = amounts.total([kept[0], part]), kept[1].followed_by(levels)

    def _add_machine(self, start: int, ms: int, tpm: float | None) -> None:
        known, load = self._batch.machine.get(start, (0, Load(0, 0)))
        if tpm is not None:
            load = load.followed_by(Load(tpm * ms / amounts.MINUTE_MS, ms))
        self._batch.machine[start] = known + ms, load

    def _note(self, events: Iterable[Event]) -> None:
        self._batch.events.update({event.key: event for event in events})

    def _write(self, seen: Observation, begun: int | None = None) -> None:
        """Write what is over; the span that has ``begun`` waits for its rest."""
        self._bound()
        due = self._due(begun)
        if self._store is None or not due:
            return
        due.disks = self._changes.known(identity for _, identity in due.spans)
        due.at = seen.at
        try:
            self._store.keep(due)
        except (sqlite3.Error, OSError) as error:
            self._failed(error, seen)
            return
        self._notice = ""
        for key in due.spans:
            del self._batch.spans[key]
        for start in due.machine:
            del self._batch.machine[start]
        self._batch.events.clear()

    def _due(self, begun: int | None) -> Batch:
        batch = self._batch
        return Batch(
            {key: value for key, value in batch.spans.items() if key[0] != begun},
            {start: value for start, value in batch.machine.items() if start != begun},
            dict(batch.events),
        )

    def _failed(self, error: Exception, seen: Observation) -> None:
        if opening.is_damage(error):
            assert self._store is not None
            with suppress(sqlite3.Error):
                self._store.close()
            self._store = None
            self._set_aside(DamagedError(f"{self._path}: {error}"), seen)
        else:
            self._say(f"nothing can be written to {self._path} now ({error})")

    def _bound(self) -> None:
        """Let go of the oldest that waits for room."""
        batch = self._batch
        for start in sorted(batch.machine)[:-SPANS_HELD]:
            del batch.machine[start]
            for key in [key for key in batch.spans if key[0] <= start]:
                del batch.spans[key]
        for name in list(batch.events)[:-SPANS_HELD]:
            del batch.events[name]

    def _say(self, notice: str) -> None:
        if notice != self._notice:
            _log.warning("%s", notice)
        self._notice = notice


def _event(kind: EventKind, at: float, text: str) -> Event:
    return Event(uuid.uuid4().hex, at, kind, text)
