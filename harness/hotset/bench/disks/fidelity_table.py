"""The cells of `disk calibrate-all` as tables: a line a model, and all cells as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from hotset.core.errors import ThresholdError
from hotset.core.record import Versioned
from hotset.core.words import csv_text, deviation, percent, plural, print_table

from .disk_bench import DIRECTIONS
from .fidelity import BLOCKS, DEPTHS, TOLERANCE, TOLERANCE_MB_PER_S, Cell, Verdict

if TYPE_CHECKING:
    from rich.console import Console

_MARKS = {"within": "", "explained": "*", "off": " (!)"}


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """How many of a model's cells are as they should be, and the worst of those that are."""

    model: str
    cells: int
    within: int
    explained: int
    off: int
    worst_off: float | None
    worst_latency_off: float | None


@dataclass(frozen=True)
class DiskFidelity(Versioned):
    """All that was measured, and a summary by model."""

    csv_rows = "cells"

    models: tuple[ModelSummary, ...]
    cells: tuple[Cell, ...]

    @classmethod
    def from_cells(cls, cells: Sequence[Cell]) -> DiskFidelity:
        return cls(tuple(summaries(cells)), tuple(cells))

    def show(self, console: Console) -> None:
        columns = ("model", "cells", "within", "explained", "off", "worst IOPS", "worst latency")
        rows: list[tuple[object, ...]] = [
            (*astuple(model)[:5], *map(deviation, (model.worst_off, model.worst_latency_off)))
            for model in self.models
        ]
        print_table(console, "served models against themselves in virtual time", columns, rows)
        for cell in self.cells:
            if not cell.is_within:
                because = cell.reason or "no reason known"
                console.print(f"{cell.point.name}: {deviation(cell.off)}, {because}", markup=False)
        console.print(sentence(self.cells), markup=False)

    def csv(self) -> str:
        columns = ("model", "block", "depth", "direction", "expected_iops", "measured_iops", "off")
        rows = (
            (
                *(cell.model, cell.block, cell.depth, cell.direction),
                *(cell.expected.iops, cell.measured.iops, cell.off),
                *(cell.expected.latency_us, cell.measured.latency_us, cell.latency_off),
                *(cell.verdict, cell.reason),
            )
            for cell in self.cells
        )
        more = ("expected_latency_us", "measured_latency_us", "latency_off", "verdict", "reason")
        return csv_text((*columns, *more), rows)

    def failure(self) -> Exception | None:
        off = [cell for cell in self.cells if cell.verdict == "off"]
        if not off:
            return None
        worst = max(off, key=lambda cell: abs(cell.off))
        return ThresholdError(
            f"{len(off)} of {len(self.cells)} cells are off and no reason is known, the worst"
            f" by {deviation(worst.off, 0)}: {worst.point.name}; is the computer busy with"
            " something else?"
        )


def summaries(cells: Sequence[Cell]) -> list[ModelSummary]:
    """By model, in the order of the cells."""
    return [
        _summary(model, [cell for cell in cells if cell.model == model])
        for model in dict.fromkeys(cell.model for cell in cells)
    ]


def _summary(model: str, cells: Sequence[Cell]) -> ModelSummary:
    def count(verdict: Verdict) -> int:
        return sum(cell.verdict == verdict for cell in cells)

    within = [cell for cell in cells if cell.is_within]
    return ModelSummary(
        model,
        len(cells),
        count("within"),
        count("explained"),
        count("off"),
        max((cell.off for cell in within), key=abs, default=None),
        max((cell.latency_off for cell in within), key=abs, default=None),
    )


def sentence(cells: Sequence[Cell]) -> str:
    """How it went, in one."""
    off = sum(cell.verdict == "off" for cell in cells)
    explained = sum(cell.verdict == "explained" for cell in cells)
    at_ceiling = sum(cell.verdict == "explained" and cell.is_at_ceiling for cell in cells)
    return (
        f"{len(cells) - off - explained} of {plural(len(cells), 'cell')} are within"
        f" {percent(TOLERANCE, 0)} of the model in IOPS and mean latency"
        f" ({percent(TOLERANCE_MB_PER_S, 0)} in MB/s of 1 MiB requests); {at_ceiling} more ask"
        f" for more than this computer can serve, {explained - at_ceiling} were too slow"
        f" while its processors were busy, and {off} are off"
        " without a known reason."
    )


def markdown(cells: Sequence[Cell], command: str, computer: str) -> str:
    """All of it, to be published."""
    parts = [
        "# Served device models, held against themselves",
        sentence(cells),
        f"`{command}`. {computer}.",
        _overview(cells),
        "Below, by how much the requests a second differ from the model's own in virtual time;"
        " with requests of 1 MiB, which follow one another, that is the MB/s. Smaller ones go"
        " anywhere; of mixed ones 70 % are reads. `*`: explained; `(!)`: off, no reason known.",
        *(_of_model(model, cells) for model in dict.fromkeys(cell.model for cell in cells)),
        _reasons(cells),
    ]
    return "\n\n".join(part for part in parts if part)


def _overview(cells: Sequence[Cell]) -> str:
    rows = [
        f"| {summary.model} | {summary.cells} | {summary.within} | {summary.explained} |"
        f" {summary.off} | {deviation(summary.worst_off)} |"
        f" {deviation(summary.worst_latency_off)} |"
        for summary in summaries(cells)
    ]
    head = (
        "| model | cells | within | explained | off | worst within, IOPS | worst within, latency |"
    )
    return "\n".join((head, "|---|---:|---:|---:|---:|---:|---:|", *rows))


def _of_model(model: str, cells: Sequence[Cell]) -> str:
    by_load = {
        (cell.block, cell.direction, cell.depth): cell for cell in cells if cell.model == model
    }
    rows = []
    for block in BLOCKS:
        for direction in DIRECTIONS:
            row = [by_load.get((block, direction, depth)) for depth in DEPTHS]
            if any(row):
                shown = " | ".join(map(_format, row))
                rows.append(f"| {block} {direction} | {shown} |")
    heads = " | ".join(f"QD{depth}" for depth in DEPTHS)
    rule = "|---|" + "---:|" * len(DEPTHS)
    return "\n".join((f"## {model}", "", f"| | {heads} |", rule, *rows))


def _format(cell: Cell | None) -> str:
    return "" if cell is None else f"{deviation(cell.off)}{_MARKS[cell.verdict]}"


def _reasons(cells: Sequence[Cell]) -> str:
    rows = [
        f"| {cell.point.name} | {cell.expected.iops:,.0f} | {cell.measured.iops:,.0f} |"
        f" {deviation(cell.latency_off)} | {cell.reason or 'no reason known'} |"
        for cell in cells
        if not cell.is_within
    ]
    if not rows:
        return ""
    head = "| cell | model, IOPS | measured | latency | because |"
    return "\n".join(("## Not within", "", head, "|---|---:|---:|---:|---|", *rows))
