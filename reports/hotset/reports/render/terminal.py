"""Run summaries and lists of runs on a terminal. The caller hands in the rich console."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from hotset.core import words

from ..model.document import RunDocument
from .page import Page, Section
from .page import Table as Rows
from .tables import ListingRow

if TYPE_CHECKING:  # it calculates, and a list of runs should not wait for numpy
    from ..analysis.comparison.compare import Difference, Line
    from ..analysis.comparison.trend import Trend

WIDE_LIST_COLUMNS = 140
_BAR, _NARROW_BAR = 12, 7
_SENTENCE_COLUMNS = 40
"""A sentence in a narrower column is hard to read."""
_NUMBER = re.compile(rf"[-+−]?[0-9]|{words.ABSENT}$")
_BREAKS = re.compile(r" |(?<=\w{3})(?=/)")
"""Style of a table's head."""
STATE_STYLES = {
    "complete": "green",
    "failed": "bold red",
    "interrupted": "bold yellow",
    "running": "bold cyan",
    "unreadable": "bold red",
}


def summary(document: RunDocument, console: Console) -> None:
    """The answer first, then what was measured, and what limits the claim."""
    from . import sections  # it draws, and a list of runs should not wait for that

    shown = sections.page_of(document)
    _print_answer(shown, document, console)
    for section in shown.sections:
        if section.terminal == "all" or (section.terminal == "notes" and section.notes):
            console.print()
            _print_section(section, shown.conditions, console)
    for note in shown.notes:
        console.print()
        console.print(note, highlight=False)
    if shown.gaps:
        console.print()
        console.print("Missing", style="bold")
        for gap in shown.gaps:
            console.print(_item(Text(gap)))
    if shown.caveats:
        console.print()
        console.print("Limits of this result", style="bold")
        for caveat in shown.caveats:
            advice = ("\n", (f"→ {caveat.advice}", "dim")) if caveat.advice else ()
            console.print(_item(Text.assemble(caveat.text, *advice)))
    if document.measurement is not None:
        _print_setup(shown, console)


def _print_setup(page: Page, console: Console) -> None:
    """Print how a measurement was made: it compares only with those made the same way."""
    console.print()
    console.print("How it was measured", style="bold")
    for group, rows in page.setup:
        text = "; ".join(f"{what} {figure}" for what, figure in rows)
        console.print(_item(Text.assemble((f"{group}: ", "bold"), text)))


def _print_answer(page: Page, document: RunDocument, console: Console) -> None:
    head = Text(f"{page.title}  ", style="bold")
    head.append(f"{document.run}  {document.started_at:%Y-%m-%d %H:%M} UTC", style="dim")
    console.print(head)
    if page.state:
        console.print(Text(page.state, style=STATE_STYLES[document.state]))
    for sentence in page.headlines:
        console.print(Text(sentence, style="bold cyan"))
    if labels := (*page.verdicts, *page.conditions):
        console.print(Text(" ".join(f"[{label}]" for label in labels), style="yellow"))
    _print_judged(page, console)


def result(page: Page, console: Console) -> None:
    """Print a result that is no run: its tables, and whether its conditions hold."""
    for section in page.sections:
        _print_section(section, page.conditions, console)
    _print_judged(page, console)


def _print_judged(page: Page, console: Console) -> None:
    for sentence, holds in page.judged:
        console.print(Text(sentence, style="green" if holds else "bold red"))


def _print_section(section: Section, conditions: Sequence[str], console: Console) -> None:
    if section.terminal == "all":
        for table in section.tables:
            _print_table(table, conditions, console)
    for note in section.notes:
        console.print(Text(note))


def _print_table(table: Rows, conditions: Sequence[str], console: Console) -> None:
    """In the widest form there is room for; its sentences below it, where a column of them would be
    a narrow one."""
    spared = _without_sentences(table, conditions, console)
    for broken, left_out in ((False, 0), *((True, n) for n in range(len(table.wide) + 1))):
        shown = _table_of(table, conditions, {*spared, *table.wide[:left_out]}, broken=broken)
        sentences = _SENTENCE_COLUMNS if table.sentences and not spared else 0
        if _width(shown, console) <= console.width or sentences:
            break
    console.print(shown)
    if spared:
        at = table.columns.index(table.sentences)
        for row in table.rows:
            if row[at]:
                named = (cell for cell in row[:at] if _NUMBER.match(cell) is None)
                console.print(_item(Text(f"{', '.join(named)}: {row[at]}")))


def _without_sentences(table: Rows, conditions: Sequence[str], console: Console) -> set[str]:
    """The column of sentences, where there is no room for it."""
    if not table.sentences:
        return set()
    short = _table_of(table, conditions, {table.sentences})
    return (
        {table.sentences} if console.width - _width(short, console) < _SENTENCE_COLUMNS else set()
    )


def _width(table: Table, console: Console) -> int:
    """That it would take, were there no end of room."""
    unbounded = console.options.update(max_width=10_000)
    return Measurement.get(console, unbounded, table).maximum


