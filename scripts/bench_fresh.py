"""How well runs in a row agree: with `--fresh`, each on a copy of the load, and without.

    bench_fresh.py [--runs 5] [--seconds 60] [--users 16] [--warehouses 8] [--publish FOLDER]

One private PostgreSQL, autovacuum on as usual, everything in memory and no fsync, so that no disk
of this computer's is measured. First the runs with `--fresh`, which leave the database as it was
loaded, then as many without, on that same database: it grows, and autoanalyze may turn its plans.
The spread is the highest less the lowest NOPM, by the mean. How fast the processor was is measured
before and after each run, by random reads of memory on every core: a shared computer's varies,
whatever the database does. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy

from bench_drivers import SERVER, USER, files_in, newest_server, run_quietly, say, server
from bench_results import computer, tell
from hotset.databases.postgres.client import PostgresDatabase

MEMORY_BYTES = 256 << 20
READS = 1 << 23
ROUNDS = 20
GOAL = 0.05


@dataclass(frozen=True)
class Run:
    """What one run came to."""

    nopm: float
    age: int | None
    """Orders since the load when its window opened."""
    said: tuple[str, ...]
    """``NOT_STEADY``, ``PLAN_CHANGED``."""
    processor: float
    """How fast it was before and after, millions of reads a second."""


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


def run(
    program: str,
    dsn: str,
    arguments: argparse.Namespace,
    processor: Processor,
    fresh: bool,
) -> Run:
    argv = [program, "tpcc", "run", "--dsn", dsn, "-u", str(arguments.users)]
    argv += ["-w", str(arguments.warehouses), "--duration", f"{arguments.seconds:g}"]
    argv += ["--no-check", "--format", "json", "--quiet", *(["--fresh"] if fresh else [])]
    before = processor.speed()
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(argv)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    (result,) = json.loads(done.stdout)["arms"][0]["repeats"]
    said = []
    if any(one["steady"] is False for one in result["steadiness"]):
        said.append("NOT_STEADY")
    if result["plan_changes"]:
        said.append("PLAN_CHANGED")
    speed = (before + processor.speed()) / 2
    return Run(result["nopm"], result["orders_before"], tuple(said), speed)


def main() -> None:
    """Load once, run with --fresh, then without."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    for name, default in (("runs", 5), ("users", 16), ("warehouses", 8)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--publish", type=Path)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server goes with us
    where, found, processor = computer(), dict[bool, list[Run]](), Processor()
    with server(newest_server(), {**SERVER, "autovacuum": "on"}) as port:
        with closing(PostgresDatabase("127.0.0.1", port, USER, "", "postgres").session()) as s:
            s.script("CREATE DATABASE bench")
        program = str(Path(sys.executable).parent / "hotset")
        dsn = f"host=127.0.0.1 port={port} user={USER} dbname=bench"
        build = ["tpcc", "build", "--dsn", dsn, "--warehouses", str(arguments.warehouses)]
        run_quietly([program, *build, "--quiet"])
        for fresh in (True, False):
            found[fresh] = []
            for number in range(1, arguments.runs + 1):
                one = run(program, dsn, arguments, processor, fresh)
                found[fresh].append(one)
                how = "--fresh" if fresh else "in a row"
                told = " ".join(("", *one.said))
                say(
                    f"{how} {number}: {one.nopm:,.0f} NOPM{told}, processor {one.processor:.0f} M/s"
                )
    tell(*report(found[True], found[False], arguments, where), "fresh", arguments.publish)


def spread(runs: list[Run], of: Callable[[Run], float] = lambda one: one.nopm) -> float:
    """The highest less the lowest NOPM, by the mean."""
    each = [of(one) for one in runs]
    return (max(each) - min(each)) / statistics.fmean(each)


def explained(runs: list[Run]) -> float:
    """Share of the variance of NOPM that goes with the processor's speed."""
    speeds, nopms = [one.processor for one in runs], [one.nopm for one in runs]
    return statistics.correlation(speeds, nopms) ** 2


def report(
    fresh: list[Run], in_a_row: list[Run], arguments: argparse.Namespace, where: str
) -> tuple[str, dict[str, object]]:
    """As Markdown, and as numbers."""
    speeds = spread(fresh + in_a_row, lambda one: one.processor)
    verdict = f"within {GOAL:.0%}" if spread(fresh) <= GOAL else f"not within {GOAL:.0%}"
    rows = "\n".join(
        f"| {number} | {one.nopm:,.0f} | {one.processor:.0f} | {other.nopm:,.0f} |"
        f" {other.processor:.0f} | {_age(other)} |"
        f" {', '.join((*one.said, *(f'{name} in a row' for name in other.said)))} |"
        for number, (one, other) in enumerate(zip(fresh, in_a_row, strict=True), 1)
    )
    command = (
        f"hotset tpcc run -u {arguments.users} -w {arguments.warehouses}"
        f" --duration {arguments.seconds:g} [--fresh]"
    )
    markdown = f"""# Runs in a row, on a copy of the load and without

{len(fresh)} runs with `--fresh` lie {spread(fresh):.1%} of their mean apart ({verdict}), as many on
one database {spread(in_a_row):.1%}. The processor's own speed, in random reads of
memory, varied by {speeds:.1%} from run to run, and {explained(fresh + in_a_row):.0%} of the
variance of all runs goes with it.

`{command}`, {files_in()}, no fsync, autovacuum on. {where}. Again: `scripts/bench.sh fresh`.

| run | NOPM with `--fresh` | M reads/s | NOPM in a row | M reads/s | orders before | said |
|---:|---:|---:|---:|---:|---:|---|
{rows}"""
    data: dict[str, object] = {
        "spread_fresh": spread(fresh),
        "spread_in_a_row": spread(in_a_row),
        "spread_of_processor": speeds,
        "explained_by_processor": explained(fresh + in_a_row),
        "fresh": [asdict(one) for one in fresh],
        "in_a_row": [asdict(one) for one in in_a_row],
        "seconds": arguments.seconds,
        "users": arguments.users,
        "warehouses": arguments.warehouses,
        "computer": where,
    }
    return markdown, data


def _age(run: Run) -> str:
    return "–" if run.age is None else f"{run.age:,}"


if __name__ == "__main__":
    main()
