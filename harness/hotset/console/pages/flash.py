"""Flash: the split of a flash device into cache and volume, shown before anything is written."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import FormData, QueryParams
from starlette.requests import Request
from starlette.responses import Response

from hotset.core.errors import command_line
from hotset.disk.flash_devices import device_of
from hotset.tier.base import TierKind, WriteMode
from hotset.tier.choice import DatabaseKind

from .. import actions
from .. import backend as backends
from ..backend import Backend
from ..forms import rehearse, start, values_of
from ..split import Split, split
from ..web import action, console_of, page, problem, render

_CREATE = "tier create"
_FRESH_S = 60.0
_seen: dict[str, tuple[float, Backend]] = {}
"""Machines as they were looked at last: the slider asks many times a second."""
Percent = Annotated[int, Field(ge=0, le=100)]


class FormState(BaseModel):
    """The values of the form."""

    model_config = ConfigDict(extra="ignore")
    flash: str = Field(min_length=1)
    origin: str = ""
    disk: str = ""
    database: DatabaseKind = "oltp"
    kind: TierKind = "dm-cache"
    mode: WriteMode | Literal[""] = ""
    cache_percent: Percent = 80
    kept_percent: Percent = 0


@dataclass(frozen=True, slots=True)
class Proposal:
    """The form's request, and the resulting split."""

    wanted: FormState
    split: Split


async def _flash(request: Request) -> Response:
    return render(request, "flash.html")


async def _list(request: Request) -> Response:
    listed = await backends.flash_devices_of(console_of(request).settings.machine)
    return render(request, "flash_list.html", flash_devices=listed)


async def _form(request: Request) -> Response:
    backend = await _look(request, fresh=True)
    offer = await backends.offer(console_of(request).settings.machine)
    return render(request, "flash_form.html", backend=backend, offer=offer)


async def _split(request: Request) -> Response:
    try:
        proposal = await _proposal(request, request.query_params)
    except ValueError as error:
        return problem(request, 200, "It cannot be split so", _describe_state(error))
    return render(request, "flash_split.html", wanted=proposal.wanted, split=proposal.split)


async def _review(request: Request) -> Response:
    """The last page before something is written; it names what will be, to the byte."""
    query = request.query_params
    try:
        proposal = await _proposal(request, query)
        values = _values(request, proposal)
    except ValueError as error:
        return problem(request, 422, "It cannot be split so", _describe_state(error))
    refusal = await rehearse(request, _CREATE, values)
    if refusal is not None:
        return problem(request, refusal.status, refusal.title, refusal.detail)
    backend = await _look(request)
    device, flash = backend.device(str(values["flash"])), backend.flash_on(str(values["flash"]))
    return render(
        request,
        "flash_review.html",
        wanted=proposal.wanted,
        split=proposal.split,
        values=values,
        command=command_line(_CREATE, values),
        device=device,
        flash=flash,
        accelerated=device_of(proposal.wanted.kind, proposal.wanted.disk),
        typed=PurePosixPath(str(values["flash"])).name,
    )


async def _create(request: Request, form: FormData) -> Response:
    machine = console_of(request).settings.machine
    values = values_of(form, _CREATE, machine=machine)
    name = PurePosixPath(str(values.get("flash", ""))).name
    if form.get("dry_run") != "true" and str(form.get("typed", "")).strip() != name:
        return problem(
            request,
            422,
            "That is not the flash's name",
            f"Type {name} to have it written to; nothing was done.",
        )
    _seen.pop(machine, None)
    return await start(request, _CREATE, values)


async def _confirm(request: Request) -> Response:
    return await actions.confirm(request, "flash device")


async def _do(request: Request, form: FormData) -> Response:
    _seen.pop(console_of(request).settings.machine, None)
    return await actions.do(request, form, "flash device")


def _values(request: Request, proposal: Proposal) -> dict[str, object]:
    """Return the values for `hotset tier create`; an active flash device keeps its volume."""
    wanted, cut = proposal.wanted, proposal.split
    volume = {"volume": str(int(cut.volume))} if cut.volume_new and cut.volume else {}
    mode = {"mode": wanted.mode} if wanted.mode else {}
    return {
        "disk": wanted.disk,
        "flash": wanted.flash,
        "origin": wanted.origin,
        "database": wanted.database,
        "kind": wanted.kind,
        "cache": str(int(cut.spec.cache)),
        **mode,
        **volume,
        "machine": console_of(request).settings.machine,
    }


async def _proposal(request: Request, query: QueryParams) -> Proposal:
    """:raises ValueError: the form cannot be understood, or the flash is not there."""
    wanted = FormState.model_validate(dict(query))
    backend = await _look(request)
    device = backend.device(wanted.flash)
    if device is None:
        raise ValueError(f"flash {wanted.flash!r}: there is no such device; load the page again")
    cut = split(
        device.size,
        backend.flash_on(wanted.flash),
        wanted.kind,
        wanted.database,
        wanted.mode or None,
        wanted.cache_percent,
        wanted.kept_percent,
    )
    return Proposal(wanted, cut)


async def _look(request: Request, fresh: bool = False) -> Backend:
    machine = console_of(request).settings.machine
    at, backend = _seen.get(machine, (0.0, None))
    if backend is None or fresh or time.monotonic() - at > _FRESH_S:
        backend = await backends.backend(machine)
        _seen[machine] = (time.monotonic(), backend)
    return backend


def _describe_state(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)


ROUTES = [
    page("/flash", _flash),
    page("/flash/list", _list),
    page("/flash/form", _form),
    page("/flash/split", _split),
    page("/flash/review", _review),
    action("/flash/create", _create),
    page("/flash/{name}/{action}", _confirm),
    action("/flash/{name}/{action}", _do),
]
