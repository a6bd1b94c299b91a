"""One figure over the runs of a set-up: where its level changed, and by how much.

Runs of several days are not independent: a computer has better and worse days, two modes, slow
drifts. How far neighbouring runs lie apart says nothing of that, how far the runs of one level span
does. So a level ends where `NEW_RUNS` runs one after the other lie beyond all that it had, by as
much as it spans (of ten or more, one in ten on either end aside: a run that falls out hides no
change); runs of one day end no level of several. That needs no distribution.

Simulated (``reports/tests/test_trend.py``): of series of 30 runs without a change, independent or
not, judged at each run, at most 5 % ever show one; a change by a quarter amid a noise of 3 %
is found in 80 % and more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from math import exp, log
from statistics import median

from hotset.core import words
from hotset.core.record import Versioned, extend

LEVEL_RUNS = 8
"""A level that a change is told from has so many runs; of fewer nobody knows how far they span."""
NEW_RUNS = 3
LEAST_SPAN = 0.03
"""As a share of a value: runs that agree by chance do not make it zero."""
COLUMNS = ("run", "started_at", "value", "level", "change")


@dataclass(frozen=True, slots=True)
class Sample:
    """The value of one run."""

    run: str
    started_at: datetime
    value: float


@dataclass(frozen=True, slots=True)
class Change:
    """A new level.

    :ivar at: the place of its first run.
    :ivar ratio: of the new level to the one before.
    :ivar worse: True if it went the wrong way.
    """

    at: int
    before: float
    after: float
    ratio: float
    worse: bool


@dataclass(frozen=True, slots=True)
class Trend:
    """The runs, the oldest first, the level of each (the median of its runs), and the changes."""

    metric: str
    samples: tuple[Sample, ...]
    levels: tuple[float, ...]
    changes: tuple[Change, ...]
    visible: tuple[float, float] | None = None
    """Below and above these values the next runs would be a new level; None: too few runs to know.
    """
    to_know: str = ""
    """How to tell a smaller change."""

    @property
    def is_worse(self) -> bool:
        """True if the last change was for the worse, and nothing has made up for it."""
        return bool(self.changes) and self.changes[-1].worse

    def outlook(self) -> str:
        """Say from which values on a change would be seen, and how to see a smaller one."""
        if self.visible is None:
            return (
                f"Whether it changed shows once a level has {LEVEL_RUNS} runs, from the"
                f" {NEW_RUNS} after them on."
            )
        low, high = (words.count(value) for value in self.visible)
        return (
            f"A change shows when {NEW_RUNS} runs in a row, not all of one day, lie below {low} or"
            f" above {high}. A smaller one is told from a better or worse day by what is measured"
            f" in turn: {self.to_know}"
        )

    def sentence(self, change: Change) -> str:
        """Such as ``nopm fell by 18 % (4,200 to 3,440) with run 20261122-101500-demo``."""
        verb = "rose" if change.ratio > 1 else "fell"
        share = words.percent(abs(change.ratio - 1), 0)
        values = f"{words.count(change.before)} to {words.count(change.after)}"
        first = self.samples[change.at]
        return (
            f"{self.metric} {verb} by {share} ({values}) with run {first.run},"
            f" {first.started_at:%Y-%m-%d %H:%M} UTC"
        )


@dataclass(frozen=True)
class TrendRun(Sample):
    """A run, and the level that it belongs to."""

    level: float


@dataclass(frozen=True)
class TrendChange(Change):
    """A new level, in words as well. ``with_it``: what else changed from the run before."""

    run: str
    text: str
    with_it: tuple[str, ...]


@dataclass(frozen=True)
class TrendReport(Versioned):
    """A trend as it is shown. ``worse``: the last change was, and nothing has made up for it.
    ``outlook``: what would be seen of the next runs."""

    metric: str
    worse: bool
    outlook: str
    runs: tuple[TrendRun, ...]
    changes: tuple[TrendChange, ...]

    @classmethod
    def from_trend(cls, trend: Trend, with_it: Sequence[tuple[str, ...]]) -> TrendReport:
        """:param with_it: of each change."""
        runs = [
            extend(TrendRun, sample, level=level)
            for sample, level in zip(trend.samples, trend.levels, strict=True)
        ]
        changes = [
            extend(
                TrendChange,
                change,
                run=trend.samples[change.at].run,
                text=trend.sentence(change),
                with_it=others,
            )
            for change, others in zip(trend.changes, with_it, strict=True)
        ]
        return cls(trend.metric, trend.is_worse, trend.outlook(), tuple(runs), tuple(changes))


def find_trend(
    metric: str, samples: Sequence[Sample], lower_is_better: bool, to_know: str = ""
) -> Trend:
    """
    :param samples: the oldest first; their values are above 0.
    :param to_know: how to tell a smaller change.
    """
    values = [sample.value for sample in samples]
    times = [sample.started_at for sample in samples]
    starts = [0, *change_points(values, times), len(values)]
    segments = [(start, end) for start, end in pairwise(starts) if end > start]
    middles = [median(values[start:end]) for start, end in segments]
    changes = tuple(
        Change(start, before, after, after / before, (after > before) == lower_is_better)
        for (start, _), (before, after) in zip(segments[1:], pairwise(middles), strict=True)
    )
    levels = tuple(
        middle
        for (start, end), middle in zip(segments, middles, strict=True)
        for _ in range(end - start)
    )
    level = values[starts[-2] :]
    span = max((_span(values[start:end]) for start, end in segments), default=0.0)
    is_known = len(level) >= (NEW_RUNS if changes else LEVEL_RUNS)
    visible = _limits(level, span) if is_known else None
    return Trend(metric, tuple(samples), levels, changes, visible, to_know)


def change_points(values: Sequence[float], times: Sequence[datetime] = ()) -> list[int]:
    """Places at which a new level begins.

    :param times: of the runs; a level of several days is not ended by runs of one. Empty: each
        has a day of its own.

    >>> change_points([100, 101, 99, 100, 102, 101, 99, 100, 80, 81, 79])
    [8]
    >>> change_points([100, 101, 99, 60, 100, 101, 99, 100, 101, 100, 99])
    []
    """
    steps, start, span = list[int](), 0, 0.0
    for end in range(NEW_RUNS, len(values) + 1):
        begin = end - NEW_RUNS
        level, latest = values[start:begin], values[begin:end]
        if len(level) < (NEW_RUNS if span else LEVEL_RUNS):
            continue
        # A level that has just begun may yet span as much as the one before it.
        known = max(span, _span(level))
        low, high = _limits(level, known)
        one_day = _are_of_a_day(times[begin:end]) and not _are_of_a_day(times[start:begin])
        if not one_day and (max(latest) < low or min(latest) > high):
            steps.append(begin)
            start, span = begin, known
    return steps


def _are_of_a_day(times: Sequence[datetime]) -> bool:
    return bool(times) and times[-1] - times[0] < timedelta(days=1)


def _span(level: Sequence[float]) -> float:
    """Ratio of the highest to the lowest of a level's runs, as a logarithm."""
    low, high = _ends(level)
    return max(log(high / low), LEAST_SPAN)


def _limits(level: Sequence[float], span: float) -> tuple[float, float]:
    """Values beyond these are of another level."""
    low, high = _ends(level)
    return low * exp(-span), high * exp(span)


def _ends(level: Sequence[float]) -> tuple[float, float]:
    """The lowest and highest; of ten or more, one in ten on either end aside."""
    ordered, aside = sorted(level), len(level) // 10
    return ordered[aside], ordered[-1 - aside]


def rows(trend: Trend) -> list[tuple[object, ...]]:
    """A row for each run; the change is beside the first run of its level."""
    changes = {change.at: change.ratio for change in trend.changes}
    return [
        (sample.run, sample.started_at.isoformat(), sample.value, level, changes.get(place))
        for place, (sample, level) in enumerate(zip(trend.samples, trend.levels, strict=True))
    ]
