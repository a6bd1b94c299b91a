"""Metrics of a TPC-H run that thresholds can name."""

from __future__ import annotations

from collections.abc import Sequence

from hotset.reports.analysis.power import whole_mean_s
from hotset.reports.model.windows import PowerRun, ThroughputRun, Verdict
from hotset.tpch.queries import ALL

from .thresholds import Threshold, Values, judge, read

METRICS = (
    *("queries", "geomean", "power", "throughput", "composite", "failed"),
    *(f"query({number})" for number in ALL),
)
"""``queries`` is the time that all took together, ``power`` and the next two are TPROC-H's."""


def limits(texts: Sequence[str]) -> list[Threshold]:
    """
    :raises ThresholdFormError: one cannot be read or names no metric of a TPC-H run.
    """
    return read(texts, METRICS)


def judge_queries(
    limits: Sequence[Threshold], power: PowerRun, throughput: ThroughputRun | None
) -> list[Verdict]:
    return judge(limits, values(power, throughput))


def values(power: PowerRun, throughput: ThroughputRun | None) -> Values:
    """By metric, times in ms; a total with a query that did not finish is none."""
    unfinished = [query for query in power.queries if query.outcome != "ok"]
    geometric_mean_s = whole_mean_s(power)
    values: dict[str, float | None] = dict.fromkeys(METRICS)
    values |= {
        "queries": None if unfinished or power.cause else power.total_s * 1000,
        "geomean": None if geometric_mean_s is None else geometric_mean_s * 1000,
        "power": power.tproc_h_power,
        "failed": len(unfinished),
    }
    if throughput is not None:
        values["throughput"] = throughput.tproc_h_throughput
        values["composite"] = throughput.tproc_h_composite
    return values | {
        f"query({query.number})": query.seconds * 1000
        for query in power.queries
        if query.outcome == "ok"
    }
