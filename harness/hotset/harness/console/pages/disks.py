"""Disks: those that are accelerated, and what can be done with each."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hotset.harness.console import ground
from hotset.harness.console.verbforms import start, values_of
from hotset.harness.console.web import action, console_of, page, problem, render
from hotset.harness.service import jobs


@dataclass(frozen=True, slots=True)
class Deed:
    """One verb of a disk: what its page says. ``typed``: the disk's name has to be typed first."""

    verb: str
    title: str
    says: str
    typed: bool = False


DEEDS = {
    deed.verb: deed
    for deed in (
        Deed("flush", "Flush", "Everything that is dirty is written back to the origin; the disk"
             " stays in use meanwhile."),
        Deed("activate", "Activate", "The disk's devices are made again, as after a reboot. Damaged"
             " metadata is found before it is used."),
        Deed("deactivate", "Deactivate", "The disk's devices are removed; what is cached stays on"
             " the flash, dirty blocks among it. Unmount it first."),
        Deed("resize", "Resize", "The cache follows an origin that has grown, or gets another size."
             " The file system may stay mounted."),
        Deed("repair", "Repair", "Cache metadata that an activation found damaged is mended, as far"
             " as no write is lost by it."),
        Deed("detach", "Detach", "What is dirty is written back, and the origin is a plain disk"
             " again; the disk's part of the flash is free.", typed=True),
        Deed("destroy", "Destroy the card", "All disks of the card that this disk is on are"
             " detached, and the card's volume is given up with ALL that is on it.", typed=True),
    )
}  # fmt: skip


async def _disks(request: Request) -> Response:
    return render(request, "disks.html")


async def _list(request: Request) -> Response:
    machine = console_of(request).settings.machine
    rows = await ground.disks(machine)
    every = await run_in_threadpool(jobs.every)
    last = [job for job in every if job.words[0] == "tier" and job.machine == machine][:5]
    return render(request, "disks_list.html", rows=rows, deeds=DEEDS.values(), jobs=last)


async def _confirm(request: Request) -> Response:
    return render(request, "deed.html", deed=_deed(request), disk=request.path_params["disk"])


async def _do(request: Request, form: FormData) -> Response:
    deed, disk = _deed(request), request.path_params["disk"]
    if deed.typed and str(form.get("typed", "")).strip() != disk:
        return problem(request, 422, "That is not the disk's name",
                       f"Type {disk} to {deed.verb} it; nothing was done.")  # fmt: skip
    words = ("tier", deed.verb)
    machine = console_of(request).settings.machine
    return await start(request, words, values_of(form, words, disk=disk, machine=machine))


def _deed(request: Request) -> Deed:
    found = DEEDS.get(request.path_params["deed"])
    if found is None:
        raise HTTPException(404)
    return found


ROUTES = [
    page("/disks", _disks),
    page("/disks/list", _list),
    page("/disks/{disk}/{deed}", _confirm),
    action("/disks/{disk}/{deed}", _do),
]
