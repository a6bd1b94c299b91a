"""What is to be done about the accelerated disks, and what is not known of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from hotset.core import fields
from hotset.core.errors import PrerequisiteError, Remedy, ThresholdError
from hotset.core.operation import Context, Kind, Recorded, Request, operation, write
from hotset.core.rights import Right
from hotset.disk import places

if TYPE_CHECKING:
    from rich.console import Console

    from .findings import Health


class Examine(Request):
    disk: Annotated[
        places.Disk, Field(description="The accelerated disk; all of the machine if left out.")
    ] = None
    machine: fields.Machine = "local"
    engine: fields.Product = "postgres"
    dsn: fields.OptionalDsn = None
    password: fields.Password = None


@dataclass(frozen=True, slots=True)
class Examined(Recorded["Health"]):
    """What was looked at, and what came of it."""

    rows = "findings"

    @classmethod
    def record(cls) -> type[Health]:
        from .findings import Health

        return Health

    def show(self, console: Console) -> None:
        from . import findings

        write(console, findings.to_text(self.found))

    def failure(self) -> Exception | None:
        from .findings import TO_DO

        found = self.found
        if not found.disks and not found.findings:
            there = {} if found.machine == "local" else {"machine": found.machine}
            return PrerequisiteError(
                f"nothing could be looked at: no disk of {found.machine} is accelerated",
                Remedy("see what lies on its devices", "tier scan", there),
            )
        if found.to_do:
            mine = (one for one in found.findings if one.state in TO_DO)
            disks = dict.fromkeys(one.disk or one.subject for one in mine)
            return ThresholdError(f"something is to be done: {', '.join(disks)}")
        if found.not_known:
            return PrerequisiteError(f"{found.not_known} of {len(found.findings)} are not known")
        return None


@operation("tier health", Kind.QUERY, Right.READ, ("Get", "HotsetHealth"))
def health(request: Examine, context: Context) -> Examined:  # noqa: ARG001
    """Say what changed on the accelerated disks and what is to be done, each with its command.

    Looks at the hit ratio beside earlier days, what became hot, pins and where they lie now (of
    tables that takes --dsn), dirty data, warm-ups, metadata, thin pools and wear. Exit code 0:
    nothing is to be done; 5: something is; 3: nothing that is known, but something could not be
    looked at, or there is no disk to look at. Advice counts as nothing to be done.
    """
    from hotset.databases import owners
    from hotset.warmup.plan import Request as Planning

    from . import examination

    label = None
    with places.machine(request.machine) as there:
        if request.dsn is not None:
            label = owners.label_of(there, None, "table", request)
        server = Planning(
            request.machine,
            (),
            engine=request.engine,
            dsn=request.dsn,
            password=fields.secret(request.password),
        )
        return Examined(examination.examine(there, request.disk, label, server))
