"""Warm-up: planned, run, scheduled; what is pinned, excluded and shared; earlier jobs."""

from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hotset.operations.jobs import store as jobs
from hotset.warmup import plan_store as kept

from .. import backend, lab_database
from ..forms import answer, start, values_of
from ..web import action, console_of, page, render

_PREFERENCES = ("pin", "exclude", "unpin")


async def _warmup(request: Request) -> Response:
    return render(request, "warmup.html")


async def _form(request: Request) -> Response:
    names = await backend.disk_names(console_of(request).settings.machine)
    lab = await lab_database.find_lab(request)
    return render(request, "warmup_form.html", disks=names, lab=lab)


async def _jobs(request: Request) -> Response:
    """The running and the last ones, and the plans that are kept until they are done."""
    machine = console_of(request).settings.machine
    every = [job for job in await run_in_threadpool(jobs.every) if job.words[0] == "warmup"]
    plans = [job for job in await run_in_threadpool(kept.every) if job.machine == machine]
    return render(request, "warmup_jobs.html", jobs=every[:10], plans=plans[:-11:-1])


async def _plan(request: Request, form: FormData) -> Response:
    operation = "warmup plan"
    planned, refused = await answer(request, operation, _values(request, form, operation))
    return refused or render(request, "warmup_plan.html", plan=planned)


async def _run(request: Request, form: FormData) -> Response:
    operation = "warmup run"
    values = _values(request, form, operation)
    if "resume" in values:
        values = {"resume": values["resume"]}
    return await start(request, operation, values)


async def _preferences(request: Request) -> Response:
    values = {"machine": _machine(request)}
    if disk := request.query_params.get("disk"):
        values["disk"] = disk
    result, refused = await answer(request, "warmup list", values)
    return refused or render(request, "warmup_preferences.html", rows=result["preferences"])


async def _prefer(request: Request, form: FormData) -> Response:
    verb = str(form.get("verb"))
    if verb not in _PREFERENCES:
        raise HTTPException(404)
    operation = f"warmup {verb}"
    return await start(request, operation, _values(request, form, operation))


async def _share(request: Request, form: FormData) -> Response:
    operation = "warmup share"
    return await start(request, operation, _values(request, form, operation))


async def _schedules(request: Request) -> Response:
    result, refused = await answer(request, "warmup schedule list", {"machine": _machine(request)})
    return refused or render(request, "warmup_schedules.html", rows=result["schedules"])


async def _schedule(request: Request, form: FormData) -> Response:
    operation = "warmup schedule add"
    return await start(request, operation, _values(request, form, operation))


async def _unschedule(request: Request, form: FormData) -> Response:
    operation = "warmup schedule remove"
    return await start(request, operation, _values(request, form, operation))


def _values(request: Request, form: FormData, operation: str) -> dict[str, object]:
    return values_of(form, operation, machine=_machine(request))


def _machine(request: Request) -> str:
    return console_of(request).settings.machine


ROUTES = [
    page("/warmup", _warmup),
    page("/warmup/form", _form),
    page("/warmup/jobs", _jobs, watched=True),
    page("/warmup/preferences", _preferences),
    page("/warmup/schedules", _schedules),
    action("/warmup/plan", _plan),
    action("/warmup/run", _run),
    action("/warmup/prefer", _prefer),
    action("/warmup/share", _share),
    action("/warmup/schedule", _schedule),
    action("/warmup/unschedule", _unschedule),
]
