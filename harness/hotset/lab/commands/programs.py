"""The programs that hotset copied to a server: listed and removed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.operation import Cli, Context, Kind, Lines, Recorded, Request, operation
from hotset.core.rights import Right
from hotset.disk import places

if TYPE_CHECKING:
    from rich.console import Console

    from hotset.core.machines.copies import Copies

_STYLES = {"complete": "green", "unfinished": "yellow", "changed": "bold red"}


class Listing(Request):
    machine: fields.Machine = "local"


@dataclass(frozen=True, slots=True)
class Listed(Recorded["Copies"]):
    """Each copy, and what uses it."""

    rows = "copies"

    @classmethod
    def record(cls) -> type[Copies]:
        from hotset.core.machines.copies import Copies

        return Copies

    def show(self, console: Console) -> None:
        from rich.table import Table
        from rich.text import Text

        if not self.found.copies:
            console.print("hotset has copied no program there")
            return
        table = Table(box=None, pad_edge=False)
        for head in ("copy", "program", "version", "copied", "by", "state", "used by"):
            table.add_column(head, overflow="fold")
        for one in self.found.copies:
            version = " ".join(filter(None, (one.version, one.architecture))) or "unknown"
            told = (one.copied_at or "unknown", one.copied_by or "unknown")
            state = Text(one.state, style=_STYLES[one.state])
            used = ", ".join(one.used_by) or "nothing"
            table.add_row(one.name, one.program, version, *map(Text, told), state, Text(used))
        console.print(table)


@operation("programs list", Kind.QUERY, Right.READ, ("Get", "HotsetProgram"))
def list_programs(request: Listing, context: Context) -> Listed:  # noqa: ARG001
    """List the programs that hotset copied to a machine, and what uses them.

    A copy of each version stays, since engines go on from the one that they were started from.
    """
    from hotset.core.machines import copies

    with places.machine(request.machine) as there:
        return Listed(copies.copies(there))


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


@operation("programs rm", Kind.JOB, Right.ADMIN, ("Remove", "HotsetProgram"))
def remove(request: Remove, context: Context) -> Lines:
    """Remove programs that hotset copied to a machine.

    A copy that a process runs, or that a unit or a script names, is refused: nothing is removed
    then. The next command that needs a program copies it again.
    """
    from hotset.core.machines import copies

    with places.cut_anew(request.machine, "programs rm") as there:
        for one in copies.remove(there, request.names or (), request.unused):
            context.message(f"removed {one.path}")
    return Lines()
