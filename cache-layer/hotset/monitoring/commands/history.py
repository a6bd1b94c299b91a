"""Command that shows a console's history of a disk without a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import clock, fields
from hotset.core.operation import Context, Kind, Request, operation
from hotset.core.rights import Right
from hotset.core.units import parse_span
from hotset.disk import places

if TYPE_CHECKING:
    from ..history.table import DiskHistory


class History(Request):
    disk: Annotated[
        places.Disk,
        Field(description="The disk, also one that is gone; may be left out if there is only one."),
    ] = None
    machine: fields.Machine = "local"
    since: Annotated[
        fields.Expression,
        Field(description="How far back, such as 90min, 24h or 7d. A console keeps 8 days."),
    ] = "24h"
    step: Annotated[
        fields.Expression | None,
        Field(
            description="The time of a row, such as 5min or 1h. Kept are steps of 10 s for 2 hours,"
            " of 1 min for 26 hours, of 5 min for 8 days; without it, about a hundred rows come."
        ),
    ] = None


@operation(
    "report history",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetHistory"),
    result="monitoring.history.table:DiskHistory",
)
def history(request: History, context: Context) -> DiskHistory:  # noqa: ARG001
    """Show what a console recorded of a disk: hit ratios, requests, dirty data, what happened.

    The console's server records for as long as it runs; times in which it did not run are shown as
    not recorded. The machine itself is not asked, and the record is only read.
    """
    from ..history import table

    length = fields.parse_field("since", lambda: parse_span(request.since))
    step: float = table.step_for(length)
    if request.step is not None:
        text = request.step
        step = fields.parse_field("step", lambda: parse_span(text))
    choice = table.check(length, step)
    return table.of_disk(request.machine, request.disk, choice, clock.moment())
