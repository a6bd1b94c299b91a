"""How well runs in a row agree: with `--fresh`, each on a copy of the load, and without.

One private PostgreSQL, autovacuum on as usual, everything in memory and no fsync, so that no disk
of this computer's is measured. First the runs with `--fresh`, which leave the database as it was
loaded, then as many without, on that same database: it grows, and autoanalyze may turn its plans.
The spread is the highest less the lowest NOPM, by the mean. How fast the processor was is measured
before and after each run, by random reads of memory on every core: a shared computer's varies,
whatever the database does.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass

import numpy

from .. import postgres
from ..page import Page, table
from ..paired import turns
from ..programs import hotset

MEMORY_BYTES = 256 << 20
READS = 1 << 23
ROUNDS = 20
GOAL = 0.05


@dataclass(frozen=True)
class Run:
    """The result of one run.

    :ivar age: orders since the load when its window opened; None: not known.
    :ivar notes: ``NOT_STEADY``, ``PLAN_CHANGED``.
    :ivar processor: how fast it was before and after, millions of reads a second.
    """

    nopm: float
    age: int | None
    notes: tuple[str, ...]
    processor: float

    def __str__(self) -> str:
        words = " ".join((f"{self.nopm:,.0f} NOPM", *self.notes))
        return f"{words}, processor {self.processor:.0f} M/s"


class Processor:
    """How fast all cores read numbers here and there in memory, as a database does."""

    def __init__(self) -> None:
        dice = numpy.random.default_rng(1)
        self._numbers = numpy.arange(MEMORY_BYTES // 8)
        self._places = dice.integers(0, self._numbers.size, READS)
        self.speed()  # the first touch of memory is no measure

    def speed(self) -> float:
        """Millions of reads a second."""
        cores = os.cpu_count() or 1
        begun = time.perf_counter()
        with ThreadPoolExecutor(cores) as pool:
            for _ in pool.map(lambda _: self._numbers.take(self._places), range(cores * ROUNDS)):
                pass
        return cores * ROUNDS * READS / (time.perf_counter() - begun) / 1e6


def measure(options: argparse.Namespace) -> Page:
    """Load once, run with --fresh, then without."""
    processor = Processor()
    command = f"tpcc run -u {options.users} -w {options.warehouses}"
    command += f" --duration {options.seconds:g}"
    with postgres.tpcc(options.warehouses, autovacuum=True) as (_, dsn):

        def run(*more: str) -> Run:
            before = processor.speed()
            answer = hotset(*command.split(), "--dsn", dsn, "--no-check", "--quiet", *more)
            (result,) = answer["arms"][0]["repeats"]
            notes = (
                ["NOT_STEADY"] if any(s["steady"] is False for s in result["steadiness"]) else []
            )
            notes += ["PLAN_CHANGED"] if result["plan_changes"] else []
            speed = (before + processor.speed()) / 2
            return Run(result["nopm"], result["orders_before"], tuple(notes), speed)

        fresh = turns({"--fresh": lambda _: run("--fresh")}, options.rounds)["--fresh"]
        in_a_row = turns({"in a row": lambda _: run()}, options.rounds)["in a row"]
    return page(fresh, in_a_row, f"hotset {command} [--fresh]")


def spread(values: list[float]) -> float:
    """The highest less the lowest, by the mean."""
    return (max(values) - min(values)) / statistics.fmean(values)


def page(fresh: list[Run], in_a_row: list[Run], command: str) -> Page:
    data = {
        "spread_fresh": spread([run.nopm for run in fresh]),
        "spread_in_a_row": spread([run.nopm for run in in_a_row]),
    }
    speeds, nopms = zip(*((run.processor, run.nopm) for run in fresh + in_a_row), strict=True)
    data["spread_of_processor"] = spread(list(speeds))
    data["explained_by_processor"] = statistics.correlation(speeds, nopms) ** 2
    verdict = "within" if data["spread_fresh"] <= GOAL else "not within"
    rows = [
        (
            number,
            f"{copy.nopm:,.0f}",
            f"{copy.processor:.0f}",
            f"{other.nopm:,.0f}",
            f"{other.processor:.0f}",
            "–" if other.age is None else f"{other.age:,}",
            ", ".join((*copy.notes, *(f"{note} in a row" for note in other.notes))),
        )
        for number, (copy, other) in enumerate(zip(fresh, in_a_row, strict=True), 1)
    ]
    head = "run|NOPM with `--fresh`|M reads/s|NOPM in a row|M reads/s|orders before|notes"
    return Page(
        "fresh",
        "Runs in a row, on a copy of the load and without",
        f"{len(fresh)} runs with `--fresh` lie {data['spread_fresh']:.1%} of their mean apart"
        f" ({verdict} {GOAL:.0%}), as many on one database {data['spread_in_a_row']:.1%}. The"
        " processor's own speed, in random reads of memory, varied by"
        f" {data['spread_of_processor']:.1%} from run to run, and"
        f" {data['explained_by_processor']:.0%} of the variance of all runs goes with it.",
        f"`{command}`, {postgres.files_in()}, no fsync, autovacuum on.",
        table(head.split("|"), rows),
        data
        | {"fresh": [asdict(run) for run in fresh], "in_a_row": [asdict(run) for run in in_a_row]},
    )
