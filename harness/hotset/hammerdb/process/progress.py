"""HammerDB's output as progress."""

from __future__ import annotations

from collections.abc import Callable

from hotset.core.progress import Reporter

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
