"""From one version of hotset to this one under load, through a reboot, and back, byte by byte.

    python scripts/upgrade_walk.py [--before COMMIT] [--this COMMIT] [--save FILE]

Builds both commits, installs them side by side into a bare Debian system in namespaces of its own,
and walks: a disk, pins, schedule, token, jobs and runs of the version before; this version's
command line on that version's engine, while records are written with fsync; its own engine, a
reboot, the way back, an interrupted upgrade, a label of a later version. Standard output has a
Markdown table of the steps, each with what is due by docs/upgrade.md; ends with code 4 if one was
not met. Root; needs FUSE, loop devices and mmdebstrap. Some minutes, and some more to build.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from upgrade import walk
from upgrade.record import Record, table
from upgrade.server import Server, unpack
from upgrade.site import Site
from upgrade.versions import build, install

BEFORE = "68fd721d"
"""The last commit before the control protocol had a number, before `hotset-boot` and the engine
were programs of their own, and before a disk's record lay on the flash twice."""


def main() -> int:
    """Walk; returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--before", default=BEFORE, metavar="COMMIT")
    parser.add_argument("--this", default="HEAD", metavar="COMMIT")
    parser.add_argument("--save", type=Path, metavar="FILE", help="the table, too")
    parser.add_argument("--keep", action="store_true", help="leave the system's folder there")
    default = Path("/var/tmp/hotset-upgrade-walk")  # noqa: S108 - kept for the next time
    parser.add_argument("--work", type=Path, default=default)
    given = parser.parse_args()
    if os.geteuid() != 0 or not Path("/dev/fuse").exists():
        print("upgrade_walk.py: needs root and /dev/fuse", file=sys.stderr)
        return 3
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _end)
    given.work.mkdir(parents=True, exist_ok=True)
    try:
        record = _walked(given)
    except subprocess.CalledProcessError as error:
        print(f"upgrade_walk.py: {error}", file=sys.stderr)
        return 3
    text = table(record.steps)
    print(text)
    if given.save:
        given.save.write_text(f"{text}\n", encoding="utf-8")
    return 0 if record.all_met else 4


def _walked(given: argparse.Namespace) -> Record:
    before, this = (build(one, getattr(given, one), given.work) for one in ("before", "this"))
    root = Path(tempfile.mkdtemp(prefix="system-", dir=given.work))
    root.chmod(0o755)
    server = Server(root)
    try:
        unpack(given.work, root)
        for version in (before, this):
            install(version, root, Site.PYTHON)
        server.boot()
        site = Site(server, Record(), before, this)
        walk.run(site)
        return site.record
    finally:
        server.power_off()
        if not given.keep:
            shutil.rmtree(root)


def _end(number: int, _frame: object) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main())
