"""A curve over users: where it is highest, and where more users begin to gain little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from hotset.core import words

from ...model.base import ArmName
from ...model.document import Arm, RunDocument
from ...model.windows import Repeat
from .. import answer, units
from ..answer import ArmFigures
from ..breakdown import time_use

LEAST_POINTS = 3
"""Fewer have no knee."""
FLAT = 0.02
"""A peak is the fewest users that come within this share of the highest throughput: beyond it the
difference is noise."""
GROWN = 0.1
"""Growth beyond that of the users by more than this share is no noise."""
LITTLE = 0.5
"""Share of what each user added before the knee: beyond it each adds less than this."""


@dataclass(frozen=True, slots=True)
class Point:
    """One number of users and their throughput, in whichever unit."""

    users: int
    rate: float


def peak(points: Sequence[Point]) -> Point:
    """The fewest users that reach the highest throughput, less what is noise.

    >>> peak([Point(1, 100), Point(2, 198), Point(4, 200), Point(8, 150)])
    Point(users=2, rate=198)
    """
    highest = max(point.rate for point in points)
    return next(point for point in points if point.rate >= (1 - FLAT) * highest)


def knee(points: Sequence[Point]) -> Point | None:
    """The point that lies furthest above the straight line from the first point to the highest
    throughput at the most users, both axes scaled to 1 (Satopää et al., "Finding a Kneedle in a
    Haystack", 2011). What falls beyond the peak counts as level.

    None where there are too few points, or beyond it each further user adds half as much as each
    did before, or more: then the throughput grows as the users do.

    >>> knee([Point(1, 100), Point(2, 190), Point(4, 340), Point(8, 380), Point(16, 400)])
    Point(users=4, rate=340)
    >>> knee([Point(1, 100), Point(2, 200), Point(4, 400)]) is None
    True
    """
    if len(points) < LEAST_POINTS:
        return None
    reached = list(accumulate((point.rate for point in points), max))
    first, last = points[0], points[-1]
    if reached[-1] <= first.rate:
        return None

    def above(index: int) -> float:
        gained = (reached[index] - first.rate) / (reached[-1] - first.rate)
        return gained - (points[index].users - first.users) / (last.users - first.users)

    best = max(range(1, len(points) - 1), key=above)
    bend = points[best]
    before = (reached[best] - first.rate) / (bend.users - first.users)
    beyond = (reached[-1] - reached[best]) / (last.users - bend.users)
    return bend if above(best) > FLAT and beyond < LITTLE * before else None


def outgrown(points: Sequence[Point]) -> tuple[Point, Point] | None:
    """The neighbours between which the throughput grew furthest beyond the number of users.

    More users do not make each of them faster: between the two something else changed, mostly a
    cache that was cold at the beginning of the curve. None where there are no such neighbours.

    >>> outgrown([Point(1, 100), Point(2, 230), Point(4, 920)])
    (Point(users=2, rate=230), Point(users=4, rate=920))
    >>> outgrown([Point(1, 100), Point(2, 205), Point(4, 410)]) is None
    True
    """

    def beyond(pair: tuple[Point, Point]) -> float:
        low, high = pair
        return high.rate * low.users / (low.rate * high.users)

    pairs = [pair for pair in pairwise(points) if pair[0].rate > 0]
    furthest = max(pairs, key=beyond, default=None)
    return furthest if furthest is not None and beyond(furthest) > 1 + GROWN else None


def caveat(points: Sequence[Point]) -> str | None:
    """Explain why a curve is not of a server in one state; None: it shows no reason."""
    pair = outgrown(points)
    if pair is None:
        return None
    low, high = pair
    return (
        f"from {low.users} to {words.plural(high.users, 'user')} the throughput grew"
        f" {high.rate / low.rate:.1f} times, more than the users did: a cache was cold and warmed"
        " up meanwhile, or something else changed; measure the curve again once it is warm"
    )


def sentence(points: Sequence[Point], unit: str = "NOPM") -> str:
    """Peak and knee in words, and what they are not to be trusted for.

    :param unit: of the throughput.

    >>> sentence([Point(1, 100), Point(2, 190), Point(4, 340), Point(8, 380), Point(16, 400)])
    'peak: 400 NOPM with 16 users; knee: 4 users (340 NOPM), more users gain little'
    """
    top, bend = peak(points), knee(points)
    text = f"peak: {words.count(top.rate)} {unit} with {words.plural(top.users, 'user')}"
    doubt = caveat(points)
    rest = f"; {doubt}" if doubt else ""
    if bend is None:
        return f"{text}; no knee among these{rest}"
    users = words.plural(bend.users, "user")
    return f"{text}; knee: {users} ({words.count(bend.rate)} {unit}), more users gain little{rest}"


def figures(points: Sequence[Point], unit: str) -> dict[str, str]:
    """Peak and knee, and what they are not to be trusted for."""
    top, bend, doubt = peak(points), knee(points), caveat(points)
    return {
        "peak": f"{top.rate:,.0f} {unit}, {words.plural(top.users, 'user')}",
        "knee": words.plural(bend.users, "user") if bend else "none",
        **({"caveat": doubt} if doubt else {}),
    }


def columns(document: RunDocument) -> tuple[str, ...]:
    """The heads of `rows`."""
    return (
        "arm",
        "users",
        units.find_unit(document).short,
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "failed",
        "CPU",
        "hit ratio",
        "most time",
        *(f"of {name}" for name in _references(document)),
    )


REFERENCES: tuple[ArmName, ...] = ("baseline", "all-flash")


def _references(document: RunDocument) -> tuple[ArmName, ...]:
    """References that arms are compared with; a measurement has none."""
    return REFERENCES if document.measurement is None else ()


@dataclass(frozen=True, slots=True)
class ArmPoint:
    """One arm with one number of users, over its repeats."""

    users: int
    figures: ArmFigures
    arm: Arm
    """With these windows alone."""

    @property
    def point(self) -> Point:
        return Point(self.users, self.figures.rate)


def read_curves(document: RunDocument) -> dict[ArmName, list[ArmPoint]]:
    """Every arm's points, the fewest users first; empty where the run measured no curve."""
    if not any(arm.curve for arm in document.arms):
        return {}
    most = (document.database.users if document.database else None) or 0
    curves: dict[ArmName, list[ArmPoint]] = {}
    for name in answer.ARM_ORDER:
        windows = [
            window
            for arm in document.arms
            if arm.name == name
            for window in (*arm.curve, *arm.repeats)
        ]
        by_users: dict[int, list[Repeat]] = {}
        for window in windows:
            by_users.setdefault(window.users or most, []).append(window)
        if by_users:
            curves[name] = [_arm_point(name, *item) for item in sorted(by_users.items())]
    return curves


def _arm_point(name: ArmName, users: int, windows: list[Repeat]) -> ArmPoint:
    arm = Arm(name=name, repeats=tuple(windows))
    return ArmPoint(users, answer.figures(arm), arm)


def rows(document: RunDocument) -> list[tuple[str, ...]]:
    """A row for each arm and number of users; ratios with their 95 % intervals."""
    curves = read_curves(document)
    references = [
        {point.users: point.arm for point in curves.get(name, ())} for name in _references(document)
    ]
    return [
        (
            name,
            str(point.users),
            words.count(point.figures.rate),
            *words.latencies(point.figures.latency_ms),
            f"{point.figures.failed:,}",
            words.percent(point.figures.server_cpu, 0),
            words.percent(point.figures.hit_ratio),
            _most_time(point),
            *(show_ratio(point.arm, reference.get(point.users)) for reference in references),
        )
        for name, points in curves.items()
        for point in points
    ]


def sentences(document: RunDocument) -> list[str]:
    """Peak and knee of every arm."""
    unit = units.find_unit(document).short
    return [
        f"{answer.prefix(name)}{sentence([point.point for point in points], unit)}."
        for name, points in read_curves(document).items()
    ]


def _most_time(point: ArmPoint) -> str:
    use = time_use.mean(repeat.time for repeat in point.arm.repeats)
    return time_use.most(use) if use else words.ABSENT


def show_ratio(arm: Arm | None, reference: Arm | None) -> str:
    """How many times the reference's throughput, with the interval."""
    from .. import stats

    if arm is None or reference is None or arm.name == reference.name:
        return words.ABSENT
    try:
        return stats.write_interval(stats.ratio_with_interval(arm, reference))
    except stats.NoFactor:
        return words.ABSENT
