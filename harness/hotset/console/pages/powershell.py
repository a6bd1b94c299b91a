"""The PowerShell module of this very version, and how it is installed."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hotset.api.clients.package import zipped

from ..web import page, render

PLACE = "/powershell/Hotset.zip"


async def _show(request: Request) -> Response:
    return render(request, "powershell.html", address=f"{request.base_url}".rstrip("/") + PLACE)


async def _hand_out(request: Request) -> Response:  # noqa: ARG001
    """Send it to everybody: it holds nothing of this server, and who has no token yet needs it."""
    module = await run_in_threadpool(zipped)
    return Response(module, media_type="application/zip")


ROUTES = [page("/powershell", _show), Route(PLACE, _hand_out, methods=["GET"])]
