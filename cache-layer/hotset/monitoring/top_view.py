"""`hotset top` as lines of a screen: bars, a minute as a sparkline, as much as there is room."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal

from rich.text import Text

from hotset.core.words import ABSENT, percent, size, sparkline

from .top import DiskView, Load, Picture

Order = Literal["name", "hit ratio", "requests", "dirty"]
ORDERS: tuple[Order, ...] = ("name", "hit ratio", "requests", "dirty")
_EIGHTHS = " ▏▎▍▌▋▊▉"
_BAR = 16
_LABEL = 9
_HELP = (
    "q        quit",
    "s        sort disks: by name, lowest hit ratio, most requests, most dirty",
    "?        this help, and back",
    "now      hits / (hits + misses) of the last interval; bypassed requests are in no ratio",
    "minute   the same, interval by interval; full height is 100 %, a gap is no request",
)
_KEYS: dict[Order, Callable[[DiskView], tuple[float, str]]] = {
    "name": lambda disk: (0.0, disk.seen.name),
    "hit ratio": lambda disk: (_ratio(disk), disk.seen.name),
    "requests": lambda disk: (-_requests(disk), disk.seen.name),
    "dirty": lambda disk: (-(disk.line.dirty_bytes if disk.line else 0), disk.seen.name),
}


def screen(
    picture: Picture | None, order: Order, title: str, width: int, height: int, help_: bool
) -> Text:
    """Render what fits, in ``height`` lines of at most ``width`` characters."""
    lines = [_head(picture, order, title, width)]
    if help_:
        lines += [Text(), *(Text(line) for line in _HELP)]
    elif picture is None:
        lines += [Text(), Text("first reading …")]
    else:
        rest = [*_running(picture.running), *_workload(picture, width)]
        lines += [*_disks(picture.disks, order, width, height - len(rest) - 1), *rest]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return Text("\n").join(lines[:height])


def bar(share: float | None, width: int = _BAR) -> str:
    """A share from 0 to 1 as a bar of fixed width.

    >>> bar(0.5, 4), bar(0.03, 4), bar(None, 4)
    ('▕██  ▏', '▕▏   ▏', '▕    ▏')
    """
    eighths = round(max(0.0, min(1.0, share or 0.0)) * width * 8)
    if share and not eighths:
        eighths = 1
    whole, part = divmod(eighths, 8)
    return f"▕{('█' * whole + (_EIGHTHS[part] if part else '')).ljust(width)}▏"


def _head(picture: Picture | None, order: Order, title: str, width: int) -> Text:
    at = time.strftime("%H:%M:%S", time.localtime(picture.at)) if picture else ""
    left = f"hotset top  {title}  {at}  by {order}"
    keys = "q quit  s sort  ? help"
    return Text(f"{left}{keys:>{max(0, width - len(left))}}", style="reverse")


def _disks(disks: Sequence[DiskView], order: Order, width: int, room: int) -> list[Text]:
    """Four lines a disk, the last of them empty, and how many did not fit."""
    if not disks:
        return [Text(), Text("no disk is accelerated here: `hotset tier create` sets one up")]
    shown = sorted(disks, key=_KEYS[order])
    fit = len(shown) if len(shown) * 4 <= room else max(1, (room - 1) // 4)
    lines = [line for disk in shown[:fit] for line in (Text(), *_disk(disk, width))]
    if fit < len(shown):
        lines.append(Text(f"{len(shown) - fit} more: make the window higher, or sort with s"))
    return lines


def _disk(disk: DiskView, width: int) -> list[Text]:
    seen, line, counters = disk.seen, disk.line, disk.seen.counters
    head = Text.assemble((seen.name, "bold"), f"  {seen.kind}, {seen.about}")
    if counters is None:
        head.append("  the tier's counters cannot be read", style="bold red")
        return [head, Text(), Text()]
    now = line.hit_ratio if line else None
    ratio = Text.assemble(
        f"{'hits':{_LABEL}}",
        (f"{percent(now):>8} ", "bold"),
        (bar(now), "green"),
        f" now  {percent(counters.hits.ratio)} since start  ",
    )
    minute = squeeze(disk.ratios, max(0, width - ratio.cell_len))
    ratio.append(sparkline(minute, 1), style="green")
    total = int(counters.total.bytes(seen.block))
    dirty, used = int(counters.dirty.bytes(seen.block)), int(counters.used.bytes(seen.block))
    levels = Text.assemble(
        f"{'used':{_LABEL}}{size(used):>8} ",
        (bar(used / total if total else None), "cyan"),
        f" of {size(total)}  dirty {size(dirty)} ",
        (bar(dirty / total if total else None), "yellow"),
    )
    head.append(f"  {_rates(disk)}")
    return [head, ratio, levels]


def _rates(disk: DiskView) -> str:
    line = disk.line
    if line is None:
        return ""
    pairs = (
        ("reads", line.reads),
        ("writes", line.writes),
        ("bypassed", line.bypassed),
        ("promoted", line.promotions),
        ("demoted", line.demotions),
    )
    return "  ".join(f"{name} {value:,.0f}/s" for name, value in pairs if value is not None)


def _workload(picture: Picture, width: int) -> list[Text]:
    load = picture.load
    if load is None:
        return []
    head = Text.assemble((f"{'database':{_LABEL}}", "bold"))
    head.append(_rate(load.commits, "transactions"), style="bold")
    head.append("  ")
    head.append(sparkline(squeeze(picture.rates, max(0, width - head.cell_len))), style="cyan")
    return [Text(), head, Text(f"{'':{_LABEL}}{_io(load)}"), *_waits(load)]


def _io(load: Load) -> str:
    parts = []
    for name, count, ms in (
        ("reads", load.reads, load.read_ms),
        ("writes", load.writes, load.write_ms),
    ):
        waited = f" at {ms:.1f} ms" if ms is not None else ""
        parts.append(_rate(count, name) + waited)
    return "I/O  " + "  ".join(parts)


def _waits(load: Load) -> list[Text]:
    if load.waits:
        waits = "  ".join(f"{name} {ms:,.0f} ms/s" for name, ms in load.waits)
        return [Text(f"{'':{_LABEL}}waits  {waits}")]
    return [Text(f"{'':{_LABEL}}{reason}", style="dim") for reason in load.missing[:1]]


def _running(lines: Sequence[str]) -> list[Text]:
    return [Text(), *(Text(f"{'running':{_LABEL}}{line}") for line in lines)] if lines else []


def squeeze(values: Sequence[float | None], width: int) -> list[float | None]:
    """At most ``width`` values: neighbours as their mean, the newest last.

    >>> squeeze([1, 3, None, 5], 2)
    [2.0, 5.0]
    """
    if width <= 0 or not values:
        return []
    each = -(-len(values) // width)
    first = len(values) % each
    groups = [values[:first]] if first else []
    groups += [values[at : at + each] for at in range(first, len(values), each)]
    return [_mean(group) for group in groups]


def _mean(group: Sequence[float | None]) -> float | None:
    known = [value for value in group if value is not None]
    return sum(known) / len(known) if known else None


def _rate(value: float | None, what: str) -> str:
    return f"{what} {ABSENT}" if value is None else f"{what} {value:,.0f}/s"


def _ratio(disk: DiskView) -> float:
    """Disks without requests come last."""
    ratio = disk.line.hit_ratio if disk.line else None
    return 2.0 if ratio is None else ratio


def _requests(disk: DiskView) -> float:
    return disk.line.reads + (disk.line.writes or 0) if disk.line else 0.0
