"""Runs side by side: each arm of a run against the same arm of the first one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from itertools import groupby, pairwise
from math import exp, hypot, log, sqrt
from operator import itemgetter
from statistics import fmean
from typing import Literal

from pydantic import JsonValue

from hotset.core import words
from hotset.core.errors import ConflictError
from hotset.core.record import Versioned

from ...model.base import ArmName
from ...model.document import Arm, RunDocument, Workload
from .. import answer, power, stats, units
from . import curve, highest

_NO_SETUP = ("name", "title", "repeats", "arms", "published", "prices", "thresholds")
"""Keys of an experiment that change nothing in what is measured."""
_SIZES = {
    *("flash.size", "machine.memory", "machine in use.memory_bytes", "storage.size"),
    *("tier.block", "tier.cache", "tier.metadata", "tier.volume"),
}
"""Keys whose values are bytes."""
_CHANGED_BY_TIME = {
    *("hotset", "database in use.version"),
    *("machine in use.kernel", "machine in use.host.kernel"),
    *("machine in use.memory_bytes", "machine in use.host.memory_bytes"),
}
"""Keys of what runs of one set-up may differ in."""
_FIGURES: dict[Workload, str] = {
    "tpch": "TPROC-H s",
    **{name: unit.short for name, unit in units.UNITS.items()},
}
_TIER_FOUND = "tier found"
"""Key of the tier that a measurement found."""
DAY_SPREAD = 0.1
"""How far days of one set-up lie apart, as the standard deviation of the logarithm: so the
all-flash arms of the published runs do."""
_TURNS, _STREAK, _NEAR = 3, 2, 3
"""Two are measured in turn if it changed so often which of them was (A B A B), none was oftener in
a row, and of two in a row each has one of the other near it: so many times as far away as they are
from each other (A A, and the day after B B, are two days)."""
_HIGHEST, _LATENCY = "highest rate, TPS", "p95, ms"
Way = Callable[[RunDocument, RunDocument], str]
Figures = answer.ArmFigures | power.PowerFigures
Verdict = Literal["faster", "slower", "not significant", "not known", "no ratio"]


class SetUpsDiffer(ConflictError):
    """The runs did not measure the same thing; the text names the differences."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting that two runs do not share."""

    key: str
    first: str
    other: str

    def __str__(self) -> str:
        return f"{self.key}: {self.first} / {self.other}"


@dataclass(frozen=True, slots=True)
class Line:
    """One arm of a run beside that of the first run; of a curve, with one number of users.

    ``speed_ratio`` is how many times faster ``run`` was, whichever way the figure points; its
    interval is 95 %, allows for days that differ where they were not measured in turn, and from
    fewer than three repeats there is none. ``note`` says why there is no ratio, or no verdict.
    """

    run: str
    against: str
    workload: Workload | Literal["disk"]
    arm: ArmName
    users: int | None
    """None where there is no curve."""
    figure: str
    value_against: float
    value: float
    speed_ratio: float | None
    ci_low: float | None
    ci_high: float | None
    verdict: Verdict
    hit_ratio_against: float | None
    hit_ratio: float | None
    note: str = ""
    to_know: str = ""
    """How to know, where the verdict is not known for the days."""


@dataclass(frozen=True, slots=True)
class Labelled:
    """Measurements of one label, which count as repeats of one; ``left_out`` are not complete, and
    of those that are ``unreadable`` the label is not known."""

    label: str
    runs: tuple[str, ...]
    left_out: tuple[str, ...]
    unreadable: tuple[str, ...]

    def __str__(self) -> str:
        text = f"{self.label}: {words.plural(len(self.runs), 'run')} ({', '.join(self.runs)})"
        if self.left_out:
            text += f"; not complete: {', '.join(self.left_out)}"
        if self.unreadable:
            text += f"; not known whether labelled so: {', '.join(self.unreadable)} (unreadable)"
        return text


