"""Prerequisites of hotset on this computer, present and missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hotset.core import extras, fields
from hotset.core.machines import names as machines
from hotset.core.operation import Context, Kind, Request, operation
from hotset.core.rights import Right

if TYPE_CHECKING:
    from ..doctor import Findings


class Examine(Request):
    machine: fields.CheckedServer = None


@operation(
    "doctor",
    Kind.QUERY,
    Right.READ,
    ("Test", "HotsetHost"),
    result="lab.doctor:Findings",
)
def doctor(request: Examine, context: Context) -> Findings:  # noqa: ARG001
    """Check what hotset needs on this computer, and say what installs it.

    With `--machine`: which kinds of cache that server can have, and what its disks lack. Modules of
    the kernel are loaded there, and nothing else is changed. Of a hotset that was installed as a
    Linux package, this computer is that server. Exit code 3: something is missing.
    """
    from ..doctor import Findings, examine, examine_called, examine_server

    # Who installs a package has disks to accelerate; the lab says by itself what it lacks.
    machine = request.machine or ("local" if extras.is_packaged() else None)
    if machine is None:
        return Findings(tuple(examine()))
    here = () if request.machine else examine_called()
    with machines.open_machine(machine) as opened:
        return Findings((*examine_server(opened), *here))
