"""How fast the simulator is, on one core: beside libCacheSim, and by its own goals.

One trace by Zipf's law (exponent 0.9, ten requests for each block there is), a cache of a tenth of
the blocks. LRU, SIEVE and S3-FIFO by libcachesim (PyPI; its C loop over its own binary trace in the
page cache) and by hotset (the same requests in memory) take turns, the order changing from round to
round (ABBA); both must have the very same misses. libCacheSim has its hash table as it comes, or
one of twice the cache's objects, whichever is faster here. Time is that of the processor. Then the
curves, time simulated, and whole commands on built-in loads.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

import libcachesim
import numpy as np

from hotset.block import flashdev
from hotset.core.machines.local import Local

from ..page import Page, table
from ..paired import ratio, say, turns
from ..programs import hotset, run

CRATES = Path(__file__).parents[3] / "cache-layer/crates"
EXPONENT = 0.9
REQUESTS_A_BLOCK = 10
CACHED = 0.1
REQUESTS_PER_S = 20_000
THEIRS = {
    "lru": libcachesim.LRU,
    "sieve": libcachesim.Sieve,
    "s3-fifo": libcachesim.S3FIFO,
}
THEIR_HASHPOWER = 24
"""Its default."""
TIMES_GOAL = 15.0
RATES = {
    "lru": 100.0,
    "sieve": 100.0,
    "s3-fifo": 100.0,
    "smq": 15.0,
    "exact curve": 7.0,
    "curve 1/100": 400.0,
    "hits on flash": 10.0,
    "nas-2014 alone": 1.0,
}
"""Millions of requests a second that are the goal."""
RECORD = np.dtype([("at", "<u4"), ("id", "<u8"), ("bytes", "<u4"), ("next", "<i8")])
"""A request in libCacheSim's oracleGeneral."""
WAREHOUSES, BUFFER = 5000, "24G"
"""TPC-C of 500 GB."""
TPM = {"without a cache": 49_127, "with one": 631_513}
"""Throughput of 100 users on it, as published in 2014."""
TPCC_SECONDS = 900
TPCC_GOAL_S = 60.0
ADVISE_REQUESTS = 100_000_000
ADVISE_SIZES = 20
ADVISE_GOAL_S = 30.0


@dataclass(frozen=True)
class Goal:
    """A value and its goal.

    :ivar at_most: the goal is not to be exceeded; else it is to be reached.
    """

    what: str
    unit: str
    goal: float
    value: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.value <= self.goal if self.at_most else self.value >= self.goal

    @property
    def row(self) -> tuple[str, ...]:
        sign, verdict = "<=" if self.at_most else ">=", "PASS" if self.met else "MISSED"
        value = f"{self.value:,.1f} {self.unit}"
        return self.what, f"{sign} {self.goal:g} {self.unit}", value, verdict


@dataclass(frozen=True)
class Trace:
    """The same requests for both, in a file of each one's own."""

    theirs: Path
    ours: Path
    requests: int
    slots: int


def measure(options: argparse.Namespace) -> Page:
    """Make the trace, take turns, then measure the rest."""
    bench = build()
    with tempfile.TemporaryDirectory(prefix="hotset-bench-") as folder:
        trace = make(Path(folder), options.requests)
        rates = {name: both(name, trace, bench, options.rounds) for name in THEIRS}
        goals = [*beside(rates), *alone(bench, trace), *tpcc(Path(folder))]
    return page(rates, goals, trace)


def build() -> Path:
    """The program of `cargo bench`."""
    words = "cargo bench --quiet --locked -p whatif --no-run --message-format=json"
    for line in run(words.split(), CRATES).splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "simulator":
            return Path(message["executable"])
    sys.exit("bench: cargo made no program of the benchmark")


def make(folder: Path, requests: int) -> Trace:
    """Draws the requests, and writes them as each side reads them."""
    say(f"a trace of {requests:,} requests")
    dice, blocks = np.random.default_rng(1), requests // REQUESTS_A_BLOCK
    weights = np.cumsum(np.arange(1, blocks + 1) ** -EXPONENT)
    drawn = np.searchsorted(weights, dice.random(requests) * weights[-1])
    records = np.zeros(requests, RECORD)
    records["id"] = dice.permutation(blocks)[np.minimum(drawn, blocks - 1)]
    records["at"] = np.arange(requests) // REQUESTS_PER_S
    records["bytes"] = 1
    records["next"] = -2  # that it is not known
    theirs, ours = folder / "zipf.oracleGeneral.bin", folder / "zipf.trace"
    records.tofile(theirs)
    convert = ["trace", "convert", str(theirs), "--from=oracle-general", "--id-size=1"]
    flashdev.figures(Local(), [*convert, f"--to={ours}"])
    return Trace(theirs, ours, requests, int(blocks * CACHED))


def both(name: str, trace: Trace, bench: Path, rounds: int) -> dict[str, list[float]]:
    """The rates of both in each round, millions of requests a second."""
    fitting = trace.slots.bit_length() + 1
    powers = {power: libcachesims(name, trace, power)[0] for power in (fitting, THEIR_HASHPOWER)}
    power = max(powers, key=powers.__getitem__)
    sides = {
        "libCacheSim": lambda _: libcachesims(name, trace, power),
        "hotset": lambda _: ours(bench, trace, name)[name],
    }
    say(name)
    results = turns(sides, rounds, lambda each: f"{each[0]:.2f} M requests/s")
    misses = {side: {count for _, count in each} for side, each in results.items()}
    if len(set.union(*misses.values())) > 1:
        sys.exit(f"bench: {name} misses {misses['hotset']}, libCacheSim's {misses['libCacheSim']}")
    return {side: [rate for rate, _ in each] for side, each in results.items()}


