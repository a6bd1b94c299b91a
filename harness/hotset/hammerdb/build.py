"""A database built by HammerDB: what the builds of both workloads have in common."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from . import script, settings, tables
from .batch import Batch, execute


@dataclass(frozen=True, slots=True)
class BuildResult:
    """A database HammerDB built: rows by table as counted afterwards, seconds without counting."""

    rows: dict[str, int]
    seconds: float


def build(batch: Batch, asked: settings.Tpcc | settings.Tpch) -> BuildResult:
    """Create a schema in an existing, empty database, and count its rows.

    :raises HammerdbFailed: the build did not end well; the database holds a part of it.
    """
    connection, users = batch.connection, asked.build_users
    dictionary = settings.dictionary(connection, asked)
    text = script.build(connection.hammerdb, settings.workload(asked), dictionary)
    begun = time.monotonic()
    # More than one user have a monitor.
    execute(batch, dictionary, text, users=1 if users == 1 else users + 1)
    seconds = time.monotonic() - begun
    if isinstance(asked, settings.Tpcc):
        rows = tables.check(connection, "tpcc_rows", tables.tpcc_rows(asked.warehouses))
    else:
        rows = tables.check(connection, "tpch_rows", tables.tpch_rows(asked.scale))
    return BuildResult(rows, seconds)


def loaders(asked: int | None) -> int:
    """How many load at once; by default one per CPU."""
    return asked or os.cpu_count() or 1
