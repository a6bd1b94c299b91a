"""Every device model, served, held against itself in virtual time: `hotset disk calibrate-all`.

    bench_models.py [--publish FOLDER] [OPTION of the command ...]

A call that was interrupted goes on where it ended. Nothing else should run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from pathlib import Path

from bench_results import computer, tell
from hotset.bench.disks import fidelity, fidelity_table

THRESHOLD_MISSED = 5


def main() -> None:
    """Measure, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--publish", type=Path)
    arguments, others = parser.parse_known_args()
    where = computer()
    program = str(Path(sys.executable).parent / "hotset")
    argv = [program, "disk", "calibrate-all", *others]
    done = subprocess.run(
        [*argv, "--format", "json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False
    )
    if done.returncode not in (0, THRESHOLD_MISSED):
        sys.exit(done.returncode)
    found = json.loads(done.stdout)
    cells = [fidelity.cell_of(one) for one in found["cells"]]
    command = shlex.join(["hotset", "disk", "calibrate-all", *others])
    markdown = fidelity_table.markdown(cells, command, where)
    tell(markdown, {**found, "computer": where}, "disk-models", arguments.publish)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
