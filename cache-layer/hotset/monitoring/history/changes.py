"""Events between two readings of a machine, derived by comparing them."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace

from hotset.core.clock import Moment
from hotset.core.words import duration

from .observation import Event, EventKind, Facts, Observation

CLOCK_DRIFT_S = 2.0
"""By how much two clocks may differ between two readings: the machine answers in a moment more or
less."""


def event(kind: EventKind, at: float, text: str, disk: str = "") -> Event:
    """One that nobody has told yet."""
    return Event(uuid.uuid4().hex, at, kind, text, disk=disk)


class Changes:
    """Compares each reading with the one before. Times of its events are since the computer
    started."""

    def __init__(self) -> None:
        self.disks: dict[str, Facts] = {}
        """Facts as last seen, by the disk's identity."""
        self._began = False
        self._before: Observation | None = None
        self._lasting: dict[tuple[EventKind, str], Event] = {}

    def begin(self, known: Mapping[str, Facts]) -> None:
        """Go on from what a history knows; until then nothing is told of disks."""
        self.disks |= {
            # Nobody can tell whether one without an identity is the same as before.
            identity: replace(facts, present=facts.present and not identity.startswith("?"))
            for identity, facts in known.items()
            if not (self._began and identity in self.disks)
        }
        self._began = True

    def since(self, seen: Observation) -> list[Event]:
        """Return the events up to this reading."""
        before, self._before = self._before, seen
        at, is_watched = seen.moment.up, before is not None and not before.error
        events = self._lasts("unreachable", "", at, seen.error)
        if before is not None:
            events += _clock(before.moment, seen.moment)
        if seen.error:
            return events
        # The first reading of all tells no news.
        is_new = not self._began or not self.disks
        for disk in seen.disks:
            facts = disk.facts
            events += [] if is_new else self._news(facts, at, is_watched)
            size = facts.size or getattr(self.disks.get(facts.identity), "size", None)
            self.disks[facts.identity] = replace(facts, size=size)
            down = "" if disk.counters is not None else f"{facts.name}: its cache could not be read"
            events += self._lasts("down", facts.identity, at, down)
        gone = self.disks.keys() - {disk.facts.identity for disk in seen.disks}
        for facts in [self.disks[identity] for identity in gone if self.disks[identity].present]:
            self.disks[facts.identity] = replace(facts, present=False)
            text = f"{facts.name} is not seen any more{_describe_gap(is_watched)}"
            events.append(event("disk", at, text, facts.identity))
            events += self._lasts("down", facts.identity, at, "")
        return events

    def _news(self, disk: Facts, at: float, is_watched: bool) -> list[Event]:
        known = self.disks.get(disk.identity)
        news: list[tuple[EventKind, str]]
        if known is not None and known.present:
            news = [(kind, f"{disk.name}: {text}") for kind, text in _differences(known, disk)]
        elif is_watched or not disk.identity.startswith("?"):
            news = [("disk", f"{disk.name} is accelerated from now on")]
        else:
            news = []
        more = _describe_gap(is_watched)
        return [event(kind, at, f"{text}{more}", disk.identity) for kind, text in news]

    def _lasts(self, kind: EventKind, disk: str, at: float, text: str) -> list[Event]:
        """A state that goes on for as long as there is a text; its event ends with it."""
        lasting = self._lasting.get((kind, disk))
        if text and lasting is None:
            self._lasting[kind, disk] = lasting = event(kind, at, text, disk)
            return [lasting]
        if lasting is not None and not text:
            return [replace(self._lasting.pop((kind, disk)), until=at)]
        return []


def _describe_gap(is_watched: bool) -> str:
    return "" if is_watched else " (while nothing was recorded)"


def _clock(before: Moment, now: Moment) -> list[Event]:
    jump = now.wall - before.wall - (now.up - before.up)
    if abs(jump) <= CLOCK_DRIFT_S:
        return []
    way = "ahead" if jump > 0 else "back"
    return [event("clock", now.up, f"the clock was set {way} by {duration(abs(jump))}")]


def _differences(old: Facts, new: Facts) -> list[tuple[EventKind, str]]:
    differences: list[tuple[EventKind, str]] = []
    if old.name != new.name:
        differences.append(("disk", f"was called {old.name} before"))
    if old.policy != new.policy:
        differences.append(("setting", f"policy changed from {old.policy} to {new.policy}"))
    if old.mode != new.mode:
        differences.append(("setting", f"mode changed from {old.mode} to {new.mode}"))
    if None not in (old.size, new.size) and old.size != new.size:
        differences.append(("size", f"cache resized from {old.size} to {new.size}"))
    return differences
