"""What a request asks for: its values, from the URL or from a JSON body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

from starlette.exceptions import HTTPException
from starlette.requests import Request

from hotset.harness.service.verbs import RefusedError, Verb

BODY_MAX_BYTES = 64 * 1024
# A URL stands in logs and histories: a database is named in a body.
NOT_IN_URL = ("dsn", "password", "engine")


async def body(request: Request) -> dict[str, Any]:
    """The object of a JSON body; an empty one where there is no body."""
    data = b""
    async for part in request.stream():
        data += part
        if len(data) > BODY_MAX_BYTES:
            raise HTTPException(413, f"the body is larger than {BODY_MAX_BYTES} bytes")
    if not data:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise HTTPException(415, f"Content-Type {kind!r}: send application/json")
    try:
        values = _parsed(data)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise HTTPException(400, f'the body is not an object such as {{"machine": "local"}}, but'
                            f" {type(values).__name__}")  # fmt: skip
    return values


def query(request: Request, verb: Verb) -> dict[str, Any]:
    """The values of a URL's query, typed as the verb's fields are."""
    pairs = request.query_params.multi_items()
    found: dict[str, Any] = {}
    for name, text in pairs:
        parameter = verb.parameters.get(name)
        if name in NOT_IN_URL and name in verb.model.model_fields:
            raise RefusedError(f"{name}: a URL is no place for it, as logs keep those: POST it",
                               name)  # fmt: skip
        if parameter is not None and parameter.is_list:
            found.setdefault(name, []).append(text)
        elif name in found:
            raise RefusedError(f"{name}: it is given twice", name)
        else:
            found[name] = text
            if parameter is not None and parameter.kind != "text":
                with suppress(ValueError):
                    value = _parsed(text)
                    found[name] = text if value is None else value
    return found


def only(values: Mapping[str, Any], *names: str) -> None:
    """:raises RefusedError: there are others than these."""
    for name in values:
        if name not in names:
            known = ", ".join(names) or "none"
            raise RefusedError(f"{name}: there is no such parameter here; there is: {known}", name)


def _parsed(text: str | bytes) -> Any:  # noqa: ANN401 - what JSON has
    """JSON, in which 8.0 is a whole number, as in JSON Schema."""
    return json.loads(text, parse_constant=_not_json, parse_float=_number)


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
