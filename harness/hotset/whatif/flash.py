"""How much flash holds which share of the requests, by the heat of a disk's regions.

The hottest regions, as many as fit, are the best that a cache of their size can hold while the heat
stays as it is: no policy that learns as it goes holds more of such requests (the static optimum of
the independent reference model; Coffman and Denning, Operating Systems Theory, 1973, section 6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hotset.core.units import Bytes
from hotset.hitratio.heat import Grid
from hotset.reports.model.schema import Versioned

from .prediction import PredictedRun

Sums = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


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
    sizes, held = _hottest(heats, grid)
    wanted = np.minimum(np.asarray(hit_ratios, dtype=float), 1.0) * held[-1]
    found = np.interp(wanted, held, sizes)
    return [
        Need(ratio, Bytes(int(np.ceil(size))), float(size) / int(grid.disk))
        for ratio, size in zip(hit_ratios, found, strict=True)
    ]


def best_ratio(heats: Mapping[int, float], grid: Grid, cache: Bytes) -> float:
    """The hit ratio of the best that a cache of a size can hold: the hottest regions.

    :param heats: by region; at least one above 0.

    >>> grid = Grid(Bytes(4096), Bytes(1024), Bytes(0))
    >>> best_ratio({0: 1.0, 2: 8.0, 3: 1.0}, grid, Bytes(1024))
    0.8
    """
    sizes, held = _hottest(heats, grid)
    return float(np.interp(float(cache), sizes, held) / held[-1])


def lru_ratio(heats: Mapping[int, float], grid: Grid, cache: Bytes) -> float:
    """The hit ratio of an LRU of a size, were each region asked at its own steady rate.

    Che's approximation: a block is cached if it was asked for within the time that as many other
    blocks as fit take to be asked for (Che, Tung and Wang, Hierarchical Web caching systems, IEEE
    JSAC 20, 2002; Fricker, Robert and Roberts, A versatile and accurate approximation for LRU cache
    performance, ITC 24, 2012). Blocks of a region are alike, so their size does not matter.

    :param heats: by region; at least one above 0.
    """
    hot = [(heat, float(grid.extent(region).length)) for region, heat in heats.items() if heat > 0]
    heat, size = np.array(hot).T
    if cache >= size.sum():
        return 1.0
    low, high = 0.0, 1.0
    while float(size @ -np.expm1(-heat / size * high)) < cache:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        fits = float(size @ -np.expm1(-heat / size * middle)) < cache
        low, high = (middle, high) if fits else (low, middle)
    return float(heat @ -np.expm1(-heat / size * low) / heat.sum())


def _hottest(heats: Mapping[int, float], grid: Grid) -> tuple[Sums, Sums]:
    """Bytes of the hottest regions, the hottest first, and the heat that they have, added up."""
    hot = [(heat, int(grid.extent(region).length)) for region, heat in heats.items() if heat > 0]
    hot.sort(key=lambda one: -one[0] / one[1])
    sizes = np.concatenate(([0.0], np.cumsum([float(size) for _, size in hot])))
    return sizes, np.concatenate(([0.0], np.cumsum([heat for heat, _ in hot])))
