"""Cost of sampling: NOPM with and without what a benchmark reads beside its users.

One private PostgreSQL with everything in memory, where a transaction is shortest and sampling costs
the most of it. In one long run sampling is switched on and off, in the order on, off, off, on: what
is compared lies side by side, so that neither the growth of the database nor a computer whose speed
changes comes between. With: the users' time ten times a second and the server's counters, over a
connection of their own; CPU, two block devices and one that the engine serves, once a second.

Told are the ratio of NOPM, with the interval of the mean of the pairs' ratios (Student's t of their
logarithms), and the CPU time that sampling takes, of all that there is: where the CPU is the limit,
as here, that is what it can cost, and far more exact. The first and the last second of each turn
count for nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from hotset.bench.server.time_use import TimeSampler
from hotset.block.io_counters import KernelDevice, ServedDevice, Source
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.databases.postgres.product import PostgresDatabase
from hotset.hitratio.sampler import Sampler
from hotset.lab import served_model
from hotset.load.record import Phase, Tick
from hotset.reports.model.windows import Repeat
from hotset.tpcc import driver
from hotset.tpcc.record import RunOptions

from .. import postgres
from ..page import Page, table
from ..paired import Ratio, ratio, say
from ..programs import cpu_s

RAMPUP_S = 2.0
GOAL = 0.01
EDGE_S = 1.0
"""Time at the start and at the end of a turn that is left out."""


@contextmanager
def devices(local: Local) -> Iterator[list[Source]]:
    """Two of this computer's block devices, and one that the engine serves."""
    counted = sorted(Path("/sys/block").glob("*/stat"))[:2]
    sources: list[Source] = [
        KernelDevice(path.parent.name, PurePosixPath(path)) for path in counted
    ]
    if not Path("/dev/fuse").exists():
        say("no /dev/fuse: the engine's device is left out")
        yield sources
        return
    with served_model.serve_model(local, "pcie-flash-2014", Bytes(64 * 1024**2)) as device:
        control = PurePosixPath(device.socket)
        yield [*sources, ServedDevice.ask(local, "flash", control)]


@dataclass(frozen=True)
class Turn:
    """Seconds of the run, with sampling or without; ``at`` is ``time.time()``. ``cpu_s``: what this
    process, the server's session for it and the program that samples took of it."""

    sampled: bool
    start: float
    end: float
    cpu_s: float


class Turns:
    """Switches sampling on and off from the moment at which the window opens."""

    def __init__(self, count: int, seconds: float, bench: Bench) -> None:
        self._count, self._seconds, self._bench = count, seconds, bench
        self._thread = threading.Thread(target=self._work)
        self._failed: Exception | None = None
        self._turns: list[Turn] = []

    def observe(self, event: Tick | Phase) -> None:
        if isinstance(event, Phase) and event.name == "measure":
            self._thread.start()

    def take(self) -> list[Turn]:
        """All of them, once the run is over."""
        self._thread.join()
        if self._failed is not None:
            raise self._failed
        return self._turns

    def _work(self) -> None:
        try:
            begun = time.time()
            for number in range(self._count):
                until = begun + (number + 1) * self._seconds
                self._turns.append(self._take(number % 4 in (0, 3), until))
        except Exception as error:
            self._failed = error

    def _take(self, sampled: bool, until: float) -> Turn:
        """The first and the last second are what switching takes."""
        with ExitStack() as stack:
            if sampled:
                stack.enter_context(Sampler(self._bench.local, None, self._bench.devices))
                times = TimeSampler(self._bench.database.readings())
                stack.enter_context(times)
            parties = self._bench.parties()
            start = until - self._seconds + EDGE_S
            time.sleep(max(0.0, start - time.time()))
            start, before = time.time(), sum(map(cpu_s, parties))
            time.sleep(max(0.0, until - EDGE_S - time.time()))
            taken = Turn(sampled, start, time.time(), sum(map(cpu_s, parties)) - before)
            if sampled and times.window(taken.start, taken.end) is None:
                raise RuntimeError(f"not everything was sampled: {times.missing}")
        time.sleep(max(0.0, until - time.time()))
        return taken


