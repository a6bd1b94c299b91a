"""Benchmarks: TPC-C, TPC-H and SQL scripts on a database, modelled disks, and experiments."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hotset.core.paths import repository_file
from hotset.operations.jobs import store as jobs

from .. import backend, lab_database
from ..forms import start, values_of
from ..web import action, console_of, page, problem, render

_VERBS = {
    "tpcc": ("run", "build", "check"),
    "tpch": ("run", "build", "check"),
    "sql": ("run",),
    "disk": ("reread", "arrays"),
    "experiment": ("run", "plan"),
}


async def _benchmarks(request: Request) -> Response:
    every = await run_in_threadpool(jobs.every)
    return render(
        request,
        "benchmarks.html",
        experiments=sorted(_experiments()),
        lab=await lab_database.find_lab(request),
        jobs=[job for job in every if job.words[0] in (*_VERBS, "demo", "database")][:20],
    )


async def _first(request: Request) -> Response:
    """Show the first step, where no disk is accelerated yet."""
    names = await backend.disk_names(console_of(request).settings.machine)
    return render(request, "benchmarks_first.html", disks=names)


async def _start(request: Request, form: FormData) -> Response:
    name, verb = request.path_params["benchmark"], str(form.get("verb", "run"))
    if verb not in _VERBS.get(name, ()):
        raise HTTPException(404)
    operation = f"{name} {verb}"
    fixed: dict[str, object] = {}
    if name == "experiment":
        file = _experiments().get(str(form.get("file")))
        if file is None:
            known = ", ".join(_experiments())
            return problem(request, 422, "There is no such experiment", f"There is: {known}.")
        fixed["file"] = file
    return await start(request, operation, values_of(form, operation, **fixed))


def _experiments() -> dict[str, str]:
    """The experiment files that come with hotset, by name."""
    return {file.stem: str(file) for file in repository_file("experiments").glob("*.toml")}


ROUTES = [
    page("/benchmarks", _benchmarks),
    page("/benchmarks/first", _first),
    action("/benchmarks/{benchmark}", _start),
]
