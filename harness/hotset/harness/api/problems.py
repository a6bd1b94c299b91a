"""Failures as RFC 9457 problem details: what is wrong, where, and what to do about it.

A failure that hotset foresees is never a 5xx: the server is well, the request or the world is not.
"""

from __future__ import annotations

from http import HTTPStatus

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from hotset.harness.cli.codes import FAILED, LACKS, USAGE, code_of
from hotset.harness.service.jobs import JobConflictError, NoSuchJobError
from hotset.harness.service.now import VerbFailed
from hotset.harness.service.verbs import RefusedError

MEDIA_TYPE = "application/problem+json"
# The names of failures of a verb that is a process of its own.
_NOT_FOUND = {"NoSuchRunError", "NoSuchJobError", "NoSuchOwnerError"}
_NO_DISK = ("CardError", "disk")
_CONFLICT = {"SetUpsDiffer", "InUseError"}
_BY_CODE = {USAGE: 422, LACKS: 409, FAILED: 424}
FORESEEN = (RefusedError, NoSuchJobError, JobConflictError, VerbFailed, HTTPException)


class ProblemResponse(JSONResponse):
    """A problem; what is not known is left out."""

    media_type = MEDIA_TYPE

    def __init__(
        self, status: int, detail: str, field: str | None = None, exit_code: int | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        title = HTTPStatus(status).phrase
        content = {
            "type": f"urn:hotset:{title.lower().replace(' ', '-')}", "title": title,
            "status": status, "detail": detail, "exit_code": exit_code, "field": field,
        }  # fmt: skip
        known = {name: value for name, value in content.items() if value is not None}
        super().__init__(known, status, headers)


def of(error: Exception) -> ProblemResponse:
    """The problem that a failure is."""
    match error:
        case RefusedError():
            return ProblemResponse(422, str(error), error.field, code_of(error))
        case NoSuchJobError():
            return ProblemResponse(404, str(error), None, code_of(error))
        case JobConflictError():
            return ProblemResponse(409, str(error), None, code_of(error))
        case VerbFailed():
            status = _BY_CODE.get(error.code, 424)
            if error.failure in _NOT_FOUND or (error.failure, error.field) == _NO_DISK:
                status = 404
            elif error.failure in _CONFLICT:
                status = 409
            return ProblemResponse(status, error.detail, error.field, error.code)
        case HTTPException():
            headers = dict(error.headers or {})
            return ProblemResponse(error.status_code, error.detail, headers=headers)
    raise error


async def handle(request: Request, error: Exception) -> ProblemResponse:
    """As Starlette's exception handlers are called."""
    if isinstance(error, HTTPException) and error.status_code == 404:
        return ProblemResponse(404, f"{request.url.path}: there is no such thing here;"
                               " openapi.json names all there is")  # fmt: skip
    if isinstance(error, HTTPException) and error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        return ProblemResponse(405, f"{request.method} is not for {request.url.path}, which takes"
                               f" {allowed}", headers={"Allow": allowed})  # fmt: skip
    return of(error)


async def unforeseen(request: Request, error: Exception) -> ProblemResponse:  # noqa: ARG001
    """The only 5xx: a fault of hotset's own, whose traceback is in the server's log."""
    return ProblemResponse(500, f"unexpected {type(error).__name__}; the server's log has more")
