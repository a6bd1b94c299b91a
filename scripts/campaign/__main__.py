"""Campaigns, most on User-Mode Linux: a kernel as a process, which systemd runs as on a server.

    python -m campaign kills [--kind dm-cache] [--verb detach] [--ending kill] [--every 1]
        [--writers] [--save FILE]
    python -m campaign lives [--kind dm-cache] [--lives 20] [--first 1]
    python -m campaign engine [--faults drives] [--lives 20] [--first 1]

`kills` cuts every verb of a tier's life short at each of its steps and compares every file
afterwards. The ending is `kill`, `reboot` or `power cut`, all after a step, or `kill within` or
`power cut within` one. After all but a kill the server boots, with systemd and the unit of the
disk. With `--writers` records are written with fsync all the while, through verbs that work on a
mounted tier; every record that was acknowledged has to be there afterwards, too. A whole campaign
is some hundreds of kills; each takes a few seconds, and is a line on standard error. Standard
output has a line a verb.

`lives` lives disks at random: verbs, kills, power cuts, boots, writes past the tier. A life takes
about a minute, and is a line.

`engine` lives caches of hotset's own engine at random, on this computer as root, over drives that
fail and lose what they had not stored. A life takes some ten seconds, and is a line.

All end with code 1 if anything was lost.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from hotset.core.units import Bytes
from hotset.lab import lab as labs
from hotset.lab.lab import LabSpec

from . import bench, kills, lives
from .engine import lives as engine
from .engine.life import Life
from .engine.troubles import FAULTS
from .kills import Outcome
from .systemd import Server


def main() -> int:
    """Run one; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m campaign")
    names = parser.add_subparsers(dest="campaign", required=True)
    killing = names.add_parser("kills", help="every verb, cut short at each of its steps")
    killing.add_argument("--verb", action="append", choices=bench.VERBS)
    killing.add_argument("--ending", action="append", choices=kills.ENDINGS)
    killing.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth step")
    killing.add_argument("--writers", action="store_true", help="write records meanwhile")
    killing.add_argument("--save", type=Path, metavar="FILE", help="the outcomes, as JSON")
    living = names.add_parser("lives", help="whole lives of disks, at random")
    living.add_argument("--lives", type=int, default=20, metavar="N", help="of each kind")
    living.add_argument("--first", type=int, default=1, metavar="N", help="number of the first")
    for own in (killing, living):
        own.add_argument("--kind", action="append", choices=kills.KINDS)
    caches = names.add_parser("engine", help="whole lives of the engine's caches, at random")
    caches.add_argument("--lives", type=int, default=20, metavar="N")
    caches.add_argument("--first", type=int, default=1, metavar="N", help="number of the first")
    caches.add_argument("--faults", choices=FAULTS, help="what fails; default: drawn")
    caches.add_argument(
        "--self-test",
        action="store_true",
        help="hide from the engine what drives lost, until it is noticed: ends with 1",
    )
    options = parser.parse_args()
    if options.campaign == "engine":
        return _engine(options)
    on_line = options.campaign == "kills" and options.writers
    if on_line and not set(options.verb or ()) <= set(kills.ON_LINE):
        killing.error(f"--writers: the verb is one of {', '.join(kills.ON_LINE)}")
    spec = LabSpec("uml", 2, Bytes(1024**3), Bytes(512 * 1024**2))
    with labs.running(spec, "campaign", _note) as lab:
        run = _kills if options.campaign == "kills" else _lives
        return run(bench.server(lab), options)


def _kills(server: Server, options: argparse.Namespace) -> int:
    outcomes = list[Outcome]()
    for outcome in kills.run(
        server,
        options.kind or kills.KINDS,
        options.verb or (kills.ON_LINE if options.writers else bench.VERBS),
        options.ending or kills.ENDINGS,
        lambda steps: range(min(options.every, steps) // 2, steps + 1, options.every),
        _tell,
        _note,
        writers=options.writers,
    ):
        outcomes.append(outcome)
        if options.save:
            text = json.dumps([asdict(each) for each in outcomes], indent=1)
            options.save.write_text(f"{text}\n")
    cuts = sum(len(each.tried) for each in outcomes)
    lost = sum(len(each.failures) for each in outcomes)
    print(f"{cuts} kills, {lost} failures")
    return 1 if lost else 0


def _lives(server: Server, options: argparse.Namespace) -> int:
    numbers = range(options.first, options.first + options.lives)
    results = list(lives.run(server, options.kind or kills.KINDS, numbers, _tell))
    lost = sum(life.failure is not None for life in results)
    refused = sum(life.failure is None and life.end is not None for life in results)
    print(f"{len(results)} lives, {refused} refused with both ways out, {lost} failures")
    return 1 if lost else 0


def _engine(options: argparse.Namespace) -> int:
    numbers = range(options.first, options.first + options.lives)
    trusting = options.self_test
    results = list[Life]()
    for life in engine.run(numbers, options.faults, _tell, trusting=trusting):
        results.append(life)
        if trusting and life.failure:
            break
    for kind in FAULTS:
        own = [life for life in results if life.faults == kind]
        if own:
            _tell(f"{kind}: {_count(own)}")
    _tell(f"together: {_count(results)}")
    return 1 if any(life.failure for life in results) else 0


def _count(results: list[Life]) -> str:
    counts = {
        "lives": len(results),
        "ends": sum(life.ends for life in results),
        "kills with a witness": sum(life.witnessed for life in results),
        "operations": sum(life.operations for life in results),
        "refused": sum(bool(life.refused and not life.failure) for life in results),
        "lost": sum(bool(life.failure) for life in results),
    }
    return ", ".join(f"{count:,} {what}" for what, count in counts.items())


def _tell(text: str) -> None:
    print(text, flush=True)


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
