"""Thresholds of an experiment: what they can name, and whether a run met them.

``[thresholds]`` of the file has a comparison or several by metric (``factor = ">=5"``); the command
line gives them as one text (``factor>=5``). A metric without an arm in brackets is the accelerated
arm's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from hotset.bench.thresholds import Threshold, Values, judge, read
from hotset.reports.analysis import answer, power
from hotset.reports.analysis.answer import ArmFigures
from hotset.reports.analysis.comparison import highest
from hotset.reports.model.base import ArmName, TimedWorkload
from hotset.reports.model.document import Factor, RunDocument
from hotset.reports.model.windows import Verdict

Given = Mapping[str, str | list[str]]
"""Thresholds as the file has them."""
_ARM: ArmName = "accelerated"
_RATIOS = ("factor", "factor_low", "of_all_flash")
"""``factor_low`` is the lower end of the factor's 95 % interval."""
_PERCENTILES = {"p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "p99.9": "p99_9"}
_THROUGHPUT: dict[TimedWorkload, tuple[str, ...]] = {"tpcc": ("nopm", "tpm"), "sql": ("tps",)}
_OF_ARM = (*_PERCENTILES, "hit_ratio", "cpu", "failed", "retries")
_QUERIES = "queries"
"""Time that the 22 queries took together."""
_HIGHEST = "highest_rate"
"""Transactions a second that meet the experiment's limits."""
_RATE_RATIOS = ("rate_factor", "rate_factor_low")
_WARMUP = ("warmup", "probe_hit_ratio")


@dataclass(frozen=True, slots=True)
class Measures:
    """The kinds of measurement in an experiment.

    :ivar timed: the workload of many users, where there is one.
    :ivar queries: True if TPC-H is run.
    :ivar searches: True if the highest rate is searched for.
    :ivar at_a_rate: True if transactions arrive at a given rate, which leaves no factor.
    """

    timed: TimedWorkload | None
    queries: bool
    searches: bool = False
    at_a_rate: bool = False


def metrics(arms: Sequence[ArmName], measured: Measures) -> list[str]:
    """List the metrics that a threshold can name."""
    of_arm = (
        *((*_THROUGHPUT[measured.timed], *_OF_ARM) if measured.timed else ()),
        *((_HIGHEST,) if measured.searches else ()),
        *((_QUERIES,) if measured.queries else ()),
    )
    per_arm = [f"{name}({arm})" for arm in arms for name in of_arm]
    if _ARM not in arms:
        return per_arm
    ratios = [
        *(_RATIOS if measured.timed and not measured.at_a_rate else ()),
        *([f"{name}(tpch)" for name in _RATIOS] if measured.queries else ()),
        *(_RATE_RATIOS if measured.searches else ()),
    ]
    return [*ratios, *of_arm, *_WARMUP, *per_arm]


def main(document: RunDocument) -> str:
    """The metric that a run is about."""
    if document.disks is not None and document.disks.bench:
        return f"mb_per_s({document.disks.bench[0].name})"
    return _THROUGHPUT[document.timed][0] if document.timed else _QUERIES


_LOWER_IS_BETTER = {*_PERCENTILES, "latency", "cpu", "failed", "retries", _QUERIES, "warmup"}


def lower_is_better(metric: str) -> bool:
    """
    >>> lower_is_better("p95(baseline)"), lower_is_better("nopm")
    (True, False)
    """
    return metric.partition("(")[0] in _LOWER_IS_BETTER


def limits(
    given: Given, more: Sequence[str], arms: Sequence[ArmName], measured: Measures
) -> list[Threshold]:
    """The thresholds of a file and those of the command line.

    :raises ThresholdFormError: one cannot be read or names what the experiment does not measure.
    """
    texts = [
        f"{metric}{comparison}"
        for metric, comparisons in given.items()
        for comparison in ([comparisons] if isinstance(comparisons, str) else comparisons)
    ]
    return read((*texts, *more), metrics(arms, measured))


def judge_run(document: RunDocument, limits: Sequence[Threshold]) -> tuple[Verdict, ...]:
    """A verdict on each, for the document."""
    measured = values(document)
    known = {limit.metric: measured.get(limit.metric) for limit in limits}
    return tuple(judge(limits, known))


def values(document: RunDocument) -> Values:
    """Return the measured values, by metric; times in ms."""
    values: dict[str, float | None] = {}
    for arm in answer.arms(document):
        values |= {f"{name}({arm.name})": value for name, value in _figures(document, arm)}
    for queried in power.arms(document):
        if queried.complete:
            values[f"{_QUERIES}({queried.name})"] = queried.total_s * 1000
    suffix = f"({_ARM if document.measurement is None else 'measured'})"
    values |= {
        name.removesuffix(suffix): value for name, value in values.items() if name.endswith(suffix)
    }
    for line in document.disks.bench if document.disks else ():
        median = line.median
        figures = (median.mb_per_s, median.iops, median.latency_us / 1000)
        names = ("mb_per_s", "iops", "latency")
        values |= {
            f"{name}({line.name})": value for name, value in zip(names, figures, strict=True)
        }
    for factor, named in ((document.factor(), ""), (document.factor("tpch"), "(tpch)")):
        if factor is not None:
            ratios = (factor.ratio, _low(factor), factor.of_all_flash)
            values |= {f"{name}{named}": value for name, value in zip(_RATIOS, ratios, strict=True)}
    if (felt := document.rate_factor) is not None:
        values |= dict(zip(_RATE_RATIOS, (felt.ratio, _low(felt)), strict=True))
    if document.warmup is not None:
        warmed = (document.warmup.seconds * 1000, document.warmup.probe_hit_ratio)
        values |= dict(zip(_WARMUP, warmed, strict=True))
    return values


def _low(factor: Factor) -> float | None:
    """The interval's lower end, where there is an interval."""
    return factor.ci_low if factor.has_interval else None


def _figures(document: RunDocument, arm: ArmFigures) -> Iterator[tuple[str, float | None]]:
    if document.timed is not None:
        yield from zip(_THROUGHPUT[document.timed], (arm.rate, arm.tpm), strict=False)
    yield _HIGHEST, highest.mean_rate(document, arm.name)
    yield from (("hit_ratio", arm.hit_ratio), ("cpu", arm.server_cpu))
    yield from (("failed", arm.failed), ("retries", arm.retries))
    for name, field in _PERCENTILES.items():
        yield name, getattr(arm.latency_ms, field) if arm.latency_ms else None
