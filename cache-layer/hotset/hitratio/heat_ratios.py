"""Which hit ratio a cache of a size reaches, by the heat of a disk's regions.

The hottest regions, as many as fit, are the best that a cache of their size can hold while the heat
stays as it is: no policy that learns as it goes holds more of such requests (the static optimum of
the independent reference model; Coffman and Denning, Operating Systems Theory, 1973, section 6).

Without numpy: a server's health is looked at where nothing but the base is installed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate
from math import expm1, fsum

from hotset.core.units import Bytes

from .heat import Grid


def best_ratio(heats: Mapping[int, float], grid: Grid, cache: Bytes) -> float:
    """The hit ratio of the best that a cache of a size can hold: the hottest regions.

    :param heats: by region; at least one above 0.

    >>> grid = Grid(Bytes(4096), Bytes(1024), Bytes(0))
    >>> best_ratio({0: 1.0, 2: 8.0, 3: 1.0}, grid, Bytes(1024))
    0.8
    """
    sizes, held = hottest(heats, grid)
    return between(float(cache), sizes, held) / held[-1]


def lru_ratio(heats: Mapping[int, float], grid: Grid, cache: Bytes) -> float:
    """The hit ratio of an LRU of a size, were each region asked at its own steady rate.

    Che's approximation: a block is cached if it was asked for within the time that as many other
    blocks as fit take to be asked for (Che, Tung and Wang, Hierarchical Web caching systems, IEEE
    JSAC 20, 2002; Fricker, Robert and Roberts, A versatile and accurate approximation for LRU cache
    performance, ITC 24, 2012). Blocks of a region are alike, so their size does not matter.

    :param heats: by region; at least one above 0.
    """
    hot = [(heat, float(grid.extent(region).length)) for region, heat in heats.items() if heat > 0]
    if cache >= sum(size for _, size in hot):
        return 1.0
    rates = [(heat / size, size) for heat, size in hot]

    def fits(time: float) -> bool:
        return sum(-size * expm1(-rate * time) for rate, size in rates) < cache

    low, high = 0.0, 1.0
    while fits(high):
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if fits(middle) else (low, middle)
    hits = fsum(-heat * expm1(-heat / size * low) for heat, size in hot)
    return hits / fsum(heat for heat, _ in hot)


def hottest(heats: Mapping[int, float], grid: Grid) -> tuple[list[float], list[float]]:
    """Bytes of the hottest regions, the hottest first, and the heat that they have, added up from
    nothing on."""
    hot = [(heat, int(grid.extent(region).length)) for region, heat in heats.items() if heat > 0]
    hot.sort(key=lambda row: -row[0] / row[1])
    sizes = accumulate((float(size) for _, size in hot), initial=0.0)
    return list(sizes), list(accumulate((heat for heat, _ in hot), initial=0.0))


def between(value: float, known: list[float], images: list[float]) -> float:
    """Interpolate linearly between known values; beyond these, the outermost.

    :param known: ascending.

    >>> between(1.5, [0.0, 1.0, 2.0], [0.0, 8.0, 9.0])
    8.5
    """
    at = bisect_left(known, value)
    if at == 0:
        return images[0]
    if at == len(known):
        return images[-1]
    share = (value - known[at - 1]) / (known[at] - known[at - 1])
    return images[at - 1] + share * (images[at] - images[at - 1])
