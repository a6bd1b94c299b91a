"""A run as Markdown: the same answer, tables and limits as the page, for a ticket or a wiki."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence

from hotset.reports import answer, caveats, charts, html, parts, power, prices, published, words
from hotset.reports.answer import ArmFigures
from hotset.reports.document import Repeat, RunDocument

_ARM_COLUMNS = (
    "arm", "repeat", "NOPM", "TPM", "hit ratio", "p50 ms", "p95 ms", "p99 ms", "CPU", "failed",
)  # fmt: skip


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
    yield from _measured(document)
    if gaps := answer.gaps(document):
        yield "## Missing\n\n" + bullets(gaps)
    yield "## What limits this claim\n\n" + bullets(
        f"{one.text} {one.advice}" for one in caveats.of(document)
    )
    yield "## How it was measured"
    if document.command:
        yield f"Made by `{shlex.join(document.command)}`."
    for group, rows in html.configuration(document):
        yield table((group, ""), rows)


def _answer(document: RunDocument) -> Iterator[str]:
    yield f"# {document.experiment.title or document.experiment.name}"
    yield f"Run `{document.run}`, {document.started_at:%Y-%m-%d %H:%M} UTC"
    if document.state != "complete":
        why = f" in {document.failure.phase}: {document.failure.text}" if document.failure else ""
        yield f"**{document.state.upper()}**{why}"
    for sentence in (answer.headline(document), power.headline(document)):
        if sentence:
            yield f"**{sentence}**"
    if labels := (*answer.verdicts(document), *answer.conditions(document)):
        yield " · ".join(f"*{label}*" for label in labels)


def _measured(document: RunDocument) -> Iterator[str]:
    arms = answer.arms(document)
    if arms:
        yield "## TPROC-C"
        yield table(_ARM_COLUMNS, _arm_rows(arms))
        if any(arm.hit_ratio is not None for arm in arms):
            yield f"Hit ratio: {answer.HIT_RATIO_DENOMINATOR}."
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
    if lines := published.rows(document):
        assert document.experiment.published is not None
        yield f"## Beside {document.experiment.published.source}"
        yield table(published.COLUMNS, lines)
    if warmup := answer.warmup_line(document):
        yield f"## Warm-up\n\n{warmup}"
    if arms:
        yield from _price(document)


def _price(document: RunDocument) -> Iterator[str]:
    yield "## Price"
    if lines := prices.rows(document):
        yield table(prices.COLUMNS, lines)
    yield prices.assumptions(document)


def _arm_rows(arms: Iterable[ArmFigures]) -> Iterator[tuple[str, ...]]:
    for arm in arms:
        for repeat in arm.repeats:
            yield (arm.name, str(repeat.repeat), *_figures(repeat), words.count(repeat.failed))
        if len(arm.repeats) > 1:
            yield (f"**{arm.name}**", "mean", *_figures(arm), words.total(arm.failed))


def _figures(of: Repeat | ArmFigures) -> tuple[str, ...]:
    return (
        words.count(of.nopm),
        words.count(of.tpm),
        words.percent(of.hit_ratio),
        *words.latencies(of.latency_ms),
        words.percent(of.server_cpu, 0),
    )


def bullets(items: Iterable[str]) -> str:
    """A list, an item a line."""
    return "\n".join(f"- {item}" for item in items)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
