"""What a run of TPC-C and its twelve conditions show that other workloads do not have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from hotset.core.record import Versioned
from hotset.core.words import percent, plural
from hotset.reports.model.document import RunDocument
from hotset.reports.model.windows import Condition, Repeat

from . import tpcc_metrics
from .thresholds import verdict

COUNTS = ("committed", "rolled back", "retries", "failed")
SECOND = (
    "second",
    "new_orders",
    "transactions",
    "failed",
    "latency_ms_mean",
    "latency_ms_p95",
    "late",
    "skipped",
    "latency_ms_p50",
    "latency_ms_p99",
)
"""Columns of a window second by second."""
_DOUBT = "yellow"
_DRAWN = {"nurand": "NURand", "uniform": "uniform"}


@dataclass(frozen=True)
class TpccConditions(Versioned):
    """The twelve conditions."""

    conditions: tuple[Condition, ...]


def headline(document: RunDocument, window: Repeat) -> str:
    """Throughput, and of how much."""
    by_district = window.nopm_by_district
    counted = f", {by_district:,.0f} by the server's count" if by_district is not None else ""
    warehouses = _setting(document, "warehouses")
    size = f", {plural(warehouses, 'warehouse')}" if isinstance(warehouses, int) else ""
    return (
        f"{window.rate:,.0f} NOPM{counted}; {window.tpm:,.0f} TPM;"
        f" {plural(window.users or 0, 'user')}{size}, {window.duration_s:.1f} s"
    )


def response_times(window: Repeat) -> Text:
    """Whether TPC-C's own limits on them were kept; of what was not measured it is not known."""
    values = tpcc_metrics.values(window)
    verdicts = [verdict(one, values.get(one.metric)) for one in tpcc_metrics.limits(["tpc-c"])]
    missed = [one.said for one in verdicts if one.measured is not None and not one.met]
    unknown = [one.said for one in verdicts if one.measured is None]
    said = "; ".join(missed + unknown)
    if not said:
        said = "kept, 90 % of each kind within 5 s, of stock-level within 20 s"
    return Text(f"TPC-C's limits on response times: {said}", style=_DOUBT if missed else "")


def workload(document: RunDocument, window: Repeat) -> Iterator[Text]:
    """What it may be compared with: the database's age, and how rows were drawn."""
    before = window.orders_before
    if before is not None:
        yield Text(f"age: {before:,} orders since the load, with those of this run's ramp-up")
    parts = [f"driver {_setting(document, 'driver')}"]
    if window.items is not None:
        parts.append(f"items {_DRAWN[window.items]}")
    if window.hottest_fifth is not None:
        share = percent(window.hottest_fifth, 0)
        parts.append(f"{share} of stock's accesses on 20 % of its blocks")
    parts.append(f"isolation {window.isolation or 'not known'}")
    if window.seed is not None:
        parts.append(f"seed {window.seed}")
    yield Text(f"workload: {', '.join(parts)}")


def _setting(document: RunDocument, name: str) -> object:
    settings = document.experiment.spec["tpcc"]
    assert isinstance(settings, Mapping)
    return settings[name]


def consistency(conditions: Sequence[Condition]) -> Text:
    """How many of them hold."""
    held, count = sum(one.holds for one in conditions), len(conditions)
    style = "" if held == count else _DOUBT
    return Text(f"consistency: {held} of {count} conditions hold", style=style)


def conditions_table(conditions: Sequence[Condition]) -> Table:
    """One line per condition."""
    table = Table(box=None, header_style="bold")
    table.add_column("condition (clause 3.3.2)")
    table.add_column("violations", justify="right")
    table.add_column("such as")
    for condition in conditions:
        example = ", ".join(map(str, condition.examples[0])) if condition.examples else ""
        table.add_row(
            Text(f"{condition.number:2} {condition.title}"),
            f"{condition.violations:,}",
            Text(example),
        )
    return table
