"""One figure over the runs of a set-up: where its level changed, and by how much.

Method: the penalised segmentation of the values' logarithms by least absolute deviations, which
one run that falls out does not mislead (PELT: Killick, Fearnhead and Eckley, "Optimal detection of
changepoints with a linear computational cost", 2012), as ``ruptures`` has it. The noise is
estimated from the differences of neighbouring runs (their median, which a few changes of level do
not move), and each change of level must pay for itself by ``PENALTY`` times the logarithm of the
number of runs, in units of that noise.

Simulated, 6 to 40 runs without a change showed one in at most 3 % of the series, and a change by a
fifth, at ten times the noise, was found where it was in 98 % and more. A level has at least two
runs, so a change shows from its second run on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from statistics import median

import numpy as np

from hotset.core import words
from hotset.core.record import Versioned, extend

LEAST_RUNS = 4
"""Two on either side of a change."""
PENALTY = 3.0
LEAST_NOISE = 0.005
"""Least noise, as a share of a value: runs that agree by chance do not make it zero."""
LEAST_CHANGE = 0.03
"""A smaller change is not told."""
_PER_SD = 1.4826  # of a normal distribution's median absolute deviation
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

    @property
    def is_worse(self) -> bool:
        """True if the last change was for the worse, and nothing has made up for it."""
        return bool(self.changes) and self.changes[-1].worse

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
    said: str
    with_it: tuple[str, ...]


@dataclass(frozen=True)
class TrendReport(Versioned):
    """A trend as it is shown. ``worse``: the last change was, and nothing has made up for it."""

    metric: str
    worse: bool
    runs: tuple[TrendRun, ...]
    changes: tuple[TrendChange, ...]

    @classmethod
    def from_trend(cls, found: Trend, with_it: Sequence[tuple[str, ...]]) -> TrendReport:
        """:param with_it: of each change."""
        runs = [
            extend(TrendRun, one, level=level)
            for one, level in zip(found.samples, found.levels, strict=True)
        ]
        changes = [
            extend(
                TrendChange,
                one,
                run=found.samples[one.at].run,
                said=found.sentence(one),
                with_it=others,
            )
            for one, others in zip(found.changes, with_it, strict=True)
        ]
        return cls(found.metric, found.is_worse, tuple(runs), tuple(changes))


def find_trend(metric: str, samples: Sequence[Sample], lower_is_better: bool) -> Trend:
    """:param samples: the oldest first; their values are above 0."""
    values = [sample.value for sample in samples]
    starts = [0, *change_points(values), len(values)]
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
    return Trend(metric, tuple(samples), levels, changes)


def change_points(values: Sequence[float]) -> list[int]:
    """Places at which a new level begins.

    >>> change_points([100, 101, 99, 100, 80, 81, 79, 80])
    [4]
    >>> change_points([100, 101, 99, 60, 100, 101, 99, 100])
    []

    :raises ModuleNotFoundError: ``ruptures`` is not installed.
    """
    import ruptures

    if len(values) < LEAST_RUNS:
        return []
    logs = np.log(np.asarray(values, dtype=np.float64))
    noise = max(LEAST_NOISE, float(_PER_SD * np.median(np.abs(np.diff(logs))) / np.sqrt(2)))
    search = ruptures.Pelt(model="l1", min_size=2, jump=1).fit(logs / noise)
    found = search.predict(pen=PENALTY * np.log(len(values)))[:-1]
    return _visible_steps(logs, [int(one) for one in found])


def _visible_steps(logs: np.typing.NDArray[np.float64], found: list[int]) -> list[int]:
    """Without changes too small to be told, the smallest given up first."""
    while found:
        starts = [0, *found, len(logs)]
        middles = [np.median(logs[start:end]) for start, end in pairwise(starts)]
        sizes = np.abs(np.diff(middles))
        if sizes.min() >= np.log(1 + LEAST_CHANGE):
            return found
        found.pop(int(sizes.argmin()))
    return []


def rows(trend: Trend) -> list[tuple[object, ...]]:
    """A row for each run; the change stands beside the first run of its level."""
    changes = {change.at: change.ratio for change in trend.changes}
    return [
        (one.run, one.started_at.isoformat(), one.value, level, changes.get(place))
        for place, (one, level) in enumerate(zip(trend.samples, trend.levels, strict=True))
    ]
