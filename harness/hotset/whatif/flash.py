"""How much flash holds which share of the requests, by the heat of a disk's regions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from hotset.core.record import Versioned
from hotset.core.units import Bytes
from hotset.hitratio.heat import Grid
from hotset.hitratio.heat_ratios import between, hottest

from .prediction import PredictedRun


@dataclass(frozen=True, slots=True)
class Need:
    """The least flash with which a cache can come to a hit ratio; ``disk_share``: of the disk."""

    hit_ratio: float
    flash_bytes: Bytes
    disk_share: float


@dataclass(frozen=True)
class FlashNeeds(Versioned):
    """How much flash a disk needs. ``region_bytes``: how finely its heat is known."""

    disk: str
    region_bytes: Bytes
    needs: tuple[Need, ...]
    prediction: PredictedRun | None


def needs(heats: Mapping[int, float], grid: Grid, hit_ratios: Sequence[float]) -> list[Need]:
    """What each hit ratio takes. Within a region all bytes count as equally hot.

    :param heats: by region; at least one above 0.

    >>> grid = Grid(Bytes(4096), Bytes(1024), Bytes(0))
    >>> [int(one.flash_bytes) for one in needs({0: 1.0, 2: 8.0, 3: 1.0}, grid, [0.4, 0.8, 0.9, 1])]
    [512, 1024, 2048, 3072]
    """
    sizes, held = hottest(heats, grid)
    found = [between(min(ratio, 1.0) * held[-1], held, sizes) for ratio in hit_ratios]
    return [
        Need(ratio, Bytes(ceil(size)), size / int(grid.disk))
        for ratio, size in zip(hit_ratios, found, strict=True)
    ]
