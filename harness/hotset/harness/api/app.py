"""The API as a Starlette application, to be mounted at ``/api/v1``.

A verb's path is its words. Those that answer at once take GET (values in the URL, without those
that name a database) and POST (values as JSON); the others take POST and answer 202 with a job.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.endpoints import HTTPEndpoint
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from hotset.harness.api import asked, openapi, problems
from hotset.harness.api.access import RequireToken
from hotset.harness.service import jobs, now, verbs
from hotset.harness.service.jobs import Job
from hotset.harness.service.now import VerbFailed, run_now, text_of
from hotset.harness.service.verbs import RefusedError, Verb, Words

METRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_REPORTS = {"md": "text/markdown; charset=utf-8", "json": "application/json"}
Endpoint = Callable[[Request], Awaitable[Response]]


def create() -> Starlette:
    """The application. Its description needs no token; everything else does."""
    inner = [*_job_routes(), *_run_routes(), *_verb_routes()]
    handlers: dict[Any, Any] = dict.fromkeys(problems.FORESEEN, problems.handle)
    return Starlette(
        routes=[
            Route("/openapi.json", _describe, methods=["GET"]),
            Mount("/", routes=inner, middleware=[Middleware(RequireToken)]),
        ],
        exception_handlers={**handlers, Exception: problems.unforeseen},
    )


def metrics_route(path: str = "/metrics") -> Route:
    """The tiers' counters as OpenMetrics text, for a scraper that holds a token."""
    return Route(path, _metrics, methods=["GET"], middleware=[Middleware(RequireToken)])


async def _describe(request: Request) -> Response:
    return JSONResponse(openapi.describe(request.scope.get("root_path", "")))


# Verbs


def _verb_routes() -> list[Route]:
    routes = []
    for words, verb in openapi.offered():
        path = "/" + "/".join(words)
        if verb.kind == "job":
            routes.append(Route(path, _starter(words), methods=["POST"]))
            continue
        routes.append(Route(path, _answerer(words), methods=openapi.methods(verb)))
    return routes


def _starter(words: Words) -> Endpoint:
    async def start(request: Request) -> Response:
        job = await run_in_threadpool(jobs.start, words, await asked.body(request))
        return JSONResponse(job.as_dict(), 202, {"Location": _place(request, job)})

    return start


def _answerer(words: Words) -> Endpoint:
    async def answer(request: Request) -> Response:
        if request.method == "POST":
            values = await asked.body(request)
        else:
            values = asked.query(request, verbs.find(words))
        return JSONResponse(await run_now(words, values))

    return answer


# Jobs


def _job_routes() -> list[Route]:
    return [
        Route("/jobs", _list_jobs, methods=["GET"]),
        Route("/jobs/{id}", _OneJob),
        Route("/jobs/{id}/events", _follow_job, methods=["GET"]),
        Route("/jobs/{id}/cancel", _cancel_job, methods=["POST"]),
    ]


async def _list_jobs(request: Request) -> Response:
    asked.only(request.query_params)
    found = await run_in_threadpool(jobs.every)
    return JSONResponse({"schema_version": jobs.SCHEMA_VERSION,
                         "jobs": [job.as_dict() for job in found]})  # fmt: skip


class _OneJob(HTTPEndpoint):
    async def get(self, request: Request) -> Response:
        asked.only(request.query_params)
        job = await run_in_threadpool(jobs.find, request.path_params["id"])
        return JSONResponse({**job.as_dict(), "cause": jobs.cause(job), "result": jobs.result(job)})

    async def delete(self, request: Request) -> Response:
        asked.only(request.query_params)
        job = await run_in_threadpool(jobs.find, request.path_params["id"])
        if job.id != request.path_params["id"]:
            raise RefusedError(f"id: to forget a job, write its whole id: {job.id}", "id")
        await run_in_threadpool(jobs.remove, job.id)
        return Response(status_code=204)


