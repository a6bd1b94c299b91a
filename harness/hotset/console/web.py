"""Base of every page: the console's state, its templates, and access control.

A page is hung up by :func:`page` and a form by :func:`action`; both turn away a browser that is not
logged in, and a form also one whose token is not its own. There is no third way to hang one up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from starlette.datastructures import FormData, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hotset.api.access import address_of
from hotset.experiment.site import live
from hotset.monitoring.history.recorder import Recorder
from hotset.operations.audit import Caller

from . import filters, passwords
from .sampling.sampler import Sampler
from .sessions import Attempts, Limits, Sessions

COOKIE = "hotset"
TOKEN_FIELD, TOKEN_HEADER = "csrf", "x-csrf-token"
STATIC = Path(str(files("hotset.console"))) / "static"
NAVIGATION = (
    ("Overview", "/"),
    ("Health", "/health"),
    ("Flash", "/flash"),
    ("Disks", "/disks"),
    ("Warm-up", "/warmup"),
    ("Hit ratios", "/hits"),
    ("Hot data", "/heat"),
    ("Benchmarks", "/benchmarks"),
    ("Runs", "/runs"),
    ("Sizing", "/sizing"),
    ("Audit", "/audit"),
)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_FIELD_MAX, _FIELDS_MAX = 64 * 1024, 100
"""Bytes of a form's field, and how many there may be."""
_PUBLIC_FIELD_MAX, _PUBLIC_FIELDS_MAX = 4096, 8
"""The same limits for a browser that is not logged in."""
Page = Callable[[Request], Awaitable[Response]]
Action = Callable[[Request, FormData], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Settings:
    """How the console was started. ``machine`` is as ``--machine`` names it.

    ``tls``: browsers reach it by https, of its own or by a proxy; ``public_name``: under which
    name, where that is a proxy.
    """

    machine: str = "local"
    tls: bool = False
    public_name: str | None = None
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True)
class Console:
    """State shared by all requests. ``hashing`` limits the passwords checked at once, each of which
    takes a core and 64 MiB for a moment."""

    settings: Settings
    sessions: Sessions
    attempts: Attempts
    sampler: Sampler
    recorder: Recorder
    hashing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(2))


def console_of(request: Request) -> Console:
    console = request.app.state.console
    assert isinstance(console, Console)
    return console


def page(path: str, endpoint: Page, watched: bool = False) -> Route:
    """A page for those who are logged in.

    :param watched: the browser asks by itself; nobody did anything, so the session's idle time
        goes on.
    """

    async def guard(request: Request) -> Response:
        if is_logged_in(request, touch=not watched):
            return await endpoint(request)
        return _to_login(request)

    return Route(path, guard, methods=["GET"])


def action(path: str, endpoint: Action, public: bool = False, watched: bool = False) -> Route:
    """Build the route of a form.

    :param public: open to a browser that is not logged in yet.
    :param watched: see :func:`page`.
    """

    field_max, fields_max = _FIELD_MAX, _FIELDS_MAX
    if public:
        field_max, fields_max = _PUBLIC_FIELD_MAX, _PUBLIC_FIELDS_MAX

    async def guard(request: Request) -> Response:
        if not public and not is_logged_in(request, touch=not watched):
            return _to_login(request)
        form = await request.form(max_files=0, max_fields=fields_max, max_part_size=field_max)
        token = request.headers.get(TOKEN_HEADER) or str(form.get(TOKEN_FIELD, ""))
        if not console_of(request).sessions.token_fits(request.cookies.get(COOKIE), token):
            return problem(
                request,
                403,
                "This form is not from this session",
                "It may be left over from before a log-in. Go back, load the page again and send"
                " it again; nothing was done.",
            )
        return await endpoint(request, form)

    return Route(path, guard, methods=["POST"])


def is_logged_in(request: Request, touch: bool = True) -> bool:
    sessions = console_of(request).sessions
    return sessions.alive(request.cookies.get(COOKIE), passwords.read_hash(), touch)


def caller(request: Request) -> Caller:
    """Who sits at the console, for the audit log."""
    return Caller("console", address=address_of(request.scope))


def template(name: str) -> Template:
    return _templates().get_template(name)


def render(request: Request, name: str, status: int = 200, **values: object) -> HTMLResponse:
    """A whole page, or with htmx a part of one; the templates know nothing but what they get."""
    console = console_of(request)
    cookie = request.cookies.get(COOKIE)
    text = template(name).render(
        path=request.url.path,
        navigation=_navigation(console.settings.machine),
        machine=console.settings.machine,
        csrf=console.sessions.token(cookie) if cookie else "",
        **values,
    )
    return HTMLResponse(text, status)


def _navigation(machine: str) -> tuple[tuple[str, str], ...]:
    """The pages; a lab's own only while it is up, as it is where one takes it down."""
    is_up = machine == "local" and live.was_put_up()
    return (*NAVIGATION, ("Lab", "/lab")) if is_up else NAVIGATION


def problem(request: Request, status: int, title: str, detail: str) -> HTMLResponse:
    """A page, or with htmx a part of one, that says what is wrong and what to do."""
    partial = request.headers.get("hx-request") == "true"
    name = "problem_part.html" if partial else "problem.html"
    return render(
        request, name, status, title=title, detail=detail, signed_in=is_logged_in(request)
    )


def see(request: Request, path: str) -> Response:
    """After a form: go and look there."""
    if request.headers.get("hx-request") == "true":
        return Response(headers={"HX-Redirect": path})
    return RedirectResponse(path, 303)


def _to_login(request: Request) -> Response:
    if request.headers.get("hx-request") == "true" or request.method != "GET":
        return see(request, "/login?expired=1")
    expired = "&expired=1" if COOKIE in request.cookies else ""
    return see(request, f"/login?next={quote(request.url.path, safe='')}{expired}")


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("hotset.console"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters.update(filters.FILTERS)
    environment.globals.update(
        zip=zip, flash_parts=filters.flash_parts, split_parts=filters.split_parts
    )
    return environment


class SecureHeaders:
    """Adds the headers that every answer has, unless the answer brings its own."""

    def __init__(self, app: ASGIApp, tls: bool) -> None:
        self._app = app
        self._headers = dict(_HEADERS)
        if tls:
            self._headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)