@dataclass(frozen=True)
class RunComparison(Versioned):
    """Runs beside the first of them. ``differences``: what of their set-ups is not the same;
    ``labels``: of what measurements those consist that were named by a label."""

    differences: tuple[str, ...]
    lines: tuple[Line, ...]
    labels: tuple[Labelled, ...] = ()


def differences(first: RunDocument, other: RunDocument) -> list[Difference]:
    """Everything of the set-up that is not the same, or not known to be: settings, machine, tier,
    storage, server."""
    left, right = dict(_setup(first)), dict(_setup(other))
    unknown = _TIER_FOUND if first.measurement and first.measurement.tier_unknown else None
    keys = [*left, *(key for key in right if key not in left)]
    return [
        Difference(key, *_describe(key, left.get(key, words.ABSENT), right.get(key, words.ABSENT)))
        for key in keys
        if key == unknown or left.get(key) != right.get(key)
    ]


def _describe(key: str, first: str, other: str) -> tuple[str, str]:
    """Two values that differ, for people: sizes in a unit, unless it would hide the difference."""
    if key in _SIZES and first.isdigit() and other.isdigit():
        sizes = int(first), int(other)
        if abs(sizes[0] - sizes[1]) > 0.1 * max(sizes):
            return words.size(sizes[0]), words.size(sizes[1])
    return first, other


def refusing(first: RunDocument, other: RunDocument) -> list[Difference]:
    """List what makes two runs incomparable. Of two measurements that is not the tier, which they
    are to show, nor the machine where one did not inspect it: both are reported."""
    measured = first.measurement is not None and other.measurement is not None
    return [
        difference
        for difference in differences(first, other)
        if not (measured and (difference.key == _TIER_FOUND or _not_looked_at(difference)))
    ]


def differing_in_a_label(first: RunDocument, other: RunDocument) -> list[Difference]:
    """List known differences, which keep two measurements from being repeats of one."""
    return [
        difference
        for difference in differences(first, other)
        if difference.first != difference.other and not _not_looked_at(difference)
    ]


def _not_looked_at(difference: Difference) -> bool:
    return difference.key.startswith("machine in use.") and words.ABSENT in (
        difference.first,
        difference.other,
    )


def require_same(first: RunDocument, other: RunDocument) -> None:
    """:raises SetUpsDiffer: names what is not the same."""
    differences = refusing(first, other)
    if differences:
        raise SetUpsDiffer(
            f"{first.run} and {other.run} have different set-ups:"
            f" {'; '.join(map(str, differences))}"
        )


def same_over_time(first: RunDocument, other: RunDocument) -> bool:
    """True if two runs are of one set-up, as far as time does not change it by itself: versions,
    kernels and the memory they leave may differ."""
    return all(difference.key in _CHANGED_BY_TIME for difference in refusing(first, other))


def lines(documents: Sequence[RunDocument], to_know: Way = lambda *_: "") -> list[Line]:
    """Every arm that both have, of each run against the first.

    :param to_know: says how to know where days alone make as much.
    """
    first, *others = documents
    return [
        line if measured_in_turn(first, other) else _with_days(line, to_know(first, other))
        for other in others
        for line in (*_time_lines(first, other), *_tpch(first, other), *_disks(first, other))
    ]


def measured_in_turn(first: RunDocument, other: RunDocument) -> bool:
    """True if their windows took turns, so that a better or worse day was one for both."""
    opened = sorted(
        (at, place, repeat)
        for place, document in enumerate((first, other))
        for at, repeat in _opened(document)
    )
    if len({at for at, _, _ in opened}) < len(opened):
        return False  # of one instant: none had its turn
    turns = [next(each)[:2] for _, each in groupby(opened, itemgetter(1, 2))]
    streaks = [len(list(streak)) for _, streak in groupby(place for _, place in turns)]
    return (
        len(streaks) > _TURNS
        and max(streaks) <= _STREAK
        and all(
            min(abs(at - turn) for at, other in turns if other != place) <= _NEAR * (late - early)
            for (early, place), (late, next_place) in pairwise(turns)
            if place == next_place
            for turn in (early, late)
        )
    )


