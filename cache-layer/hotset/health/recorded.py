"""Findings from a console's history of a disk: its hit ratio over the days, its dirty data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hotset.core.clock import Moment
from hotset.core.errors import HotsetError
from hotset.core.units import Bytes
from hotset.core.words import percent
from hotset.disk.flash_devices import Disk
from hotset.monitoring.history import opening
from hotset.monitoring.history.observation import Event
from hotset.monitoring.history.readings import Span, spans
from hotset.monitoring.history.store import RESOLUTIONS, Store
from hotset.tier import kinds

from . import thresholds as limits
from .comparison import Comparison, TooLittleError, compare, hours_of
from .findings import Ask, Finding

_STEP_S = RESOLUTIONS[-1][0]
_TOLD = ("setting", "size", "reset", "disk", "warm-up")
"""The kinds of events that may explain a change."""
_TOLD_MAX = 3


class UnrecordedError(HotsetError):
    """Nothing is recorded of a disk; the message says what records."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """A disk's spans of eight days, oldest first, and what happened in the last day."""

    spans: Sequence[Span]
    events: Sequence[Event]


def read(machine: str, disk: Disk, now: Moment) -> Recorded:
    """Read the records of a disk; nothing in the history is changed.

    :param machine: as ``--machine`` names it.
    :raises UnrecordedError: nothing.
    :raises HotsetError: as :func:`opening.look`.
    """
    path = opening.path_of(machine)
    history = opening.look(path, lambda store: _of(store, disk, now))
    if history is None or not history.spans:
        raise UnrecordedError(
            "nothing is recorded of it here: a console that runs records it, for the user who"
            " starts it"
        )
    return history


def _of(store: Store, disk: Disk, now: Moment) -> Recorded:
    mine = [
        facts
        for facts in store.disks().values()
        if facts.identity == disk.identity
        or (not disk.identity and facts.present and facts.name == disk.name)
    ]
    end = int(now.wall) // _STEP_S * _STEP_S + _STEP_S
    starts = range(end - RESOLUTIONS[-1][1], end, _STEP_S)
    readings = store.readings(starts.start, end, now)
    all_spans = [
        spans(readings.get(facts.identity, ()), starts, kinds.kind_of_name(facts.kind).counting)
        for facts in mine
    ]
    shown = {"", *(facts.identity for facts in mine)}
    happened = store.events(now.wall - limits.DAY_S, now.wall, now)
    return Recorded(
        [by_start[start] for by_start in all_spans for start in sorted(by_start)],
        [event for event in happened if event.disk in shown and event.kind in _TOLD],
    )


def hit_ratio(ask: Ask, seen: Recorded, now: float) -> list[Finding]:
    """The last day's beside earlier days'."""
    try:
        comparison = compare(hours_of(seen.spans), int(now) // limits.HOUR_S)
    except TooLittleError as error:
        return [ask.unknown(f"whether it changed: {error}")]
    if not comparison.fell:
        return [ask.say("ok", in_words(comparison))]
    causes = "; ".join(event.text for event in seen.events[-_TOLD_MAX:])
    meanwhile = f"; meanwhile: {causes}" if causes else ""
    return [
        ask.say(
            "warning",
            f"{in_words(comparison)}, {percent(comparison.lowest)} on the lowest of"
            f" them{meanwhile}",
            ask.remedy("see when it fell", "report history", disk=ask.disk, since="7d"),
            ask.remedy("see what is hot now", "heat top"),
        )
    ]


def in_words(comparison: Comparison) -> str:
    """
    >>> in_words(Comparison(0.91, 0.95, 0.94, 0.96, 7, 1000))
    '91.0 % hit in the last day, 95.0 % at the same hours of 7 earlier days'
    """
    return (
        f"{percent(comparison.now)} hit in the last day, {percent(comparison.before)} at the same"
        f" hours of {comparison.days} earlier days"
    )


def dirty(ask: Ask, seen: Recorded, now: float) -> list[Finding]:
    """Check that dirty data is ever written back."""
    first = (int(now) - limits.DIRTY_HOURS * limits.HOUR_S) // limits.HOUR_S
    lows = _lows(seen.spans, first)
    if len(lows) < limits.DIRTY_HOURS_MIN:
        return [
            ask.unknown(
                f"{len(lows)} of the last {limits.DIRTY_HOURS} hours are recorded, of which"
                f" {limits.DIRTY_HOURS_MIN} are needed"
            )
        ]
    size = seen.spans[-1].size
    if not size:
        return [ask.unknown("the size of the cache is not recorded")]
    least, last = min(lows) / size, lows[-1] / size
    rises = all(after >= before for before, after in pairwise(lows))
    if least < limits.DIRTY_SHARE and not (rises and last >= limits.DIRTY_RISEN):
        return [ask.say("ok", f"fell to {percent(least, 0)} of the cache in the last day")]
    how = f"never less than {percent(least, 0)} of the cache in the last day"
    if rises:
        how = f"has not fallen for a day, and is {percent(last, 0)} of the cache"
    return [ask.say("warning", f"dirty data {how}", ask.remedy("write it back", "tier flush"))]


def _lows(spans: Sequence[Span], first: int) -> list[Bytes]:
    """The lowest that was dirty in each hour from then on, of hours that were recorded."""
    hours: dict[int, Bytes] = {}
    for span in spans:
        number = span.start // limits.HOUR_S
        if number >= first:
            hours[number] = min(hours.get(number, span.dirty), span.dirty)
    return [hours[number] for number in sorted(hours)]
