"""Run summaries and lists of runs on a terminal. The caller hands in the rich console."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, JustifyMethod
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from hotset.core import words

from ..analysis import (
    answer,
    caveats,
    headlines,
    kinds,
    measured,
    power,
    predicted,
    prices,
    published,
    units,
)
from ..analysis import disks as disk_analysis
from ..analysis.answer import ArmFigures
from ..analysis.breakdown import device_use, server_io, time_use
from ..analysis.comparison import curve, highest, policies
from ..model.document import RunDocument
from ..model.windows import Repeat
from .tables import ListingRow

if TYPE_CHECKING:  # it calculates, and a list of runs should not wait for numpy
    from ..analysis.comparison.compare import Difference, Line
    from ..analysis.comparison.trend import Trend
    from . import charts

WIDE_COLUMNS = 104  # from here on, the hit ratio is split into reads and writes
WIDE_LIST_COLUMNS = 140
_BAR, _NARROW_BAR = 12, 7
_SENTENCE_COLUMNS = 40
"""A sentence in a narrower column is hard to read."""
_NUMBER = re.compile(rf"[-+−]?[0-9]|{words.ABSENT}$")
STATE_STYLES = {
    "complete": "green",
    "failed": "bold red",
    "interrupted": "bold yellow",
    "running": "bold cyan",
    "unreadable": "bold red",
}


def summary(document: RunDocument, console: Console) -> None:
    """The answer first, then the arms, the warm-up, and what limits the claim."""
    _print_answer(document, console)
    if document.disks is not None:
        _print_disks(document, console)
        return
    _print_arms(document, console)
    _print_devices(document, console)
    _print_server_io(document, console)
    _print_workloads(document, console)
    _print_expected(document, console)
    warmup = answer.warmup_line(document)
    if warmup:
        console.print()
        console.print(warmup, highlight=False)
    _print_tier(document, console)
    _print_gaps(document, console)
    _print_caveats(document, console)


def _print_tier(document: RunDocument, console: Console) -> None:
    """What a measurement found its tier to be."""
    for what, figure in measured.facts(document):
        console.print(Text.assemble((f"{what}: ", "dim"), figure))
    if lines := measured.residents(document):
        columns = measured.RESIDENT_COLUMNS
        title = "Tables in the cache, after the measurement"
        console.print(_plain_table(title, columns, lines, columns[:1]))


def _print_disks(document: RunDocument, console: Console) -> None:
    from . import disk_pages

    page = disk_pages.of_run(document)
    measured_disks = document.disks.model_dump(mode="json") if document.disks else {}
    for found in (*(figure.table for figure in page.figures), *page.tables):
        console.print()
        _print_table(found, console)
    for said in disk_analysis.paths(measured_disks):
        console.print()
        console.print(said, highlight=False)
    if caveats.list_caveats(document):
        _print_caveats(document, console)


def _print_table(found: charts.Table, console: Console) -> None:
    """A table; its sentences below it, where a column of them would be a narrow one."""
    names = found.columns[:1]
    whole = _plain_table(found.caption, found.columns, found.rows, names)
    if found.said not in found.columns:
        console.print(whole)
        return
    at = found.columns.index(found.said)
    left = [row[:at] + row[at + 1 :] for row in found.rows]
    columns = found.columns[:at] + found.columns[at + 1 :]
    short = _plain_table(found.caption, columns, left, names)
    room = console.width - Measurement.get(console, console.options, short).maximum
    if room >= _SENTENCE_COLUMNS:
        console.print(whole)
        return
    console.print(short)
    for row in found.rows:
        if row[at]:
            named = (cell for cell in row[:at] if _NUMBER.match(cell) is None)
            console.print(_item(Text(f"{', '.join(named)}: {row[at]}")))


def _print_arms(document: RunDocument, console: Console) -> None:
    if not any(arm.repeats for arm in document.arms):
        return
    console.print()
    wide = console.width >= WIDE_COLUMNS
    console.print(_arms_table(document, wide))
    if any(arm.hit_ratio is not None for arm in answer.arms(document)):
        which = "hit ratio (reads / writes)" if wide else "hit ratio"
        console.print(f"{which}: {answer.HIT_RATIO_DENOMINATOR}", style="dim")
    if said := time_use.sentence(document):
        console.print(said, highlight=False)


def _print_workloads(document: RunDocument, console: Console) -> None:
    """What a workload shows besides: its kinds, highest rates, curves and queries."""
    if lines := policies.rows(document):
        console.print()
        columns = policies.columns(document)
        console.print(_plain_table(policies.TITLE, columns, lines, columns[:1]))
    if document.timed == "sql" and (lines := kinds.rows(document)):
        console.print()
        console.print(_kinds_table(document, lines))
    if lines := highest.rows(document):
        console.print()
        console.print(_plain_table(highest.TITLE, highest.COLUMNS, lines, ("arm", "because")))
    if lines := curve.rows(document):
        console.print()
        console.print(_curve_table(document, lines, console.width >= WIDE_COLUMNS))
        for said in curve.sentences(document):
            console.print(said, highlight=False)
    if document.power_arms:
        console.print()
        console.print(_queries_table(document))


def _print_expected(document: RunDocument, console: Console) -> None:
    """What others published, what was predicted, and what it costs."""
    if lines := published.rows(document):
        console.print()
        console.print(_published_table(document, lines))
        for note in published.notes(document):
            console.print(note, highlight=False)
    if document.predictions:
        console.print()
        console.print(_predicted_table(predicted.rows(document)))
        console.print(predicted.sentence(document.predictions), highlight=False)
    if document.costs:
        console.print()
        console.print(_prices_table(document))
        console.print(prices.assumptions(document), style="dim", highlight=False)


def _print_devices(document: RunDocument, console: Console) -> None:
    if lines := device_use.rows(document):
        console.print()
        console.print(_devices_table(document, lines))
        if said := device_use.sentence(document):
            console.print(said, highlight=False)
        if any(device_use.NO_P99 in line for line in lines):
            console.print(device_use.NO_P99_NOTE, style="dim", highlight=False)
        console.print(device_use.cpu_line(document), style="dim", highlight=False)


def _print_server_io(document: RunDocument, console: Console) -> None:
    if lines := server_io.rows(document):
        console.print()
        table = _titled("What the database server counted")
        for name in server_io.COLUMNS:
            justify: JustifyMethod = "left" if name == "arm" else "right"
            table.add_column(name.replace("/", "\n/").replace(" ", "\n"), justify=justify)
        for line in lines:
            table.add_row(*line)
        console.print(table)
    for text in server_io.missing(document):
        console.print(text, style="dim", highlight=False)


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
            f"{line.arm}, {_with_users(line)}{line.figure}",
            words.count(line.value_against),
            words.count(line.value),
            speed,
            f"{words.percent(line.hit_ratio_against)} → {words.percent(line.hit_ratio)}",
            line.note or line.verdict,
        )
    return table


def trend(found: Trend, with_it: Iterable[Iterable[str]], console: Console) -> None:
    """`hotset runs trend`: a line and a bar for each run, then where the level changed.

    :param with_it: what else was not the same, of each change.
    """
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in ("run", "started"):
        table.add_column(name, no_wrap=True)
    for name in (found.metric, "level", "change"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    changes = {one.at: one for one in found.changes}
    highest = max((sample.value for sample in found.samples), default=1) or 1
    for place, (one, level) in enumerate(zip(found.samples, found.levels, strict=True)):
        change = changes.get(place)
        style = None if change is None else "bold red" if change.worse else "bold green"
        table.add_row(
            Text(one.run),
            f"{one.started_at:%Y-%m-%d %H:%M}",
            words.count(one.value),
            words.count(level),
            words.deviation(change.ratio - 1, 0) if change else "",
            "█" * max(1, round(one.value / highest * _BAR)),
            style=style,
        )
    console.print(table)
    for change, others in zip(found.changes, with_it, strict=True):
        console.print(Text(found.sentence(change), style="bold red" if change.worse else "green"))
        for other in others:
            console.print(_item(Text(other)))
    if not found.changes:
        count = words.plural(len(found.samples), "run")
        console.print(f"No change of level in {count}; a level has two runs or more.")


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
            Text(_listed_state(row), style=STATE_STYLES[row.state]),
            Text(f"{row.started_at:%Y-%m-%d %H:%M}"),
            Text(_listed_name(row)),
            Text(row.machine or words.ABSENT),
            Text(row.tier or words.ABSENT),
            Text(_listed_result(row)),
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
        parts = (_listed_name(row), where, ", ".join(row.labels), row.fault)
        table.add_row(
            Text.assemble(
                f"{row.run}\n",
                (_listed_state(row), STATE_STYLES[row.state]),
                f"\n{row.started_at:%Y-%m-%d %H:%M}",
            ),
            Text("\n".join(part for part in parts if part)),
            Text(_listed_result(row)),
            end_section=True,
        )
    return table


def _listed_state(row: ListingRow) -> str:
    return f"running: {row.under_way}" if row.state == "running" else row.state


def _listed_name(row: ListingRow) -> str:
    return f"{row.experiment}, {row.label}" if row.label else row.experiment


def _listed_result(row: ListingRow) -> str:
    """A factor with its interval, or what a measurement comes to."""
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


def _print_answer(document: RunDocument, console: Console) -> None:
    head = Text(f"{document.experiment.title}  ", style="bold")
    head.append(f"{document.run}  {document.started_at:%Y-%m-%d %H:%M} UTC", style="dim")
    console.print(head)
    if document.state != "complete":
        console.print(Text(answer.standing(document), style=STATE_STYLES[document.state]))
    for sentence in headlines.write_headlines(document):
        console.print(Text(sentence, style="bold cyan"))
    labels = (*answer.verdicts(document), *answer.conditions(document))
    if labels:
        console.print(Text(" ".join(f"[{label}]" for label in labels), style="yellow"))
    for threshold in document.thresholds:
        console.print(Text(threshold.said, style="green" if threshold.met else "bold red"))


def _titled(title: str, conditions: Sequence[str] = (), *, wide: bool = False) -> Table:
    """An empty table; behind its title what all its figures were taken under."""
    return Table(
        title=title + (f" ({', '.join(conditions)})" if conditions else ""),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1) if wide else (0, 1, 0, 0),
    )


def _arms_table(document: RunDocument, wide: bool) -> Table:
    title = f"{units.find_unit(document).title} by arm and repeat"
    table = _titled(title, answer.conditions(document), wide=wide)
    table.add_column("arm", no_wrap=True)
    table.add_column("repeat" if wide else "#", justify="right", no_wrap=True)
    figures = ("hit ratio", "p50 ms", "p95 ms", "p99 ms", "CPU", "failed")
    for name in (*units.columns(document), *figures):
        header = name if wide else name.replace(" ", "\n")
        table.add_column(header, justify="right", no_wrap=True)
    for arm in answer.arms(document):
        for repeat in arm.repeats:
            table.add_row(arm.name, str(repeat.repeat), *_figures(document, repeat, wide))
        if len(arm.repeats) > 1:
            mean = _figures(document, arm, wide)
            table.add_row(arm.name, "mean", *mean, style="bold", end_section=True)
    return table


def _devices_table(document: RunDocument, lines: list[tuple[str, ...]]) -> Table:
    """A line for reads and one for writes of each device; means of the repeats."""
    table = _titled("Each device", answer.conditions(document))
    for name in ("arm", "device", *device_use.LINE_COLUMNS):
        is_name = name in ("arm", "device", "")
        header = name.replace(" ", "\n")
        table.add_column(header, justify="left" if is_name else "right", no_wrap=is_name)
    arm_before = ""
    for arm, device, *cells in lines:
        reads, writes = device_use.two_lines(cells)
        table.add_row("" if arm == arm_before else arm, device, *reads)
        table.add_row("", "", *writes)
        arm_before = arm
    return table


def _curve_table(document: RunDocument, lines: list[tuple[str, ...]], wide: bool) -> Table:
    """With a bar of the throughput in place of the ratio to the baseline."""
    table = _titled("By number of users", answer.conditions(document))
    left_out = {"of baseline"} if wide else {"of baseline", "most time"}
    columns, unit = curve.columns(document), units.find_unit(document).short
    for name in columns:
        if name not in left_out:
            table.add_column(name, justify="left" if name == "arm" else "right", no_wrap=True)
        if name == unit:
            table.add_column("")
    points = [one.point for found in curve.read_curves(document).values() for one in found]
    bars = curve.text_bars(points, _BAR if wide else _NARROW_BAR)
    for line, bar in zip(lines, bars, strict=True):
        cells = {
            name: cell for name, cell in zip(columns, line, strict=True) if name not in left_out
        }
        shown = ((cell, bar) if name == unit else (cell,) for name, cell in cells.items())
        table.add_row(*chain.from_iterable(shown))
    return table


def _kinds_table(document: RunDocument, lines: list[tuple[str, ...]]) -> Table:
    columns = kinds.columns(document)
    return _plain_table(kinds.title(document), columns, lines, columns[:2])


def _plain_table(
    title: str, columns: Sequence[str], lines: Iterable[tuple[str, ...]], names: Sequence[str]
) -> Table:
    """:param names: the columns that hold text; the last column wraps where there is no room."""
    table = _titled(title)
    for column in columns:
        justify: JustifyMethod = "left" if column in names else "right"
        last = column == columns[-1]
        table.add_column(column, justify=justify, no_wrap=not last, overflow="fold")
    for line in lines:
        table.add_row(*line)
    return table


def _queries_table(document: RunDocument) -> Table:
    table = _titled("TPROC-H, mean seconds", answer.conditions(document), wide=True)
    for column in power.columns(document):
        table.add_column(column, justify="left" if column == "query" else "right", no_wrap=True)
    lines = power.rows(document)
    for number, line in enumerate(lines, 1):
        summed = number > len(lines) - 2
        table.add_row(*line, style="bold" if summed else None, end_section=number == len(lines) - 2)
    return table


def _predicted_table(lines: list[tuple[str, ...]]) -> Table:
    columns = [column.replace(" ", "\n") for column in predicted.COLUMNS]
    return _filled(_titled("Predicted and measured", wide=True), columns, lines)


def _published_table(document: RunDocument, lines: list[tuple[str, ...]]) -> Table:
    source = document.experiment.published.source if document.experiment.published else ""
    table = _titled(f"Compared with {source}", answer.conditions(document), wide=True)
    return _filled(table, [column.replace(" ", "\n") for column in published.COLUMNS], lines)


def _prices_table(document: RunDocument) -> Table:
    currency = document.prices.currency if document.prices else ""
    table = _titled(f"Prices in {currency}", wide=True)
    return _filled(table, prices.columns(document), prices.rows(document))


def _filled(table: Table, columns: Sequence[str], lines: Iterable[tuple[str, ...]]) -> Table:
    """The first column is a name, the others are figures."""
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for line in lines:
        table.add_row(*line)
    return table


def _figures(document: RunDocument, of: Repeat | ArmFigures, wide: bool) -> tuple[str, ...]:
    return (
        *units.cells(document, of),
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
    console.print("Limits of this result", style="bold")
    for caveat in caveats.list_caveats(document):
        console.print(_item(Text.assemble(caveat.text, "\n", (f"→ {caveat.advice}", "dim"))))


def _item(text: Text) -> Table:
    """A bullet whose text keeps its indent when it wraps."""
    grid = Table.grid(padding=(0, 1))
    grid.add_row("•", text)
    return grid