def _opened(document: RunDocument) -> Iterator[tuple[datetime, int]]:
    """When each window opened, and the number of its repeat."""
    for arm in document.arms:
        for point in (*arm.curve, *arm.repeats):
            if point.opened_at is not None:
                yield point.opened_at, point.repeat
    for queried in document.power_arms:
        for run in queried.repeats:
            if run.opened_at is not None:
                yield run.opened_at, run.repeat
    if document.disks is not None:
        yield from ((at, number) for number, at in enumerate(document.disks.began, 1))


def _with_days(line: Line, to_know: str) -> Line:
    """A line of two that were measured one after the other: the interval allows for their days."""
    if line.speed_ratio is None or line.ci_low is None or line.ci_high is None:
        return line
    within = log(line.ci_high / line.ci_low) / 2
    wide = exp(hypot(within, 1.96 * sqrt(2) * DAY_SPREAD))
    low, high = line.speed_ratio / wide, line.speed_ratio * wide
    line = replace(line, ci_low=low, ci_high=high)
    if line.verdict in ("faster", "slower") and low <= 1 <= high:
        note = "not known: days alone make as much"
        return replace(line, verdict="not known", note=note, to_know=to_know)
    return line


def _time_lines(first: RunDocument, other: RunDocument) -> Iterator[Line]:
    if first.timed != other.timed:
        return
    curves = curve.read_curves(first), curve.read_curves(other)
    for name in answer.ARM_ORDER:
        before, after = (curve.get(name, []) for curve in curves)
        if before and after:
            by_users = {point.users: point.arm for point in before}
            for point in after:
                if point.users in by_users:
                    yield _time_line(first, other, by_users[point.users], point.arm, point.users)
            continue
        old, new = first.arm(name), other.arm(name)
        if old is not None and new is not None and not _at_found_rates(old, new):
            yield _time_line(first, other, old, new, None)
    for name in answer.ARM_ORDER:
        old, new = first.arm(name), other.arm(name)
        if old is not None and new is not None:
            yield from _rate_lines(first, other, old, new)


def _at_found_rates(before: Arm, after: Arm) -> bool:
    """True if both are the windows at the highest rates of a search, which their own line has."""
    return bool(before.rates and after.rates and before.rate_per_s and after.rate_per_s)


def _time_line(
    first: RunDocument, other: RunDocument, before: Arm, after: Arm, users: int | None
) -> Line:
    old, new = answer.figures(before), answer.figures(after)
    ratio = partial(stats.ratio_with_interval, after, before)
    return _line(first, other, after.workload, (old, new), (old.rate, new.rate), ratio, users)


def _rate_lines(first: RunDocument, other: RunDocument, before: Arm, after: Arm) -> Iterator[Line]:
    """The highest rates that met the limits; where transactions arrived at a rate, the latencies,
    as the throughput says nothing there."""
    arms = old, new = answer.figures(before), answer.figures(after)
    if before.rates and after.rates:
        rates = tuple(highest.mean_rate(document, new.name) or 0.0 for document in (first, other))
        ratio = partial(stats.ratio_of_rates, after, before)
        line = _line(first, other, after.workload, arms, (rates[0], rates[1]), ratio)
        # The arms' hit ratios are those of the window, not of the search.
        yield replace(line, figure=_HIGHEST, hit_ratio_against=None, hit_ratio=None)
    at_a_rate = before.rate_per_s and after.rate_per_s and not _at_found_rates(before, after)
    if at_a_rate and old.latency_ms and new.latency_ms:
        latencies = old.latency_ms.p95 or 0.0, new.latency_ms.p95 or 0.0
        ratio = partial(stats.ratio_of_latencies, before, after)
        line = _line(first, other, after.workload, arms, latencies, ratio)
        yield replace(line, figure=_LATENCY)


