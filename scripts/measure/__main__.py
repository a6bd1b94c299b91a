"""Performance claims, measured side by side in one sitting; nothing else should run meanwhile."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from . import page


@dataclass(frozen=True)
class Case:
    """One measurement.

    :ivar module: in `cases`, with `measure(options)` and perhaps `add_options(parser)`.
    :ivar numbers: its options that are numbers, with their defaults.
    :ivar then: other cases that belong to it, with their options.
    :ivar forwards: other options are those of the command that it calls.
    """

    about: str
    module: str
    numbers: Mapping[str, float] = field(default_factory=dict)
    then: tuple[str, ...] = ()
    forwards: bool = False


RAW = argparse.RawDescriptionHelpFormatter
CASES = {
    "userspace": Case(
        "hotset's own engine, on this computer's kernel: half an hour",
        "demo",
        {"repeats": 3},
        then=("hits",),
    ),
    "kernel": Case(
        "the kernel's dm-cache and bcache, in a virtual machine if need be: as long again",
        "demo",
        {"repeats": 3},
        then=("life", "scan --kernel vm"),
    ),
    "drivers": Case(
        "TPC-C drivers (hotset, go-tpc, HammerDB): a quarter of an hour",
        "drivers",
        {"rounds": 3, "seconds": 20.0, "users": 4, "warehouses": 4},
    ),
    "simulator": Case(
        "the simulator's speed beside libCacheSim's, and by its goals: some minutes",
        "simulator",
        {"rounds": 7, "requests": 20_000_000},
    ),
    "predictions": Case(
        "NOPM that one run lets predict of nine others: 20 minutes; with --small-caches RESULTS,"
        " of 120: 8 hours, in slices",
        "predictions",
    ),
    "heat": Case(
        "what counting per region costs, in instructions: some minutes", "heat", {"rounds": 3}
    ),
    "sampling": Case(
        "what reading waits and devices' counters costs of NOPM and of the CPU: 14 minutes",
        "sampling",
        {"rounds": 60, "seconds": 6.0, "users": 4, "warehouses": 4},
    ),
    "watching": Case(
        "what the report by table and the console's overview cost: half an hour, as root",
        "watching",
        {"rounds": 12, "seconds": 30.0, "users": 8, "warehouses": 4},
    ),
    "hits": Case(
        "what the cache adds to a read of the flash, in µs: some minutes", "hits", {"rounds": 5}
    ),
    "life": Case(
        "the kernel's tiers: warm-up, restart, flush, reading of the counters: some minutes",
        "life",
        {"rounds": 2},
    ),
    "part-cached": Case(
        "the main run: TPC-C with a cache of half and a quarter of the database: one sitting of it,"
        " half an hour",
        "part_cached",
    ),
    "scan": Case("what scans leave of a hot set, on each tier: half an hour", "scan"),
    "fresh": Case(
        "how well five runs in a row agree, with --fresh and without: 12 minutes",
        "fresh",
        {"rounds": 5, "seconds": 60.0, "users": 16, "warehouses": 8},
    ),
    "agreement": Case(
        "timed traces through our smq and bcache, and through the kernel's: some minutes a load",
        "agreement",
        {"replays": 3},
    ),
    "policies": Case(
        "what each cache policy makes of small caches, of one trace, in virtual time: minutes",
        "policies",
    ),
    "models": Case(
        "every device model against itself in virtual time: two hours; goes on where it ended",
        "models",
        forwards=True,
    ),
}


def main(words: Sequence[str]) -> None:
    """Measure a case, show and publish its page, and go on with those that belong to it."""
    parser = argparse.ArgumentParser(prog="scripts/bench.sh", description=__doc__)
    names = parser.add_subparsers(dest="case", metavar="CASE", required=True)
    for name, case in CASES.items():
        own = names.add_parser(name, help=case.about, description=case.about)
        for number, default in case.numbers.items():
            own.add_argument(f"--{number}", type=type(default), default=default)
        own.add_argument("--publish", type=Path, metavar="FOLDER")
        if name == words[0]:  # no other case's modules are loaded
            module = import_module(f"measure.cases.{case.module}")
            own.description, own.formatter_class = module.__doc__, RAW
            getattr(module, "add_options", lambda _: None)(own)
    options, others = parser.parse_known_args(words)
    case = CASES[options.case]
    if others and not case.forwards:
        parser.error(f"unrecognized arguments: {' '.join(others)}")
    if getattr(options, "rounds", 2) < 2:
        parser.error("--rounds: an interval needs at least 2")
    options.computer, options.others = page.computer(), others
    result = module.measure(options)
    if result is not None:
        page.publish(result, options)
    for other in case.then:
        main(other.split())


if __name__ == "__main__":
    os.chdir(Path(__file__).parents[2])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # servers and labs go with us
    try:
        main(sys.argv[1:] or ["userspace"])
    except subprocess.CalledProcessError as error:
        output = (error.stdout or "") + (error.stderr or "")
        sys.exit(f"bench: {error}\n{output[-2000:]}")