def _table_of(
    page_table: Rows, conditions: Sequence[str], left_out: set[str], *, broken: bool = False
) -> Table:
    """:param broken: its heads, into a line for each word."""
    table = Table(
        title=page_table.caption + (f" ({', '.join(conditions)})" if conditions else ""),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0) if broken else (0, 1),
    )
    kept = [at for at, column in enumerate(page_table.columns) if column not in left_out]
    for at in kept:
        name = page_table.columns[at]
        head = _BREAKS.sub("\n", name) if broken else name
        table.add_column(
            head, justify="left" if page_table.is_text(at) else "right", overflow="fold"
        )
    bars = words.bars(page_table.bars, _NARROW_BAR if broken else _BAR)
    if bars:
        table.add_column("")
    for number, row in enumerate(page_table.rows):
        summed = number in page_table.sums
        cells = [Text(row[at]) for at in kept] + ([Text(bars[number])] if bars else [])
        ends = summed and number + 1 not in page_table.sums
        table.add_row(*cells, style="bold" if summed else None, end_section=ends)
    return table


def comparison(lines: Iterable[Line], differing: Iterable[Difference], console: Console) -> None:
    """`hotset runs compare`: what is not the same, then arm by arm, a table for each run."""
    differing = list(differing)
    if differing:
        console.print(Text("The set-ups differ:", style="yellow"))
        for difference in differing:
            console.print(_item(Text(str(difference))))
    for run, of_run in groupby(lines, key=lambda line: line.run):
        shown = list(of_run)
        console.print(_comparison_table(f"{run} against {shown[0].against}", shown))
        for way in sorted({line.to_know for line in shown if line.to_know}):
            # Unbroken, so that it can be copied.
            console.print("To tell it from better and worse days, measure in turn:")
            console.print(Text(f"    {way}"), soft_wrap=True)


def _comparison_table(title: str, lines: Iterable[Line]) -> Table:
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
            f"{line.arm}, {_with_users(line)}{line.figure}",
            words.count(line.value_against),
            words.count(line.value),
            speed,
            f"{words.percent(line.hit_ratio_against)} → {words.percent(line.hit_ratio)}",
            line.note or line.verdict,
        )
    return table


def trend(trend: Trend, with_it: Iterable[Iterable[str]], console: Console) -> None:
    """`hotset runs trend`: a line and a bar for each run, then where the level changed.

    :param with_it: what else was not the same, of each change.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("run", "started"):
        table.add_column(name, no_wrap=True)
    for name in (trend.metric, "level", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    changes = {change.at: change for change in trend.changes}
    bars = words.bars([sample.value for sample in trend.samples], _BAR)
    for place, (sample, level) in enumerate(zip(trend.samples, trend.levels, strict=True)):
        change = changes.get(place)
        style = None if change is None else "bold red" if change.worse else "bold green"
        table.add_row(
            Text(sample.run),
            f"{sample.started_at:%Y-%m-%d %H:%M}",
            words.count(sample.value),
            words.count(level),
            words.deviation(change.ratio - 1, 0) if change else "",
            bars[place],
            style=style,
        )
    console.print(table)
    for change, others in zip(trend.changes, with_it, strict=True):
        console.print(Text(trend.sentence(change), style="bold red" if change.worse else "green"))
        for other in others:
            console.print(_item(Text(other)))
    if not trend.changes:
        count = words.plural(len(trend.samples), "run")
        console.print(f"No change of level in {count}.")
    console.print(trend.outlook(), highlight=False)


def _with_users(line: Line) -> str:
    return f"{words.plural(line.users, 'user')}, " if line.users is not None else ""


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
    table.add_column("result", justify="right")
    table.add_column("measured with")
    for row in rows:
        table.add_row(
            Text(row.run),
            Text(_list_state(row), style=STATE_STYLES[row.state]),
            Text(f"{row.started_at:%Y-%m-%d %H:%M}"),
            Text(_list_name(row)),
            Text(row.machine or words.ABSENT),
            Text(row.tier or words.ABSENT),
            Text(_list_result(row)),
            Text(", ".join(row.labels) or row.fault or words.ABSENT),
        )
    return table


def _narrow_list(rows: Iterable[ListingRow]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("run, state, started", "experiment, machine, tier, measured with"):
        table.add_column(name)
    table.add_column("result", justify="right")
    for row in rows:
        where = ", ".join(part for part in (row.machine, row.tier) if part)
        parts = (_list_name(row), where, ", ".join(row.labels), row.fault)
        table.add_row(
            Text.assemble(
                f"{row.run}\n",
                (_list_state(row), STATE_STYLES[row.state]),
                f"\n{row.started_at:%Y-%m-%d %H:%M}",
            ),
            Text("\n".join(part for part in parts if part)),
            Text(_list_result(row)),
            end_section=True,
        )
    return table


def _list_state(row: ListingRow) -> str:
    return f"running: {row.under_way}" if row.state == "running" else row.state


def _list_name(row: ListingRow) -> str:
    return f"{row.experiment}, {row.label}" if row.label else row.experiment


def _list_result(row: ListingRow) -> str:
    """A factor with its interval, or a measurement's value."""
    if row.value is not None and row.unit is not None:
        return f"{words.count(row.value)} {row.unit}"
    lines = [words.factor(row.factor)]
    if row.factor_ci_low is not None and row.factor_ci_high is not None:
        lines[0] += f" ({words.interval(row.factor_ci_low, row.factor_ci_high)})"
    if row.doubt:
        lines.append(row.doubt)
    if row.cpu_bound:
        lines.append("CPU-bound")
    return "\n".join(lines)


def _item(text: Text) -> Table:
    """A bullet whose text keeps its indent when it wraps."""
    grid = Table.grid(padding=(0, 1))
    grid.add_row("•", text)
    return grid
