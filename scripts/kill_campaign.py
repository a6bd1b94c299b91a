"""Kills every verb of a tier's life at each of its steps and compares every file afterwards.

    python scripts/kill_campaign.py [--kind dm-cache] [--verb detach] [--ending kill] [--every 1]
        [--writers]

The ending is `kill`, `reboot` or `power cut`, all after a step, or `kill within` or `power cut
within` one. After all but a kill the server boots, with systemd and the unit of the disk. With
`--writers` records are written with fsync all the while, through verbs that work on a mounted tier;
every record that was acknowledged has to be there afterwards, too.
Needs User-Mode Linux, a real kernel as a process. A whole campaign is some hundreds of kills; each
takes a few seconds, and is a line on standard error. Standard output has a line a verb. Ends with
code 1 if anything was lost.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from campaign import bench, kills
from campaign.kills import Outcome
from hotset.core.units import Bytes
from hotset.lab import lab as labs
from hotset.lab.lab import LabSpec


def main() -> int:
    """Run it; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", action="append", choices=kills.KINDS)
    parser.add_argument("--verb", action="append", choices=bench.VERBS)
    parser.add_argument("--ending", action="append", choices=kills.ENDINGS)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth step")
    parser.add_argument("--writers", action="store_true", help="write records meanwhile")
    parser.add_argument("--save", type=Path, metavar="FILE", help="the outcomes, as JSON")
    asked = parser.parse_args()
    known = kills.ON_LINE if asked.writers else bench.VERBS
    if not set(asked.verb or known) <= set(known):
        parser.error(f"--writers: the verb is one of {', '.join(known)}")
    outcomes = list[Outcome]()
    spec = LabSpec("uml", 2, Bytes(1024**3), Bytes(512 * 1024**2))
    with labs.running(spec, "kill campaign", lambda text: print(text, file=sys.stderr)) as lab:
        for outcome in kills.run(
            bench.server(lab),
            asked.kind or kills.KINDS,
            asked.verb or known,
            asked.ending or kills.ENDINGS,
            lambda steps: range(min(asked.every, steps) // 2, steps + 1, asked.every),
            lambda text: print(text, flush=True),
            lambda text: print(text, file=sys.stderr, flush=True),
            writers=asked.writers,
        ):
            outcomes.append(outcome)
            if asked.save:
                text = json.dumps([asdict(one) for one in outcomes], indent=1)
                asked.save.write_text(f"{text}\n")
    cuts = sum(len(one.tried) for one in outcomes)
    lost = sum(len(one.failures) for one in outcomes)
    print(f"{cuts} kills, {lost} failures")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
