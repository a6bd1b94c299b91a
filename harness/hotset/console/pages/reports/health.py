"""Health: what is to be done about the machine's disks, each with its command, and what is not
known of them. As `hotset tier health` has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from hotset.core import errors
from hotset.health.findings import PARTS

from ... import lab_database
from ...forms import answer, values_of
from ...web import action, console_of, page, render

_OPERATION = "tier health"


@dataclass(frozen=True, slots=True)
class Shown:
    """A finding as the page shows it; ``helps``: what each command achieves, and the command."""

    disk: str
    subject: str
    state: str
    text: str
    helps: tuple[tuple[str, str], ...]


async def _health(request: Request) -> Response:
    return render(request, "health.html")


async def _form(request: Request) -> Response:
    return render(request, "health_form.html", lab=await lab_database.find_lab(request))


async def _show(request: Request, form: FormData) -> Response:
    machine = console_of(request).settings.machine
    values = values_of(form, _OPERATION, machine=machine)
    report, refused = await answer(request, _OPERATION, values)
    return refused or render(request, "health_found.html", found=report, parts=list(_parts(report)))


def _parts(report: Mapping[str, Any]) -> Iterator[tuple[str, list[Shown]]]:
    """The parts of the page that have something to say, the gravest first."""
    for title, states in (*PARTS, ("in order", ("ok",))):
        mine = [
            _show_row(finding)
            for state in states
            for finding in report["findings"]
            if finding["state"] == state
        ]
        if mine:
            yield title.capitalize(), mine


def _show_row(finding: Mapping[str, Any]) -> Shown:
    helps = tuple(
        (remedy["purpose"], errors.command_line(remedy["operation"], remedy["parameters"]))
        for remedy in finding["remedies"]
    )
    disk, subject, state, text = (finding[name] for name in ("disk", "subject", "state", "text"))
    return Shown(disk, subject, state, text, helps)


ROUTES = [
    page("/health", _health),
    page("/health/form", _form),
    action("/health/show", _show),
]
