"""Overview: what the caches of this machine do now."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from .. import passwords
from ..sampling.reader import Sample
from ..web import COOKIE, Console, console_of, page, render, template

PATIENCE_S = 15.0
"""A comment is sent after so long without a sample, so that who went away is noticed."""


async def _overview(request: Request) -> Response:
    return render(request, "overview.html")


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
    """A sample as all watchers get it: the part of the page, and a point of the charts."""
    html = template("overview_live.html").render(sample=sample, machine=machine)
    return event("sample", {"html": html, "point": _point(sample)})


def event(name: str, data: object) -> bytes:
    """One server-sent event."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


def _point(sample: Sample) -> dict[str, object]:
    """What the charts show of a sample; None leaves a gap."""
    disks = {
        disk.name: {
            **{name: getattr(disk.line, name, None) for name in ("hit_ratio", "reads", "writes")},
            "read_bytes": disk.read_bytes,
            "written_bytes": disk.written_bytes,
        }
        for disk in sample.disks
    }
    return {"at": round(sample.at, 1), "tpm": sample.tpm, "disks": disks}


ROUTES = [page("/", _overview), page("/overview/live", _live, watched=True)]
