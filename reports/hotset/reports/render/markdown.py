"""A run as Markdown: the same answer, tables and limits as the page, for a ticket or a wiki."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

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
from ..analysis.answer import ArmFigures
from ..analysis.breakdown import device_use, parts, server_io, time_use
from ..analysis.comparison import curve, highest, policies
from ..model.document import RunDocument
from ..model.windows import Repeat
from . import charts, disk_pages, html

_ARM_COLUMNS = ("hit ratio", "p50 ms", "p95 ms", "p99 ms", "CPU", "failed")


def render(document: RunDocument) -> str:
    """The whole text."""
    return "\n\n".join(_parts(document)) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column stands to the left, the others to the right.

    >>> print(table(("arm", "NOPM"), [("a|b", "1")]))
    | arm | NOPM |
    |:---|---:|
    | a\\|b | 1 |
    """
    lines = [columns, *rows]
    head, *body = ("| " + " | ".join(map(_cell, line)) + " |" for line in lines)
    return "\n".join((head, "|:---|" + "---:|" * (len(columns) - 1), *body))


def _parts(document: RunDocument) -> Iterator[str]:
    yield from _answer(document)
    if document.disks is not None:
        yield from _on_disks(document)
        yield from _how(document)
        return
    yield from _measured(document)
    if gaps := answer.gaps(document):
        yield "## Missing\n\n" + bullets(gaps)
    yield "## Limits of this result\n\n" + bullets(
        f"{caveat.text} {caveat.advice}" for caveat in caveats.list_caveats(document)
    )
    yield from _how(document)


def _how(document: RunDocument) -> Iterator[str]:
    yield "## How it was measured"
    if document.command:
        yield f"Command: `{shlex.join(document.command)}`."
    for group, rows in html.configuration(document):
        yield table((group, ""), rows)


def _on_disks(document: RunDocument) -> Iterator[str]:
    page = disk_pages.of_run(document)
    for figure in page.figures:
        yield f"## {figure.title}\n\n{figure.caption}"
        yield table(figure.table.columns, figure.table.rows)
    for found in page.tables:
        yield f"## {found.caption}"
        yield table(found.columns, found.rows)
    limits = [f"{caveat.text} {caveat.advice}" for caveat in caveats.list_caveats(document)]
    yield "## Limits of this result\n\n" + bullets((*limits, *page.notes))


def _answer(document: RunDocument) -> Iterator[str]:
    yield f"# {document.experiment.title or document.experiment.name}"
    yield f"Run `{document.run}`, {document.started_at:%Y-%m-%d %H:%M} UTC"
    if document.state != "complete":
        yield f"**{answer.standing(document)}**"
    for sentence in headlines.write_headlines(document):
        yield f"**{sentence}**"
    if labels := (*answer.verdicts(document), *answer.conditions(document)):
        yield " · ".join(f"*{label}*" for label in labels)
    if document.thresholds:
        yield bullets(f"Threshold {threshold.said}" for threshold in document.thresholds)


def _measured(document: RunDocument) -> Iterator[str]:
    yield from _throughput(document)
    if lines := time_use.rows(document):
        yield "## Where the users' time goes"
        if said := time_use.sentence(document):
            yield said
        yield table(time_use.COLUMNS, lines)
    if missing := time_use.missing(document):
        yield bullets(missing)
    yield from _devices(document)
    if over_time := charts.over_time(document):
        yield f"## {over_time.title}\n\n{over_time.table.caption}."
        yield table(over_time.table.columns, over_time.table.rows)
    if document.power_arms:
        yield "## TPROC-H, mean seconds"
        yield table(power.columns(document), power.rows(document))
    if lines := parts.rows(document):
        yield "## Hit ratio by table"
        yield table(parts.COLUMNS, lines)
        yield parts.NOTE
    yield from _compared(document)
    if warmup := answer.warmup_line(document):
        yield f"## Warm-up\n\n{warmup}"
    if lines := measured.residents(document):
        yield "## Tables in the cache, after the measurement"
        yield table(measured.RESIDENT_COLUMNS, lines)
    if document.arms and document.measurement is None:
        yield from _price(document)


def _devices(document: RunDocument) -> Iterator[str]:
    if lines := device_use.rows(document):
        yield "## Each device"
        if said := device_use.sentence(document):
            yield said
        yield table(device_use.COLUMNS, lines)
        yield device_use.NOTE
        yield table(device_use.CPU_COLUMNS, device_use.cpu_rows(document))
    if lines := server_io.rows(document):
        yield "## What the database server counted"
        yield server_io.NOTE
        yield table(server_io.COLUMNS, lines)
    if missing := server_io.missing(document):
        yield bullets(missing)


def _throughput(document: RunDocument) -> Iterator[str]:
    arms = answer.arms(document)
    if arms:
        yield f"## {units.find_unit(document).title}"
        columns = ("arm", "repeat", *units.columns(document), *_ARM_COLUMNS)
        yield table(columns, _arm_rows(document, arms))
        if any(arm.hit_ratio is not None for arm in arms):
            yield f"Hit ratio: {answer.HIT_RATIO_DENOMINATOR}."
    if lines := policies.rows(document):
        yield f"## {policies.TITLE}"
        yield table(policies.columns(document), lines)
    if document.timed == "sql" and (lines := kinds.rows(document)):
        yield f"## {kinds.title(document)}"
        yield table(kinds.columns(document), lines)
    if lines := highest.rows(document):
        yield f"## {highest.TITLE}"
        yield table(highest.COLUMNS, lines)
    if lines := curve.rows(document):
        yield "## By number of users"
        yield bullets(curve.sentences(document))
        yield table(curve.columns(document), lines)


def _compared(document: RunDocument) -> Iterator[str]:
    if lines := published.rows(document):
        assert document.experiment.published is not None
        yield f"## Compared with {document.experiment.published.source}"
        yield table(published.COLUMNS, lines)
        yield from published.notes(document)
    if document.predictions:
        yield "## Predicted and measured"
        yield predicted.sentence(document.predictions)
        yield table(predicted.COLUMNS, predicted.rows(document))


def _price(document: RunDocument) -> Iterator[str]:
    yield "## Price"
    if lines := prices.rows(document):
        yield table(prices.columns(document), lines)
    yield prices.assumptions(document)


def _arm_rows(document: RunDocument, arms: Iterable[ArmFigures]) -> Iterator[tuple[str, ...]]:
    for arm in arms:
        for repeat in arm.repeats:
            yield (
                arm.name,
                str(repeat.repeat),
                *_figures(document, repeat),
                words.count(repeat.failed),
            )
        if len(arm.repeats) > 1:
            yield (f"**{arm.name}**", "mean", *_figures(document, arm), words.total(arm.failed))


def _figures(document: RunDocument, of: Repeat | ArmFigures) -> tuple[str, ...]:
    return (
        *units.cells(document, of),
        words.percent(of.hit_ratio),
        *words.latencies(of.latency_ms),
        words.percent(of.server_cpu, 0),
    )


def bullets(items: Iterable[str]) -> str:
    """A list, an item a line."""
    return "\n".join(f"- {item}" for item in items)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
