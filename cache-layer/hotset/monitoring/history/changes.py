"""What happened between two readings of a machine, told by comparing them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import replace

from hotset.block.io_counters import IoCounters
from hotset.core.words import duration
from hotset.tier.base import began_anew

from .observation import Event, EventKind, Facts, Observation, SeenDisk
from .store import KnownDisk

CLOCK_DRIFT_S = 2.0
"""By how much two clocks may differ between two readings: the machine answers in a moment more or
less."""
_WHILE_NOBODY_LOOKED = " (while nothing was recorded)"


class Changes:
    """Compares each reading with the one before; what it finds is drained as events."""

    def __init__(self) -> None:
        self._run = uuid.uuid4().hex
        self._found: list[Event] = []
        self._known: dict[str, KnownDisk] = {}
        self._seen: dict[str, KnownDisk] = {}
        self._began = False
        self._lasting: dict[tuple[EventKind, str], Event] = {}

    def begin(self, known: Iterable[KnownDisk]) -> None:
        """Go on from what a history knows; until then only counters are compared."""
        self._known = {one.facts.identity: one for one in known}
        for identity, one in self._known.items():
            # Nobody can tell whether one without an identity is the same as before.
            if identity.startswith("?"):
                self._known[identity] = replace(one, present=False)
        self._began = True

    def drain(self) -> list[Event]:
        """What was found since the last call."""
        found, self._found = self._found, []
        return found

    def known(self, counted: Iterable[str]) -> dict[str, KnownDisk]:
        """The disks as they were seen last, by their identity; also those that were ``counted``
        and that the history does not know, as it was begun anew since."""
        gone = {identity: replace(self._seen[identity], present=False) for identity in counted}
        return {**gone, **self._known}

    def identity_of(self, disk: SeenDisk) -> str:
        """What a disk is known by. One that has no identity has one for as long as this console
        runs: whether it is the same as before is not known."""
        return disk.identity or f"?{self._run}:{disk.name}"

    def since(self, before: Observation | None, seen: Observation) -> bool:
        """Find what happened until this reading; False where its time does not follow from the one
        before, or it has no disks to count."""
        steady = before is None or self._clock(before, seen)
        self._lasts("unreachable", "", seen, seen.error)
        if seen.error:
            return False
        is_new = not self._began or not self._known
        for disk in seen.disks:
            self._disk(disk, before, seen, is_new)
        self._gone(before, seen)
        return steady

    def began_anew(self, old: SeenDisk, disk: SeenDisk, at: float) -> bool:
        """Whether a disk's counters do not go on from those of the reading before."""
        assert old.counters is not None
        assert disk.counters is not None
        anew = began_anew(old.counters, disk.counters, disk.counting) or _fell(
            old.device, disk.device
        )
        if anew:
            self._tell("reset", at, f"{disk.name}: its counters began anew", disk)
        return anew

    def _clock(self, before: Observation, seen: Observation) -> bool:
        passed = seen.elapsed - before.elapsed
        jump = seen.at - before.at - passed
        if abs(jump) <= CLOCK_DRIFT_S:
            return True
        way, why = ("ahead", ", or this computer slept") if jump > 0 else ("back", "")
        text = f"the clock was set {way} by {duration(abs(jump))}{why}"
        self._found.append(Event(uuid.uuid4().hex, seen.at, "clock", text))
        return False

    def _disk(
        self, disk: SeenDisk, before: Observation | None, seen: Observation, is_new: bool
    ) -> None:
        identity = self.identity_of(disk)
        known = self._known.get(identity)
        facts = Facts(identity, disk.name, disk.kind, disk.policy, disk.mode, disk.size)
        if known is not None and facts.size is None:
            facts = replace(facts, size=known.facts.size)
        unwatched = "" if before is not None else _WHILE_NOBODY_LOOKED
        if known is None or not known.present:
            # Of one without an identity nobody knows whether it is new, or only this console.
            if not is_new and (disk.identity or before is not None):
                self._tell(
                    "disk", seen.at, f"{disk.name} is accelerated from now on{unwatched}", disk
                )
        elif self._began:
            for kind, text in _differences(known.facts, facts):
                self._tell(kind, seen.at, f"{disk.name}: {text}{unwatched}", disk)
        self._known[identity] = self._seen[identity] = KnownDisk(facts, True)
        down = "" if disk.counters is not None else f"{disk.name}: its cache could not be read"
        self._lasts("down", identity, seen, down)

    def _gone(self, before: Observation | None, seen: Observation) -> None:
        there = {self.identity_of(disk) for disk in seen.disks}
        for identity, known in self._known.items():
            if known.present and identity not in there:
                self._known[identity] = replace(known, present=False)
                unwatched = "" if before is not None else _WHILE_NOBODY_LOOKED
                text = f"{known.facts.name} is not seen any more{unwatched}"
                self._found.append(Event(uuid.uuid4().hex, seen.at, "disk", text, disk=identity))
                self._lasts("down", identity, seen, "")

    def _lasts(self, kind: EventKind, disk: str, seen: Observation, text: str) -> None:
        """A state that goes on for as long as there is a text; its event ends with it."""
        lasting = self._lasting.get((kind, disk))
        if text and lasting is None:
            lasting = Event(uuid.uuid4().hex, seen.at, kind, text, disk=disk)
            self._lasting[kind, disk] = lasting
            self._found.append(lasting)
        elif lasting is not None and not text:
            del self._lasting[kind, disk]
            # A clock that was set back meanwhile makes no event that ends before it began.
            self._found.append(replace(lasting, until=max(lasting.at, seen.at)))

    def _tell(self, kind: EventKind, at: float, text: str, disk: SeenDisk) -> None:
        event = Event(uuid.uuid4().hex, at, kind, text, disk=self.identity_of(disk))
        self._found.append(event)


def _differences(old: Facts, new: Facts) -> list[tuple[EventKind, str]]:
    found: list[tuple[EventKind, str]] = []
    if old.name != new.name:
        found.append(("disk", f"was called {old.name} before"))
    if old.policy != new.policy:
        found.append(("setting", f"policy changed from {old.policy} to {new.policy}"))
    if old.mode != new.mode:
        found.append(("setting", f"mode changed from {old.mode} to {new.mode}"))
    if None not in (old.size, new.size) and old.size != new.size:
        found.append(("size", f"cache resized from {old.size} to {new.size}"))
    return found


def _fell(before: IoCounters | None, now: IoCounters | None) -> bool:
    """Whether a device was made anew: the kernel counts it from zero."""
    if before is None or now is None:
        return False
    pairs = ((before.read, now.read), (before.write, now.write))
    return any(new.size < old.size or new.requests < old.requests for old, new in pairs)
