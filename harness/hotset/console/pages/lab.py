"""The lab on this computer: start it, see what it is, take it down."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hotset.operations import lab_use

from .. import lab_database
from ..forms import start
from ..web import action, console_of, page, render


async def _lab(request: Request) -> Response:
    is_local = console_of(request).settings.machine == "local"
    lab = await lab_database.find_lab(request)
    used = await run_in_threadpool(lab_use.in_use) if lab else ()
    return render(request, "lab.html", lab=lab, used=used, is_local=is_local)


async def _change(request: Request, form: FormData) -> Response:
    verb = request.path_params["verb"]
    if verb not in ("up", "down") or console_of(request).settings.machine != "local":
        raise HTTPException(404)
    yes = {"yes": True} if form.get("yes") else {}
    return await start(request, f"lab {verb}", {"machine": "local"} if verb == "up" else yes)


ROUTES = [page("/lab", _lab), action("/lab/{verb}", _change)]
