"""How fast the simulator is, on one core: beside libCacheSim, and by its own goals.

    bench_simulator.py [--rounds 7] [--requests 20000000] [--publish FOLDER]

One trace by Zipf's law (exponent 0.9, ten requests for each block there is), a cache of a tenth of
the blocks. LRU, SIEVE and S3-FIFO by libcachesim (PyPI; its C loop over its own binary trace in the
page cache) and by hotset (the same requests in memory) take turns, the order changing from round to
round (ABBA); both must have the very same misses. libCacheSim has its hash table as it comes, or
one of twice the cache's objects, whichever is faster here. Time is that of the processor. Then the
curves, time simulated, and whole commands on built-in loads. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

import libcachesim
import numpy as np

from bench_results import computer, of_pairs, tell
from hotset.block import flashdev
from hotset.core.machines.local import Local

CRATES = Path(__file__).parents[1] / "cache-layer/flashdev"
HOTSET = str(Path(sys.executable).with_name("hotset"))
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
"""As it comes."""
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
"""What 100 users did on it, as published in 2014."""
TPCC_SECONDS = 900
TPCC_GOAL_S = 60.0
ADVISE_REQUESTS = 100_000_000
ADVISE_SIZES = 20
ADVISE_GOAL_S = 30.0


@dataclass(frozen=True)
class Goal:
    """Something with a goal, and what it came to.

    :ivar at_most: the goal is not to be exceeded; else it is to be reached.
    """

    what: str
    unit: str
    goal: float
    found: float
    at_most: bool = False

    @property
    def met(self) -> bool:
        return self.found <= self.goal if self.at_most else self.found >= self.goal

    @property
    def row(self) -> str:
        sign, verdict = "<=" if self.at_most else ">=", "PASS" if self.met else "MISSED"
        found = f"{self.found:,.1f} {self.unit}"
        return f"| {self.what} | {sign} {self.goal:g} {self.unit} | {found} | {verdict} |"


@dataclass(frozen=True)
class Trace:
    """The same requests for both, in a file of each one's own."""

    theirs: Path
    ours: Path
    requests: int
    slots: int


