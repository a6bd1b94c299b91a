"""The API, to be mounted at ``/api/v1``: the table of operations, jobs and runs over HTTP.

An operation's path is its words. Queries take GET (values in the URL, without those that name a
database) and POST (values as JSON); jobs take POST and answer 202 with the job.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import FastAPI
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hotset import __version__
from hotset.core.errors import HotsetError
from hotset.core.operation import Kind, Operation
from hotset.core.rights import Right
from hotset.operations import run, table

from . import describe, holder, jobs, problems, runs, values
from .access import RequireToken, caller

METRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
METRICS = "report metrics"
# Operations that have a place of their own: /runs/…, /metrics.
PLACED = frozenset(
    (METRICS, "report run", "runs compare", "runs list", "runs rm", "runs show", "runs trend")
)
Endpoint = Callable[[Request], Coroutine[Any, Any, Response]]


class Api(FastAPI):
    """Its description has the results of its jobs, too."""

    def openapi(self) -> dict[str, Any]:
        if not self.openapi_schema:
            self.openapi_schema = describe.with_results(super().openapi())
        return self.openapi_schema


def create() -> FastAPI:
    """The application. Its description needs no token; everything else does."""
    app = Api(
        title="hotset",
        version=__version__,
        description="The operations of hotset, its jobs and its archive of runs. Operations that"
        " take their time, or change something, are jobs.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        middleware=[Middleware(RequireToken, public=frozenset(("/openapi.json",)))],
        exception_handlers={
            HTTPException: problems.handle,
            RequestValidationError: problems.handle,
            HotsetError: problems.handle,
            Exception: problems.answer_unforeseen,
        },
        responses=describe.PROBLEMS,
        dependencies=[describe.TOKEN],
    )
    app.include_router(holder.router)
    app.include_router(jobs.router)
    app.include_router(runs.router)
    for operation in table.every():
        if operation.name not in PLACED:
            app.router.routes += _routes(operation)
    return app


def metrics_route(path: str = "/metrics") -> Route:
    """The tiers' counters as OpenMetrics text, for a scraper that holds a token."""
    return Route(
        path, _metrics, methods=["GET"], middleware=[Middleware(RequireToken, needs=Right.METRICS)]
    )


def _routes(operation: Operation) -> list[APIRoute]:
    """One route a method: each has its own description."""
    endpoint = _starter(operation) if operation.kind is Kind.JOB else _answerer(operation)
    return [
        APIRoute(
            "/" + operation.name.replace(" ", "/"),
            endpoint,
            methods=[method],
            **describe.operation(operation, method),
        )
        for method in describe.methods(operation)
    ]


def _starter(operation: Operation) -> Endpoint:
    async def start(request: Request) -> Response:
        given = await values.of_body(request)
        job = await run_in_threadpool(run.start, operation.name, given, caller=caller(request))
        return jobs.describe_started(request, job)

    return start


def _answerer(operation: Operation) -> Endpoint:
    async def respond(request: Request) -> Response:
        if request.method == "POST":
            given = await values.of_body(request)
        else:
            given = values.of_query(request, operation)
        return JSONResponse(await answer(request, operation.name, given))

    return respond


async def answer(request: Request, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """A query's result as JSON has it."""
    who = caller(request)
    return await run_in_threadpool(lambda: run.answer(name, given, caller=who).document())


async def _metrics(request: Request) -> Response:
    try:
        given = values.of_query(request, table.find(METRICS))
        document = await answer(request, METRICS, given)
    except problems.FORESEEN as error:
        return problems.build_problem(error)
    return Response("\n".join(document["lines"]) + "\n", media_type=METRICS_TYPE)
