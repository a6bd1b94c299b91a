"""TPC-H by HammerDB: build a database, run the 22 queries, and tell it as hotset does."""

from __future__ import annotations

import time
from pathlib import Path

from hotset.databases.product import SqlDatabase
from hotset.reports.model import windows
from hotset.tpch.record import power_run

from . import script, settings
from .batch import Batch, Observer, execute
from .build import BuildResult, loaders
from .build import build as build_schema
from .process.failures import HammerdbFailed, HammerdbRefused
from .process.output import Line, Query, Refresh
from .process.watch import queries_of
from .release import Release, find
from .settings import SCALES

_BUILD_STALL_S = 3600.0
"""Building an index on a large LINEITEM says nothing for long."""
_RUN_STALL_S = 4 * 3600.0
"""So does a query."""


def build(
    connection: SqlDatabase,
    scale: float,
    folder: Path,
    *,
    users: int | None = None,
    stall_s: float = _BUILD_STALL_S,
    observe: Observer = lambda _: None,
    release: Release | None = None,
) -> BuildResult:
    """Create HammerDB's TPC-H schema in an existing, empty database, and count its rows.

    HammerDB makes the rows in Tcl: scale factor 1 takes ten minutes or more. hotset's own
    generator takes seconds.

    :param scale: one of `settings.SCALES`.
    :param folder: for script, output and record; new or empty.
    :param users: parallel loaders; by default one per CPU.
    :raises HammerdbFailed: the build did not end well; the database holds a part of it.
    :raises HammerdbRefused: an option that HammerDB cannot take.
    :raises PrerequisiteMissingError: no HammerDB (see `release.find`).
    """
    batch = Batch(release or find(), connection, folder, stall_s, observe)
    asked = settings.Tpch(whole(scale), build_users=loaders(users))
    return build_schema(batch, asked)


def run(
    connection: SqlDatabase,
    scale: float,
    folder: Path,
    *,
    refresh: bool = False,
    parallel: int = 2,
    stall_s: float = _RUN_STALL_S,
    observe: Observer = lambda _: None,
    release: Release | None = None,
) -> windows.PowerRun:
    """One power run against a database that HammerDB built.

    HammerDB does not tell how many rows a query returned, nor a seed.

    :param refresh: run RF1 before the queries and RF2 after them; it changes the database.
    :param parallel: workers that one query may use.
    :raises HammerdbFailed: not all 22 queries succeeded.
    :raises HammerdbRefused: an option that HammerDB cannot take.
    :raises PrerequisiteMissingError: no HammerDB (see `release.find`).
    """
    asked = settings.Tpch(whole(scale), refresh=refresh, parallel=parallel)
    dictionary = settings.dictionary(connection, asked)
    clock = _Clock(observe)
    batch = Batch(release or find(), connection, folder, stall_s, clock.observe)
    text = script.power(connection.hammerdb, dictionary)
    outcome = execute(batch, dictionary, text, users=1)
    queries = queries_of(outcome.lines)
    refreshes = [line for line in outcome.lines if isinstance(line, Refresh)]
    if [part.function for part in refreshes] != ([1, 2] if refresh else []):
        raise HammerdbFailed(f"refresh functions that ran: {[part.function for part in refreshes]}")
    return power_run(
        float(asked.scale),
        None,
        clock.ends[0] - queries[0].seconds,
        clock.ends[-1],
        [windows.Query(number=query.number, seconds=query.seconds) for query in queries],
        (refreshes[0].seconds, refreshes[1].seconds) if refresh else None,
    )


def whole(scale: float) -> int:
    """A scale factor that HammerDB has; raises HammerdbRefused for any other."""
    if scale not in SCALES:
        known = ", ".join(map(str, SCALES))
        raise HammerdbRefused(
            f"scale {scale:g}: HammerDB knows {known} only: give one of these, or use hotset's own"
        )
    return int(scale)


class _Clock:
    """Notes when each query's line came: HammerDB stamps none."""

    def __init__(self, observe: Observer) -> None:
        self._observe = observe
        self.ends: list[float] = []

    def observe(self, line: Line) -> None:
        if isinstance(line, Query):
            self.ends.append(time.time())
        self._observe(line)
