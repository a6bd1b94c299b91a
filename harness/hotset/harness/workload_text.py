"""A TPC-C run and the twelve conditions as text: table, JSON, CSV."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotset.harness.workload import Outcome
from hotset.reports.document import SCHEMA_VERSION
from hotset.reports.tables import csv_text
from hotset.tpcc.consistency import ConditionResult
from hotset.tpcc.record import KindResult, Latency, RunResult, Second

_DIGITS = 2


def run_json(outcome: Outcome) -> str:
    """Everything, second by second. Times are in seconds, latencies in milliseconds."""
    return json.dumps(
        {
            "schema_version": SCHEMA_VERSION,
            "state": "failed" if outcome.cause else "complete",
            "cause": outcome.cause,
            "result": asdict(outcome.result) if outcome.result else None,
            "conditions": None if outcome.conditions is None else _plain(outcome.conditions),
        },
        indent=1,
    )


def run_csv(outcome: Outcome) -> str:
    """The window second by second."""
    names = tuple(Second.__dataclass_fields__)
    rows = outcome.result.series if outcome.result else []
    return csv_text(names, ([getattr(row, name) for name in names] for row in rows))


def run_table(outcome: Outcome) -> RenderableType:
    """Figures by transaction type, failures by cause, what was violated."""
    parts: list[RenderableType] = []
    if outcome.result is not None:
        parts += [_headline(outcome.result, partial=outcome.cause is not None),
                  _by_kind(outcome.result), *_causes(outcome.result)]  # fmt: skip
    if outcome.conditions is not None:
        held = len(outcome.conditions) - len(outcome.broken)
        parts.append(Text(f"consistency: {held} of {len(outcome.conditions)} conditions hold"))
    return Group(*parts)


def conditions_json(results: Iterable[ConditionResult]) -> str:
    """The conditions with their first violations."""
    return json.dumps({"schema_version": SCHEMA_VERSION, "conditions": _plain(results)}, indent=1)


def conditions_csv(results: Iterable[ConditionResult]) -> str:
    """One row per condition."""
    rows = ((one.number, one.title, one.violations) for one in results)
    return csv_text(("number", "title", "violations"), rows)


def conditions_table(results: Iterable[ConditionResult]) -> Table:
    """One line per condition."""
    table = Table(box=None, header_style="bold")
    table.add_column("", justify="right")
    for name in ("condition (clause 3.3.2)", "violations", "such as"):
        table.add_column(name)
    for one in results:
        example = ", ".join(map(str, one.examples[0])) if one.examples else ""
        table.add_row(str(one.number), Text(one.title), f"{one.violations:,}", Text(example))
    return table


def show(renderable: RenderableType) -> None:
    """To standard output."""
    Console(highlight=False).print(renderable)


def _headline(result: RunResult, partial: bool) -> Text:
    seconds = result.window_end - result.window_start
    by_district = result.nopm_by_district
    counted = f", {by_district:,.0f} by the server's count" if by_district is not None else ""
    options = result.options
    return Text(
        f"{'partial: ' if partial else ''}{result.nopm:,.0f} NOPM{counted}; {result.tpm:,.0f} TPM;"
        f" {options.users} users, {options.warehouses} warehouses, {seconds:.1f} s",
        style="bold",
    )


def _by_kind(result: RunResult) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 1))
    table.add_column("", no_wrap=True)
    for name in ("committed", "rolled back", "retries", "failed", "p50 ms", "p95 ms", "p99 ms",
                 "max ms"):  # fmt: skip
        table.add_column(name, justify="right")
    for name, kind in result.kinds.items():
        table.add_row(name.replace("_", "-"), *_counts([kind]), *_figures(kind.latency_ms))
    table.add_row("all", *_counts(result.kinds.values()), *_figures(result.latency_ms))
    return table


def _counts(kinds: Iterable[KindResult]) -> list[str]:
    totals: Counter[str] = Counter()
    for kind in kinds:
        totals["committed"] += kind.committed
        totals["rolled back"] += kind.rolled_back
        totals["retries"] += sum(kind.retries.values())
        totals["failed"] += sum(kind.failed.values())
    return [f"{totals[name]:,}" for name in ("committed", "rolled back", "retries", "failed")]


def _figures(latency: Latency) -> list[str]:
    found = (latency.p50, latency.p95, latency.p99, latency.max)
    return ["-" if value is None else f"{value:.{_DIGITS}f}" for value in found]


def _causes(result: RunResult) -> list[Text]:
    lines = []
    for what in ("retries", "failed"):
        causes: Counter[str] = Counter()
        for kind in result.kinds.values():
            causes.update(getattr(kind, what))
        if causes:
            listed = ", ".join(f"{cause} {count:,}" for cause, count in causes.most_common())
            lines.append(Text(f"{what} by cause: {listed}"))
    return lines


def _plain(results: Iterable[ConditionResult]) -> list[dict[str, Any]]:
    return [
        {
            "number": one.number,
            "title": one.title,
            "holds": one.holds,
            "violations": one.violations,
            "examples": [[_scalar(value) for value in row] for row in one.examples],
        }
        for one in results
    ]


def _scalar(value: object) -> object:
    return value if value is None or isinstance(value, int | float) else str(value)
