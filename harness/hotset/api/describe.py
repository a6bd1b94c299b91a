"""The table of operations in OpenAPI's words."""

from __future__ import annotations

from functools import cache
from typing import Any

from fastapi import Security
from fastapi.security import HTTPBearer
from pydantic.json_schema import models_json_schema

from hotset.core import operation as records
from hotset.core.operation import Kind, Operation
from hotset.core.record import model_of
from hotset.operations import table

from .schemas import JobRecord, Problem
from .values import NOT_IN_URL

TOKEN = Security(
    HTTPBearer(
        scheme_name="token",
        description="`hotset console token create NAME` makes one.",
        auto_error=False,
    )
)
_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": _PROBLEM}
    for status, text in {
        401: "The token is missing, not known, or was revoked.",
        403: "The token has not the right that this takes, or a value names what callers from"
        " elsewhere may not name.",
        404: "There is no such thing.",
        409: "It cannot be done as things are: something is missing, or another job is at work.",
        422: "A value is refused: `field` names it, `detail` says what would be right.",
        424: "The operation failed: `detail` says why.",
        429: "Too many of this caller's requests are being answered, or were within this minute.",
    }.items()
}
PROBLEMS[404]["model"] = Problem
OF_BODIES: dict[int | str, dict[str, Any]] = {
    status: {"description": text, "content": _PROBLEM}
    for status, text in {
        400: "The body is not JSON, or not an object.",
        413: "The body is too large.",
        415: "The body is of another type than application/json.",
    }.items()
}
_PARAMETER = (
    "type",
    "enum",
    "items",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
)


@cache
def _records() -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """A reference to what each operation's result holds, by its name; and all that they hold."""
    models = {operation.name: model_of(operation.result.record()) for operation in table.every()}
    wanted = [(model, "serialization") for model in dict.fromkeys(models.values())]
    references, schema = models_json_schema(
        wanted,  # type: ignore[arg-type]
        ref_template="#/components/schemas/{model}",
    )
    for definition in schema["$defs"].values():
        records.add_units(definition)
    by_name = {name: references[model, "serialization"] for name, model in models.items()}
    return by_name, schema["$defs"]


def result(name: str) -> dict[str, Any]:
    """The response of a query, by the operation's name."""
    content = {"application/json": {"schema": _records()[0][name]}}
    return {"description": "The result.", "content": content}


def schema_of_result(name: str) -> dict[str, Any]:
    """The JSON Schema of an operation's result by itself, with units."""
    schema = model_of(table.find(name).result.record()).model_json_schema(mode="serialization")
    for definition in (schema, *schema.setdefault("$defs", {}).values()):
        records.add_units(definition)
    return schema


def with_results(about: dict[str, Any]) -> dict[str, Any]:
    """An API's description, with the records that it refers to."""
    about["components"]["schemas"] |= _records()[1]
    return about


def methods(operation: Operation) -> list[str]:
    """GET, too, where nothing that a URL may not hold is needed."""
    needed = schema(operation).get("required", [])
    if operation.kind is Kind.JOB or set(needed) & set(NOT_IN_URL):
        return ["POST"]
    return ["GET", "POST"]


def operation(operation: Operation, method: str) -> dict[str, Any]:
    """Build the OpenAPI description of a route for FastAPI."""
    name = "".join(part.title() for part in operation.name.replace("-", " ").split())
    is_job = operation.kind is Kind.JOB
    about = schema(operation)
    extra: dict[str, Any] = {
        "x-hotset": {
            "operation": operation.name,
            "kind": operation.kind.value,
            "right": operation.right.value,
            "destroys": operation.destroys,
            "powershell": "-".join(operation.powershell),
            "result": _records()[0][operation.name],
        }
    }
    responses: dict[int | str, dict[str, Any]] = dict(PROBLEMS)
    if not is_job:
        responses[200] = result(operation.name)
    if method == "POST":
        content = {"application/json": {"schema": about}}
        extra["requestBody"] = {"required": bool(about.get("required")), "content": content}
        responses |= OF_BODIES
    else:
        extra["parameters"] = _query(about)
    return {
        "operation_id": f"{'start' if is_job else 'ask' if method == 'POST' else 'get'}{name}",
        "tags": [operation.words[0]],
        "summary": operation.help.partition("\n")[0],
        "description": operation.help,
        "status_code": 202 if is_job else 200,
        "response_model": JobRecord if is_job else None,
        "responses": responses,
        "openapi_extra": extra,
        "dependencies": [TOKEN],
    }


def schema(operation: Operation) -> dict[str, Any]:
    """A request's JSON Schema, without what only this computer's command line may say."""
    whole = operation.request.model_json_schema()
    whole.pop("description", None)
    whole["properties"] = {
        name: about
        for name, about in whole.get("properties", {}).items()
        if name in operation.fields
    }
    return whole


def parameters(name: str) -> dict[str, Any]:
    """A query's fields as parameters of a URL, by the operation's name."""
    return {"parameters": _query(schema(table.find(name)))}


def _query(about: dict[str, Any]) -> list[dict[str, Any]]:
    """A body's fields as a URL's parameters, in which nothing can be null."""
    parameters = []
    for name, field in about["properties"].items():
        if name in NOT_IN_URL:
            continue
        kinds = [kind for kind in field.get("anyOf", []) if kind != {"type": "null"}]
        own = {key: value for key, value in field.items() if key in _PARAMETER}
        parameters.append(
            {
                "name": name,
                "in": "query",
                "required": name in about.get("required", []),
                "description": field.get("description", ""),
                "schema": kinds[0] if kinds else own,
            }
        )
    return parameters
