"""Comparison of a disk's hit ratio on the last day with the same hours of the days before it.

Like is compared with like: an hour counts where it was watched for half of its time and had
requests enough, today and on the earlier day, and weighs as much as it has requests today. Days
differ by chance, and how much they do they tell themselves: a day fell that is as far below the
lowest of them as that is below the highest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import mean

from hotset.core.errors import HotsetError
from hotset.monitoring.history.amounts import Amounts
from hotset.monitoring.history.readings import Span, join

from . import thresholds as limits

_DAY_H = limits.DAY_S // limits.HOUR_S
Hours = Mapping[int, Amounts]
"""By hours since 1970."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """A day beside those before it.

    :ivar now: its hit ratio, 0 to 1; ``requests``: of how many.
    :ivar before: the mean of the same hours of ``days`` earlier days, which were between ``lowest``
        and ``highest``.
    """

    now: float
    before: float
    lowest: float
    highest: float
    days: int
    requests: int

    @property
    def fell(self) -> bool:
        """Below all earlier days by more than these differ, and by enough to matter."""
        least = max(limits.RATIO_DROP, self.highest - self.lowest)
        return self.lowest - self.now >= least


class TooLittleError(HotsetError):
    """Too little is recorded to compare; the message says what is missing."""


def hours_of(spans: Sequence[Span]) -> dict[int, Amounts]:
    """Add up the counts of each hour; the spans are in their order."""
    grouped = groupby(spans, lambda span: span.start // limits.HOUR_S)
    return {number: join(list(some)).amounts for number, some in grouped}


def compare(hours: Hours, end: int) -> Comparison:
    """The day before an hour, beside the same hours of the days before it.

    :param end: the hour since 1970 that is not over yet.
    :raises TooLittleError: too few requests, or too few days.
    """
    today = {hour: hours[hour] for hour in range(end - _DAY_H, end) if hour in hours}
    watched = sum(map(_watched_s, today.values()))
    if watched < limits.COVERED_MIN * _DAY_H:
        raise TooLittleError(f"{watched:.0f} of the last {_DAY_H} hours are recorded")
    today = {number: hour for number, hour in today.items() if _counts(hour)}
    requests = sum(map(_requests, today.values()))
    if requests < limits.DAY_REQUESTS_MIN:
        raise TooLittleError(
            f"{requests:,} requests of the last day are recorded, of which"
            f" {limits.DAY_REQUESTS_MIN:,} are needed"
        )
    days = (_beside(today, hours, day * _DAY_H) for day in range(1, limits.DAYS + 1))
    gains = [gain for gain in days if gain is not None]
    if len(gains) < limits.DAYS_MIN:
        raise TooLittleError(
            f"{len(gains)} earlier days are recorded at the same hours, of which"
            f" {limits.DAYS_MIN} are needed"
        )
    now = sum(_ratio(hour) * _requests(hour) for hour in today.values()) / requests
    before, lowest, highest = (now + gain for gain in (mean(gains), min(gains), max(gains)))
    return Comparison(now, before, lowest, highest, len(gains), requests)


def _beside(today: Hours, hours: Hours, back: int) -> float | None:
    """By how much an earlier day's hit ratio was higher; None: too few of its hours are known."""
    pairs = [(hour, hours.get(number - back)) for number, hour in today.items()]
    both = [(now, then) for now, then in pairs if then is not None and _counts(then)]
    weight = sum(_requests(now) for now, _ in both)
    if weight < limits.COVERED_MIN * sum(map(_requests, today.values())):
        return None
    return sum((_ratio(then) - _ratio(now)) * _requests(now) for now, then in both) / weight


def _requests(hour: Amounts) -> int:
    """Count the requests that were hit or missed."""
    reads = hour.read_hits + hour.read_misses
    return reads + (hour.write_hits or 0) + (hour.write_misses or 0)


def _ratio(hour: Amounts) -> float:
    return hour.ratio or 0.0


def _watched_s(hour: Amounts) -> float:
    return hour.known_ms / 1000 / limits.HOUR_S


def _counts(hour: Amounts) -> bool:
    """True if it says something."""
    return _requests(hour) >= limits.HOUR_REQUESTS_MIN and _watched_s(hour) >= limits.COVERED_MIN
