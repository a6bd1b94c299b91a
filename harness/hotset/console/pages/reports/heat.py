"""Hot data: where a disk is hot, what lies there and how much of it is cached; pinned from here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hotset.core.units import Bytes
from hotset.core.words import percent, size
from hotset.monitoring import heat_view
from hotset.tier import kinds

from ... import backend, lab_database
from ...forms import ask, start, values_of
from ...web import action, console_of, page, problem, render

_CELLS, _ACROSS, _DOWN = 512, 64, 1.3
"""Sections of the map, and of each of its lines; a line's height, of a section's width."""
_ROWS = 30
_START = "heat start"
_COUNTING = ("start", "stop")
_PINNING = ("pin", "unpin")


@dataclass(frozen=True, slots=True)
class Section:
    """A section of the disk as it is drawn.

    :ivar heat: from 0 to 1; ``cached``: the share of it that is, None where nobody looked.
    """

    x: int
    y: float
    heat: float
    cached: float | None
    words: str


async def _heat(request: Request) -> Response:
    return render(request, "heat.html")


async def _form(request: Request) -> Response:
    flash_devices = await backend.flash_devices_of(_machine(request))
    disks = [disk for flash in flash_devices for disk in flash.disks]
    counted = [disk for disk in disks if kinds.kind_of_name(disk.kind).is_told_to_count]
    lab = await lab_database.find_lab(request)
    return render(request, "heat_form.html", disks=disks, told=counted, lab=lab)


async def _show(request: Request, form: FormData) -> Response:
    """The map, and below it the list or why there is none: a list takes a mounted file system, and
    often a database server."""
    machine = _machine(request)
    operation = "heat map"
    values = values_of(form, operation, machine=machine, cells=_CELLS)
    strip, refusal = await ask(request, operation, values)
    if refusal and _START in refusal.remedies:
        return render(request, "heat_uncounted.html", disk=str(form.get("disk")))
    if refusal:
        return problem(request, refusal.status, refusal.title, refusal.detail)
    operation = "heat top"
    values = values_of(form, operation, machine=machine, count=_ROWS)
    top, refusal = await ask(request, operation, values)
    operation = "warmup list"
    kept, _ = await ask(request, operation, values_of(form, operation, machine=machine))
    kept = {preference["target"]: preference for preference in kept["preferences"]} if kept else {}
    rows = top["rows"] if top else []
    return render(
        request,
        "heat_shown.html",
        disk=str(form.get("disk")),
        by=str(form.get("by")),
        sections=_sections(strip["cells"]),
        rows=rows,
        refusal=refusal,
        kept=kept,
        unlisted=[kept[target] for target in kept if target not in {row["target"] for row in rows}],
        lasting=await _costs_nothing(machine, str(form.get("disk"))),
        **_extremes(strip["cells"]),
    )


def _sections(cells: list[dict[str, Any]]) -> list[Section]:
    most = max((cell["heat_per_mib"] for cell in cells), default=0.0)
    return [
        Section(
            x=at % _ACROSS,
            y=at // _ACROSS * _DOWN,
            heat=heat_view.level_of(cell["heat_per_mib"], most),
            cached=cell["resident"],
            words=_words(cell),
        )
        for at, cell in enumerate(cells)
    ]


def _words(cell: dict[str, Any]) -> str:
    held = cell["resident"]
    cached = "" if held is None else f", {percent(held, 0)} cached"
    return f"at {size(cell['start'])}: {cell['heat_per_mib']:,.1f} requests a MiB{cached}"


def _extremes(cells: list[dict[str, Any]]) -> dict[str, Any]:
    """How much is shown, and where it is hottest."""
    hottest = max(cells, key=lambda cell: cell["heat_per_mib"])
    lines = -(-len(cells) // _ACROSS)
    return {
        "whole": Bytes(sum(cell["bytes"] for cell in cells)),
        "each": cells[0]["bytes"],
        "hottest": hottest,
        "across": min(len(cells), _ACROSS),
        "height": lines * _DOWN,
    }


async def _costs_nothing(machine: str, disk: str) -> bool:
    """True if the page may poll: hotset's own engine answers beside its work, the kernel's caches
    pause while their contents are read."""
    flash_devices = await backend.flash_devices_of(machine)
    matching = [
        accelerated
        for flash in flash_devices
        for accelerated in flash.disks
        if accelerated.name == disk
    ]
    return bool(matching) and not any(
        kinds.kind_of_name(accelerated.kind).pauses for accelerated in matching
    )


async def _pin(request: Request, form: FormData) -> Response:
    return await _start(request, form, "warmup", _PINNING)


async def _count(request: Request, form: FormData) -> Response:
    return await _start(request, form, "heat", _COUNTING)


async def _start(request: Request, form: FormData, group: str, verbs: tuple[str, ...]) -> Response:
    verb = str(form.get("verb"))
    if verb not in verbs:
        raise HTTPException(404)
    operation = f"{group} {verb}"
    return await start(request, operation, values_of(form, operation, machine=_machine(request)))


def _machine(request: Request) -> str:
    return console_of(request).settings.machine


ROUTES = [
    page("/heat", _heat),
    page("/heat/form", _form),
    action("/heat/show", _show),
    action("/heat/live", _show, watched=True),
    action("/heat/pin", _pin),
    action("/heat/count", _count),
]