def libcachesims(name: str, trace: Trace, hashpower: int) -> tuple[float, int]:
    """Its rate and its misses."""
    kind = libcachesim.TraceType.ORACLE_GENERAL_TRACE
    reader = libcachesim.TraceReader(str(trace.theirs), kind)
    cache = THEIRS[name](trace.slots, hashpower=hashpower)
    begun = time.process_time()
    ratio, _ = cache.process_trace(reader)
    took = time.process_time() - begun
    return trace.requests / took / 1e6, round(ratio * trace.requests)


def ours(bench: Path, trace: Trace, *names: str, rounds: int = 1) -> dict[str, tuple[float, int]]:
    """By name our rate, and our misses where it is a policy."""
    argv = [str(bench), *names, f"--trace={trace.ours}", f"--slots={trace.slots}"]
    lines = run([*argv, f"--rounds={rounds}", "--json"]).splitlines()
    return {
        answer["name"]: (answer["rate"], round(answer.get("miss ratio", 0.0) * trace.requests))
        for answer in map(json.loads, lines)
    }


def beside(rates: dict[str, dict[str, list[float]]]) -> Iterator[Goal]:
    for name, each in rates.items():
        # The lower end of the interval: the goal has to be met beyond chance.
        value = ratio(each["hotset"], each["libCacheSim"]).low
        yield Goal(f"{name}, by libCacheSim's rate, at least", "times", TIMES_GOAL, value)


def alone(bench: Path, trace: Trace) -> list[Goal]:
    """Our rates by their own goals; the best of three, as others use the computer, too."""
    say("our own rates")
    measured = ours(bench, trace, *RATES, rounds=3)
    return [Goal(name, "M requests/s", goal, measured[name][0]) for name, goal in RATES.items()]


def tpcc(folder: Path) -> Iterator[Goal]:
    """Whole commands, from the first process to the table."""
    for how, tpm in TPM.items():
        load = f"tpcc:warehouses={WAREHOUSES},buffer={BUFFER},tpm={tpm},seconds={TPCC_SECONDS}"
        words = ["simulate", load, "--policy", "hotset", "--cache", "100GiB"]
        seconds, result = measure_time(words)
        requests = result["caches"][0]["requests"]
        what = f"15 minutes of TPC-C, 500 GB and 100 users {how}: {requests / 1e6:.1f} M requests"
        say(f"{what} in {seconds:.1f} s")
        yield Goal(what, "s", TPCC_GOAL_S, seconds, at_most=True)
        if tpm == min(TPM.values()):
            yield advise(folder, tpm, TPCC_SECONDS * ADVISE_REQUESTS / requests)


def advise(folder: Path, tpm: int, lasts_s: float) -> Goal:
    """On a trace in a file, as one that was recorded is."""
    trace, requests = folder / "tpcc.trace", 0
    words = ["trace", "tpcc", f"--warehouses={WAREHOUSES}", f"--buffer={BUFFER}", f"--tpm={tpm}"]
    words += [f"--to={trace}"]
    while requests < ADVISE_REQUESTS:
        # The database's own cache fills by and by, so twice the time is less than twice as many.
        lasts_s *= 1.1 * ADVISE_REQUESTS / requests if requests else 1.0
        requests = flashdev.figures(Local(), [*words, f"--seconds={lasts_s:.1f}"])["requests"]
    seconds, result = measure_time(["advise", str(trace)])
    trace.unlink()
    if len(result["sizes"]) < ADVISE_SIZES:
        sys.exit(
            f"bench: advise shows {len(result['sizes'])} sizes, and should show {ADVISE_SIZES}"
        )
    what = f"advise: {len(result['sizes'])} sizes, a trace of {requests / 1e6:.1f} M requests"
    say(f"{what} in {seconds:.1f} s")
    return Goal(what, "s", ADVISE_GOAL_S, seconds, at_most=True)


def measure_time(words: list[str]) -> tuple[float, Any]:
    """Seconds that a command took, and its JSON."""
    begun = time.monotonic()
    answer = hotset("whatif", *words, "--quiet")
    return time.monotonic() - begun, answer


def page(rates: dict[str, dict[str, list[float]]], goals: list[Goal], trace: Trace) -> Page:
    ratios = {name: ratio(each["hotset"], each["libCacheSim"]) for name, each in rates.items()}
    rows = [
        (
            name,
            f"{fmean(each['libCacheSim']):.2f}",
            f"{fmean(each['hotset']):.1f}",
            f"{ratios[name]:.1f}",
        )
        for name, each in rates.items()
    ]
    return Page(
        "simulator",
        "How fast the simulator is",
        f"{sum(goal.met for goal in goals)} of {len(goals)} goals are met.",
        "Beside libCacheSim, one thread: millions of requests a second, by the time of the"
        f" processor; means of rounds in which both take turns. {trace.requests:,} requests by"
        f" Zipf's law (exponent {EXPONENT}) of {trace.requests // REQUESTS_A_BLOCK:,} blocks, a"
        f" cache of {trace.slots:,}. The misses are the very same. libcachesim"
        f" {version('libcachesim')} reads its own binary trace from the page cache; hotset's"
        " requests are in memory.",
        table(("policy", "libCacheSim", "hotset", "ratio (95 %)"), rows)
        + "\n\n"
        + table(("what", "goal", "value", ""), [goal.row for goal in goals]),
        {
            "goals": [{**asdict(goal), "met": goal.met} for goal in goals],
            "rates": rates,
            "ratios": {name: list(each) for name, each in ratios.items()},
            "slots": trace.slots,
        },
    )
