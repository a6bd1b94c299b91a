"""Where HammerDB's script, output and record stay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from hotset.core.paths import data_dir
from hotset.core.progress import Reporter
from hotset.reports.archive import new_folder


@contextmanager
def folder(report: Reporter, name: str) -> Iterator[Path]:
    """A new folder for a step of the work, which goes again if nothing came into it, and is told
    if something did."""
    made = new_folder(data_dir() / "hammerdb", name, datetime.now(UTC), mode=0o700)
    try:
        yield made
    finally:
        try:
            made.rmdir()
        except OSError:
            report.say(f"HammerDB's script, output and record: {made}")


@contextmanager
def task(report: Reporter, name: str, title: str) -> Iterator[Path]:
    """A step of the work with such a folder, told by its title."""
    with folder(report, name) as made, report.task(title):
        yield made