@dataclass(frozen=True)
class Bench:
    """The subject of the sampling."""

    local: Local
    database: PostgresDatabase
    devices: list[Source]

    def parties(self) -> list[int]:
        """This process, and those that sample at the moment: the server's session and a shell."""
        with closing(self.database.session()) as session:
            rows = session.query(
                "SELECT pid FROM pg_stat_activity WHERE application_name = 'hotset monitoring'"
            )
        me = os.getpid()
        children = Path(f"/proc/{me}/task/{me}/children").read_text().split()
        shells = [
            int(pid)
            for pid in children
            if b"hotset-sampler" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        return [me, *shells, *(int(str(pid)) for (pid,) in rows)]


def nopm_of(turn: Turn, result: Repeat) -> float:
    """From its whole seconds."""
    opened, _ = result.span
    inside = [
        point.rate
        for point in result.series
        if turn.start <= opened + point.second
        and opened + point.second + 1 <= turn.end + EDGE_S / 2
    ]
    return sum(inside) / len(inside)


def measure(options: argparse.Namespace) -> Page:
    """Load, take turns, and tell the ratio."""
    if options.seconds < 2 * EDGE_S + 2:
        sys.exit(f"bench: --seconds: a turn needs at least {2 * EDGE_S + 2:g}")
    local = Local()
    with postgres.tpcc(options.warehouses) as (database, _), devices(local) as sampled:
        turns = Turns(2 * options.rounds, options.seconds, Bench(local, database, sampled))
        run = RunOptions(
            users=options.users,
            warehouses=options.warehouses,
            rampup_s=RAMPUP_S,
            duration_s=2 * options.rounds * options.seconds,
        )
        say(f"{options.rounds} rounds of two turns, {run.duration_s:g} s")
        result = driver.run(database, run, turns.observe)
        taken = turns.take()
    return page(pairs_of(taken, result), cpu_share(taken), options)


def pairs_of(turns: list[Turn], result: Repeat) -> list[tuple[float, float]]:
    """NOPM without sampling and with it, of two turns that lie side by side."""
    pairs = []
    for turn, other in zip(turns[::2], turns[1::2], strict=True):
        with_it, without = (turn, other) if turn.sampled else (other, turn)
        pairs.append((nopm_of(without, result), nopm_of(with_it, result)))
    return pairs


def cpu_share(turns: list[Turn]) -> float:
    """Compute the share of all cores' time that sampling adds to this process's own."""
    rates = {}
    for sampled in (True, False):
        mine = [turn for turn in turns if turn.sampled is sampled]
        rates[sampled] = sum(turn.cpu_s for turn in mine) / sum(
            turn.end - turn.start for turn in mine
        )
    return (rates[True] - rates[False]) / (os.cpu_count() or 1)


def verdict_on(nopm: Ratio) -> str:
    """Judge the goal by the interval."""
    if nopm.low > 1 - GOAL:
        return f"under {GOAL:.0%}, as it should be"
    if nopm.high < 1 - GOAL:
        return f"more than the {GOAL:.0%} that it should be"
    return f"whether it is under {GOAL:.0%} the interval does not tell: measure longer"


def page(pairs: list[tuple[float, float]], share: float, options: argparse.Namespace) -> Page:
    without, with_ = zip(*pairs, strict=True)
    nopm = ratio(with_, without)
    rows = [
        (number, f"{base:,.0f}", f"{side:,.0f}", f"{side / base:.3f}")
        for number, (base, side) in enumerate(pairs, 1)
    ]
    return Page(
        "sampling",
        "What sampling costs",
        f"NOPM with sampling is **{nopm.mean:.4f}** of NOPM without (95 % interval"
        f" {nopm.low:.4f} to {nopm.high:.4f}): it costs {1 - nopm.mean:.2%};"
        f" {verdict_on(nopm)}.\n\nOf the CPU's time"
        f" it takes **{share:.2%}**, without what the served device needs to answer.",
        "Sampled: the users' time ten times a second and the server's counters, CPU and three"
        f" devices once a second. {options.users} users, {options.warehouses} warehouses,"
        f" {postgres.files_in()}, turns of {options.seconds:g} s in one run.",
        table(("round", "NOPM without", "NOPM with", "ratio"), rows),
        {
            **nopm._asdict(),
            "cpu_share": share,
            "rounds": [{"nopm_without": base, "nopm_with": side} for base, side in pairs],
        },
    )
