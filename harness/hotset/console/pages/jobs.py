"""A job: watched while it runs, and its result."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from hotset.core import clock
from hotset.core.errors import HotsetError, Remedy
from hotset.monitoring.history import opening, series
from hotset.monitoring.history.series import DiskSeries
from hotset.operations import audit
from hotset.operations.audit import Caller
from hotset.operations.jobs import store as jobs
from hotset.operations.jobs.events import Event
from hotset.operations.jobs.store import Job
from hotset.reports.render.page import Page

from .. import filters, passwords, results
from ..web import COOKIE, Console, action, caller, console_of, page, render, see
from . import history
from .overview import event
from .runs import REPORT_HEADERS

BACK = {"warmup": "/warmup", "tier": "/disks", "lab": "/lab"}
"""Where a job's verb belongs; others: to the benchmarks."""
WITH_PAGE = ("disk reread", "disk arrays")
"""Operations whose result is a page, too."""
WITH_WINDOW = ("tpcc run", "tpch run", "sql run")
"""Operations that measure a database for a while: what its caches did meanwhile is shown beside."""
_SHOWN_MAX = 4000
"""Characters of a result that are shown as they are; a longer one is fetched."""


async def _job(request: Request) -> Response:
    job = await run_in_threadpool(jobs.find, request.path_params["job"])
    result = await run_in_threadpool(jobs.result, job)
    lines = _lines(result)
    page, unread = await run_in_threadpool(_describe_result, job, result)
    text = json.dumps(result, indent=1) if result and not lines else ""
    return render(
        request,
        "job.html",
        job=job,
        said=await run_in_threadpool(_messages_of, job),
        back=BACK.get(job.words[0], "/benchmarks"),
        figures=job.figures,
        lines=lines,
        told=page,
        unread=unread,
        has_window=job.verb in WITH_WINDOW,
        report=_report_of(job, result),
        has_result=bool(text),
        text=text if page is None and len(text) <= _SHOWN_MAX else "",
        values=[(name, _show(value)) for name, value in job.values.items()],
    )


def _describe_result(job: Job, result: Any) -> tuple[Page | None, str]:  # noqa: ANN401
    """Describe its result, or return why that is unreadable."""
    try:
        return results.tell(job.verb, result), ""
    except results.UnreadableError as error:
        return None, str(error)


async def _result(request: Request) -> Response:
    """All of it, as a file."""
    job = await run_in_threadpool(jobs.find, request.path_params["job"])
    result = await run_in_threadpool(jobs.result, job)
    if result is None:
        raise HTTPException(404)
    text = await run_in_threadpool(json.dumps, result, indent=1)
    name = f'attachment; filename="{job.id}.json"'
    return Response(text, media_type="application/json", headers={"Content-Disposition": name})


async def _hits(request: Request) -> Response:
    """The hit ratios that were recorded while it ran."""
    job = await run_in_threadpool(jobs.find, request.path_params["job"])
    machine = console_of(request).settings.machine
    text = await run_in_threadpool(_hits_of, job, machine)
    return Response(text, media_type="application/json")


def _hits_of(job: Job, machine: str) -> str:
    """Format hit ratios for the page's script: seconds since the job began, a line per disk."""
    begin = job.started.timestamp()
    end = time.time() if job.ended is None else job.ended.timestamp()
    try:
        recorded = opening.look(
            opening.path_of(machine),
            lambda store: series.load_stretch(store, begin, end, clock.moment()),
        )
    except HotsetError as error:
        return _describe_rest(f"the history cannot be read: {error}")
    drawn = {history.label(disk): _ratios(disk) for disk in (recorded.disks if recorded else ())}
    disks = [
        {"label": label, "values": values}
        for label, values in drawn.items()
        if any(value is not None for value in values)
    ]
    if recorded is None or not disks:
        return _describe_rest(f"this console recorded no request to a disk of {machine} meanwhile")
    step = recorded.choice.step_s
    note = (
        f"The disks of {machine}, as this console recorded them every {step} s. Whether the"
        " database lies on them is not looked at."
    )
    at = [start + step / 2 - begin for start in recorded.starts]
    return json.dumps({"at": at, "disks": disks, "said": note})


