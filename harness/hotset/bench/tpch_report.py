"""What runs and checks of TPC-H come to: records, tables of them and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hotset.core.record import Versioned
from hotset.core.words import csv_text
from hotset.reports.model.windows import Verdict
from hotset.tpch.check import CheckResult
from hotset.tpch.record import PowerResult, QueryResult, ThroughputResult, composite

from .window_report import DOUBT

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
    def of(
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
    """What a check found, wrong or right."""


def run_csv(power: PowerResult, throughput: ThroughputResult | None) -> str:
    """A line for each query of each stream, the power run as stream 0."""
    header = ("stream", "query", "seconds", "outcome", "rows", "checksum", "cause")
    rows = (
        (
            stream,
            one.number,
            f"{one.seconds:.6f}",
            one.outcome,
            one.rows,
            one.checksum,
            one.cause,
        )
        for stream, one in _results(power, throughput)
    )
    return csv_text(header, rows)


def check_csv(found: CheckResult) -> str:
    """A line for each thing that was checked."""
    return csv_text(("what", "found", "verdict", "detail"), _check_rows(found))


def check_table(found: CheckResult) -> RenderableType:
    """As a table, with a last line that sums it up."""
    rows = list(_check_rows(found))
    table = _table("", "found", "verdict", "")
    for what, number, verdict, detail in rows:
        table.add_row(what, f"{number:,}", verdict, detail)
    wrong = [row for row in rows if row[2] in ("wrong", "different", "failed")]
    said = f"{len(wrong)} of {len(rows)} checks failed" if wrong else f"all {len(rows)} checks hold"
    return Group(Text(f"TPC-H at scale {found.scale:g}"), table, Text(said))


def _results(
    power: PowerResult, throughput: ThroughputResult | None
) -> Iterator[tuple[int, QueryResult]]:
    """Every query of every stream, the power run as stream 0."""
    yield from ((0, query) for query in power.queries)
    for stream in throughput.streams if throughput else ():
        yield from ((stream.number, query) for query in stream.queries)


def judged(found: TpchRun) -> list[Text]:
    """What the thresholds came to."""
    return [Text(one.said, style="" if one.met else DOUBT) for one in found.thresholds]


def measured(found: TpchRun) -> list[RenderableType]:
    """Query by query, with what they come to."""
    power = found.power
    seed = "validation parameters" if power.seed is None else f"seed {power.seed}"
    table = _table("query", "seconds", "rows", "outcome", "checksum")
    for query in power.queries:
        rows = "" if query.rows is None else f"{query.rows:,}"
        table.add_row(
            str(query.number), f"{query.seconds:.3f}", rows, query.outcome, query.checksum or ""
        )
    title = Text(f"TPC-H power run at scale {power.scale:g}, {seed}")
    return [title, table, *map(Text, _figures(power, found.throughput))]


def _figures(power: PowerResult, throughput: ThroughputResult | None) -> Iterator[str]:
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
        if (figure := composite(power, throughput)) is not None:
            yield f"TPROC-H composite    {figure:,.1f}"
    yield _NOTE


def _check_rows(found: CheckResult) -> Iterator[tuple[str, int, str, str]]:
    for table in found.tables:
        detail = "" if table.holds else f"{table.expected:,} expected"
        yield f"rows of {table.name}", table.rows, "ok" if table.holds else "wrong", detail
    for reference in found.references:
        yield (
            f"orphans {reference.name}",
            reference.orphans,
            "ok" if reference.holds else "wrong",
            "",
        )
    for answer in found.answers:
        comparison = answer.comparison
        yield f"query {answer.number}", answer.rows, comparison.verdict, comparison.difference


def _table(*names: str) -> Table:
    table = Table(box=None)
    for place, name in enumerate(names):
        right = name in ("query", "seconds", "rows", "found") and (place > 0 or name == "query")
        table.add_column(name, justify="right" if right else "left")
    return table
