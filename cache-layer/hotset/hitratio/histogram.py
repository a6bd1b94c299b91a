"""The kernel's histograms: tables that a trace event fills by itself.

A ``hist`` trigger (Documentation/trace/histogram.rst; kernel/trace/trace_events_hist.c) counts an
event by the values of some fields, in the kernel, at some hundred nanoseconds an event; the table
stays until the trigger is removed. This file writes triggers and reads tables; it knows of no tier.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

BITS_MIN, BITS_MAX = 7, 17
"""A table has room for 2^7 to 2^17 keys (TRACING_MAP_BITS_MIN and _MAX)."""
_HEAD = "# event histogram"
_INFO = re.compile(r"^# trigger info: (hist:\S.*?)(?: \[(active|paused)\])?$")
_ENTRY = re.compile(r"^\{ (.*) \} hitcount: +(\d+)((?:  \w+: +\d+)*)$")
_PAIR = re.compile(r"(\w+): *(?:~ )?([0-9a-f]+)(?:-(\d+))?$")
_HEXED = re.compile(r"(\w+)\.hex\b")
_VALUE = re.compile(r"(\w+): +(\d+)")
_TOTAL = re.compile(r"^    (Hits|Entries|Dropped): (\d+)$")


@dataclass(frozen=True, slots=True)
class Trigger:
    """One table: what is counted, by what, and the events that count.

    ``keys`` may carry a modifier: ``sector.buckets=128``, ``uuid.hex``; ``values`` are fields
    that are added up beside the number of events.
    """

    keys: tuple[str, ...]
    condition: str
    size: int
    values: tuple[str, ...] = ()

    def render(self) -> str:
        """Render the trigger for the ``trigger`` file."""
        values = f":vals={','.join(self.values)}" if self.values else ""
        return f"hist:keys={','.join(self.keys)}{values}:size={self.size} if {self.condition}"

    @property
    def shown(self) -> str:
        """Trigger as the kernel shows it (``[active]`` left out)."""
        values = ",".join(("hitcount", *self.values))
        return (
            f"hist:keys={','.join(self.keys)}:vals={values}:sort=hitcount:size={self.size}"
            f" if {self.condition}"
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: the keys by name (a range by its start, a ``.hex`` key as it is), events, sums."""

    keys: tuple[tuple[str, int], ...]
    events: int
    sums: tuple[tuple[str, int], ...] = ()

    def key(self, name: str) -> int:
        return dict(self.keys)[name]

    def sum(self, name: str) -> int:
        return dict(self.sums)[name]


@dataclass(frozen=True, slots=True)
class Histogram:
    """One table as it was read. ``dropped`` events found no room for their keys."""

    trigger: str
    entries: tuple[Entry, ...]
    hits: int
    dropped: int


def size_for(keys: int) -> int:
    """The size of a table with room for so many keys: a power of two.

    >>> size_for(3000)
    4096
    """
    return int(2 ** min(BITS_MAX, max(BITS_MIN, (max(1, keys) - 1).bit_length())))


def triggers(text: str) -> list[str]:
    """The ``hist`` triggers that a ``trigger`` file shows, without their state."""
    lines = (line.strip() for line in text.splitlines())
    return [re.sub(r" \[\w+\]$", "", line) for line in lines if line.startswith("hist:")]


def parse(text: str) -> list[Histogram]:
    """Read a ``hist`` file: one table for each trigger of the event.

    :raises ValueError: a line that is not understood; names it.
    """
    tables: list[Histogram] = []
    totals: dict[str, int]
    entries: list[Entry]
    for part in text.split(_HEAD)[1:]:
        trigger, totals, entries, hexed = "", {}, [], frozenset[str]()
        for line in part.splitlines():
            info, figure = _INFO.match(line), _TOTAL.match(line)
            if info:
                trigger = info[1]
                hexed = frozenset(_HEXED.findall(trigger))
            elif figure:
                totals[figure[1]] = int(figure[2])
            elif line.startswith("{"):
                entries.append(_entry(line, hexed))
            elif line.strip() not in ("", "#", "Totals:"):
                raise ValueError(f"a histogram's line is not understood: {line!r}")
        if not trigger or totals.keys() != {"Hits", "Entries", "Dropped"}:
            raise ValueError(f"a histogram is cut off: {part[-120:]!r}")
        if totals["Entries"] != len(entries):
            raise ValueError(f"{len(entries)} entries where {totals['Entries']} are announced")
        tables.append(Histogram(trigger, tuple(entries), totals["Hits"], totals["Dropped"]))
    return tables


def _entry(line: str, hexed: frozenset[str]) -> Entry:
    match = _ENTRY.match(line)
    pairs: Sequence[re.Match[str] | None] = ()
    if match is not None:
        pairs = [_PAIR.match(pair.strip()) for pair in match[1].split(",")]
    if match is None or not all(pairs):
        raise ValueError(f"a histogram's entry is not understood: {line!r}")
    keys = tuple((pair[1], int(pair[2], 16 if pair[1] in hexed else 10)) for pair in pairs if pair)
    sums = tuple((name, int(value)) for name, value in _VALUE.findall(match[3]))
    return Entry(keys, int(match[2]), sums)
