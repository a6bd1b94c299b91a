"""TPC-H in a report: each arm's power runs as figures, the answer, and what to doubt about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import fmean

from hotset.core import words

from ..model.base import ArmName
from ..model.document import PowerArm, RunDocument
from ..model.windows import PowerRun
from . import answer

QUERIES = range(1, 23)


@dataclass(frozen=True, slots=True)
class PowerFigures:
    """One arm over its repeats.

    seconds           mean seconds by query; a query that failed in a repeat has none
    total_s           mean of the repeats' totals
    geometric_mean_s  mean of theirs; None when a query did not finish
    """

    name: ArmName
    repeats: tuple[PowerRun, ...]
    seconds: dict[int, float]
    total_s: float
    geometric_mean_s: float | None
    hit_ratio: float | None
    server_cpu: float | None
    complete: bool


def arms(document: RunDocument) -> list[PowerFigures]:
    """The arms that were measured, in the order of the report."""
    measured = [document.power_arm(name) for name in answer.ARM_ORDER]
    return [figures(arm) for arm in measured if arm is not None]


def figures(arm: PowerArm) -> PowerFigures:
    runs = arm.repeats
    by_query = {
        number: [query for run in runs for query in run.queries if query.number == number]
        for number in QUERIES
    }
    means = [run.geometric_mean_s for run in runs if run.geometric_mean_s is not None]
    return PowerFigures(
        name=arm.name,
        repeats=runs,
        seconds={
            number: fmean(query.seconds for query in queries)
            for number, queries in by_query.items()
            if queries and all(query.outcome == "ok" for query in queries)
        },
        total_s=fmean(run.total_s for run in runs),
        geometric_mean_s=fmean(means) if arm.complete else None,
        hit_ratio=answer.mean_of(run.hit_ratio for run in runs),
        server_cpu=answer.mean_of(run.server_cpu for run in runs),
        complete=arm.complete,
    )


def headline(document: RunDocument) -> str | None:
    """TPC-H's answer in one sentence; None when it was not run.

    The factor is of the totals, the geometric means are beside it: one slow query rules the
    first, all queries count alike in the second.
    """
    if not document.power_arms:
        return None
    base, fast = document.power_arm("baseline"), document.power_arm("accelerated")
    factor = document.factor("tpch")
    if base is None or fast is None or factor is None:
        return f"No factor for the 22 queries: {_why_none(document)}."
    before, after = figures(base), figures(fast)
    sentence = (
        f"The {len(after.seconds)} TPC-H queries took {words.duration(after.total_s)} instead of"
        f" {words.duration(before.total_s)}: {words.factor(factor.ratio)} as fast"
        f" ({answer.interval(document, factor, timed=False)}{_geometric(before, after)})"
    )
    if factor.of_all_flash is not None:
        sentence += f", at {words.percent(factor.of_all_flash, 0)} of all-flash"
    return answer.claim(factor, f"{sentence}.")


def _geometric(before: PowerFigures, after: PowerFigures) -> str:
    if not before.geometric_mean_s or not after.geometric_mean_s:
        return ""
    return f"; geometric means {words.factor(before.geometric_mean_s / after.geometric_mean_s)}"


def _why_none(document: RunDocument) -> str:
    for name in answer.COMPARED:
        arm = document.power_arm(name)
        if arm is None:
            return f"{name} was not measured"
        if not arm.complete:
            return f"in {name} {name_unfinished(arm)} did not finish"
    return "the run has no factor"


def name_unfinished(arm: PowerArm) -> str:
    """The queries of an arm that timed out or failed, in words."""
    numbers = {
        query.number for run in arm.repeats for query in run.queries if query.outcome != "ok"
    }
    rest = ["what was to follow"] if any(run.cause for run in arm.repeats) else []
    return words.enumerate_words([*(f"query {number}" for number in sorted(numbers)), *rest])


def differing(document: RunDocument) -> list[int]:
    """Queries whose answers are not the same in all arms and repeats."""
    answers: dict[int, set[tuple[int | None, str | None]]] = {}
    for arm in document.power_arms:
        for run in arm.repeats:
            for query in run.queries:
                if query.outcome == "ok":
                    answers.setdefault(query.number, set()).add((query.rows, query.checksum))
    return sorted(number for number, given in answers.items() if len(given) > 1)


def seconds(number: float | None) -> str:
    """
    >>> seconds(0.0123), seconds(4.26), seconds(381.2), seconds(None)
    ('0.012', '4.26', '381', '–')
    """
    if number is None:
        return words.ABSENT
    if number >= 100:
        return f"{number:,.0f}"
    return f"{number:.2f}" if number >= 0.1 else f"{number:.3f}"


def rows(document: RunDocument) -> list[tuple[str, ...]]:
    """A row per query: its number, mean seconds in each arm, baseline / accelerated; then sums."""
    measured = arms(document)
    by_name = {arm.name: arm for arm in measured}
    lines: list[tuple[str, ...]] = []
    for number in QUERIES:
        each = [arm.seconds.get(number) for arm in measured]
        if any(arm_seconds is not None for arm_seconds in each):
            compared = [
                by_name[name].seconds.get(number) if name in by_name else None
                for name in answer.COMPARED
            ]
            lines.append((str(number), *map(seconds, each), _ratio(*compared)))
    totals = [arm.total_s if arm.complete else None for arm in measured]
    means = [arm.geometric_mean_s for arm in measured]
    for label, values in (("total", totals), ("geometric mean", means)):
        named = dict(zip(by_name, values, strict=True))
        compared = [named.get(name) for name in answer.COMPARED]
        lines.append((label, *map(seconds, values), _ratio(*compared)))
    return lines


RUN_COLUMNS = ("query", "seconds", "rows", "outcome", "checksum")


def run_rows(run: PowerRun) -> list[tuple[str, ...]]:
    """A row per query of one run, of `RUN_COLUMNS`, in the order they ran."""
    return [
        (
            str(query.number),
            f"{query.seconds:.3f}",
            "" if query.rows is None else f"{query.rows:,}",
            query.outcome,
            query.checksum or "",
        )
        for query in run.queries
    ]


def run_title(run: PowerRun) -> str:
    seed = "validation parameters" if run.seed is None else f"seed {run.seed}"
    return f"TPC-H power run at scale {run.scale:g}, {seed}" if run.scale else "TPC-H power run"


def whole_mean_s(run: PowerRun) -> float | None:
    """Geometric mean of all 22 queries; None where some were left out or did not finish."""
    return run.geometric_mean_s if len(run.queries) == len(QUERIES) else None


def run_notes(arm: PowerArm) -> Iterator[str]:
    """The sums of a measurement's last power run, and of the throughput run after it."""
    run, streams = arm.repeats[-1], arm.throughput
    mean_s = whole_mean_s(run)
    mean = f"; geometric mean {mean_s:.3f} s" if mean_s else ""
    which = "All queries" if run.complete else "What was run, and not all of it ended,"
    yield f"{which} took {run.total_s:.3f} s{mean}."
    if run.refresh_s is not None:
        yield "RF1 took {:.3f} s, RF2 {:.3f} s.".format(*run.refresh_s)
    if streams is not None:
        count = words.plural(len(streams.streams), "stream")
        ended = "" if streams.complete else ", in which not all queries ended"
        if streams.cause:
            ended = f", and ended early: {streams.cause}"
        yield f"{count} took {streams.duration_s:.3f} s{ended}."
    tproc_h = {
        "power": run.tproc_h_power,
        "throughput": streams and streams.tproc_h_throughput,
        "composite": streams and streams.tproc_h_composite,
    }
    figures = [f"{name} {value:,.1f}" for name, value in tproc_h.items() if value is not None]
    if figures:
        yield f"TPROC-H {words.enumerate_words(figures)}."
    yield "TPROC-H figures, derived from TPC-H: not audited TPC results, not comparable with such."


def columns(document: RunDocument) -> tuple[str, ...]:
    """The heads of `rows`."""
    return ("query", *(f"{arm.name} s" for arm in arms(document)), "factor")


def _ratio(before: float | None, after: float | None) -> str:
    return words.factor(before / after) if before and after else words.ABSENT
