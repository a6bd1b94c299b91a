"""Whether a disk's hit ratio fell: the last day beside the same hours of the days before it.

Like is compared with like. An hour counts where it was watched for half of its time and had
requests enough, today and on the earlier day; each earlier day stands beside those hours of today
that both have, and each hour weighs as much as it has requests today. What is left is how the days
differ by chance, and that they tell themselves: the earlier days' spread says what a further day
like them would have (a prediction interval: Hahn and Meeker, Statistical Intervals, 1991, section
4.2, for one future value of normally distributed ones). Requests are not drawn one by one: their
number alone would make of any day a significant one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import mean, stdev

from hotset.core.errors import HotsetError
from hotset.monitoring.history import amounts
from hotset.monitoring.history.store import Span

from . import thresholds as limits

_DAY_H = limits.DAY_S // limits.HOUR_S


@dataclass(frozen=True, slots=True)
class Hour:
    """An hour of a disk: what is counted as hit or missed, and the share of it that was watched."""

    hits: int
    requests: int
    watched: float

    @property
    def counts(self) -> bool:
        """Whether it says something."""
        enough = self.requests >= limits.HOUR_REQUESTS_MIN
        return enough and self.watched >= limits.COVERED_MIN


@dataclass(frozen=True, slots=True)
class Comparison:
    """A day beside those before it.

    :ivar now: its hit ratio, 0 to 1; ``requests``: of how many.
    :ivar before: that of the same hours of ``days`` earlier days.
    :ivar least: what a day like those would have at least, but for chance
        (:data:`.thresholds.RATIO_CHANCE`).
    """

    now: float
    before: float
    least: float
    days: int
    requests: int

    @property
    def fell(self) -> bool:
        """By more than chance, and by enough to matter."""
        return self.now < self.least and self.before - self.now >= limits.RATIO_DROP


class TooLittleError(HotsetError):
    """What is recorded is not enough to compare; the message says what is missing."""


def hours_of(spans: Sequence[Span]) -> dict[int, Hour]:
    """By hours since 1970."""
    parts: dict[int, list[amounts.Amounts]] = {}
    for span in spans:
        parts.setdefault(span.start // limits.HOUR_S, []).append(span.amounts)
    return {number: _hour(amounts.total(some)) for number, some in parts.items()}


def _hour(whole: amounts.Amounts) -> Hour:
    hits = whole.read_hits + (whole.write_hits or 0)
    misses = whole.read_misses + (whole.write_misses or 0)
    return Hour(hits, hits + misses, whole.known_ms / 1000 / limits.HOUR_S)


def compare(hours: Mapping[int, Hour], end: int) -> Comparison:
    """The day before an hour, beside the same hours of the days before it.

    :param end: the hour since 1970 that is not over yet.
    :raises TooLittleError: of too few requests, or of too few days.
    """
    today = {one: hours[one] for one in range(end - _DAY_H, end) if one in hours}
    watched = sum(hour.watched for hour in today.values())
    if watched < limits.COVERED_MIN * _DAY_H:
        raise TooLittleError(f"{watched:.0f} of the last {_DAY_H} hours are recorded")
    today = {number: hour for number, hour in today.items() if hour.counts}
    asked = sum(hour.requests for hour in today.values())
    if asked < limits.DAY_REQUESTS_MIN:
        raise TooLittleError(
            f"{asked:,} requests of the last day are recorded, of which"
            f" {limits.DAY_REQUESTS_MIN:,} are needed"
        )
    days = (_beside(today, hours, day * _DAY_H) for day in range(1, limits.DAYS + 1))
    gains = [gain for gain in days if gain is not None]
    least = limits.T_OF_CHANCE
    if len(gains) - 1 not in least:
        raise TooLittleError(
            f"{len(gains)} earlier days are recorded at the same hours, of which"
            f" {min(least) + 1} are needed"
        )
    now = sum(hour.hits for hour in today.values()) / asked
    before = now + mean(gains)
    spread = stdev(gains) * sqrt(1 + 1 / len(gains))
    return Comparison(now, before, before - least[len(gains) - 1] * spread, len(gains), asked)


def _beside(today: Mapping[int, Hour], hours: Mapping[int, Hour], back: int) -> float | None:
    """By how much an earlier day's hit ratio was higher; None: too few of its hours are known."""
    pairs = [(hour, hours.get(number - back)) for number, hour in today.items()]
    both = [(now, then) for now, then in pairs if then is not None and then.counts]
    weight = sum(now.requests for now, _ in both)
    if weight < limits.COVERED_MIN * sum(hour.requests for hour in today.values()):
        return None
    higher = sum(then.hits / then.requests * now.requests - now.hits for now, then in both)
    return higher / weight
