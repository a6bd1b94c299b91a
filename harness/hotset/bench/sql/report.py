"""A run of SQL scripts, or a curve, as text: table, JSON, CSV."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from hotset.load.record import WindowResult
from hotset.reports.model.schema import SCHEMA_VERSION
from hotset.reports.model.words import plural
from hotset.reports.render.plain import csv_text

from .. import window_report
from .run import Outcome
from .users import SqlWorkload

_SECOND = (
    "second",
    "transactions",
    "failed",
    "latency_ms_mean",
    "latency_ms_p95",
    "late",
    "skipped",
)


def document(points: Sequence[Outcome], workload: SqlWorkload) -> dict[str, Any]:
    """A run, or the runs of a curve; of a curve the values beside it are its last run's.

    Times are in seconds, latencies in milliseconds.
    """
    found = {
        "schema_version": SCHEMA_VERSION,
        "scripts": [
            {"name": one.name, "file": one.file, "weight": one.weight} for one in workload.sources
        ],
        "protocol": workload.protocol,
        **_run(points[-1]),
    }
    if len(points) == 1:
        return {**found, "curve": None}
    drawn = window_report.curve_document(points, list(map(_run, points)), _tps)
    return {**found, "result": None, "time": None, "sampled": None, "curve": drawn}


def _run(outcome: Outcome) -> dict[str, Any]:
    result = outcome.result
    return {
        "state": outcome.state,
        "cause": outcome.cause,
        "tps": result.tpm / 60 if result else None,
        "result": asdict(result) if result else None,
        "thresholds": [one.as_dict() for one in outcome.verdicts],
        "find_rate": outcome.found and window_report.search_document(outcome.found),
        "time": outcome.time_use and window_report.time_document(outcome.time_use),
        "sampled": outcome.server and window_report.server_document(outcome.server),
        "warnings": [asdict(one) for one in window_report.warnings(outcome)],
    }


def csv(points: Sequence[Outcome]) -> str:
    """The window second by second, or of a curve a row for each number of users."""
    if len(points) > 1:
        columns = ("users", "tps", *window_report.CURVE_COLUMNS)
        return csv_text(columns, (_curve_row(one) for one in points if one.result is not None))
    rows = points[0].result.series if points[0].result else []
    return csv_text(_SECOND, ([getattr(row, name) for name in _SECOND] for row in rows))


def _curve_row(outcome: Outcome) -> tuple[object, ...]:
    assert outcome.result is not None
    users, tps = outcome.result.options.users, _tps(outcome.result)
    return users, tps, *window_report.curve_row(outcome)


def table(points: Sequence[Outcome]) -> RenderableType:
    """A run or a curve, and what was judged."""
    if len(points) == 1:
        return _run_table(points[0])
    drawn = window_report.curve_table(points, _tps, "TPS")
    warned = window_report.curve_warnings(points, window_report.warnings)
    return Group(drawn, *warned, *window_report.curve_verdicts(points))


def _run_table(outcome: Outcome) -> RenderableType:
    parts: list[RenderableType] = []
    if outcome.found is not None:
        parts += window_report.search(outcome.found)
    result = outcome.result
    if result is not None:
        parts += [
            _headline(result, partial=outcome.is_partial),
            *window_report.describe_arrivals(result),
            window_report.by_kind(result, counts=("committed", "failed")),
            window_report.latencies(result),
            *window_report.causes(result),
        ]
    parts += window_report.warning_lines(window_report.warnings(outcome))
    if outcome.time_use is not None and outcome.result is not None:
        parts += window_report.time_text(outcome.time_use, outcome.result.tpm)
    if outcome.server is not None:
        parts += window_report.server_text(outcome.server)
    return Group(*parts, *(Text(str(verdict)) for verdict in outcome.verdicts))


def _headline(result: WindowResult, partial: bool) -> Text:
    seconds = result.window_end - result.window_start
    users = plural(result.options.users, "user")
    before = "partial: " if partial else ""
    seed = f"seed {result.options.seed}"
    return Text(f"{before}{_tps(result):,.1f} TPS; {users}, {seconds:.1f} s, {seed}", style="bold")


def figures(points: Sequence[Outcome]) -> dict[str, str]:
    """The values that one asks for first."""
    if len(points) > 1:
        return window_report.curve_figures(points, _tps, "TPS")
    result = points[0].result
    if result is None:
        return {}
    return {"TPS": f"{_tps(result):,.1f}", **window_report.figures(result)}


def _tps(result: WindowResult) -> float:
    return result.tpm / 60
