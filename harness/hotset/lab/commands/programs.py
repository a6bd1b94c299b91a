"""The programs that hotset copied to a server: listed and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.machines import names as machines
from hotset.core.operation import Cli, Context, Kind, Lines, Request, operation
from hotset.core.rights import Right
from hotset.disk import places

if TYPE_CHECKING:
    from hotset.core.machines.copies import Copies


class Listing(Request):
    machine: fields.Machine = "local"


@operation(
    "programs list",
    Kind.QUERY,
    Right.READ,
    ("Get", "HotsetProgram"),
    result="core.machines.copies:Copies",
)
def list_programs(request: Listing, context: Context) -> Copies:  # noqa: ARG001
    """List the programs that hotset copied to a machine, and what uses them.

    A copy of each version stays, since engines go on from the one that they were started from.
    """
    from hotset.core.machines import copies

    with machines.open_machine(request.machine) as machine:
        return copies.copies(machine)


class Remove(Request):
    names: Annotated[
        fields.Words | None,
        Field(description="Copies to remove, as in `programs list`; default: all."),
        Cli(argument=True, metavar="COPY"),
    ] = None
    unused: Annotated[
        bool, Field(description="Remove what nothing uses, and leave the others.")
    ] = False
    machine: fields.Machine = "local"


@operation(
    "programs rm",
    Kind.JOB,
    Right.ADMIN,
    ("Remove", "HotsetProgram"),
    stops=True,
)
def remove(request: Remove, context: Context) -> Lines:
    """Remove programs that hotset copied to a machine.

    A copy that a process runs, or that a unit or a script names, is refused: nothing is removed
    then. The next command that needs a program copies it again.
    """
    from hotset.core.machines import copies

    with places.repartitioning(request.machine, "programs rm") as machine:
        for copy in copies.remove(machine, request.names or (), request.unused):
            context.message(f"removed {copy.path}")
    return Lines()
