"""Forms that run a verb of the CLI: their fields are named as the verb's options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, QueryParams
from starlette.requests import Request
from starlette.responses import Response

from hotset.harness.console.web import problem, see
from hotset.harness.service import jobs, verbs
from hotset.harness.service.jobs import JobConflictError
from hotset.harness.service.now import VerbFailed, run_now
from hotset.harness.service.verbs import RefusedError, Words


def values_of(form: FormData | QueryParams, words: Words, **fixed: object) -> dict[str, object]:
    """What a form says to a verb: fields that are filled in, a list's lines one by one.

    Fields that the verb does not have are left out: one form may serve several verbs.

    :param fixed: what is not the form's to say.
    """
    verb = verbs.find(words)
    found: dict[str, object] = {}
    for name in verb.model.model_fields:
        text, parameter = str(form.get(name, "")), verb.parameters.get(name)
        if parameter is not None and parameter.is_list:
            lines = [line.strip() for line in text.splitlines() if line.strip()]
            found |= {name: lines} if lines else {}
        elif text.strip():
            found[name] = text if name == "password" else text.strip()
    return {**found, **fixed}


async def start(request: Request, words: Words, values: Mapping[str, object]) -> Response:
    """Start a job and go to its page; or say why not."""
    try:
        job = await run_in_threadpool(jobs.start, words, values, False)
    except RefusedError as error:
        return problem(request, 422, "That is refused", str(error))
    except JobConflictError as error:
        return problem(request, 409, "Not now", str(error))
    return see(request, f"/jobs/{job.id}")


async def asked(
    request: Request, words: Words, values: Mapping[str, object]
) -> tuple[Any, Response | None]:
    """What a reading verb answers, or what the page says instead."""
    try:
        return await run_now(words, values, strict=False), None
    except RefusedError as error:
        return None, problem(request, 422, "That is refused", str(error))
    except VerbFailed as error:
        return None, problem(request, 409, "That did not work", error.detail)