def _ratios(disk: DiskSeries) -> list[float | None]:
    return [None if span is None else span.amounts.ratio for span in disk.spans]


def _describe_rest(why: str) -> str:
    return json.dumps({"at": [], "disks": [], "said": f"No hit ratio is shown: {why}."})


async def _report(request: Request) -> Response:
    """The page of a scenario on modelled disks; a run's is at the run."""
    job = await run_in_threadpool(jobs.find, request.path_params["job"])
    result = await run_in_threadpool(jobs.result, job)
    if not _has_page(job, result):
        raise HTTPException(404)
    text = await run_in_threadpool(_render, job, result)
    return HTMLResponse(text, headers=REPORT_HEADERS)


def _render(job: Job, result: Any) -> str:  # noqa: ANN401 - what a verb prints
    from hotset.reports.render import disk_pages, html

    return html.render_page(disk_pages.PAGES[job.verb](result))


def _has_page(job: Job, result: Any) -> bool:  # noqa: ANN401 - what a verb prints
    return job.verb in WITH_PAGE and isinstance(result, dict) and "schema_version" in result


async def _live(request: Request) -> Response:
    job = await run_in_threadpool(jobs.find, request.path_params["job"])
    stream = _events(console_of(request), request.cookies[COOKIE], job.id)
    return StreamingResponse(stream, media_type="text/event-stream")


async def _events(console: Console, cookie: str, job: str) -> AsyncIterator[bytes]:
    """From the beginning, so that a page that was loaded again shows all."""
    async for update in jobs.follow(job):
        if not console.sessions.alive(cookie, passwords.read_hash()):
            yield event("ended", {})
            return
        yield event("said", _in_words_of_pages(update).as_dict())


def _in_words_of_pages(event: Event) -> Event:
    """Word the remedies of an error for a page; the event has them as requests of the API."""
    if event.kind != "error" or event.message is None:
        return event
    remedies = [Remedy(**remedy) for remedy in event.remedies or ()]
    return replace(event, text=filters.tell_error(event.message, event.field, remedies))


def _messages_of(job: Job) -> list[str]:
    """The last lines; why it failed as a page says it."""
    why, problem = filters.failure(job), jobs.problem(job)
    if not why or problem is None:
        return list(job.messages)
    return [why if problem["message"] in line else line for line in job.messages]


async def _cancel(request: Request, form: FormData) -> Response:  # noqa: ARG001 - every action's
    id_ = request.path_params["job"]
    await run_in_threadpool(_keep, caller(request), "jobs cancel", jobs.cancel, id_)
    return see(request, f"/jobs/{id_}")


async def _remove(request: Request, form: FormData) -> Response:  # noqa: ARG001 - every action's
    job = await run_in_threadpool(jobs.find, request.path_params["job"])
    await run_in_threadpool(_keep, caller(request), "jobs rm", jobs.remove, job.id)
    return see(request, BACK.get(job.words[0], "/benchmarks"))


def _keep(who: Caller, what: str, do: Callable[[str], object], id_: str) -> None:
    """Do it to a job, and have that in the audit log."""
    with audit.keeping(who, what, {"job": id_}):
        do(id_)


def _lines(result: Any) -> list[str]:  # noqa: ANN401 - what a verb prints
    lines = result.get("lines", []) if isinstance(result, dict) else []
    # Lines of a disk scenario are records: its page has them as a table.
    return [line for line in lines if isinstance(line, str)]


def _report_of(job: Job, result: Any) -> str:  # noqa: ANN401 - what a verb prints
    """Where the report is of an experiment's run, or of a scenario; empty where there is none."""
    if _has_page(job, result):
        return f"/jobs/{job.id}/report"
    if not isinstance(result, dict) or not result.get("run"):
        return ""
    measurement = result.get("measurement") or {}
    return f"/runs/{result['run']}/report" if measurement.get("kept", True) else ""


def _show(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


ROUTES = [
    page("/jobs/{job}", _job),
    page("/jobs/{job}/report", _report),
    page("/jobs/{job}/result.json", _result),
    page("/jobs/{job}/hits", _hits, watched=True),
    page("/jobs/{job}/live", _live, watched=True),
    action("/jobs/{job}/cancel", _cancel),
    action("/jobs/{job}/remove", _remove),
]
