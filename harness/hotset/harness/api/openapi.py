"""The API's OpenAPI 3.1 description, made from the verbs themselves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from typing import Any, get_args

from hotset.harness.api.asked import NOT_IN_URL
from hotset.harness.service import events, jobs, verbs
from hotset.harness.service.verbs import Verb, Words

# Those that have a place of their own: /runs/…, /metrics.
_PLACED = {("report", "metrics"), ("report", "run"), ("runs", "compare"), ("runs", "list"),
           ("runs", "rm"), ("runs", "show")}  # fmt: skip
_PROBLEMS = {
    "400": "The body is not JSON, or not an object.",
    "401": "The token is missing, not known, or was revoked.",
    "404": "There is no such thing.",
    "409": "It cannot be done as things are: something is missing, or another job is at work.",
    "413": "The body is too large.",
    "415": "The body is of another type than application/json.",
    "422": "A value is refused: `field` names it, `detail` says what would be right.",
    "424": "The verb failed: `detail` says why.",
}
_TEXT: dict[str, Any] = {"type": "string"}
_OBJECT: dict[str, Any] = {"type": "object"}


def offered() -> Iterator[tuple[Words, Verb]]:
    """The verbs whose path is their words."""
    return ((words, verb) for words, verb in verbs.every().items() if words not in _PLACED)


def methods(verb: Verb) -> list[str]:
    """GET, too, where nothing that a URL may not hold is needed."""
    needed = verb.model.model_json_schema().get("required", [])
    return ["POST"] if set(needed) & set(NOT_IN_URL) else ["GET", "POST"]


@cache
def describe(root: str = "") -> dict[str, Any]:
    """The whole description.

    :param root: the path that the API is mounted at.
    """
    paths: dict[str, dict[str, Any]] = {}
    for words, verb in offered():
        paths["/" + "/".join(words)] = _operations(verb)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "hotset",
            "version": version("hotset"),
            "description": "The verbs of the `hotset` command line, its jobs and its archive of"
            " runs. Verbs that take their time, or change something, are jobs.",
        },
        "servers": [{"url": root or "/"}],
        "security": [{"token": []}],
        "paths": {**paths, **_job_paths(), **_run_paths()},
        "components": {
            "securitySchemes": {"token": {
                "type": "http", "scheme": "bearer",
                "description": "`hotset console token create NAME` makes one.",
            }},
            "schemas": {"Problem": _problem(), "Job": _job(), "JobDetail": _job_detail()},
        },
    }  # fmt: skip


def _operations(verb: Verb) -> dict[str, Any]:
    schema = verb.model.model_json_schema()
    schema.pop("description", None)
    body = {"required": bool(schema.get("required")),
            "content": {"application/json": {"schema": schema}}}  # fmt: skip
    name = "".join(part.title() for part in verb.name.replace("-", " ").split())
    about: dict[str, Any] = {"tags": [verb.words[0]], "summary": verb.help.partition(". ")[0],
             "description": verb.help}  # fmt: skip
    if verb.kind == "job":
        post = {"operationId": f"start{name}", **about, "requestBody": body,
                "responses": _answers("202", _started())}  # fmt: skip
        return {"post": post}
    answer = {"description": "What the verb prints as JSON.", "content": _json(_OBJECT)}
    found = {"post": {"operationId": f"ask{name}", **about, "requestBody": body,
                      "responses": _answers("200", answer)}}  # fmt: skip
    if "GET" in methods(verb):
        found["get"] = {"operationId": f"get{name}", **about, "parameters": _query(schema),
                        "responses": _answers("200", answer, body=False)}  # fmt: skip
    return found


def _query(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """A body's fields as a URL's parameters, in which nothing can be null."""
    found = []
    for name, field in schema["properties"].items():
        if name in NOT_IN_URL:
            continue
        kinds = [one for one in field.get("anyOf", []) if one != {"type": "null"}]
        own = {key: value for key, value in field.items() if key in ("type", "enum", "items",
               "minimum", "maximum", "minItems", "maxItems", "maxLength", "pattern")}  # fmt: skip
        found.append({"name": name, "in": "query", "required": name in schema.get("required", []),
                      "description": field.get("description", ""),
                      "schema": kinds[0] if kinds else own})  # fmt: skip
    return found


def _job_paths() -> dict[str, Any]:
    id_ = _path_parameter("id", "The job's id; `last` is the newest.")
    listed = {"type": "object", "required": ["schema_version", "jobs"], "properties": {
        "schema_version": {"type": "integer"},
        "jobs": {"type": "array", "items": {"$ref": "#/components/schemas/Job"}},
    }}  # fmt: skip
    last = {"name": "Last-Event-ID", "in": "header", "required": False,
            "description": "The last event that is known already.",
            "schema": {"type": "integer", "minimum": 0, "maximum": 10**18 - 1}}  # fmt: skip
    kinds = ", ".join(get_args(events.Kind))
    stream = {"description": "Server-sent events, from the beginning until the job has ended.",
              "content": {"text/event-stream": {"schema": _TEXT}}}  # fmt: skip
    detail = {"description": "The job.",
              "content": _json({"$ref": "#/components/schemas/JobDetail"})}  # fmt: skip
    return {
        "/jobs": {"get": _operation(
            "getJobs", "All jobs, the newest first.", [],
            "200", {"description": "The jobs.", "content": _json(listed)},
        )},
        "/jobs/{id}": {
            "get": _operation("getJob", "A job, why it failed, and its result.", [id_],
                              "200", detail),
            "delete": _operation("deleteJob", "Forget a job that has ended.", [id_],
                                 "204", {"description": "It is forgotten."}),
        },
        "/jobs/{id}/events": {"get": _operation(
            "followJob", f"What a job says: {kinds}.", [id_, last], "200", stream,
        )},
        "/jobs/{id}/cancel": {"post": _operation(
            "cancelJob", "Interrupt a job; it takes down what it made, which may take a while.",
            [id_], "202", _started(),
        )},
    }  # fmt: skip


def _run_paths() -> dict[str, Any]:
    run = _path_parameter("run", "A run's id, the beginning of one, or `last`.")
    whole = _path_parameter("run", "A run's whole id.")
    answer = {"description": "As `hotset runs … --format json` prints it.",
              "content": _json(_OBJECT)}  # fmt: skip
    two = {"name": "run", "in": "query", "required": True, "explode": True,
           "description": "Two runs or more; the first is what the others stand beside.",
           "schema": {"type": "array", "minItems": 2, "items": _name()}}  # fmt: skip
    force = {"name": "force", "in": "query", "required": False, "schema": {"type": "boolean"},
             "description": "Compare runs with different set-ups, too."}  # fmt: skip
    format_ = {"name": "format", "in": "query", "required": False, "description": "How to print it",
               "schema": {"type": "string", "enum": ["html", "md", "json"]}}  # fmt: skip
    report = {"description": "The report.", "content": {
        "text/html": {"schema": _TEXT}, "text/markdown": {"schema": _TEXT},
        "application/json": {"schema": _OBJECT},
    }}  # fmt: skip
    return {
        "/runs": {"get": _operation("getRuns", "All runs, the newest first.", [], "200", answer)},
        "/runs/compare": {"get": _operation(
            "compareRuns", "How many times faster each arm became.", [two, force], "200", answer,
        )},
        "/runs/{run}": {
            "get": _operation("getRun", "What a run measured.", [run], "200", answer),
            "delete": _operation("deleteRun", "Delete a run and all that it left.", [whole],
                                 "204", {"description": "It is deleted."}),
        },
        "/runs/{run}/report": {"get": _operation(
            "getReport", "A run's report, made afresh.", [run, format_], "200", report,
        )},
    }  # fmt: skip


def _operation(
    name: str, summary: str, parameters: list[dict[str, Any]], status: str, answer: dict[str, Any]
) -> dict[str, Any]:
    tag = "runs" if "run" in name.lower() or "report" in name.lower() else "jobs"
    return {"operationId": name, "tags": [tag], "summary": summary, "parameters": parameters,
            "responses": _answers(status, answer, body=status == "202")}  # fmt: skip


def _answers(status: str, answer: dict[str, Any], body: bool = True) -> dict[str, Any]:
    """An answer and the problems there may be instead.

    :param body: whether a body may be sent.
    """
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    without = () if body else ("400", "413", "415")
    problems = {code: {"description": text, "content": content}
                for code, text in _PROBLEMS.items() if code not in without}  # fmt: skip
    return {status: answer, **problems}


def _started() -> dict[str, Any]:
    return {
        "description": "The job; it goes on by itself.",
        "headers": {"Location": {"schema": _TEXT, "description": "Where it is looked at."}},
        "content": _json({"$ref": "#/components/schemas/Job"}),
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _name() -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": verbs.TEXT_MAX,
            "pattern": verbs.TEXT_PATTERN}  # fmt: skip


def _path_parameter(name: str, text: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "description": text, "schema": _name()}


def _problem() -> dict[str, Any]:
    """RFC 9457."""
    return {
        "type": "object",
        "required": ["type", "title", "status", "detail"],
        "additionalProperties": False,
        "properties": {
            "type": _TEXT,
            "title": _TEXT,
            "status": {"type": "integer"},
            "detail": _TEXT,
            "exit_code": {"type": "integer", "description": "As the command line ends with."},
            "field": {"type": "string", "description": "The field that is refused."},
        },
    }


def _job() -> dict[str, Any]:
    fields = {
        "id": _TEXT,
        "verb": _TEXT,
        "values": {"type": "object", "description": "What was asked, without secrets."},
        "machine": {"type": "string", "description": "As --machine names it; may be empty."},
        "started": {"type": "string", "format": "date-time"},
        "state": {"type": "string", "enum": list(get_args(jobs.State))},
        "code": {"type": ["integer", "null"], "description": "The exit code, when it has ended."},
        "progress": {"type": "string", "description": "The latest figure; may be empty."},
        "said": {"type": "array", "items": _TEXT, "description": "The last lines."},
    }
    return {"type": "object", "required": list(fields), "properties": fields}


def _job_detail() -> dict[str, Any]:
    job = _job()
    more = {
        "cause": {"type": "string", "description": "Why it failed; empty of one that did not."},
        "result": {"description": "What the verb printed; null while it runs."},
    }
    return {**job, "required": [*job["required"], *more],
            "properties": {**job["properties"], **more}}  # fmt: skip