def main() -> None:
    """Make the trace, take turns, then measure the rest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=20_000_000)
    parser.add_argument("--publish", type=Path)
    arguments = parser.parse_args()
    if arguments.rounds < 2:
        parser.error("--rounds: an interval needs at least 2")
    where, bench = computer(), built()
    with tempfile.TemporaryDirectory(prefix="hotset-bench-") as folder:
        trace = made(Path(folder), arguments.requests)
        pairs = {name: turns(name, trace, bench, arguments.rounds) for name in THEIRS}
        goals = [*beside(pairs), *alone(bench, trace), *tpcc(Path(folder))]
    tell(*report(pairs, goals, trace, where), "simulator", arguments.publish)


def built() -> Path:
    """The program of `cargo bench`."""
    argv = ["cargo", "bench", "--quiet", "--locked", "-p", "whatif", "--no-run"]
    argv += ["--message-format=json"]
    done = subprocess.run(argv, cwd=CRATES, check=True, capture_output=True, text=True)
    for line in done.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "simulator":
            return Path(message["executable"])
    sys.exit("bench: cargo made no program of the benchmark")


def say(text: str) -> None:
    print(text, flush=True)


def made(folder: Path, requests: int) -> Trace:
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
    convert = ["trace", "convert", str(theirs), "--from=oracle-general", "--id-bytes=1"]
    flashdev.figures(Local(), [*convert, f"--to={ours}"])
    return Trace(theirs, ours, requests, int(blocks * CACHED))


def turns(name: str, trace: Trace, bench: Path, rounds: int) -> list[tuple[float, float]]:
    """Both rates of each round, millions of requests a second."""
    fitting = trace.slots.bit_length() + 1
    rates = {power: libcachesims(name, trace, power)[0] for power in (fitting, THEIR_HASHPOWER)}
    power = max(rates, key=lambda one: rates[one])
    found = []
    for number in range(rounds):
        sides: list[Callable[[], tuple[float, int]]] = [
            lambda: libcachesims(name, trace, power),
            lambda: ours(bench, trace, name)[name],
        ]
        order = (0, 1) if number % 2 == 0 else (1, 0)
        came = {which: sides[which]() for which in order}
        (theirs, misses), (mine, my_misses) = came[0], came[1]
        if misses != my_misses:
            sys.exit(f"bench: {name} misses {my_misses:,} times, libCacheSim's {misses:,}")
        found.append((theirs, mine))
        say(f"{name} {number + 1}: {theirs:.2f} / {mine:.1f} M requests/s ({mine / theirs:.1f})")
    return found


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
    argv += [f"--rounds={rounds}", "--json"]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        one["name"]: (one["rate"], round(one.get("miss ratio", 0.0) * trace.requests))
        for one in found
    }


def beside(pairs: dict[str, list[tuple[float, float]]]) -> Iterator[Goal]:
    for name, each in pairs.items():
        # The lower end of the interval: the goal has to be met beyond chance.
        yield Goal(
            f"{name}, by libCacheSim's rate, at least", "times", TIMES_GOAL, of_pairs(each)[1]
        )


def alone(bench: Path, trace: Trace) -> list[Goal]:
    """Our rates by their own goals; the best of three, as others use the computer, too."""
    say("our own rates")
    found = ours(bench, trace, *RATES, rounds=3)
    return [Goal(name, "M requests/s", goal, found[name][0]) for name, goal in RATES.items()]


def tpcc(folder: Path) -> Iterator[Goal]:
    """Whole commands, from the first process to the table."""
    for how, tpm in TPM.items():
        load = f"tpcc:warehouses={WAREHOUSES},buffer={BUFFER},tpm={tpm},seconds={TPCC_SECONDS}"
        words = ["simulate", load, "--policy", "hotset", "--cache", "100GiB"]
        seconds, found = timed(words)
        requests = found["caches"][0]["requests"]
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
    seconds, found = timed(["advise", str(trace)])
    trace.unlink()
    if len(found["sizes"]) < ADVISE_SIZES:
        sys.exit(f"bench: advise shows {len(found['sizes'])} sizes, and should show {ADVISE_SIZES}")
    what = f"advise: {len(found['sizes'])} sizes, a trace of {requests / 1e6:.1f} M requests"
    say(f"{what} in {seconds:.1f} s")
    return Goal(what, "s", ADVISE_GOAL_S, seconds, at_most=True)


def timed(words: list[str]) -> tuple[float, Any]:
    """Seconds that a command took, and its JSON."""
    begun = time.monotonic()
    argv = [HOTSET, "whatif", *words, "--quiet", "--format", "json"]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    return time.monotonic() - begun, json.loads(done.stdout)


def report(
    pairs: dict[str, list[tuple[float, float]]], goals: list[Goal], trace: Trace, where: str
) -> tuple[str, dict[str, Any]]:
    """As Markdown, and as numbers."""
    ratios = {name: of_pairs(each) for name, each in pairs.items()}
    rows = "\n".join(
        f"| {name} | {fmean(one for one, _ in each):.2f} | {fmean(one for _, one in each):.1f} |"
        f" {ratio:.1f} | {low:.1f} to {high:.1f} |"
        for (name, each), (ratio, low, high) in zip(pairs.items(), ratios.values(), strict=True)
    )
    met = sum(goal.met for goal in goals)
    markdown = f"""# How fast the simulator is

{met} of {len(goals)} goals are met. {where}. Again: `scripts/bench.sh simulator`.

## Beside libCacheSim, one thread

Millions of requests a second, by the time of the processor; means of {len(pairs["lru"])} rounds in
which both take turns. {trace.requests:,} requests by Zipf's law (exponent {EXPONENT}) of
{trace.requests // REQUESTS_A_BLOCK:,} blocks, a cache of {trace.slots:,}. The misses are the very
same. libcachesim {version("libcachesim")} reads its own binary trace from the page cache; hotset's
requests are in memory.

| policy | libCacheSim | hotset | ratio | 95 % interval |
|---|---:|---:|---:|---|
{rows}

## Goals

| what | goal | found | |
|---|---|---|---|
{chr(10).join(goal.row for goal in goals)}"""
    data = {
        "goals": [{**asdict(goal), "met": goal.met} for goal in goals],
        "rates": {name: [*map(list, each)] for name, each in pairs.items()},
        "ratios": {name: list(one) for name, one in ratios.items()},
        "requests": trace.requests,
        "slots": trace.slots,
        "computer": where,
    }
    return markdown, data


if __name__ == "__main__":
    main()
