"""Hit ratios: the report of a disk, by table, file or database."""

from __future__ import annotations

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from .. import backend, lab_database
from ..forms import answer, values_of
from ..web import action, console_of, page, render


async def _hits(request: Request) -> Response:
    return render(request, "hits.html")


async def _form(request: Request) -> Response:
    names = await backend.disk_names(console_of(request).settings.machine)
    lab = await lab_database.find_lab(request)
    return render(request, "hits_form.html", disks=names, lab=lab)


async def _report(request: Request, form: FormData) -> Response:
    operation = "report hit-ratio"
    values = values_of(form, operation, machine=console_of(request).settings.machine)
    report, refused = await answer(request, operation, values)
    return refused or render(request, "hits_report.html", report=report)


ROUTES = [page("/hits", _hits), page("/hits/form", _form), action("/hits/report", _report)]
