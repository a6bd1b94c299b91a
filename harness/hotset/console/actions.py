"""Actions on an active disk or a flash device: a page of what will happen, and then the job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hotset.monitoring.tier_status import DiskStatus

from . import backend
from .forms import start, values_of
from .web import console_of, problem, render

PLACES = {"disk": "/disks", "flash device": "/flash"}
"""The page that shows them."""
_FIELDS = {"disk": "disk", "flash device": "flash_name"}
"""The field of the operation that names them."""


@dataclass(frozen=True, slots=True)
class TierAction:
    """One verb of a tier: what its page says.

    :ivar of: the verb's parameter that names its object.
    :ivar typed: the name has to be typed first.
    :ivar yes: the consent that the tick for the verb's ``yes`` states.
    """

    verb: str
    title: str
    says: str
    of: Literal["disk", "flash device"] = "disk"
    typed: bool = False
    yes: str = ""


ACTIONS = (
    TierAction(
        "flush",
        "Flush",
        "Everything that is dirty is written back to the origin; the disk stays in use meanwhile.",
    ),
    TierAction(
        "activate",
        "Activate",
        "The disk's devices are made again, as after a reboot. Damaged"
        " metadata is found before it is used.",
    ),
    TierAction(
        "deactivate",
        "Deactivate",
        "The disk's devices are removed; what is cached stays on"
        " the flash, dirty blocks among it. Unmount it first.",
    ),
    TierAction(
        "resize",
        "Resize",
        "The cache follows an origin that has grown, or gets another size."
        " The file system may stay mounted.",
    ),
    TierAction(
        "repair",
        "Repair",
        "Cache metadata that an activation found damaged is mended, as far"
        " as no write is lost by it.",
        yes="Also if what cannot be read may hold writes: they are lost then",
    ),
    TierAction(
        "detach",
        "Detach",
        "What is dirty is written back, and the origin is a plain disk"
        " again; the disk's part of the flash is free.",
        typed=True,
        yes="Also if what is dirty cannot be written back because the origin is gone, or the flash"
        " is said to be dead and still answers: it is lost then",
    ),
    TierAction(
        "destroy",
        "Destroy the flash device",
        "All its disks are detached, and its volume is deleted with ALL data on it.",
        of="flash device",
        typed=True,
        yes="Also if it has several disks, something on its volume, or a flash or an origin that is"
        " gone: what cannot be written back is lost then",
    ),
)


async def confirm(request: Request, of: Literal["disk", "flash device"]) -> Response:
    """The page before it is done."""
    action, name = _find_action(request, of), request.path_params["name"]
    return render(
        request,
        "action.html",
        action=action,
        whose=name,
        place=PLACES[of],
        row=await _status(request, name) if action.verb == "resize" else None,
    )


async def _status(request: Request, name: str) -> DiskStatus | None:
    """Find a disk's status; None: it is not known, and the job will say why."""
    try:
        rows = await backend.disks(console_of(request).settings.machine)
    except backend.BackendError:
        return None
    return next((row for row in rows if row.disk == name), None)


async def do(request: Request, form: FormData, of: Literal["disk", "flash device"]) -> Response:
    """The job, if the name was typed where it has to be."""
    action, name = _find_action(request, of), request.path_params["name"]
    if action.typed and str(form.get("typed", "")).strip() != name:
        return problem(
            request,
            422,
            f"That is not the {of}'s name",
            f"Type {name} to {action.verb} it; nothing was done.",
        )
    operation = f"tier {action.verb}"
    fixed = {_FIELDS[of]: name, "machine": console_of(request).settings.machine}
    return await start(request, operation, values_of(form, operation, **fixed))


def _find_action(request: Request, of: str) -> TierAction:
    for action in ACTIONS:
        if (action.of, action.verb) == (of, request.path_params["action"]):
            return action
    raise HTTPException(404)
