"""Do our smq and bcache cache what the kernel's do? Timed traces through both; a table, and JSON.

Each load is replayed in real time on the kernel's own dm-cache and bcache in the lab's machine
(User-Mode Linux, or what --machine names) three times, as no two replays are quite alike, and
simulated. Without LOADs: TPC-C as it was recorded, TPC-C and a scan beside it, TPC-H's scans, and
two scans of the same data, of 40 to 60 seconds each, and a working set that moves for three
minutes, which makes smq demote: all that it has ranks highest until a period of 60 seconds is over.
Write a load of your own as NAME=FILE:DISK_MIB:CACHE_MIB; FILE has `SECONDS R|W OFFSET BYTES` lines,
plain or as .gz. bcache counts requests and not blocks, so it is sent them in pages of 8 KiB.
"""

from __future__ import annotations

import argparse
import gzip
import heapq
import json
import random
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from campaign.agreement import (
    MIGRATIONS,
    RATIOS,
    Agreement,
    Figure,
    Load,
    TooSlowError,
    agreement,
    flash_bytes,
)
from hotset.block import flashdev
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.lab import lab as labs
from hotset.lab.lab import LabSpec

MIB = 1024**2
PAGE = 8192
TPCC = Path(__file__).parents[3] / "cache-layer/tests/data/tpcc-3-warehouses.trace.gz"
SECONDS = 40.0
SCAN_AT = 832 * MIB
"""Behind TPC-C's data, on a disk of 1 GiB."""
SCAN_SECONDS = 60.0
MOVES, STAYS_S, MOVING_BLOCKS, MOVING_RATE = 3, 60.0, 2048, 400.0
"""A working set of 128 MiB, Zipf-distributed, which is another one every minute."""


class Row(NamedTuple):
    """A line of a trace."""

    at: float
    op: str
    offset: int
    size: int


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("loads", nargs="*", metavar="NAME=FILE:DISK_MIB:CACHE_MIB")
    parser.add_argument("--machine", default="uml", choices=["local", "uml"])
    parser.add_argument("--tier", action="append", choices=["dm-cache", "bcache"])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the values here as well")


def measure(wanted: argparse.Namespace) -> None:
    """A load after the other; each is told, and kept, when it is through."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = [parse(text, folder / str(n)) for n, text in enumerate(wanted.loads)]
        own = given or own_loads(folder)
        loads = [
            for_tier(load, tier)
            for tier in wanted.tier or KINDS
            for load in own
            if tier == "dm-cache" or load.name not in DM_CACHE_ALONE
        ]
        spec = LabSpec(wanted.machine, 2, Bytes(1024 * MIB), flash_bytes(loads))
        results = []
        with labs.running(spec, "agreement", print) as lab:
            for load in loads:
                try:
                    results.append(agreement(lab, load, wanted.replays))
                except TooSlowError as slow:
                    print(f"{load.name} on {load.kind}: {slow}", flush=True)
                    continue
                print(*table(results[-1:])[2:], sep="\n", flush=True)
                if wanted.json:
                    figures = [result.as_dict() for result in results]
                    wanted.json.write_text(json.dumps(figures, indent=1) + "\n")
    print(*table(results), sep="\n")


KINDS = ("dm-cache", "bcache")
DM_CACHE_ALONE = {"a set that moves, 64 MiB"}
"""bcache has nothing to demote."""


def parse(text: str, plain: Path) -> Load:
    """A load as it was written; a trace that is compressed is unpacked to ``plain``."""
    try:
        name, rest = text.split("=", 1)
        file, disk, cache = rest.rsplit(":", 2)
        sizes = Bytes(int(disk) * MIB), Bytes(int(cache) * MIB)
    except ValueError:
        raise SystemExit(f"load `{text}`: write NAME=FILE:DISK_MIB:CACHE_MIB") from None
    trace = Path(file)
    if trace.suffix == ".gz":
        plain.write_bytes(gzip.decompress(trace.read_bytes()))
        trace = plain
    return Load(name, trace, *sizes)


def own_loads(folder: Path) -> list[Load]:
    """Create the loads of this script."""
    tpcc = read(gzip.decompress(TPCC.read_bytes()).decode())
    beside = scan(SCAN_AT, 128 * MIB, rate=4 * MIB, until=SECONDS)
    twice = scan(0, 192 * MIB, rate=8 * MIB, until=48.0)
    mixed = list(heapq.merge(tpcc, beside))
    return [
        load(folder, "TPC-C", tpcc, 1024, 96),
        load(folder, "TPC-C", tpcc, 1024, 256),
        load(folder, "TPC-C and a scan", mixed, 1024, 256),
        load(folder, "TPC-H", tpch(folder), 128, 48),
        load(folder, "scan, twice", twice, 256, 96),
        load(folder, "a set that moves", moving(), 1024, 64),
    ]


def load(folder: Path, name: str, rows: list[Row], disk: int, cache: int) -> Load:
    """:param disk: MiB; ``cache`` too."""
    file = folder / f"{name}-{cache}.trace".replace(" ", "-")
    write(file, rows)
    return Load(f"{name}, {cache} MiB", file, Bytes(disk * MIB), Bytes(cache * MIB))


def for_tier(load: Load, tier: str) -> Load:
    """bcache's has requests of a page each."""
    if tier == "dm-cache":
        return load
    file = load.trace.with_suffix(".pages")
    if not file.exists():
        write(file, list(pages(read(load.trace.read_text()))))
    return replace(load, trace=file, kind="bcache")


