"""A stretch of a machine's history as lines to be drawn: what is not known is None, never zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from . import amounts
from .amounts import Amounts, Load
from .observation import Event
from .store import FINEST_S, RESOLUTIONS, MachineSpan, Span, Store

MOST = 0.8
"""Of what is known in coarser steps: where finer ones have that much, they are shown."""
SETTLED_S = 2.0 * FINEST_S
"""The last span is written once it is over: until then it is not known whether it will be."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How much of the history to show: ``length_s`` until now, in points of ``step_s``."""

    key: str
    words: str
    length_s: int
    step_s: int

    @property
    def stretch(self) -> str:
        """What comes after "the last".

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
    """A disk in each step; None where nothing was counted. ``last``: the end of its last span that
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
    :ivar loads: TPC-C in each step; None where nothing was recorded.
    """

    choice: Choice
    begin: float
    end: float
    starts: Sequence[int]
    unknown: Sequence[tuple[float, float]]
    known_s: float
    loads: Sequence[Load | None]
    disks: Sequence[DiskSeries]
    events: Sequence[Event]


def find_choice(key: str) -> Choice:
    """The choice of a key, the first one for any other text."""
    return next((choice for choice in CHOICES if choice.key == key), CHOICES[0])


def load(store: Store | None, choice: Choice, now: float, disk: str | None = None) -> Series:
    """The history until now.

    :param store: None: nothing was ever recorded.
    :param disk: of this disk alone, by its name: the one that bears it now, not those that bore it
        before.
    """
    step, begin = choice.step_s, now - choice.length_s
    first = int(begin) // step * step
    starts = range(first, int(now) // step * step + 1, step)
    if store is None:
        nothing = [None] * len(starts)
        return Series(choice, begin, now, starts, [(begin, now)], 0.0, nothing, [], [])
    fine = max(one for one, _ in RESOLUTIONS if step % one == 0)
    until = starts[-1] + step
    machine = store.machine(fine, first, until)
    watched = {span.start // step * step for span in machine}
    disks = _disks(store, fine, range(first, until, step), disk)
    events = store.events(begin, now)
    if disk is not None:
        shown = {"", *(one.identity for one in disks)}
        events = [event for event in events if event.disk in shown]
    return Series(
        choice,
        begin,
        now,
        starts,
        _unknown(starts, watched, step, begin, now),
        min(choice.length_s, sum(span.known_ms for span in machine) / 1000),
        _loads(machine, starts, step),
        disks,
        events,
    )


def load_stretch(store: Store, begin: float, end: float) -> Series:
    """The history between two moments (seconds since 1970), in the finest steps that still have
    most of it."""
    length_s = math.ceil(end - begin)
    known = {
        step: sum(span.known_ms for span in store.machine(step, begin, end))
        for step, _ in RESOLUTIONS
    }
    step = min(one for one, known_ms in known.items() if known_ms >= MOST * max(known.values()))
    return load(store, Choice("", f"{length_s} seconds", length_s, step), end)


def _disks(store: Store, fine: int, starts: range, name: str | None) -> list[DiskSeries]:
    """In steps of ``starts``, from spans of ``fine`` seconds."""
    # In this order: a disk that is recorded first in between is known by then.
    found = store.spans(fine, starts.start, starts.stop)
    known = store.disks()
    found = {identity: spans for identity, spans in found.items() if identity in known}
    if name is not None:
        bearers = [identity for identity in found if known[identity].facts.name == name]
        # Of several, the one that is there; of those that are gone, the last.
        bearers.sort(key=lambda one: (known[one].present, found[one][-1].start))
        found = {identity: found[identity] for identity in bearers[-1:]}
    series = [
        DiskSeries(
            identity,
            known[identity].facts.name,
            known[identity].present,
            spans[-1].start + fine,
            [_joined(part) for part in _grouped(spans, starts)],
            amounts.total([span.amounts for span in spans]),
        )
        for identity, spans in found.items()
    ]
    return sorted(series, key=lambda one: (not one.present, one.name, one.last))


def _grouped(spans: Sequence[Span], starts: range) -> list[list[Span]]:
    groups: dict[int, list[Span]] = {start: [] for start in starts}
    for span in spans:
        groups[span.start // starts.step * starts.step].append(span)
    return list(groups.values())


def _joined(spans: list[Span]) -> Span | None:
    if not spans:
        return None
    levels = spans[0].levels
    for span in spans[1:]:
        levels = levels.followed_by(span.levels)
    return Span(spans[0].start, amounts.total([span.amounts for span in spans]), levels)


def _loads(machine: list[MachineSpan], starts: range, step: int) -> list[Load | None]:
    sums: dict[int, Load] = {}
    for span in machine:
        start = span.start // step * step
        sums[start] = sums.get(start, Load(0, 0)).followed_by(span.load)
    return [sums.get(start) for start in starts]


def _unknown(
    starts: range, watched: set[int], step: int, begin: float, now: float
) -> list[tuple[float, float]]:
    """Neighbouring steps in which nothing was recorded, as one stretch each."""
    found: list[tuple[float, float]] = []
    settled = math.floor((now - SETTLED_S) / FINEST_S) * FINEST_S
    for start in starts:
        left, right = max(float(start), begin), float(min(start + step, settled))
        if start in watched or right <= left:
            continue
        if found and found[-1][1] == left:
            found[-1] = found[-1][0], right
        else:
            found.append((left, right))
    return found
