"""Run summaries and lists of runs on a terminal. The caller hands in the rich console."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hotset.reports import answer, caveats, power, prices, published, words
from hotset.reports.answer import ArmFigures
from hotset.reports.document import Repeat, RunDocument
from hotset.reports.tables import ListingRow

if TYPE_CHECKING:  # it calculates, and a list of runs should not wait for numpy
    from hotset.reports.compare import Difference, Line

WIDE_COLUMNS = 104  # from here on, the hit ratio is split into reads and writes
WIDE_LIST_COLUMNS = 140
STATE_STYLES = {"complete": "green", "failed": "bold red", "interrupted": "bold yellow"}


def summary(document: RunDocument, console: Console) -> None:
    """The answer first, then the arms, the warm-up, and what limits the claim."""
    _print_answer(document, console)
    if any(arm.repeats for arm in document.arms):
        console.print()
        wide = console.width >= WIDE_COLUMNS
        console.print(_arms_table(document, wide))
        if any(arm.hit_ratio is not None for arm in answer.arms(document)):
            which = "hit ratio (reads / writes)" if wide else "hit ratio"
            console.print(f"{which}: {answer.HIT_RATIO_DENOMINATOR}", style="dim")
    if document.power_arms:
        console.print()
        console.print(_queries_table(document))
    if lines := published.rows(document):
        console.print()
        console.print(_published_table(document, lines))
    if document.costs:
        console.print()
        console.print(_prices_table(document))
        console.print(prices.assumptions(document), style="dim", highlight=False)
    warmup = answer.warmup_line(document)
    if warmup:
        console.print()
        console.print(warmup, highlight=False)
    _print_gaps(document, console)
    _print_caveats(document, console)


def comparison(lines: Iterable[Line], differing: Iterable[Difference], console: Console) -> None:
    """`hotset runs compare`: what is not the same, then arm by arm, a table for each run."""
    differing = list(differing)
    if differing:
        console.print(Text("The set-ups differ:", style="yellow"))
        for one in differing:
            console.print(_item(Text(str(one))))
    for run, of_run in groupby(lines, key=lambda line: line.run):
        shown = list(of_run)
        console.print(_compared(f"{run} against {shown[0].against}", shown))


def _compared(title: str, lines: Iterable[Line]) -> Table:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for name in ("before", "after", "speed", "hit ratio"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("verdict")
    for line in lines:
        speed = words.factor(line.speed_ratio)
        if line.ci_low is not None and line.ci_high is not None:
            speed += f" ({words.interval(line.ci_low, line.ci_high)})"
        table.add_row(
            f"{line.arm}, {line.figure}", words.count(line.value_against), words.count(line.value),
            speed, f"{words.percent(line.hit_ratio_against)} → {words.percent(line.hit_ratio)}",
            line.note or line.verdict,
        )  # fmt: skip
    return table


def listing(rows: Iterable[ListingRow], console: Console) -> None:
    """`hotset runs list`: a column each where there is room, else related ones stacked."""
    table = _wide_list(rows) if console.width >= WIDE_LIST_COLUMNS else _narrow_list(rows)
    if table.row_count:
        console.print(table)
    else:
        console.print("No runs yet.", highlight=False)


def _wide_list(rows: Iterable[ListingRow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("run", "state", "started", "experiment", "machine", "tier"):
        table.add_column(name, no_wrap=name in {"run", "state", "started"})
    table.add_column("factor", justify="right")
    table.add_column("measured with")
    for row in rows:
        table.add_row(
            Text(row.run),
            Text(row.state, style=STATE_STYLES[row.state]),
            Text(f"{row.started_at:%Y-%m-%d %H:%M}"),
            Text(row.experiment),
            Text(row.machine or words.ABSENT),
            Text(row.tier or words.ABSENT),
            Text(_listed_factor(row)),
            Text(", ".join(row.labels) or words.ABSENT),
        )
    return table


def _narrow_list(rows: Iterable[ListingRow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("run, state, started", "experiment, machine, tier, measured with"):
        table.add_column(name)
    table.add_column("factor", justify="right")
    for row in rows:
        where = ", ".join(part for part in (row.machine, row.tier) if part)
        parts = (row.experiment, where, ", ".join(row.labels))
        table.add_row(
            Text.assemble(
                f"{row.run}\n",
                (row.state, STATE_STYLES[row.state]),
                f"\n{row.started_at:%Y-%m-%d %H:%M}",
            ),
            Text("\n".join(part for part in parts if part)),
            Text(_listed_factor(row)),
            end_section=True,
        )
    return table


def _listed_factor(row: ListingRow) -> str:
    lines = [words.factor(row.factor)]
    if row.factor_ci_low is not None and row.factor_ci_high is not None:
        lines[0] += f" ({words.interval(row.factor_ci_low, row.factor_ci_high)})"
    if row.significant is False:
        lines.append("not significant")
    if row.cpu_bound:
        lines.append("CPU-bound: understated")
    return "\n".join(lines)


def _print_answer(document: RunDocument, console: Console) -> None:
    head = Text(f"{document.experiment.title}  ", style="bold")
    head.append(f"{document.run}  {document.started_at:%Y-%m-%d %H:%M} UTC", style="dim")
    console.print(head)
    if document.state != "complete":
        said = f"{document.state.upper()} after {words.duration(document.seconds)}"
        if document.failure is not None:
            said += f" in {document.failure.phase}: {document.failure.text}"
        console.print(Text(said, style=STATE_STYLES[document.state]))
    for sentence in (answer.headline(document), power.headline(document)):
        if sentence:
            console.print(Text(sentence, style="bold cyan"))
    labels = (*answer.verdicts(document), *answer.conditions(document))
    if labels:
        console.print(Text(" ".join(f"[{label}]" for label in labels), style="yellow"))


def _arms_table(document: RunDocument, wide: bool) -> Table:
    labels = answer.conditions(document)
    title = "TPROC-C by arm and repeat" + (f" ({', '.join(labels)})" if labels else "")
    table = Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1) if wide else (0, 1, 0, 0),
    )
    table.add_column("arm", no_wrap=True)
    table.add_column("repeat" if wide else "#", justify="right", no_wrap=True)
    for name in ("NOPM", "TPM", "hit ratio", "p50 ms", "p95 ms", "p99 ms", "CPU", "failed"):
        header = name if wide else name.replace(" ", "\n")
        table.add_column(header, justify="right", no_wrap=True)
    for arm in answer.arms(document):
        for repeat in arm.repeats:
            table.add_row(arm.name, str(repeat.repeat), *_figures(repeat, wide))
        if len(arm.repeats) > 1:
            table.add_row(arm.name, "mean", *_figures(arm, wide), style="bold", end_section=True)
    return table


def _queries_table(document: RunDocument) -> Table:
    labels = answer.conditions(document)
    title = "TPROC-H, mean seconds" + (f" ({', '.join(labels)})" if labels else "")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in power.columns(document):
        table.add_column(column, justify="left" if column == "query" else "right", no_wrap=True)
    lines = power.rows(document)
    for number, line in enumerate(lines, 1):
        summed = number > len(lines) - 2
        table.add_row(*line, style="bold" if summed else None, end_section=number == len(lines) - 2)
    return table


def _published_table(document: RunDocument, lines: list[tuple[str, ...]]) -> Table:
    source = document.experiment.published.source if document.experiment.published else ""
    labels = answer.conditions(document)
    title = f"Beside {source}" + (f" ({', '.join(labels)})" if labels else "")
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in published.COLUMNS:
        table.add_column(
            column.replace(" ", "\n"), justify="left" if column == "figure" else "right"
        )
    for line in lines:
        table.add_row(*line)
    return table


def _prices_table(document: RunDocument) -> Table:
    currency = document.prices.currency if document.prices else ""
    table = Table(
        title=f"Prices in {currency}", title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for column in prices.COLUMNS:
        table.add_column(column, justify="left" if column == "arm" else "right")
    for line in prices.rows(document):
        table.add_row(*line)
    return table


def _figures(of: Repeat | ArmFigures, wide: bool) -> tuple[str, ...]:
    return (
        words.count(of.nopm),
        words.count(of.tpm),
        _hit_ratio(of, wide),
        *words.latencies(of.latency_ms),
        words.percent(of.server_cpu, 0),
        words.count(of.failed) if isinstance(of, Repeat) else words.total(of.failed),
    )


def _hit_ratio(of: Repeat | ArmFigures, wide: bool) -> str:
    whole = words.percent(of.hit_ratio)
    if not wide or of.read_hit_ratio is None or of.write_hit_ratio is None:
        return whole
    return f"{whole} ({100 * of.read_hit_ratio:.1f} / {100 * of.write_hit_ratio:.1f})"


def _print_gaps(document: RunDocument, console: Console) -> None:
    gaps = answer.gaps(document)
    if gaps:
        console.print()
        console.print("Missing", style="bold")
        for gap in gaps:
            console.print(_item(Text(gap)))


def _print_caveats(document: RunDocument, console: Console) -> None:
    console.print()
    console.print("What limits this claim", style="bold")
    for caveat in caveats.of(document):
        console.print(_item(Text.assemble(caveat.text, "\n", (f"→ {caveat.advice}", "dim"))))


def _item(text: Text) -> Table:
    """A bullet whose text keeps its indent when it wraps."""
    grid = Table.grid(padding=(0, 1))
    grid.add_row("•", text)
    return grid