async def _cancel_job(request: Request) -> Response:
    asked.only(await asked.body(request))
    job = await run_in_threadpool(jobs.cancel, request.path_params["id"])
    return JSONResponse(job.as_dict(), 202, {"Location": _place(request, job)})


async def _follow_job(request: Request) -> Response:
    """Server-sent events; a browser that lost the line asks again with the last one's id."""
    asked.only(request.query_params)
    last = request.headers.get("last-event-id", "") or "0"
    if not (last.isascii() and last.isdecimal() and len(last) < 19):
        raise RefusedError(f"Last-Event-ID {last!r}: send the id of an event, a whole number",
                           "Last-Event-ID")  # fmt: skip
    job = await run_in_threadpool(jobs.find, request.path_params["id"])
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    said = _stream(job.id, int(last)) if request.method == "GET" else ()
    return StreamingResponse(said, media_type="text/event-stream", headers=headers)


async def _stream(id_: str, after: int) -> AsyncIterator[str]:
    yield "retry: 2000\n\n"
    async for event in jobs.follow(id_, after):
        data = json.dumps(event.as_dict(), ensure_ascii=False)
        yield f"id: {event.id}\nevent: {event.kind}\ndata: {data}\n\n"


def _place(request: Request, job: Job) -> str:
    return f"{request.scope.get('root_path', '')}/jobs/{job.id}"


# Runs


def _run_routes() -> list[Route]:
    return [
        Route("/runs", _list_runs, methods=["GET"]),
        Route("/runs/compare", _Comparison),
        Route("/runs/{run}", _OneRun),
        Route("/runs/{run}/report", _report_run, methods=["GET"]),
    ]


async def _list_runs(request: Request) -> Response:
    asked.only(request.query_params)
    return JSONResponse(await run_now(("runs", "list"), {}))


class _Comparison(HTTPEndpoint):
    """All methods end here: no run is named so."""

    async def get(self, request: Request) -> Response:
        asked.only(request.query_params, "run", "force")
        force = request.query_params.get("force", "false")
        if force not in ("true", "false"):
            raise RefusedError(f"force: {force!r} is refused: write true or false", "force")
        runs = request.query_params.getlist("run")
        if len(runs) < 2:
            raise RefusedError(
                f"run: {len(runs)} given; name two runs or more, ?run=A&run=B", "run"
            )
        values = {"runs": runs, "force": force == "true"}
        return JSONResponse(await run_now(("runs", "compare"), values))


class _OneRun(HTTPEndpoint):
    async def get(self, request: Request) -> Response:
        asked.only(request.query_params)
        return JSONResponse(await run_now(("runs", "show"), {"run": request.path_params["run"]}))

    async def delete(self, request: Request) -> Response:
        """Only by its whole name: a beginning, or ``last``, is too easily another one's."""
        from hotset.harness.archive import Archive, NoSuchRunError

        asked.only(request.query_params)
        run = request.path_params["run"]
        try:
            known = await run_in_threadpool(Archive.default().resolve, run)
        except NoSuchRunError:
            known = None
        if known != run:
            raise VerbFailed(2, f"run {run!r}: there is none of that name; to delete one, write its"
                             " whole name", "run", "NoSuchRunError")  # fmt: skip
        await text_of(verbs.find(("runs", "rm")).call({"run": run, "yes": True}))
        return Response(status_code=204)


async def _report_run(request: Request) -> Response:
    asked.only(request.query_params, "format")
    format_ = request.query_params.get("format", "html")
    values = {"run": request.path_params["run"], "format": format_}
    said = await text_of(verbs.find(("report", "run")).call(values))
    if format_ == "html":
        return FileResponse(Path(said.strip()), media_type="text/html; charset=utf-8")
    return Response(said, media_type=_REPORTS[format_])


async def _metrics(request: Request) -> Response:
    verb: Verb = verbs.find(("report", "metrics"))
    try:
        text = await now.text_of(verb.call(asked.query(request, verb)))
    except problems.FORESEEN as error:
        return problems.of(error)
    return Response(text, media_type=METRICS_TYPE)
