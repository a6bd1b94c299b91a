"""Output of pgbench: a line of progress every second, and a log of each transaction.

Forms: the manual's page on pgbench, "Per-Transaction Logging".
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from hotset.load.arrivals import LATE_S
from hotset.load.samples import Recorder

from .pgbench import LOG_PREFIX

_PROGRESS = re.compile(
    r"progress: (?P<at>[0-9.]+) s, (?P<tps>[0-9.]+) tps, lat (?P<mean>[0-9.]+) ms stddev \S+"
    r" (?P<failed>[0-9]+) failed.*"
)


@dataclass(frozen=True, slots=True)
class Progress:
    """Activity of all users since the last such line.

    :ivar at: its end, in seconds since 1970.
    :ivar mean_ms: mean latency; None: nothing was committed.
    """

    at: float
    tps: float
    mean_ms: float | None
    failed: int


def parse_progress(line: str) -> Progress | None:
    """
    >>> parse_progress("progress: 1795909624.168 s, 128.9 tps, lat 37.321 ms stddev 45.920,"
    ...                " 2 failed, lag 0.100 ms, 0 skipped")
    Progress(at=1795909624.168, tps=128.9, mean_ms=37.321, failed=2)
    """
    match = _PROGRESS.fullmatch(line)
    if match is None:
        return None
    tps = float(match["tps"])
    return Progress(
        float(match["at"]), tps, float(match["mean"]) if tps else None, int(match["failed"])
    )


def record(line: str, recorder: Recorder, patience_s: float) -> float:
    """One transaction; the rest of a line is how late it began, in a run with a rate.

    :param patience_s: after which pgbench gives up what is due; it does not tell since when it was.
    :return: when it ended, in seconds since 1970.
    """
    _, _, outcome, script, second, microsecond, *rest = line.split()
    kind, ended = int(script), int(second) + int(microsecond) / 1e6
    if outcome == "skipped":
        recorder.record_skip(ended - patience_s)
        return ended
    committed = outcome.isdecimal()
    since = ended - int(outcome) / 1e6 if committed else ended
    if rest:
        recorder.record_start(since, late=float(rest[0]) / 1e6 > LATE_S)
    if committed:
        recorder.commit(kind, since, ended)
    else:
        recorder.record_failure(kind, since, ended, outcome, "")
    return ended


def read(folder: Path, threads: int, recorder: Recorder, patience_s: float) -> float:
    """Record what the threads of a run wrote, each into a file of its own; pgbench writes them in
    blocks of some kilobytes.

    :return: until when all threads' transactions are there, also where pgbench was killed.
    """
    ended = list[float]()
    for path in folder.glob(f"{LOG_PREFIX}.[0-9]*"):
        last = -math.inf
        with path.open(encoding="ascii") as file:
            for line in file:
                if line.endswith("\n"):
                    last = record(line, recorder, patience_s)
        ended.append(last)
    return min(ended) if len(ended) == threads else -math.inf
