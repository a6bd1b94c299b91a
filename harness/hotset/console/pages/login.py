"""Logging in and out."""

from __future__ import annotations

import secrets
from urllib.parse import urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from hotset.operations import audit, strangers

from .. import passwords
from ..sessions import find_browser, mark_browser, who_tries
from ..web import COOKIE, action, caller, console_of, is_logged_in, render, see

_BROWSER = "hotset-browser"
"""Marks a browser that has logged in before; it opens nothing."""
_KNOWN_S = 365 * 24 * 3600


async def _form(request: Request) -> Response:
    if is_logged_in(request):
        return see(request, "/")
    message = "You were logged out. Log in to go on." if "expired" in request.query_params else ""
    return _page(request, 200, message, request.query_params.get("next", "/"))


async def _login(request: Request, form: FormData) -> Response:
    console = console_of(request)
    who = caller(request)
    kept = passwords.read_hash()
    trying = who_tries(who.address, find_browser(request.cookies.get(_BROWSER), kept))
    target, wait = str(form.get("next", "/")), console.attempts.wait_s(trying)
    if wait:
        strangers.note(who.address, "too many wrong passwords")
        text = f"Too many wrong passwords from {who.address}. Try again in {wait} s."
        response = _page(request, 429, text, target)
        response.headers["Retry-After"] = str(wait)
        return response
    # Counted before it is looked at: many at once are not one.
    console.attempts.record_failure(trying)
    given = str(form.get("password", ""))
    async with console.hashing:
        right = kept is not None and await run_in_threadpool(passwords.matches, given, kept)
    if kept is None or not right:
        strangers.note(who.address, "wrong password")
        return _page(request, 403, "That is not the password.", target)
    console.attempts.record_success(trying)
    await run_in_threadpool(audit.begin, who, "log in", {}, "done")
    response = RedirectResponse(_inside(target), 303)
    _give(request, response, COOKIE, console.sessions.begin(kept))
    _give(request, response, _BROWSER, mark_browser(kept), _KNOWN_S)
    return response


async def _logout(request: Request, form: FormData) -> Response:  # noqa: ARG001 - every action's
    console_of(request).sessions.end(request.cookies[COOKIE])
    response = see(request, "/login")
    response.delete_cookie(COOKIE)
    return response


def _page(request: Request, status: int, message: str, target: str) -> Response:
    """The form, with a token of its own: a browser that has no cookie yet gets one."""
    cookie = request.cookies.get(COOKIE) or secrets.token_urlsafe(32)
    token = console_of(request).sessions.token(cookie)
    response = render(
        request, "login.html", status, said=message, target=_inside(target), token=token
    )
    if COOKIE not in request.cookies:
        _give(request, response, COOKIE, cookie)
    return response


def _give(
    request: Request, response: Response, name: str, value: str, kept_s: int | None = None
) -> None:
    tls = console_of(request).settings.tls
    response.set_cookie(name, value, kept_s, httponly=True, samesite="strict", secure=tls)


def _inside(target: str) -> str:
    """A path of this console, whatever a link asked for.

    >>> _inside("/runs"), _inside("//evil.example/"), _inside("https://evil.example/")
    ('/runs', '/', '/')
    """
    parts = urlsplit(target)
    inside = target.startswith("/") and not target.startswith(("//", "/\\")) and not parts.netloc
    return parts.path if inside else "/"


ROUTES = [
    Route("/login", _form, methods=["GET"]),
    action("/login", _login, public=True),
    action("/logout", _logout),
]