def _tpch(first: RunDocument, other: RunDocument) -> Iterator[Line]:
    for name in answer.ARM_ORDER:
        before, after = first.power_arm(name), other.power_arm(name)
        if before is not None and after is not None:
            old, new = power.figures(before), power.figures(after)
            ratio = partial(stats.ratio_of_totals, before, after)
            yield _line(first, other, "tpch", (old, new), (old.total_s, new.total_s), ratio)


def _disks(first: RunDocument, other: RunDocument) -> Iterator[Line]:
    """Each line of a benchmark of a disk that both have, by its MB/s."""
    if first.disks is None or other.disks is None:
        return
    before = {line.name: line for line in first.disks.bench}
    for line in other.disks.bench:
        old = before.get(line.name)
        if old is None:
            continue
        values = fmean(old.each_mb_per_s), fmean(line.each_mb_per_s)
        interval, note = None, ""
        if min(*old.each_mb_per_s, *line.each_mb_per_s) > 0:
            interval = stats.ratio_of_means(line.each_mb_per_s, old.each_mb_per_s)
        else:
            note = "a measurement was 0 MB/s"
        figure = f"{line.profile} {line.direction} MB/s"
        yield _ratio_line(first, other, ("disk", "measured", figure), values, interval, note)


def _ratio_line(
    first: RunDocument,
    other: RunDocument,
    named: tuple[Workload | Literal["disk"], ArmName, str],
    values: tuple[float, float],
    interval: stats.Interval | None,
    note: str,
    users: int | None = None,
    hit_ratios: tuple[float | None, float | None] = (None, None),
) -> Line:
    workload, arm, figure = named
    gain, low, high = interval or (None, None, None)
    if low == high:
        low = high = None
    return Line(
        *(other.run, first.run, workload, arm, users, figure, *values, gain, low, high),
        _verdict(interval),
        *hit_ratios,
        note,
    )


def _line(
    first: RunDocument,
    other: RunDocument,
    workload: Workload,
    arms: tuple[Figures, Figures],
    values: tuple[float, float],
    ratio: Callable[[], stats.Interval],
    users: int | None = None,
) -> Line:
    old, new = arms
    interval, note = None, ""
    try:
        interval = ratio()
    except stats.NoFactor as reason:
        note = str(reason)
    named = (workload, new.name, _FIGURES[workload])
    ratios = (old.hit_ratio, new.hit_ratio)
    return _ratio_line(first, other, named, values, interval, note, users, ratios)


def _verdict(interval: stats.Interval | None) -> Verdict:
    return "no ratio" if interval is None else words.verdict(*interval)


def _setup(document: RunDocument) -> Iterator[tuple[str, str]]:
    """Every setting by its key, as text."""
    for key, value in document.experiment.spec.items():
        if key not in _NO_SETUP:
            yield from _flat(key, value)
    for script in document.experiment.scripts:
        yield f"text of {script.name}", f"sha256 {sha256(script.text.encode()).hexdigest()[:12]}"
    if document.measurement is not None:
        yield _TIER_FOUND, document.measurement.where
    yield "hotset", document.hotset_version
    # What `auto` chose; the rest of these records follows from the settings.
    for name, record, kept in (
        ("machine", document.machine, {"kind", "cores", "memory_bytes", "kernel", "host"}),
        ("tier", document.tier, {"kind", "flash"}),
        ("storage", document.storage, {"kind", "name"}),
        ("database", document.database, {"version"}),
    ):
        if record is not None:
            yield from _flat(f"{name} in use", record.model_dump(mode="json", include=kept))


def _flat(key: str, value: JsonValue) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _flat(f"{key}.{name}", part)
    elif value is not None and value != []:
        yield key, ", ".join(map(str, value)) if isinstance(value, list) else str(value)
