"""One set-up over time: the runs of it that the archive holds, and what one value did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from hotset.core import extras, words
from hotset.core.errors import Remedy, RequestError
from hotset.reports.analysis.comparison import compare, pool
from hotset.reports.analysis.comparison import trend as trends
from hotset.reports.analysis.comparison.compare import Labelled
from hotset.reports.analysis.comparison.trend import Sample, Trend
from hotset.reports.archive import Archive, NoSuchRunError
from hotset.reports.model.document import RunDocument

from . import verdicts


def trend(
    archive: Archive, of: RunDocument, metric: str | None, limit: int
) -> tuple[Trend, tuple[tuple[str, ...], ...]]:
    """A value over the runs of one set-up, and what else changed with each change of its level.

    :param of: any run of the set-up.
    :param metric: None: the throughput, or without one the time of the queries.
    :param limit: how many of the newest runs count.
    :raises RequestError: that run did not measure the value, or it was 0.
    :raises ExtraMissingError: what finds the changes is not installed.
    """
    metric = metric or verdicts.main(of)
    if _value(of, metric) is None:
        known = ", ".join(metrics(of)) or "no values"
        raise RequestError(
            f"run {of.run} measured no {metric!r}; it has {known}",
            field="metric",
        )
    runs = list(islice(_same(archive, of), limit))[::-1]
    measured = [(run, value) for run in runs if (value := _value(run, metric)) is not None]
    samples = [Sample(run.run, run.started_at, value) for run, value in measured]
    to_know = way_to_know(of, of)
    with extras.explained():
        trend = trends.find_trend(metric, samples, verdicts.lower_is_better(metric), to_know)
    with_it = tuple(
        tuple(map(str, compare.differences(measured[change.at - 1][0], measured[change.at][0])))
        for change in trend.changes
    )
    return trend, with_it


def load(archive: Archive, name: str, force: bool) -> tuple[RunDocument, Labelled | None]:
    """A run, or all complete measurements of a label as one, and which these are.

    :param name: a run's id, the beginning of one, ``last``, or a label.
    :param force: pool what differs.
    :raises NoSuchRunError: there is none.
    :raises SetUpsDiffer: measurements of the label differ.
    """
    if name == "last" or not re.fullmatch(words.LABEL_PATTERN, name):
        return archive.load(name), None
    every = archive.listing()[::-1]
    rows = [row for row in every if row.label == name]
    complete = [row.run for row in rows if row.state == "complete"]
    if not complete:
        what = "complete measurement" if rows else "run and no measurement"
        raise NoSuchRunError(
            f"no {what} is labelled {name!r}", Remedy("see all runs", "runs list"), field="runs"
        )
    left_out = tuple(row.run for row in rows if row.state != "complete")
    pooled = pool.pool(name, [archive.load(run) for run in complete], force)
    unreadable = tuple(row.run for row in every if row.state == "unreadable")
    return pooled, Labelled(name, tuple(complete), left_out, unreadable)


def way_to_know(first: RunDocument, other: RunDocument) -> str:
    """The command that measures both in turn; of experiments, what was."""
    if first.measurement is None or other.measurement is None:
        return "an experiment's arms are, so the metric factor tells more"
    names = [document.run for document in (first, other)]
    if names[0] != names[1] and all(re.match(words.LABEL_PATTERN, name) for name in names):
        return f"hotset runs alternate {names[0]} {names[1]}"
    return f"hotset runs alternate before after --like {other.run}"


def metrics(run: RunDocument) -> list[str]:
    """List the metrics that can be followed."""
    return [name for name, value in verdicts.values(run).items() if value]


def _value(run: RunDocument, metric: str) -> float | None:
    """None where there is nothing to compare by a ratio."""
    return verdicts.values(run).get(metric) or None


def _same(archive: Archive, of: RunDocument) -> Iterator[RunDocument]:
    """The complete runs of the same set-up, the newest first."""
    for row in archive.listing():
        if row.state == "complete" and row.experiment == of.experiment.name:
            run = archive.load(row.run)
            if compare.same_over_time(of, run):
                yield run
