"""A step of HammerDB's work: where its script, output and record stay, its lines as progress."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from hotset.core.paths import data_dir
from hotset.core.progress import Reporter
from hotset.reports.archive import new_folder

from .output import Counter, Line, Message, Query, WindowEdge

_EDGES = {"rampup": "ramp-up", "measure": "window open", "done": "closed"}


def observer(report: Reporter) -> Callable[[Line], None]:
    """Takes HammerDB's lines, the counter's rate among them."""

    def observe(line: Line) -> None:
        seconds = f"{report.seconds:.1f} s"
        if isinstance(line, Counter):
            report.figure(f"{seconds}, {line.value:,} {line.metric} of the whole server")
        elif isinstance(line, Query):
            report.figure(f"{seconds}, query {line.number} took {line.seconds:.3f} s")
        elif isinstance(line, WindowEdge):
            report.say(_EDGES[line.phase])
        elif isinstance(line, Message) and line.user and line.text:
            report.figure(f"{seconds}, user {line.user}: {line.text}")

    return observe


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
