"""The values of a request, from its URL or from its JSON body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

from starlette.exceptions import HTTPException
from starlette.requests import Request

from hotset.core.errors import RequestError
from hotset.core.operation import FieldKind, Operation

BODY_MAX_BYTES = 64 * 1024
# URLs are kept in logs and histories: a database is named in a body.
NOT_IN_URL = ("dsn", "password", "engine")


async def of_body(request: Request) -> dict[str, Any]:
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
        values = _parse(data)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, f"the body is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise HTTPException(
            400,
            f'the body is not an object such as {{"machine": "local"}}, but'
            f" {type(values).__name__}",
        )
    return values


def of_query(request: Request, operation: Operation) -> dict[str, Any]:
    """The values of a URL's query, typed as the operation's fields are."""
    values: dict[str, Any] = {}
    for name, text in request.query_params.multi_items():
        kind = FieldKind.from_field(operation.fields[name]) if name in operation.fields else None
        if kind is not None and name in NOT_IN_URL:
            raise RequestError("a URL is no place for it, as logs keep those: POST it", field=name)
        value = text if kind is None else _to_type(kind, text)
        if kind is not None and kind.is_list:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise RequestError("it is given twice", field=name)
        else:
            values[name] = value
    return values


def _to_type(kind: FieldKind, text: str) -> Any:  # noqa: ANN401 - what JSON has
    """A text as the type of its field, where it is of one."""
    if kind.base in (bool, int, float):
        with suppress(ValueError):
            value = _parse(text)
            return text if value is None else value
    return text


def only(values: Mapping[str, Any], *names: str) -> None:
    """:raises RequestError: there are others than these."""
    for name in values:
        if name not in names:
            known = ", ".join(names) or "none"
            raise RequestError(f"there is no such parameter here; there is: {known}", field=name)


def _parse(text: str | bytes) -> Any:  # noqa: ANN401 - what JSON has
    """JSON, in which 8.0 is a whole number, as in JSON Schema."""
    return json.loads(text, parse_constant=_not_json, parse_float=_number)


def _number(text: str) -> int | float:
    value = float(text)
    return int(value) if value.is_integer() else value


def _not_json(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
