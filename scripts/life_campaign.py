"""Lives disks at random (verbs, kills, power cuts, boots, writes past the tier) and looks for loss.

    python scripts/life_campaign.py [--kind dm-cache] [--lives 20] [--first 1]

Needs User-Mode Linux, a real kernel as a process, which systemd runs here as on a server. A life
takes about a minute, and is a line. Ends with code 1 if anything was lost without a word.
"""

from __future__ import annotations

import argparse
import sys

from campaign import bench, kills, lives
from hotset.core.units import Bytes
from hotset.lab import lab as labs
from hotset.lab.lab import LabSpec


def main() -> int:
    """Run it; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kind", action="append", choices=kills.KINDS)
    parser.add_argument("--lives", type=int, default=20, metavar="N", help="of each kind")
    parser.add_argument("--first", type=int, default=1, metavar="N", help="number of the first")
    asked = parser.parse_args()
    spec = LabSpec("uml", 2, Bytes(1024**3), Bytes(512 * 1024**2))
    numbers = range(asked.first, asked.first + asked.lives)
    with labs.running(spec, "life campaign", lambda text: print(text, file=sys.stderr)) as lab:
        lived = list(
            lives.run(
                bench.server(lab),
                asked.kind or kills.KINDS,
                numbers,
                lambda text: print(text, flush=True),
            )
        )
    lost = sum(one.failure is not None for one in lived)
    refused = sum(one.failure is None and one.end is not None for one in lived)
    print(f"{len(lived)} lives, {refused} refused with both ways out, {lost} failures")
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
