"""Overview: what the caches of this machine do now."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from hotset.monitoring.history import series

from .. import passwords
from ..sampling.reader import Sample
from ..web import COOKIE, Console, console_of, page, render, template
from .history import charts_of

PATIENCE_S = 15.0
"""A comment is sent after so long without a sample, so that who went away is noticed."""


async def _overview(request: Request) -> Response:
    choice = series.find_choice(request.query_params.get("span", ""))
    return render(request, "overview.html", charts=charts_of(choice))


async def _live(request: Request) -> Response:
    console = console_of(request)
    stream = _events(console, request.cookies[COOKIE])
    return StreamingResponse(stream, media_type="text/event-stream")


async def _events(console: Console, cookie: str) -> AsyncIterator[bytes]:
    async for frame in console.sampler.frames(PATIENCE_S):
        # Watching is not doing: a session that is only watched ends when its time is up.
        if not console.sessions.alive(cookie, passwords.read_hash()):
            yield event("ended", {})
            return
        yield frame or b": nothing new\n\n"


def frame(sample: Sample, machine: str) -> bytes:
    """A sample as all watchers get it: the part of the page that is live."""
    html = template("overview_live.html").render(sample=sample, machine=machine)
    return event("sample", {"html": html})


def event(name: str, data: object) -> bytes:
    """One server-sent event."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


ROUTES = [page("/", _overview), page("/overview/live", _live, watched=True)]
