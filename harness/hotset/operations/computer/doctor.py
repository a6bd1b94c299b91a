"""What this computer has for hotset, and what it is missing."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hotset.core.errors import PrerequisiteError
from hotset.reports.model.schema import SCHEMA_VERSION
from hotset.reports.render.plain import csv_text

from ..base import fields, places, records
from ..base.context import Context
from ..base.registry import Kind, Request, operation
from ..base.result import Result
from ..base.rights import Right

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console

    from hotset.doctor.examination import Finding

_STYLES = {"ok": "green", "missing": "bold red", "note": "yellow"}


@dataclass(frozen=True, slots=True)
class Findings(Result):
    findings: list[Finding]

    @classmethod
    def record(cls) -> type[BaseModel]:
        from hotset.doctor.examination import Finding

        return records.record_of("Findings", findings=list[Finding])

    def document(self) -> dict[str, Any]:
        rows = [asdict(finding) for finding in self.findings]
        return {"schema_version": SCHEMA_VERSION, "findings": rows}

    def show(self, console: Console) -> None:
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, show_header=False, pad_edge=False)
        for finding in self.findings:
            state = Text(finding.state, style=_STYLES[finding.state])
            table.add_row(state, finding.what, Text(finding.detail))
        console.print(table)

    def csv(self) -> str:
        rows = ((finding.state, finding.what, finding.detail) for finding in self.findings)
        return csv_text(("state", "what", "detail"), rows)

    def failure(self) -> Exception | None:
        missing = [finding.what for finding in self.findings if finding.state == "missing"]
        return PrerequisiteError(f"missing: {', '.join(missing)}") if missing else None


class Examine(Request):
    machine: fields.CheckedServer = None


@operation("doctor", Kind.QUERY, Right.READ, ("Test", "HotsetHost"))
def doctor(request: Examine, context: Context) -> Findings:  # noqa: ARG001
    """Check what hotset needs on this computer, and say what installs it.

    With `--machine`: which kinds of cache that server can have, and what its disks lack. Modules of
    the kernel are loaded there, and nothing else is changed. Exit code 3: something is missing.
    """
    from hotset.doctor.examination import examine, examine_server

    if request.machine is None:
        return Findings(examine())
    with places.machine(request.machine) as there:
        return Findings(examine_server(there))
