"""Jobs over HTTP: listed, followed, interrupted, forgotten."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path
from fastapi.concurrency import run_in_threadpool
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from hotset.core.errors import ForbiddenError, NotFoundError, RequestError
from hotset.core.fields import TEXT_MAX, TEXT_PATTERN
from hotset.core.rights import Right
from hotset.operations import audit, run
from hotset.operations.audit import Caller
from hotset.operations.jobs import store
from hotset.operations.jobs.store import Job
from hotset.operations.table import find

from . import values
from .access import caller
from .describe import OF_BODIES
from .schemas import JobDetail, JobList, JobRecord

router = APIRouter(tags=["jobs"])
Id = Annotated[
    str,
    Path(
        description="The job's id; `last` is the newest.",
        min_length=1,
        max_length=TEXT_MAX,
        pattern=TEXT_PATTERN,
    ),
]
_RETRY_MS = 2000
_LIMIT = {
    "parameters": [
        {
            "name": "limit",
            "in": "query",
            "required": False,
            "description": "How many, the newest.",
            "schema": {"type": "integer", "minimum": 1, "maximum": store.KEPT},
        }
    ]
}
_LAST_EVENT = {
    "parameters": [
        {
            "name": "Last-Event-ID",
            "in": "header",
            "required": False,
            "description": "The last event that is known already.",
            "schema": {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
        }
    ]
}


@router.get("/jobs", operation_id="getJobs", response_model=JobList, openapi_extra=_LIMIT)
async def list_jobs(request: Request) -> Response:
    """The jobs that are kept, the newest first."""
    values.only(request.query_params, "limit")
    text = request.query_params.get("limit", str(store.KEPT))
    if not (text.isascii() and text.isdecimal() and 1 <= int(text[:9]) <= store.KEPT):
        raise RequestError(f"{text!r}: write a number from 1 to {store.KEPT}", field="limit")
    jobs = await run_in_threadpool(store.every, int(text))
    listed = [job.as_dict() for job in jobs]
    return JSONResponse({"schema_version": store.SCHEMA_VERSION, "jobs": listed})


@router.get("/jobs/{id}", operation_id="getJob", response_model=JobDetail)
async def show_job(request: Request, id: Id) -> Response:
    """A job, why it failed, and its result."""
    values.only(request.query_params)
    return JSONResponse(await run_in_threadpool(_detail, id))


def _detail(id_: str) -> dict[str, Any]:
    job = store.find(id_)
    return {
        **job.as_dict(),
        "problem": store.problem(job),
        "cause": store.cause(job),
        "result": store.result(job),
    }


@router.delete("/jobs/{id}", operation_id="deleteJob", status_code=204)
async def remove_job(request: Request, id: Id) -> Response:
    """Forget a job that has ended."""
    values.only(request.query_params)
    await run_in_threadpool(_remove, caller(request), id)
    return Response(status_code=204)


def _remove(who: Caller, id_: str) -> None:
    with _permitted(who, "jobs rm", id_) as job:
        if job.id != id_:
            raise RequestError(f"to forget a job, write its whole id: {job.id}", field="id")
        store.remove(job.id)


@router.post(
    "/jobs/{id}/cancel",
    operation_id="cancelJob",
    status_code=202,
    response_model=JobRecord,
    responses=OF_BODIES,
)
async def cancel_job(request: Request, id: Id) -> Response:
    """Interrupt a job; it takes down what it made, which may take a while."""
    values.only(await values.of_body(request))
    return describe_started(request, await run_in_threadpool(_cancel, caller(request), id))


def _cancel(who: Caller, id_: str) -> Job:
    with _permitted(who, "jobs cancel", id_):
        return store.cancel(id_)


@contextmanager
def _permitted(who: Caller, what: str, id_: str) -> Iterator[Job]:
    """Keeps what is done to a job, which takes the right to start it; has the job.

    :raises ForbiddenError: who asks may not do that.
    """
    try:
        run.require(who.right, Right.OPERATE, what)
        job = store.find(id_)
        run.require(who.right, _right_of(job), f"{what} {id_}")
    except ForbiddenError as error:
        audit.begin(who, what, {"job": id_}, "refused", str(error))
        raise
    with audit.keeping(who, what, {"job": id_}):
        yield job


def _right_of(job: Job) -> Right:
    """Return the right that starting it took; the highest for unknown operations."""
    try:
        return find(job.verb).right_for(job.values)
    except NotFoundError:
        return Right.ADMIN


@router.get(
    "/jobs/{id}/events",
    operation_id="followJob",
    response_class=EventSourceResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
    openapi_extra=_LAST_EVENT,
)
async def follow_job(
    request: Request,
    id: Id,
    last_event_id: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Response:
    """Stream a job's events, as server-sent events, until it has ended.

    A client that lost the line asks again with the last event's id.
    """
    values.only(request.query_params)
    last = last_event_id or "0"
    if not (last.isascii() and last.isdecimal() and len(last) < 19):
        raise RequestError(
            f"{last!r}: send the id of an event, a whole number", field="Last-Event-ID"
        )
    job = await run_in_threadpool(store.find, id)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return EventSourceResponse(_events(job.id, int(last)), headers=headers)


async def _events(id_: str, after: int) -> AsyncIterator[ServerSentEvent]:
    yield ServerSentEvent(retry=_RETRY_MS, sep="\n")
    async for event in store.follow(id_, after):
        data = json.dumps(event.as_dict(), ensure_ascii=False)
        yield ServerSentEvent(data, event=event.kind, id=str(event.id), sep="\n")


def describe_started(request: Request, job: Job) -> JSONResponse:
    """A job that goes on by itself, and where to look at it."""
    place = f"{request.scope.get('root_path', '')}/jobs/{job.id}"
    return JSONResponse(job.as_dict(), 202, {"Location": place})
