"""Runs: the archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from hotset.operations import run as operations
from hotset.reports.archive import Archive

from ..web import action, caller, page, problem, render, see

if TYPE_CHECKING:
    from hotset.reports.analysis.comparison.trend import Trend

_TREND_RUNS = 100
_LISTED = 200
REPORT_HEADERS = {
    # The page names its own two scripts by their hashes; here it is kept off the console besides.
    "Content-Security-Policy": "sandbox allow-scripts allow-popups; default-src 'none';"
    " style-src 'unsafe-inline'; script-src 'unsafe-inline' 'unsafe-eval'; img-src data:;"
    " frame-ancestors 'none'",
}


async def _list(request: Request) -> Response:
    every = request.query_params.get("all") == "true"
    archive = Archive.default()
    rows = await run_in_threadpool(archive.listing, None if every else _LISTED)
    total = await run_in_threadpool(archive.count)
    labels = list(dict.fromkeys(row.label for row in reversed(rows) if row.label))
    return render(request, "runs.html", rows=rows, total=total, labels=labels)


async def _report(request: Request) -> Response:
    text = await run_in_threadpool(_render, request.path_params["run"])
    return HTMLResponse(text, headers=REPORT_HEADERS)


def _render(run: str) -> str:
    from hotset.reports.render import html

    return html.render(Archive.default().load(run))


async def _compare(request: Request) -> Response:
    """The runs that were ticked, the oldest first: the reference. Labels stay in their
    order: which was before is not in a name."""
    from hotset.experiment import history
    from hotset.reports.analysis.comparison import compare

    given = list(dict.fromkeys(request.query_params.getlist("run")))
    chosen = given if any(name[:1].isalpha() for name in given) else sorted(given)
    if len(chosen) < 2:
        return problem(request, 422, "Take two runs or more", "Tick them in the list of runs.")
    archive, forced = Archive.default(), request.query_params.get("force") == "true"
    loaded = [await run_in_threadpool(history.load, archive, run, forced) for run in chosen]
    first, *others = documents = [document for document, _ in loaded]
    if of_disks := [
        document.run for document in documents if document.disks and not document.measurement
    ]:
        message = f"Run {of_disks[0]} is of modelled disks and has no arms."
        return problem(request, 422, message, "Take runs of a database.")
    differing = {other.run: compare.differences(first, other) for other in others}
    refused = any(compare.refusing(first, other) for other in others) and not forced
    lines = [] if refused else await run_in_threadpool(compare.lines, documents)
    return render(
        request,
        "compare.html",
        runs=chosen,
        labels=[str(labelled) for _, labelled in loaded if labelled],
        differing=differing,
        refused=refused,
        lines=lines,
    )


async def _trend(request: Request) -> Response:
    """One value over the runs of a set-up, drawn from zero."""
    from hotset.experiment import history

    metric = request.query_params.get("metric")
    archive = Archive.default()
    run = await run_in_threadpool(archive.load, request.path_params["run"])
    trend, with_it = await run_in_threadpool(history.trend, archive, run, metric, _TREND_RUNS)
    points = _points(trend)
    return render(
        request,
        "trend.html",
        run=run.run,
        metric=trend.metric,
        metrics=history.metrics(run),
        trend=trend,
        changes=list(zip(trend.changes, with_it, strict=True)),
        points=points,
        level=" ".join(f"{point['x']},{point['level_y']}" for point in points),
    )


def _points(trend: Trend) -> list[dict[str, Any]]:
    """The runs with their places in the drawing, 1000 by 240."""
    highest = max(sample.value for sample in trend.samples)
    across = 960 / max(1, len(trend.samples) - 1)

    def down(value: float) -> str:
        return f"{230 - 215 * value / highest:.1f}"

    return [
        {
            "run": sample.run,
            "started_at": sample.started_at,
            "value": sample.value,
            "level": level,
            "x": f"{20 + across * place:.1f}",
            "y": down(sample.value),
            "level_y": down(level),
        }
        for place, (sample, level) in enumerate(zip(trend.samples, trend.levels, strict=True))
    ]


async def _confirm(request: Request) -> Response:
    name = Archive.default().resolve(request.path_params["run"])
    return render(request, "delete_run.html", run=name)


async def _delete(request: Request, form: FormData) -> Response:  # noqa: ARG001 - every action's
    run = request.path_params["run"]
    values = {"run": run, "yes": True}
    await run_in_threadpool(operations.answer, "runs rm", values, caller=caller(request))
    return see(request, "/runs")


ROUTES = [
    page("/runs", _list),
    page("/runs/compare", _compare),
    page("/runs/{run}/report", _report),
    page("/runs/{run}/trend", _trend),
    page("/runs/{run}/delete", _confirm),
    action("/runs/{run}/delete", _delete),
]
