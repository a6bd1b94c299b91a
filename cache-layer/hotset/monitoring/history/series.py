"""A stretch of a machine's history as lines to be drawn: what is not known is None, never zero."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from hotset.core.clock import Moment
from hotset.tier import kinds

from . import amounts
from .amounts import Amounts
from .observation import Event
from .readings import GAP_MS, Reading, Span, spans
from .store import FINEST_S, RESOLUTIONS, Store

MOST = 1.5
"""So many steps may lie between two readings that are called a step apart."""
SETTLED_S = GAP_MS / 1000 + FINEST_S
"""Until then a reading may come that tells what was counted."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How much of the history to show: ``length_s`` until now, in points of ``step_s``."""

    key: str
    words: str
    length_s: int
    step_s: int

    @property
    def stretch(self) -> str:
        """Words that follow "the last".

        >>> [one.stretch for one in CHOICES[:2]]
        ['15 minutes', 'hour']
        """
        return self.words.removeprefix("1 ")


CHOICES = (
    Choice("15m", "15 minutes", 15 * 60, 10),
    Choice("1h", "1 hour", 3600, 10),
    Choice("6h", "6 hours", 6 * 3600, 60),
    Choice("24h", "24 hours", 24 * 3600, 300),
    Choice("7d", "7 days", 7 * 24 * 3600, 900),
)


@dataclass(frozen=True, slots=True)
class DiskSeries:
    """A disk in each step; None where nothing was counted. ``last``: the end of its last step that
    was; ``present``: the disk was there when the machine was last read."""

    identity: str
    name: str
    present: bool
    last: int
    spans: Sequence[Span | None]
    total: Amounts


@dataclass(frozen=True, slots=True)
class Series:
    """A stretch of time in steps that begin at ``starts`` (seconds since 1970).

    :ivar unknown: from when to when nothing was recorded at all.
    :ivar known_s: for how long in all it was.
    :ivar machine: TPC-C in each step; None where nothing was recorded.
    """

    choice: Choice
    begin: float
    end: float
    starts: Sequence[int]
    unknown: Sequence[tuple[float, float]]
    known_s: float
    machine: Sequence[Span | None]
    disks: Sequence[DiskSeries]
    events: Sequence[Event]


def find_choice(key: str) -> Choice:
    """The choice of a key, the first one for any other text."""
    return next((choice for choice in CHOICES if choice.key == key), CHOICES[0])


def load(
    store: Store | None,
    choice: Choice,
    now: Moment,
    disk: str | None = None,
    end: float | None = None,
) -> Series:
    """The history until now, or until ``end`` (seconds since 1970).

    :param store: None: nothing was ever recorded.
    :param disk: of this disk alone, by its name: the one that bears it now, not those that bore it
        before.
    """
    end = now.wall if end is None else end
    step, begin = choice.step_s, end - choice.length_s
    starts = range(int(begin) // step * step, int(end) // step * step + 1, step)
    if store is None:
        nothing = [None] * len(starts)
        return Series(choice, begin, end, starts, [(begin, end)], 0.0, nothing, [], [])
    readings = store.readings(starts[0], starts[-1] + step, now)
    machine = spans(readings.pop("", []), starts)
    disks = _disks(store, readings, starts, disk)
    events = store.events(begin, end, now)
    if disk is not None:
        shown = {"", *(disk.identity for disk in disks)}
        events = [event for event in events if event.disk in shown]
    known_s = sum(span.amounts.known_ms for span in machine.values()) / 1000
    return Series(
        choice,
        begin,
        end,
        starts,
        _unknown(starts, machine, begin, end),
        min(choice.length_s, known_s),
        [machine.get(start) for start in starts],
        disks,
        events,
    )


def load_stretch(store: Store, begin: float, end: float, now: Moment) -> Series:
    """The history between two moments (seconds since 1970), in the finest steps that its readings
    are still kept in."""
    times = [reading.ms for reading in store.readings(begin, end, now).get("", ())]
    near_s = median(b - a for a, b in pairwise(times)) / 1000 if len(times) > 1 else 0
    step = next((step for step, _ in RESOLUTIONS if near_s <= MOST * step), RESOLUTIONS[-1][0])
    length_s = math.ceil(end - begin)
    return load(store, Choice("", f"{length_s} seconds", length_s, step), now, end=end)


def _disks(
    store: Store, readings: Mapping[str, Sequence[Reading]], starts: range, name: str | None
) -> list[DiskSeries]:
    known = store.disks()
    counted = {
        identity: spans(some, starts, kinds.kind_of_name(known[identity].kind).counting)
        for identity, some in readings.items()
    }
    bearers = [
        identity
        for identity in counted
        if counted[identity] and name in (None, known[identity].name)
    ]
    if name is not None:
        # Of several, the one that is there; of those that are gone, the last.
        bearers.sort(key=lambda identity: (known[identity].present, max(counted[identity])))
        bearers = bearers[-1:]
    series = [
        DiskSeries(
            identity,
            known[identity].name,
            known[identity].present,
            max(counted[identity]) + starts.step,
            [counted[identity].get(start) for start in starts],
            amounts.total([span.amounts for span in counted[identity].values()]),
        )
        for identity in bearers
    ]
    return sorted(series, key=lambda disk: (not disk.present, disk.name, disk.last))


def _unknown(
    starts: range, watched: Container[int], begin: float, end: float
) -> list[tuple[float, float]]:
    """Neighbouring steps in which nothing was recorded, as one stretch each."""
    spans: list[tuple[float, float]] = []
    settled = math.floor((end - SETTLED_S) / FINEST_S) * FINEST_S
    for start in starts:
        left, right = max(float(start), begin), float(min(start + starts.step, settled))
        if start in watched or right <= left:
            continue
        if spans and spans[-1][1] == left:
            spans[-1] = spans[-1][0], right
        else:
            spans.append((left, right))
    return spans
