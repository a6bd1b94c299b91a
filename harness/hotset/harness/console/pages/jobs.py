"""A job: watched while it runs, and what it came to."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ...jobs import store as jobs
from .. import passwords
from ..web import COOKIE, Console, action, console_of, page, render, see
from .overview import event

BACK = {"warmup": "/warmup", "tier": "/disks", "lab": "/lab"}
"""Where a job's verb belongs; others: to the benchmarks."""
_RESULT_MAX = 200_000


async def _job(request: Request) -> Response:
    job = await run_in_threadpool(jobs.find, request.path_params["job"])
    result = await run_in_threadpool(jobs.result, job)
    return render(
        request,
        "job.html",
        job=job,
        back=BACK.get(job.words[0], "/benchmarks"),
        figures=job.figures,
        lines=_lines(result),
        run=_run(result),
        text=json.dumps(result, indent=1)[:_RESULT_MAX] if result else "",
        values=[(name, _shown(value)) for name, value in job.values.items()],
    )


async def _live(request: Request) -> Response:
    job = await run_in_threadpool(jobs.find, request.path_params["job"])
    stream = _events(console_of(request), request.cookies[COOKIE], job.id)
    return StreamingResponse(stream, media_type="text/event-stream")


async def _events(console: Console, cookie: str, job: str) -> AsyncIterator[bytes]:
    """From the beginning, so that a page that was loaded anew shows all."""
    async for one in jobs.follow(job):
        if not console.sessions.alive(cookie, passwords.stored()):
            yield event("ended", {})
            return
        yield event("said", one.as_dict())


async def _cancel(request: Request, form: FormData) -> Response:  # noqa: ARG001 - every action's
    job = await run_in_threadpool(jobs.cancel, request.path_params["job"])
    return see(request, f"/jobs/{job.id}")


async def _remove(request: Request, form: FormData) -> Response:  # noqa: ARG001 - every action's
    job = await run_in_threadpool(jobs.find, request.path_params["job"])
    await run_in_threadpool(jobs.remove, job.id)
    return see(request, BACK.get(job.words[0], "/benchmarks"))


def _lines(result: Any) -> list[str]:  # noqa: ANN401 - what a verb prints
    lines = result.get("lines", []) if isinstance(result, dict) else []
    return [str(line) for line in lines]


def _run(result: Any) -> str:  # noqa: ANN401 - what a verb prints
    """The run of an experiment, which has a report."""
    return str(result["run"]) if isinstance(result, dict) and "run" in result else ""


def _shown(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


ROUTES = [
    page("/jobs/{job}", _job),
    page("/jobs/{job}/live", _live, watched=True),
    action("/jobs/{job}/cancel", _cancel),
    action("/jobs/{job}/remove", _remove),
]
