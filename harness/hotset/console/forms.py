"""Forms that run an operation: their fields are named as the request's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, QueryParams
from starlette.requests import Request
from starlette.responses import Response

from hotset.core.errors import HotsetError, RequestError, field_of, remedies_of
from hotset.core.operation import FieldKind
from hotset.operations import run, table
from hotset.operations.jobs.store import JobConflictError

from . import filters, lab_database
from .web import caller, problem, see


def values_of(form: FormData | QueryParams, operation: str, **fixed: object) -> dict[str, object]:
    """Read an operation's values from a form: fields that are filled in, a list's lines one by one.

    Fields that the request does not have are left out: one form may serve several operations.

    :param fixed: values that the form does not decide.
    """
    values: dict[str, object] = {}
    for name, field in table.find(operation).fields.items():
        text, kind = str(form.get(name, "")), FieldKind.from_field(field)
        if kind.is_list:
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            values |= {name: lines} if lines else {}
        elif text.strip():
            values[name] = text if kind.secret else text.strip()
    return {**values, **fixed}


async def start(request: Request, operation: str, values: Mapping[str, object]) -> Response:
    """Start a job and go to its page; or say why not."""
    values = await run_in_threadpool(lab_database.with_password, operation, values)
    try:
        job = await run_in_threadpool(run.start, operation, values, False, caller(request))
    except JobConflictError as error:
        return problem(request, 409, "Not now", _describe_field(error))
    except HotsetError as error:
        return problem(request, 422, "That is refused", _describe_field(error))
    return see(request, f"/jobs/{job.id}")


async def answer(
    request: Request, operation: str, values: Mapping[str, object]
) -> tuple[Any, Response | None]:
    """Return a query's answer as JSON has it, or the page to show instead."""
    result, refusal = await ask(request, operation, values)
    if refusal is None:
        return result, None
    return None, problem(request, refusal.status, refusal.title, refusal.detail)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a query has no answer.

    :ivar remedies: the operations that help.
    """

    status: int
    title: str
    detail: str
    remedies: tuple[str, ...] = ()


async def ask(
    request: Request, operation: str, values: Mapping[str, object]
) -> tuple[Any, Refusal | None]:
    """Ask as :func:`answer` does, for a page that shows more than this one answer."""
    values = await run_in_threadpool(lab_database.with_password, operation, values)
    try:
        result = await run_in_threadpool(run.answer, operation, values, False, caller(request))
        return await run_in_threadpool(result.document), None
    except HotsetError as error:
        return None, _refusal(error)


async def rehearse(
    request: Request, operation: str, values: Mapping[str, object]
) -> Refusal | None:
    """Why a job would be refused; None: its dry run went through."""
    try:
        await run_in_threadpool(run.rehearse, operation, values, caller(request))
    except HotsetError as error:
        return _refusal(error)
    return None


def _refusal(error: HotsetError) -> Refusal:
    if isinstance(error, RequestError):
        return Refusal(422, "That is refused", _describe_field(error))
    helps = tuple(remedy.operation for remedy in remedies_of(error) if remedy.operation)
    return Refusal(409, "That did not work", _describe_field(error), helps)


def _describe_field(error: HotsetError) -> str:
    return filters.tell_error(str(error), field_of(error), remedies_of(error))
