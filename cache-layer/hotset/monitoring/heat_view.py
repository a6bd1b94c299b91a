"""`hotset heat top|map`: what is hot, by file, table or extent, and where on the disk it lies."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log1p

from hotset.block import extents
from hotset.block.extents import Extent
from hotset.core.record import Record
from hotset.core.units import Bytes
from hotset.core.words import ABSENT, percent, size, text_table
from hotset.databases import file_labels
from hotset.hitratio import attribution
from hotset.hitratio.attribution import Owner, SystemName
from hotset.hitratio.heat import Grid
from hotset.warmup.targets import region_name

_MIB = 1024**2
_HEAT = " ▁▂▃▄▅▆▇█"
_RESIDENT = " ░▒▓█"


@dataclass(frozen=True, slots=True)
class Hot:
    """An owner or an extent. ``heat`` is decayed requests, ``share`` its part of the disk's,
    ``bytes`` what it has on the disk; ``resident`` is the share of that in the cache (None: not
    asked, or it has no blocks of its own). ``target`` is what `warmup pin` calls it (None: it
    cannot be pinned by itself). ``system``: no table, file or database of the user's."""

    name: str
    heat: float
    share: float
    bytes: int
    heat_per_mib: float | None
    resident: float | None
    target: str | None
    system: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """A stretch of the disk."""

    start: int
    bytes: int
    heat: float
    heat_per_mib: float
    resident: float | None


@dataclass(frozen=True)
class HeatRanking(Record):
    """Ranking by heat, the hottest first. ``by``: what the rows are."""

    csv_rows = "rows"

    by: str
    rows: tuple[Hot, ...]

    def to_text(self) -> str:
        """Format a ranking as a table."""
        heads = (self.by, "heat", "of all", "size", "heat/MiB", "in cache")
        return text_table(heads, [_cells(row) for row in self.rows])


@dataclass(frozen=True)
class HeatMap(Record):
    """The disk as a strip, from its beginning to its end."""

    csv_rows = "cells"

    cells: tuple[Cell, ...]

    def to_text(self) -> str:
        return map_text(self, map_width())


def map_width() -> int:
    """How many characters a line of the map has."""
    return max(20, shutil.get_terminal_size().columns - 12)


def by_owner(
    heats: Mapping[int, float],
    grid: Grid,
    owners: Sequence[Owner],
    cached: Sequence[Extent] | None,
    by: str = "file",
) -> list[Hot]:
    """Owners by heat; the shared and the unowned regions as one line each.

    :param by: kind of the owners: ``file``, ``table`` or ``database``.
    """
    whose = attribution.of_regions(grid, owners)
    sums: defaultdict[str, float] = defaultdict(float)
    for number, heat in heats.items():
        sums[whose.get(number, attribution.UNOWNED)] += heat
    where = {owner.name: extents.merge(owner.extents) for owner in owners}
    return _rank([(name, heat, where.get(name, [])) for name, heat in sums.items()], cached, by)


def by_extent(heats: Mapping[int, float], grid: Grid, cached: Sequence[Extent] | None) -> list[Hot]:
    """Regions by heat, each named by where it begins on the disk."""
    parts = [(grid.extent(number), heat) for number, heat in heats.items()]
    return _rank(
        [(f"{size(part.start)} + {size(part.length)}", heat, [part]) for part, heat in parts],
        cached,
        "extent",
    )


def strip(
    heats: Mapping[int, float], grid: Grid, cached: Sequence[Extent] | None, cells: int
) -> list[Cell]:
    """The disk cut into equal stretches; a region's heat goes to where its middle lies."""
    width = -(-grid.disk // max(1, min(cells, grid.count)))
    sums: defaultdict[int, float] = defaultdict(float)
    for number, heat in heats.items():
        extent = grid.extent(number)
        sums[(extent.start + extent.length // 2) // width] += heat
    stretches: list[Cell] = []
    for at in range(-(-grid.disk // width)):
        part = Extent(Bytes(at * width), Bytes(min(width, grid.disk - at * width)))
        heat = sums[at]
        stretches.append(
            Cell(
                int(part.start),
                int(part.length),
                heat,
                heat * _MIB / part.length,
                _resident([part], cached),
            )
        )
    return stretches


def level_of(heat_per_mib: float, most: float) -> float:
    """How hot a stretch looks beside the hottest, from 0 to 1, logarithmic.

    >>> level_of(0.0, 8.0), round(level_of(2.0, 8.0), 3), level_of(0.0, 0.0)
    (0.0, 0.5, 0.0)
    """
    return log1p(heat_per_mib) / log1p(most) if most > 0 else 0.0


def map_text(heat_map: HeatMap, width: int) -> str:
    """For people two strips a line: heat above (logarithmic), what is cached below."""
    cells = heat_map.cells
    most = max((cell.heat_per_mib for cell in cells), default=0.0)
    lines: list[str] = []
    for start in range(0, len(cells), width):
        part = cells[start : start + width]
        lines.append(f"{size(part[0].start):>10} {''.join(_hot(cell, most) for cell in part)}")
        if any(cell.resident is not None for cell in part):
            lines.append(f"{'cached':>10} {''.join(_residency(cell) for cell in part)}")
    each = size(cells[0].bytes) if cells else ABSENT
    lines.append(
        f"one character is {each}; heat from none ({_HEAT[1]}: a little) to"
        f" {most:,.1f} requests a MiB ({_HEAT[-1]})"
    )
    return "\n".join(lines)


def _cells(row: Hot) -> tuple[str, ...]:
    density = ABSENT if row.heat_per_mib is None else f"{row.heat_per_mib:,.2f}"
    held = size(row.bytes) if row.bytes else ABSENT
    return (row.name, f"{row.heat:,.1f}", percent(row.share), held, density, percent(row.resident))


def _rank(
    parts: Sequence[tuple[str, float, list[Extent]]], cached: Sequence[Extent] | None, by: str
) -> list[Hot]:
    whole = sum(heat for _, heat, _ in parts)
    rows = []
    for name, heat, where in parts:
        held = int(extents.length(where))
        density = heat * _MIB / held if held else None
        share = heat / whole if whole else 0.0
        target = region_name(where[0]) if by == "extent" else file_labels.target_of(by, name)
        resident, is_system = _resident(where, cached), isinstance(name, SystemName)
        rows.append(Hot(name, heat, share, held, density, resident, target, is_system))
    return sorted(rows, key=lambda row: (-row.heat, row.name))


def _resident(where: list[Extent], cached: Sequence[Extent] | None) -> float | None:
    held = extents.length(where)
    if cached is None or not held:
        return None
    return extents.length(extents.common(where, cached)) / held


def _hot(cell: Cell, most: float) -> str:
    if cell.heat_per_mib <= 0 or most <= 0:
        return _HEAT[0]
    level = level_of(cell.heat_per_mib, most)
    return _HEAT[1 + min(len(_HEAT) - 2, int(level * (len(_HEAT) - 1)))]


def _residency(cell: Cell) -> str:
    # Rounded up: a stretch with anything in the cache does not look empty.
    return _RESIDENT[-(-int((cell.resident or 0.0) * 1000) * (len(_RESIDENT) - 1) // 1000)]
