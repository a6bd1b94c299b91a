"""The archive of runs over HTTP."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from hotset.core.errors import NotFoundError, RequestError
from hotset.core.fields import TEXT_MAX, TEXT_PATTERN
from hotset.operations import run as operations
from hotset.operations import table
from hotset.reports.archive import Archive, NoSuchRunError

from . import describe, values
from .access import caller

router = APIRouter(tags=["runs"])
_NAME = {"type": "string", "minLength": 1, "maxLength": TEXT_MAX, "pattern": TEXT_PATTERN}
Run = Annotated[
    str,
    Path(
        description="A run's id, the beginning of one, or `last`.",
        min_length=1,
        max_length=TEXT_MAX,
        pattern=TEXT_PATTERN,
    ),
]
_REPORTS = {"md": "text/markdown; charset=utf-8", "json": "application/json"}
_COMPARED = {
    "parameters": [
        {
            "name": "run",
            "in": "query",
            "required": True,
            "explode": True,
            "description": "Two runs or more; the first is the reference for the others.",
            "schema": {"type": "array", "minItems": 2, "items": _NAME},
        },
        {
            "name": "force",
            "in": "query",
            "required": False,
            "description": "Compare runs with different set-ups, too.",
            "schema": {"type": "boolean"},
        },
    ]
}
_FOLLOWED = {
    "parameters": [
        {
            "name": "metric",
            "in": "query",
            "required": False,
            "description": "As thresholds of an experiment name it, such as factor; else nopm, or"
            " tps of SQL of your own.",
            "schema": {"type": "string", "maxLength": TEXT_MAX, "pattern": TEXT_PATTERN},
        }
    ]
}
_REPORTED = {
    "parameters": [
        {
            "name": "format",
            "in": "query",
            "required": False,
            "description": "How to print it.",
            "schema": {"type": "string", "enum": ["html", "md", "json"]},
        }
    ]
}


@router.get(
    "/runs",
    operation_id="getRuns",
    responses={200: describe.result("runs list")},
    openapi_extra=describe.parameters("runs list"),
)
async def list_runs(request: Request) -> Response:
    """The runs, the newest first."""
    given = values.of_query(request, table.find("runs list"))
    return JSONResponse(await _answer(request, "runs list", given))


@router.get(
    "/runs/compare",
    operation_id="compareRuns",
    responses={200: describe.result("runs compare")},
    openapi_extra=_COMPARED,
)
async def compare_runs(request: Request) -> Response:
    """How many times faster each arm became."""
    values.only(request.query_params, "run", "force")
    force = request.query_params.get("force", "false")
    if force not in ("true", "false"):
        raise RequestError(f"{force!r} is refused: write true or false", field="force")
    names = request.query_params.getlist("run")
    if len(names) < 2:
        raise RequestError(f"{len(names)} given; name two runs or more", field="run")
    given = {"runs": names, "force": force == "true"}
    return JSONResponse(await _answer(request, "runs compare", given))


@router.get("/runs/{run}", operation_id="getRun", responses={200: describe.result("runs show")})
async def show_run(request: Request, run: Run) -> Response:
    """Return a run's measurements."""
    values.only(request.query_params)
    return JSONResponse(await _answer(request, "runs show", {"run": run}))


@router.delete("/runs/{run}", operation_id="deleteRun", status_code=204)
async def remove_run(request: Request, run: Run) -> Response:
    """Delete a run and all that it left.

    Only by its whole name: a beginning, or `last`, is too easily another one's.
    """
    values.only(request.query_params)
    try:
        known = await run_in_threadpool(Archive.default().resolve, run)
    except NoSuchRunError:
        known = None
    if known != run:
        raise NotFoundError(
            f"there is no run {run!r}; to delete one, write its whole name", field="run"
        )
    await _answer(request, "runs rm", {"run": run, "yes": True})
    return Response(status_code=204)


@router.get(
    "/runs/{run}/report",
    operation_id="getReport",
    openapi_extra=_REPORTED,
    response_class=Response,
    responses={
        200: {
            "description": "The report.",
            "content": {
                "text/html": {"schema": {"type": "string"}},
                "text/markdown": {"schema": {"type": "string"}},
                "application/json": {"schema": {"type": "object"}},
            },
        }
    },
)
async def report_run(request: Request, run: Run) -> Response:
    """A run's report, made afresh."""
    values.only(request.query_params, "format")
    form = request.query_params.get("format", "html")
    (text,) = (await _answer(request, "report run", {"run": run, "format": form}))["lines"]
    if form == "html":
        return FileResponse(FilePath(text), media_type="text/html; charset=utf-8")
    return Response(text, media_type=_REPORTS[form])


@router.get(
    "/runs/{run}/trend",
    operation_id="getTrend",
    openapi_extra=_FOLLOWED,
    responses={200: describe.result("runs trend")},
)
async def trend_of(request: Request, run: Run) -> Response:
    """One value over the runs of this run's set-up, and where its level changed."""
    values.only(request.query_params, "metric")
    metric = request.query_params.get("metric")
    return JSONResponse(await _answer(request, "runs trend", {"run": run, "metric": metric}))


async def _answer(request: Request, name: str, given: dict[str, Any]) -> dict[str, Any]:
    who = caller(request)
    return await run_in_threadpool(lambda: operations.answer(name, given, caller=who).document())
