"""The audit log, shown."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hotset.core.operation import Cli, Context, Kind, Request, operation
from hotset.core.rights import Right

from . import audit, strangers


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


@operation(
    "audit",
    Kind.QUERY,
    Right.ADMIN,
    ("Get", "HotsetAudit"),
    result="operations.audit:AuditLog",
)
def show(request: Show, context: Context) -> audit.AuditLog:  # noqa: ARG001
    """Show who changed what, when, from where, and the outcome; newest first.

    It records every call that may change something, from the command line, the API and the console,
    and also log-ins, tokens, and what a known caller was refused. Requests of unknown callers are
    only counted: --unknown shows the counts.
    """
    entries = unknown(request.limit) if request.unknown else audit.entries(request.limit)
    return audit.AuditLog(tuple(entries))


def unknown(limit: int) -> list[audit.Entry]:
    """Who is not known, as entries: one an address and minute."""
    return [
        audit.Entry(
            "",
            stranger.at,
            "unknown",
            stranger.address,
            stranger.what,
            {"count": stranger.count},
            "refused",
        )
        for stranger in strangers.latest(limit)
    ]
