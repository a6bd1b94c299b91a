"""Disks: those that are accelerated, and what can be done with each."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from hotset.operations.jobs import store as jobs

from .. import actions, backend
from ..web import action, console_of, page, render


async def _disks(request: Request) -> Response:
    return render(request, "disks.html")


async def _list(request: Request) -> Response:
    machine = console_of(request).settings.machine
    rows = await backend.disks(machine)
    every = await run_in_threadpool(jobs.every)
    last = [job for job in every if job.words[0] == "tier" and job.machine == machine][:5]
    offered = [action for action in actions.ACTIONS if action.of == "disk"]
    return render(request, "disks_list.html", rows=rows, actions=offered, jobs=last)


async def _confirm(request: Request) -> Response:
    return await actions.confirm(request, "disk")


async def _do(request: Request, form: FormData) -> Response:
    return await actions.do(request, form, "disk")


ROUTES = [
    page("/disks", _disks),
    page("/disks/list", _list),
    page("/disks/{name}/{action}", _confirm),
    action("/disks/{name}/{action}", _do),
]
