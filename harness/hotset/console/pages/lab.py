"""The lab on this computer: start it, see what it is, take it down."""

from __future__ import annotations

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from .. import lab_database
from ..forms import start
from ..web import action, console_of, page, render


async def _lab(request: Request) -> Response:
    is_local = console_of(request).settings.machine == "local"
    return render(request, "lab.html", lab=await lab_database.find_lab(request), is_local=is_local)


async def _change(request: Request, form: FormData) -> Response:  # noqa: ARG001 - every action's
    verb = request.path_params["verb"]
    if verb not in ("up", "down") or console_of(request).settings.machine != "local":
        raise HTTPException(404)
    return await start(request, f"lab {verb}", {"machine": "local"} if verb == "up" else {})


ROUTES = [page("/lab", _lab), action("/lab/{verb}", _change)]
