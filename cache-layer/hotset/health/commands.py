"""Command for the findings about the accelerated disks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.machines import names as machines
from hotset.core.operation import Context, Kind, Request, operation
from hotset.core.rights import Right
from hotset.disk import places

if TYPE_CHECKING:
    from .findings import Health


class Examine(Request):
    disk: Annotated[
        places.Disk, Field(description="The accelerated disk; all of the machine if left out.")
    ] = None
    machine: fields.Machine = "local"
    engine: fields.Product = "postgres"
    dsn: fields.OptionalDsn = None
    password: fields.Password = None


@operation(
    "tier health",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetHealth"),
    result="health.findings:Health",
)
def health(request: Examine, context: Context) -> Health:  # noqa: ARG001
    """Say what changed on the accelerated disks and what is to be done, each with its command.

    Looks at the hit ratio beside earlier days, what became hot, pins and where they lie now (of
    tables that takes --dsn), dirty data, warm-ups, metadata, thin pools and wear. Exit code 0:
    nothing is to be done; 5: something is; 3: nothing that is known, but something could not be
    looked at, or there is no disk to look at. Advice counts as nothing to be done.
    """
    from hotset.databases import connect
    from hotset.warmup.commands.warmup import planning_of

    from . import examination

    label = None
    with machines.open_machine(request.machine) as machine:
        if request.dsn is not None:
            label = connect.label_of(machine, None, "table", request)
        server = planning_of(request, request.machine)
        return examination.examine(machine, request.disk, label, server)