def scan(start: int, size: int, rate: int, until: float) -> list[Row]:
    """Reads of 64 KiB one after the other, over and over."""
    step = 64 * 1024
    count = int(until * rate / step)
    return [Row(n * step / rate, "R", start + n * step % size, step) for n in range(count)]


def moving() -> list[Row]:
    """Requests of 8 KiB, three of four read, of blocks that are wanted by Zipf's law (1.0)."""
    drawn = random.Random(1)
    weights = [1 / rank for rank in range(1, MOVING_BLOCKS + 1)]
    rows = list[Row]()
    for move in range(MOVES):
        blocks = drawn.sample(range(1024 * MIB // (64 * 1024)), MOVING_BLOCKS)
        count = int(STAYS_S * MOVING_RATE)
        for n, block in enumerate(drawn.choices(blocks, weights, k=count)):
            offset = block * 64 * 1024 + drawn.randrange(8) * PAGE
            op = "R" if drawn.random() < 0.75 else "W"
            rows.append(Row(move * STAYS_S + n / MOVING_RATE, op, offset, PAGE))
    return rows


def tpch(folder: Path) -> list[Row]:
    """The first minute of the 22 queries' scans of 60 MB, with buffers of 16 MiB."""
    local, file = Local(), folder / "tpch.binary"
    argv = ["trace", "tpch", "--scale", "0.045", "--buffer", "16M", "--rate", "8M"]
    flashdev.figures(local, [*argv, "--to", str(file)])
    text = local.run([str(flashdev.program(local)), "trace", "print", str(file)]).stdout
    return [request for request in read(text) if request.at < SCAN_SECONDS]


def read(text: str) -> list[Row]:
    lines = (line.split() for line in text.splitlines())
    return [Row(float(at), op, int(offset), int(size)) for at, op, offset, size in lines]


def pages(rows: list[Row]) -> Iterator[Row]:
    for row in rows:
        first, end = row.offset // PAGE, -(-(row.offset + row.size) // PAGE)
        for page in range(first, end):
            yield Row(row.at, row.op, page * PAGE, PAGE)


def write(file: Path, rows: list[Row]) -> None:
    lines = (f"{row.at:.6f} {row.op} {row.offset} {row.size}\n" for row in rows)
    file.write_text("".join(lines))


def table(results: list[Agreement]) -> list[str]:
    """Format as Markdown: the kernel's value / ours / for smq that of the simulation in which data
    moves at once; on average of the replays, from the least to the most where they differ."""
    lines = [
        "| tier | trace, cache | read hits % | write hits % | all % | promotions | demotions |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        cells = [cell(result, figure, percent) for figure in RATIOS.values()]
        cells += [cell(result, figure, count) for figure in MIGRATIONS.values()]
        lines.append(f"| {result.kind} | {result.load} | {' | '.join(cells)} |")
    return lines


def cell(result: Agreement, figure: Figure, shown: Callable[[float | None], str]) -> str:
    sides = [of_replays(side(figure), shown) for side in (result.kernels, result.ours)]
    if result.kind == "dm-cache":
        sides.append(shown(figure(result.at_once)))
    return " / ".join(sides)


def of_replays(figures: list[float], shown: Callable[[float | None], str]) -> str:
    if not figures:
        return shown(None)
    low, high = shown(min(figures)), shown(max(figures))
    return shown(mean(figures)) + (f" ({low}–{high})" if low != high else "")


def percent(ratio: float | None) -> str:
    return "–" if ratio is None else f"{100 * ratio:.1f}"


def count(number: float | None) -> str:
    return "–" if number is None else f"{number:,.0f}"
