"""Runs: the archive."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from hotset.harness.archive import Archive
from hotset.harness.console.web import action, page, problem, render, see

_REPORT_HEADERS = {
    # The page names its own two scripts by their hashes; here it is kept off the console besides.
    "Content-Security-Policy": "sandbox allow-scripts allow-popups; default-src 'none';"
    " style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src data:;"
    " frame-ancestors 'none'",
}


async def _list(request: Request) -> Response:
    rows = await run_in_threadpool(Archive.default().listing)
    return render(request, "runs.html", rows=rows)


async def _report(request: Request) -> Response:
    text = await run_in_threadpool(_rendered, request.path_params["run"])
    return HTMLResponse(text, headers=_REPORT_HEADERS)


def _rendered(run: str) -> str:
    from hotset.reports import html

    return html.render(Archive.default().load(run))


async def _compare(request: Request) -> Response:
    """The runs that were ticked, the oldest first: the others stand beside it."""
    from hotset.reports import compare

    chosen = sorted(set(request.query_params.getlist("run")))
    if len(chosen) < 2:
        return problem(request, 422, "Take two runs or more", "Tick them in the list of runs.")
    archive = Archive.default()
    first, *others = documents = [
        await run_in_threadpool(archive.load, run) for run in chosen
    ]  # fmt: skip
    differing = {other.run: compare.differences(first, other) for other in others}
    forced = request.query_params.get("force") == "true"
    refused = any(differing.values()) and not forced
    lines = [] if refused else await run_in_threadpool(compare.lines, documents)
    return render(request, "compare.html", runs=chosen, differing=differing, refused=refused,
                  lines=lines)  # fmt: skip


async def _confirm(request: Request) -> Response:
    name = Archive.default().resolve(request.path_params["run"])
    return render(request, "delete_run.html", run=name)


async def _delete(request: Request, form: FormData) -> Response:  # noqa: ARG001 - every action's
    await run_in_threadpool(Archive.default().remove, request.path_params["run"])
    return see(request, "/runs")


ROUTES = [
    page("/runs", _list),
    page("/runs/compare", _compare),
    page("/runs/{run}/report", _report),
    page("/runs/{run}/delete", _confirm),
    action("/runs/{run}/delete", _delete),
]
