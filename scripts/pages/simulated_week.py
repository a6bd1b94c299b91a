"""Writes a simulated week into a console's history: for pictures of it, and for tests.

    python -m pages.simulated_week FILE      # ~/.local/share/hotset/history/local.sqlite, for one;
                                             # of no running console

Two disks: `shop` by day and night, but for a night in which nothing was recorded, with a warm-up, a
reset of its counters, and an hour of TPC-C; `archive`, which was detached and made again.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from hotset.core.clock import Moment
from hotset.core.units import Bytes
from hotset.monitoring.history import opening
from hotset.monitoring.history.observation import Event, EventKind, Facts
from hotset.monitoring.history.readings import Reading
from hotset.monitoring.history.store import DAY_S, RESOLUTIONS

SIZE = Bytes(64 << 30)
SHOP = Facts("s", "shop", "userspace", "hotset", "writeback", SIZE)
HOUR_S = 3600
NIGHT_H = 56, 47
"""In which nothing was recorded: so many hours before now."""
WARMED_H, RESET_H, REMADE_H, TPCC_H = 46.0, 20.0, 60.0, (5.0, 4.0)
EVENTS: tuple[tuple[float, float | None, EventKind, str], ...] = (
    (80.0, None, "setting", "shop: policy changed from smq to hotset"),
    (REMADE_H, None, "disk", "archive is not seen any more"),
    (REMADE_H - 1, None, "disk", "archive is accelerated from now on"),
    (NIGHT_H[0], None, "console", "this console ended"),
    (NIGHT_H[1], None, "console", "this console started"),
    (WARMED_H, 0.4, "warm-up", "warmup run shop database:tpcc"),
    (30.0, 0.05, "unreachable", "nothing answers at db1: No route to host"),
    (RESET_H, None, "reset", "shop: its counters restarted"),
    (TPCC_H[0], 1.0, "benchmark", "tpcc run"),
    (3.0, None, "warm-up", "warmup run shop table:hotset_tpcc.order_line failed"),
    (0.0, None, "console", "this console ended"),
)
"""Hours before now, hours that it took, kind, text."""


def write(path: Path, now: float, shop: Facts = SHOP) -> None:
    """Write the week that ends now; the file must not be there yet.

    :param shop: the only disk, in the place of `shop`, so that the console goes on with it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    disks = [shop]
    if shop == SHOP:
        old = replace(SHOP, identity="a1", name="archive", present=False)
        disks += [old, replace(old, identity="a2", present=True)]
    # As if the computer had been started when 1970 began: all times are those of the wall clock.
    moment = Moment(now, "simulated", now)
    events = [
        _event(now - HOUR_S * hours, length, kind, text.replace("shop", shop.name))
        for hours, length, kind, text in EVENTS
        if "archive" not in text or shop == SHOP
    ]
    readings = list(_readings(now, disks))
    with opening.writing(path) as store:
        for place in range(0, len(readings), 200):
            store.keep(moment, readings[place : place + 200], (), disks)
        store.keep(moment, (), events, disks)


def _starts(now: float) -> Iterator[tuple[int, int]]:
    """Spans as long as what is kept of their time, oldest first."""
    ages = [0, *(kept for _, kept in RESOLUTIONS)]
    for (step, kept), young in reversed(list(zip(RESOLUTIONS, ages, strict=False))):
        first, end = int(now - min(kept, 7 * DAY_S)), int(now - young)
        for start in range(first // step * step, end // step * step, step):
            yield start, step


def _readings(now: float, disks: Sequence[Facts]) -> Iterator[Reading]:
    """Yield the counters at the end of each span."""
    drawn = random.Random(7)
    sums = {identity: [0] * 11 for identity in ("", *(disk.identity for disk in disks))}
    ends = dict.fromkeys(sums, 0)
    watched_ms, load = 0, [0, 0]
    for start, step in _starts(now):
        hours = (now - start) / HOUR_S
        if NIGHT_H[1] < hours < NIGHT_H[0]:
            continue
        watched_ms += 1000 * step
        counted = _count(start, step, hours, disks, drawn)
        if TPCC_H[1] < hours < TPCC_H[0]:
            load = [load[0] + 700 * step, load[1] + 1000 * step]
        for identity, (amounts, levels) in {"": ([0] * 11, (0, 0, 0)), **counted}.items():
            goes_on = ends[identity] == start
            sums[identity] = [a + b for a, b in zip(sums[identity], amounts, strict=True)]
            values = *sums[identity], *(load if not identity else (None, None))
            place = identity, 1000 * (start + step), watched_ms
            yield Reading(*place, goes_on, values, levels)
            ends[identity] = start + step


def _event(at: float, hours: float | None, kind: EventKind, text: str) -> Event:
    return Event(f"{at}", at, kind, text, None if hours is None else at + HOUR_S * hours)


Counted = tuple[list[int], tuple[int, int, int]]


def _count(
    start: int, step: int, hours: float, disks: Sequence[Facts], drawn: random.Random
) -> dict[str, Counted]:
    """Draw what each disk did in a span, and its levels."""
    shop = disks[0]
    day = 0.5 - 0.5 * math.cos(2 * math.pi * ((start / HOUR_S) % 24) / 24)
    has_tpcc = TPCC_H[1] < hours < TPCC_H[0]
    # Cold after the night and after the reset, until the warm-up.
    cold = 0.35 if WARMED_H < hours < NIGHT_H[1] else 0.15 if RESET_H - 4 < hours < RESET_H else 0
    ratio = 0.97 - cold - 0.05 * (1 - day) - drawn.uniform(0, 0.015)
    load = (300 + 2500 * day + (4000 if has_tpcc else 0)) * drawn.uniform(0.9, 1.1)
    size = shop.size or SIZE
    counted: dict[str, Counted] = {}
    if not RESET_H - 0.05 < hours < RESET_H + 0.05:
        counted[shop.identity] = _amounts(step, load, ratio), _levels(size, day, 0.9)
    if len(disks) > 1 and hours > REMADE_H:
        counted["a1"] = _amounts(step, load / 6, 0.7), _levels(SIZE, 0.1, 0.5)
    elif len(disks) > 1 and hours < REMADE_H - 1:
        counted["a2"] = _amounts(step, load / 8, 0.8), _levels(SIZE, 0.1, 0.6)
    return counted


def _amounts(step: int, rate: float, ratio: float) -> list[int]:
    reads, writes = round(0.7 * rate * step), round(0.3 * rate * step)
    hits, write_hits = round(reads * ratio), round(writes * ratio)
    tier = [hits, reads - hits, write_hits, writes - write_hits, 0]
    read_ms = round(reads * (0.2 + 6 * (1 - ratio)))
    return [*tier, 8192 * reads, reads, read_ms, 8192 * writes, writes, round(writes * 0.4)]


def _levels(size: Bytes, day: float, used: float) -> tuple[int, int, int]:
    return round(size * 0.2 * day), round(size * used), int(size)


if __name__ == "__main__":
    write(Path(sys.argv[1]), time.time())
