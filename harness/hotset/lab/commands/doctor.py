"""What this computer has for hotset, and what it is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hotset.core import extras, fields
from hotset.core.errors import PrerequisiteError
from hotset.core.operation import Context, Kind, Recorded, Request, operation
from hotset.core.rights import Right
from hotset.disk import places

if TYPE_CHECKING:
    from rich.console import Console

    from ..doctor import Findings

_STYLES = {"ok": "green", "missing": "bold red", "note": "yellow"}


@dataclass(frozen=True, slots=True)
class Examined(Recorded["Findings"]):
    """What is there, and what is missing."""

    rows = "findings"

    @classmethod
    def record(cls) -> type[Findings]:
        from ..doctor import Findings

        return Findings

    def show(self, console: Console) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, show_header=False, pad_edge=False)
        for _ in range(3):
            table.add_column(overflow="fold")
        for finding in self.found.findings:
            state = Text(finding.state, style=_STYLES[finding.state])
            table.add_row(state, finding.what, Text(finding.detail))
        console.print(table)

    def failure(self) -> Exception | None:
        missing = [finding.what for finding in self.found.findings if finding.state == "missing"]
        return PrerequisiteError(f"missing: {', '.join(missing)}") if missing else None


class Examine(Request):
    machine: fields.CheckedServer = None


@operation("doctor", Kind.QUERY, Right.READ, ("Test", "HotsetHost"))
def doctor(request: Examine, context: Context) -> Examined:  # noqa: ARG001
    """Check what hotset needs on this computer, and say what installs it.

    With `--machine`: which kinds of cache that server can have, and what its disks lack. Modules of
    the kernel are loaded there, and nothing else is changed. Of a hotset that was installed as a
    Linux package, this computer is that server. Exit code 3: something is missing.
    """
    from ..doctor import Findings, examine, examine_server, examine_sql_server

    # Who installs a package has disks to accelerate; the lab says by itself what it lacks.
    machine = request.machine or ("local" if extras.is_packaged() else None)
    if machine is None:
        return Examined(Findings(tuple(examine())))
    here = () if request.machine else (examine_sql_server(),)
    with places.machine(machine) as there:
        return Examined(Findings((*examine_server(there), *here)))
