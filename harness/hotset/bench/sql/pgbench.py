"""How PostgreSQL's own pgbench is called, and whether it can read the scripts."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from hotset.core.errors import RequestError
from hotset.databases.postgres.pgbench import Pgbench, call

from .sources import Source
from .workload import SqlWorkload

LOG_PREFIX = "transactions"
CONNECT_S = 60.0
"""How long users may take to connect, which is part of pgbench's own time."""


def check(pgbench: Pgbench, sources: Iterable[Source]) -> None:
    """Have pgbench read the scripts; nothing connects.

    :raises RequestError: it cannot read one; names file and line.
    """
    with tempfile.TemporaryDirectory(prefix="hotset-pgbench-") as folder:
        files = write(Path(folder), sources)
        # It reads scripts as they are named, and then refuses to have some in this mode.
        output = call(pgbench.program, *files, "--initialize", folder=Path(folder))
    if "cannot be used in initialization" not in output:
        raise RequestError(
            " ".join(output.removeprefix("pgbench: error: ").split()), field="script"
        )


def write(folder: Path, sources: Iterable[Source]) -> list[str]:
    """Lay the scripts into a folder, as they were read; the options that name them there."""
    for source in sources:
        (folder / source.file_name).write_text(source.text, encoding="utf-8")
    return [f"--file={source.file_name}@{source.weight}" for source in sources]


def threads(users: int) -> int:
    """One for each core."""
    return min(os.cpu_count() or 1, users)


def options(workload: SqlWorkload) -> list[str]:
    """List pgbench's options for a run: all but scripts and database."""
    want = workload.options
    popular = want.seed if workload.popular is None else workload.popular
    # More than it takes, as the time to connect counts; the run is ended when its window is over.
    length_s = math.ceil(want.rampup_s + want.duration_s + want.patience_s + CONNECT_S)
    argv = [
        "--no-vacuum",
        f"--client={want.users}",
        f"--jobs={threads(want.users)}",
        f"--time={length_s}",
        f"--protocol={workload.protocol}",
        f"--random-seed={want.seed % 2**63}",
        f"--define=default_seed={popular}",
        *(f"--define={name}={value}" for name, value in workload.defined.items()),
        *("--progress=1", "--progress-timestamp", "--failures-detailed"),
        *("--log", f"--log-prefix={LOG_PREFIX}"),
    ]
    if want.rate_per_s is not None:
        argv += [f"--rate={want.rate_per_s!r}", f"--latency-limit={want.patience_s * 1e3:.0f}"]
    return argv
