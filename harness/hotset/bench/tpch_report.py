"""Results of TPC-H runs and checks: records, tables and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotset.core.errors import ThresholdError
from hotset.core.record import Versioned
from hotset.core.words import csv_text
from hotset.reports.model.windows import Query, Verdict
from hotset.reports.render.page import Page, Table, of_table
from hotset.tpch.check import CheckResult
from hotset.tpch.record import PowerResult, ThroughputResult, composite

if TYPE_CHECKING:
    from rich.console import Console

_NOTE = "TPROC-H figures, derived from TPC-H: not audited TPC results, not comparable with such."


@dataclass(frozen=True)
class TpchRun(Versioned):
    """A power run and, if there was one, a throughput run; the composite is of both. ``run``: what
    the power run is in the archive; None: not kept."""

    note: str
    thresholds: tuple[Verdict, ...]
    power: PowerResult
    throughput: ThroughputResult | None
    tproc_h_composite: float | None
    run: str | None

    @classmethod
    def from_power(
        cls,
        power: PowerResult,
        throughput: ThroughputResult | None,
        verdicts: Sequence[Verdict] = (),
        run: str | None = None,
    ) -> TpchRun:
        both = None if throughput is None else composite(power, throughput)
        return cls(_NOTE, tuple(verdicts), power, throughput, both, run)


@dataclass(frozen=True)
class TpchCheck(CheckResult, Versioned):
    """Result of a check."""

    def show(self, console: Console) -> None:
        from hotset.reports.render import terminal

        terminal.result(check_page(self), console)

    def csv(self) -> str:
        """A line for each thing that was checked."""
        return csv_text(("what", "found", "verdict", "detail"), _check_rows(self))

    def failure(self) -> Exception | None:
        return None if self.holds else ThresholdError("the database is not as TPC-H requires")


def run_csv(power: PowerResult, throughput: ThroughputResult | None) -> str:
    """A line for each query of each stream, the power run as stream 0."""
    header = ("stream", "query", "seconds", "outcome", "rows", "checksum", "cause")
    rows = (
        (
            stream,
            query.number,
            f"{query.seconds:.6f}",
            query.outcome,
            query.rows,
            query.checksum,
            query.cause,
        )
        for stream, query in _results(power, throughput)
    )
    return csv_text(header, rows)


def check_page(result: CheckResult) -> Page:
    """A line for each thing that was checked, and how many are wrong."""
    rows = list(_check_rows(result))
    wrong = [row for row in rows if row[2] in ("wrong", "different", "failed")]
    text = f"{len(wrong)} of {len(rows)} checks failed" if wrong else f"all {len(rows)} checks hold"
    table = Table(
        f"TPC-H at scale {result.scale:g}",
        ("", "found", "verdict", "detail"),
        tuple((what, f"{number:,}", verdict, detail) for what, number, verdict, detail in rows),
        sentences="detail",
    )
    return of_table(table, judged=((text, not wrong),))


def _results(
    power: PowerResult, throughput: ThroughputResult | None
) -> Iterator[tuple[int, Query]]:
    """Every query of every stream, the power run as stream 0."""
    yield from ((0, query) for query in power.queries)
    for stream in throughput.streams if throughput else ():
        yield from ((stream.number, query) for query in stream.queries)


def run_page(run: TpchRun) -> Page:
    """Query by query, with their totals."""
    power = run.power
    seed = "validation parameters" if power.seed is None else f"seed {power.seed}"
    rows = tuple(
        (
            str(query.number),
            f"{query.seconds:.3f}",
            "" if query.rows is None else f"{query.rows:,}",
            query.outcome,
            query.checksum or "",
        )
        for query in power.queries
    )
    caption = f"TPC-H power run at scale {power.scale:g}, {seed}"
    table = Table(caption, ("query", "seconds", "rows", "outcome", "checksum"), rows, names=0)
    return of_table(
        table,
        tuple(_figures(run)),
        tuple((threshold.text, threshold.met) for threshold in run.thresholds),
    )


def _figures(run: TpchRun) -> Iterator[str]:
    power, throughput = run.power, run.throughput
    complete = "" if power.complete else " (incomplete: not all 22 queries finished)"
    yield f"total                {power.total_s:.3f} s{complete}"
    if power.geometric_mean_s is not None:
        yield f"geometric mean       {power.geometric_mean_s:.3f} s"
    if power.refresh_s is not None:
        yield "RF1, RF2             {:.3f} s, {:.3f} s".format(*power.refresh_s)
    if power.power is not None:
        yield f"TPROC-H power        {power.power:,.1f}"
    if throughput is not None:
        complete = "" if throughput.complete else " (incomplete)"
        yield f"{len(throughput.streams):2} streams           {throughput.seconds:.3f} s{complete}"
        if throughput.throughput is not None:
            yield f"TPROC-H throughput   {throughput.throughput:,.1f}"
        if run.tproc_h_composite is not None:
            yield f"TPROC-H composite    {run.tproc_h_composite:,.1f}"
    yield _NOTE


def _check_rows(result: CheckResult) -> Iterator[tuple[str, int, str, str]]:
    for table in result.tables:
        detail = "" if table.holds else f"{table.expected:,} expected"
        yield f"rows of {table.name}", table.rows, "ok" if table.holds else "wrong", detail
    for reference in result.references:
        yield (
            f"orphans {reference.name}",
            reference.orphans,
            "ok" if reference.holds else "wrong",
            "",
        )
    for answer in result.answers:
        comparison = answer.comparison
        yield f"query {answer.number}", answer.rows, comparison.verdict, comparison.difference
