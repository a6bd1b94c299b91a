"""The audit log, shown."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core.operation import Cli, Context, Kind, Recorded, Request, operation
from hotset.core.rights import Right
from hotset.core.words import csv_text

from . import audit, strangers

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {"done": "green", "failed": "red", "refused": "bold red", "started": "yellow"}


class Show(Request):
    limit: Annotated[
        int, Field(ge=1, le=10_000, description="How many entries to show."), Cli(short="-n")
    ] = 50
    unknown: Annotated[
        bool,
        Field(
            description="Instead show how many requests without a valid token, and how many failed"
            " log-ins, came from each address in each minute."
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class Log(Recorded[audit.AuditLog]):
    """Who did what."""

    rows = "entries"

    @classmethod
    def record(cls) -> type[audit.AuditLog]:
        return audit.AuditLog

    def show(self, console: Console) -> None:
        from rich.table import Table
        from rich.text import Text

        if not self.found.entries:
            console.print("nothing has been logged yet")
            return
        table = Table(box=None, pad_edge=False)
        table.add_column("when", no_wrap=True)
        for head in ("who", "what", "outcome"):
            table.add_column(head, overflow="fold")
        for entry in self.found.entries:
            who = f"{entry.who}, {entry.address}" if entry.address else entry.who
            outcome = Text(entry.outcome, style=_STYLES[entry.outcome])
            outcome.append(f": {entry.why}" if entry.why else "", style="default")
            table.add_row(Text(entry.at), Text(who), Text(describe(entry)), outcome)
        console.print(table)

    def csv(self) -> str:
        header = ("at", "who", "address", "what", "outcome", "why")
        rows = (
            (entry.at, entry.who, entry.address, describe(entry), entry.outcome, entry.why)
            for entry in self.found.entries
        )
        return csv_text(header, rows)


def describe(entry: audit.Entry) -> str:
    """What was asked, in one line, as one would write it.

    >>> values = {"targets": ["/a", "/b"], "check": True, "pin": [], "rate": None}
    >>> describe(audit.Entry("", "", "me", "", "warmup run", values, "done"))
    'warmup run targets=/a,/b check=true'
    """
    given = (pair for pair in entry.values.items() if pair[1] is not None and pair[1] != [])
    return " ".join((entry.what, *(f"{name}={_plain(value)}" for name, value in given)))


def _plain(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(_plain, value))
    if isinstance(value, bool | dict):
        return json.dumps(value)
    return str(value)


@operation("audit", Kind.QUERY, Right.ADMIN, ("Get", "HotsetAudit"))
def show(request: Show, context: Context) -> Log:  # noqa: ARG001
    """Show who changed what, when, from where, and the outcome; newest first.

    It records every call that may change something, from the command line, the API and the console,
    and also log-ins, tokens, and what a known caller was refused. Requests of unknown callers are
    only counted: --unknown shows the counts.
    """
    found = unknown(request.limit) if request.unknown else audit.entries(request.limit)
    return Log(audit.AuditLog(tuple(found)))


def unknown(limit: int) -> list[audit.Entry]:
    """Who is not known, as entries: one an address and minute."""
    return [
        audit.Entry("", one.at, "unknown", one.address, one.what, {"count": one.count}, "refused")
        for one in strangers.latest(limit)
    ]
