"""How much flash holds which share of the requests, by the heat of a disk's regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from hotset.core.record import Versioned
from hotset.core.units import Bytes
from hotset.core.words import csv_text, percent, text_table
from hotset.hitratio.heat import Grid
from hotset.hitratio.heat_ratios import between, hottest

from .doubt import in_words
from .prediction import PredictedRun

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class Need:
    """The least flash with which a cache can reach a hit ratio; ``disk_share``: of the disk."""

    hit_ratio: float
    flash_bytes: Bytes
    disk_share: float


@dataclass(frozen=True)
class FlashNeeds(Versioned):
    """How much flash a disk needs. ``region_bytes``: how finely its heat is known."""

    csv_rows = "needs"

    disk: str
    region_bytes: Bytes
    needs: tuple[Need, ...]
    prediction: PredictedRun | None

    def show(self, console: Console) -> None:
        columns = ["hit ratio", "flash", "of the disk"]
        rows = [
            [percent(need.hit_ratio), str(need.flash_bytes), percent(need.disk_share)]
            for need in self.needs
        ]
        if self.prediction:
            columns += ["NOPM", "from", "to", "factor"]
            for row, line in zip(rows, self.prediction.lines, strict=True):
                row += [f"{nopm:,.0f}" for nopm in (line.nopm, line.nopm_low, line.nopm_high)]
                row.append(f"{line.factor:.1f}")
        console.print(text_table(columns, rows), markup=False, highlight=False)
        console.print(
            f"\nThe least flash that can serve that share of the requests to {self.disk}, by its"
            f" heat in regions of {self.region_bytes}: exactly the hottest ones. A cache that has"
            " to learn them needs more; within a region, no distinction is made.",
            markup=False,
            highlight=False,
        )
        if self.prediction:
            console.print(
                f"NOPM: as `hotset whatif predict {self.prediction.run}`, for TPC-C as it was run"
                f" there. {in_words(self.prediction.doubts)}",
                markup=False,
                highlight=False,
            )

    def csv(self) -> str:
        lines = self.prediction.lines if self.prediction else ()
        columns = ["hit_ratio", "flash_bytes", "disk_share"]
        columns += ["nopm", "nopm_low", "nopm_high"] if lines else []
        rows: list[list[object]] = [
            [need.hit_ratio, int(need.flash_bytes), need.disk_share] for need in self.needs
        ]
        for row, line in zip(rows, lines, strict=False):
            row += [line.nopm, line.nopm_low, line.nopm_high]
        return csv_text(columns, rows)


def needs(heats: Mapping[int, float], grid: Grid, hit_ratios: Sequence[float]) -> list[Need]:
    """Compute the flash that each hit ratio needs. Within a region all bytes count as equally hot.

    :param heats: by region; at least one above 0.

    >>> grid = Grid(Bytes(4096), Bytes(1024), Bytes(0))
    >>> [int(one.flash_bytes) for one in needs({0: 1.0, 2: 8.0, 3: 1.0}, grid, [0.4, 0.8, 0.9, 1])]
    [512, 1024, 2048, 3072]
    """
    sizes, held = hottest(heats, grid)
    needed = [between(min(ratio, 1.0) * held[-1], held, sizes) for ratio in hit_ratios]
    return [
        Need(ratio, Bytes(ceil(size)), size / int(grid.disk))
        for ratio, size in zip(hit_ratios, needed, strict=True)
    ]
