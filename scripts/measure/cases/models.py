"""Every device model, served, held against itself in virtual time: `hotset disk calibrate-all`.

A call that was interrupted goes on where it ended.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys

from hotset.bench.disks import fidelity, fidelity_table
from hotset.core.record import record_of

from .. import page
from ..programs import HOTSET

THRESHOLD_MISSED = 5


def measure(options: argparse.Namespace) -> None:
    """Measure, tell, and end as the command did."""
    words = ["disk", "calibrate-all", *options.others]
    argv = [HOTSET, *words, "--format", "json"]
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False)
    if done.returncode in (0, THRESHOLD_MISSED):
        answer = json.loads(done.stdout)
        cells = [record_of(fidelity.Cell, cell) for cell in answer["cells"]]
        command = shlex.join(["hotset", *words])
        markdown = fidelity_table.markdown(cells, command, options.computer)
        page.write("disk-models", markdown, answer | {"computer": options.computer}, options)
    sys.exit(done.returncode)
