"""Failures as RFC 9457 problem details: what is wrong, where, and what to do about it.

A failure that hotset foresees is never a 5xx: the server is well, the request or the world is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from hotset.core import errors
from hotset.core.errors import USAGE, HotsetError, field_of, remedies_of

MEDIA_TYPE = "application/problem+json"
FORESEEN = (HotsetError, HTTPException)


class ProblemResponse(JSONResponse):
    """A problem; what is not known is left out."""

    media_type = MEDIA_TYPE

    def __init__(
        self,
        status: int,
        detail: str,
        field: str | None = None,
        exit_code: int | None = None,
        remedies: Sequence[Mapping[str, Any]] = (),
        message: str | None = None,
        type_: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        title = errors.title_of(status)
        content = {
            "type": type_ or f"urn:hotset:{title.lower().replace(' ', '-')}",
            "title": title,
            "status": status,
            "detail": detail,
            "message": message,
            "exit_code": exit_code,
            "field": field,
            "remedies": list(remedies) or None,
        }
        known = {name: value for name, value in content.items() if value is not None}
        super().__init__(known, status, headers)


def build_problem(error: Exception) -> ProblemResponse:
    """The problem that a failure is."""
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        field = str(first["loc"][-1])
        return ProblemResponse(422, f"{field}: {first['msg']}", field, USAGE)
    if isinstance(error, HTTPException):
        headers = dict(error.headers or {})
        return ProblemResponse(error.status_code, error.detail, headers=headers)
    if not isinstance(error, HotsetError):
        raise error
    return ProblemResponse(
        error.http_status,
        errors.of_api(error),
        field_of(error),
        error.exit_code,
        [asdict(remedy) for remedy in remedies_of(error)],
        str(error),
        errors.type_of(error),
    )


async def handle(request: Request, error: Exception) -> ProblemResponse:
    """Turn an error into a problem response; a Starlette exception handler."""
    if isinstance(error, HTTPException) and error.status_code == 404:
        return ProblemResponse(
            404, f"{request.url.path}: there is no such thing here; openapi.json names all there is"
        )
    if isinstance(error, HTTPException) and error.status_code == 405:
        allowed = ", ".join(_allowed_methods(request)) or (error.headers or {}).get("Allow", "")
        return ProblemResponse(
            405,
            f"{request.method} is not for {request.url.path}, which takes {allowed}",
            headers={"Allow": allowed},
        )
    return build_problem(error)


def _allowed_methods(request: Request) -> list[str]:
    """All methods of a path: each is a route of its own, and the router names but one."""
    if not isinstance(request.app, FastAPI):
        return []
    path = request.url.path.removeprefix(request.scope.get("root_path", ""))
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    # As it is written, before one with a name in it.
    templates = sorted(paths, key=lambda template: "{" in template)
    for template in templates:
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            return sorted(method.upper() for method in paths[template])
    return []


async def answer_unforeseen(request: Request, error: Exception) -> ProblemResponse:  # noqa: ARG001
    """The only 5xx: a fault of hotset's own, whose traceback is in the server's log."""
    return ProblemResponse(500, f"unexpected {type(error).__name__}; the server's log has more")
