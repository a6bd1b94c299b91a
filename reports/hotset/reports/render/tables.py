"""Rows of the tables, and the same rows as CSV (raw figures, units in the column names)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from hotset.core import words
from hotset.core.record import Versioned
from hotset.core.words import csv_text

from ..analysis import answer, measured
from ..model.document import PowerArm, RunDocument, State
from ..model.windows import PowerRun, Query, Repeat, Second
from . import disk_tables

SUMMARY_COLUMNS = (
    "run",
    "state",
    "labels",
    "arm",
    "repeat",
    "nopm",
    "tpm",
    "hit_ratio",
    "read_hit_ratio",
    "write_hit_ratio",
    "latency_ms_p50",
    "latency_ms_p95",
    "latency_ms_p99",
    "server_cpu",
    "server_iowait",
    "server_steal",
    "failed",
    "retries",
    "duration_s",
)
QUERY_COLUMNS = (
    "run",
    "state",
    "labels",
    "arm",
    "repeat",
    "stream",
    "query",
    "seconds",
    "outcome",
    "rows",
    "checksum",
    "cause",
    "hit_ratio_of_run",
    "server_cpu_of_run",
)
LABEL_SEPARATOR = "; "
_COUNTS = ("second", "transactions", "failed", "latency_ms_mean", "latency_ms_p95")
SECOND_COLUMNS = {
    "sql": (*_COUNTS, "late", "skipped"),
    "tpcc": (
        *("second", "new_orders", *_COUNTS[1:], "late", "skipped"),
        *("latency_ms_p50", "latency_ms_p99"),
    ),
}
_PERCENTILES = ("p50", "p95", "p99")


@dataclass(frozen=True, slots=True)
class ListingRow:
    """One line of `hotset runs list`."""

    run: str
    state: State | Literal["unreadable"]
    """``unreadable``: the run is there, and what it is is not known; ``fault`` says why."""
    started_at: datetime
    experiment: str
    machine: str | None = None
    tier: str | None = None
    factor: float | None = None
    factor_ci_low: float | None = None
    factor_ci_high: float | None = None
    significant: bool | None = None
    cpu_bound: bool | None = None
    labels: tuple[str, ...] = ()
    measurement: str | None = None
    """The operation that measured; None of experiments."""
    label: str | None = None
    """Label that its user gave it."""
    value: float | None = None
    """Result of a measurement, in ``unit``."""
    unit: str | None = None
    fault: str = ""
    under_way: str | None = None
    """Step it is at, or was at when it was cut short; None where it is known to have ended."""

    @property
    def doubt(self) -> str | None:
        """The label of its factor."""
        low, high = self.factor_ci_low, self.factor_ci_high
        return words.doubt(self.factor, low, high) if self.factor is not None else None

    @classmethod
    def unreadable(cls, run: str, started_at: datetime, fault: str) -> ListingRow:
        """Row of a run whose document cannot be read."""
        name = run.partition("-")[2].partition("-")[2] or run
        return cls(run, "unreadable", started_at, name, fault=fault)

    @classmethod
    def from_document(cls, document: RunDocument) -> ListingRow:
        machine, tier, factor = document.machine, document.tier, document.factor()
        where = tiered = None
        if machine is not None:
            where = machine.kind
        if tier is not None:
            tiered = f"{tier.kind} {tier.mode}"
        row = cls(
            run=document.run,
            state=document.state,
            started_at=document.started_at,
            experiment=document.experiment.name,
            machine=where,
            tier=tiered,
            labels=answer.conditions(document),
            under_way=document.under_way,
        )
        if document.measurement is not None:
            value, unit = measured.value(document)
            row = replace(
                row,
                tier=document.measurement.where.partition(":")[0],
                measurement=document.measurement.of,
                label=document.measurement.label,
                value=value,
                unit=unit,
            )
        if factor is None:
            return row
        return replace(
            row,
            factor=factor.ratio,
            factor_ci_low=factor.ci_low if factor.has_interval else None,
            factor_ci_high=factor.ci_high if factor.has_interval else None,
            significant=factor.significant if factor.has_interval else None,
            cpu_bound=factor.cpu_bound,
        )


@dataclass(frozen=True)
class Runs(Versioned):
    """`hotset runs list`."""

    runs: tuple[ListingRow, ...]


def summary_csv(document: RunDocument) -> str:
    """One line per arm and repeat; of modelled disks one per disk, or value of an array."""
    if document.disks is not None:
        return disk_tables.csv(document.disks.model_dump())
    labels = LABEL_SEPARATOR.join((*answer.conditions(document), *answer.verdicts(document)))
    rows = []
    for arm in answer.arms(document):
        for repeat in arm.repeats:
            latency = repeat.latency_ms
            rows.append(
                (
                    document.run,
                    document.state,
                    labels,
                    arm.name,
                    repeat.repeat,
                    repeat.nopm,
                    repeat.tpm,
                    repeat.hit_ratio,
                    repeat.read_hit_ratio,
                    repeat.write_hit_ratio,
                    latency and latency.p50,
                    latency and latency.p95,
                    latency and latency.p99,
                    repeat.server_cpu,
                    repeat.server_iowait,
                    repeat.server_steal,
                    repeat.failed,
                    repeat.retries,
                    repeat.duration_s,
                )
            )
    return csv_text(SUMMARY_COLUMNS, rows)


def queries_csv(document: RunDocument) -> str:
    """One line per arm, repeat and TPC-H query, in the order they ran: the power run as stream 0,
    then the streams of a throughput run."""
    labels = LABEL_SEPARATOR.join(answer.conditions(document))
    rows = [
        (
            document.run,
            document.state,
            labels,
            arm.name,
            run.repeat,
            stream,
            *dict(query).values(),
            run.hit_ratio,
            run.server_cpu,
        )
        for arm in document.power_arms
        for run, stream, queries in _streams(arm)
        for query in queries
    ]
    return csv_text(QUERY_COLUMNS, rows)


def _streams(arm: PowerArm) -> Iterator[tuple[PowerRun, int, tuple[Query, ...]]]:
    """The queries of each stream, and the power run before them."""
    for run in arm.repeats:
        yield run, 0, run.queries
    for stream in arm.throughput.streams if arm.throughput else ():
        yield arm.repeats[-1], stream.number, stream.queries


def windows_csv(document: RunDocument) -> str:
    """A measurement's window second by second, or of a curve a row for each number of users.

    ``cpu_share`` is of the users' time.
    """
    workload = document.timed or "tpcc"
    windows = [window for _, window in answer.label_windows(document)]
    if len(windows) > 1:
        rates = ("tps",) if workload == "sql" else ("nopm", "tpm")
        latencies = (f"{name}_ms" for name in _PERCENTILES)
        columns = ("users", *rates, *latencies, "cpu_share", "failed")
        return csv_text(columns, map(_curve_row, windows))
    names = SECOND_COLUMNS[workload]
    rows = (_second(second) for window in windows for second in window.series)
    return csv_text(names, ([row[name] for name in names] for row in rows))


def _second(second: Second) -> dict[str, object]:
    """With counts in place of rates."""
    new_orders = None if second.nopm is None else round(second.nopm / 60)
    counts = {"new_orders": new_orders, "transactions": round(second.tpm / 60)}
    return {**dict(second), **counts}


def _curve_row(window: Repeat) -> tuple[object, ...]:
    rates = (window.rate,) if window.nopm is None else (window.nopm, window.tpm)
    latencies = (getattr(window.latency_ms, name, None) for name in _PERCENTILES)
    return window.users, *rates, *latencies, window.time and window.time.cpu, window.failed
