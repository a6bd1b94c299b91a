"""Who did what."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from hotset.operations import audit
from hotset.operations.audit import describe
from hotset.operations.audit_view import unknown

from ..web import page, render

_SHOWN, _STRANGERS = 200, 20


async def _audit(request: Request) -> Response:
    entries = await run_in_threadpool(audit.entries, _SHOWN)
    strangers = await run_in_threadpool(unknown, _STRANGERS)
    return render(
        request,
        "audit.html",
        entries=[(entry, describe(entry)) for entry in entries],
        strangers=[(stranger, describe(stranger)) for stranger in strangers],
    )


ROUTES = [page("/audit", _audit)]
