"""The HTTP API fuzzed from its own description: no 5xx, and every answer is as described.

The operations are replaced, in the open, by ones that do nothing: they run as whoever runs the
tests, often root on a developer's machine, and a fuzzer that is let loose on `tier destroy` would
sooner or later find a real flash device. What is fuzzed is all that lies before and behind them:
tokens, bodies, queries, request models, job records and streams. What they answer is in
test_api.py.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import negative_data_rejection, positive_data_acceptance
from schemathesis.config import SchemathesisConfig

from hotset.api import app, tokens
from hotset.core import operation as registry
from hotset.core.operation import Context, Lines, Request
from hotset.core.record import Result, model_of
from hotset.core.rights import Right
from hotset.experiment.commands.runs import RunResult
from hotset.operations import audit, run, table
from tests import documents

EXAMPLES = 4
# Operations that POST are all routed by the same few lines, over models that test_registry.py
# goes through one by one; these have all kinds of fields among them.
POSTED = {
    "/database/memory",
    "/experiment/run",
    "/report/hit-ratio",
    "/tier/create",
    "/tpcc/drop",
    "/tpcc/run",
    "/warmup/run",
    "/jobs/{id}/cancel",
}
# Too large is refused before it is looked at.
REFUSED = ["400", "401", "403", "404", "405", "409", "413", "415", "422"]
CONFIG = SchemathesisConfig.from_dict(
    {"checks": {"negative_data_rejection": {"expected-statuses": REFUSED}}}
)
# Texts with a form that a schema cannot tell, and what is asked before something is deleted.
OF_A_FORM = {"dsn", "machine", "origin_rate", "password", "rate", "users", "yes"}
# Python's `$` stands before a last newline, too, so that it generates such texts for our pattern;
# as JSON Schema (ECMA 262) reads it, and as pydantic does, they are refused.
NEWLINE = "contains control characters"


class Least:
    """A result with the least that its record allows."""

    def __init__(self, result: type[Result]) -> None:
        self._schema = model_of(result.record()).model_json_schema(mode="serialization")
        # One whose texts have forms of their own.
        self._whole = documents.complete() if result is RunResult else None

    def answer(self, request: Request, context: Context) -> Least:  # noqa: ARG002
        return self

    def document(self) -> Any:  # noqa: ANN401 - JSON
        return self._whole.model_dump(mode="json") if self._whole else self._of(self._schema)

    def _of(self, schema: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
        match schema:
            case {"$ref": str(name)}:
                return self._of(self._schema["$defs"][name.rpartition("/")[2]])
            case {"anyOf": [first, *_]}:
                return self._of(first)
            case {"enum": [first, *_]} | {"const": first} | {"default": first}:
                return first
            case {"type": "object"}:
                known = schema.get("properties", {})
                return {name: self._of(known[name]) for name in schema.get("required", ())}
            case {"type": "string", "format": "date-time"}:
                return "2026-11-22T10:00:00Z"
            case _:
                return {"string": "", "array": [], "boolean": False, "null": None}.get(
                    schema.get("type", "null"), schema.get("minimum", 0)
                )


@pytest.fixture
def bearer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The header of a token, for an API whose operations do nothing."""
    report = tmp_path / "report.html"
    report.write_text("<!doctype html>")

    def lines(request: Request, context: Context) -> Lines:  # noqa: ARG001
        return Lines((str(report) if getattr(request, "format", "html") == "html" else "{}",))

    for found in table.every():
        stand_in = lines if issubclass(found.result, Lines) else Least(found.result).answer
        monkeypatch.setitem(registry.declared, found.name, replace(found, function=stand_in))
    monkeypatch.setattr(run, "PROGRAM", "tests.no_job")
    monkeypatch.setattr(audit, "A_MINUTE", 10**9)
    return {"Authorization": f"Bearer {tokens.create('fuzz', Right.ADMIN)}"}


def test_no_5xx_and_every_answer_is_as_described(bearer: dict[str, str]) -> None:
    schema = schemathesis.openapi.from_asgi("/openapi.json", app.create(), config=CONFIG)
    tried = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.method.upper() != "POST" or operation.path in POSTED:
            given(operation.as_strategy())(few(lambda case: require_described(case, bearer)))()
            tried += 1
    assert tried > len(POSTED)


few = settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))


def require_described(case: schemathesis.Case, bearer: dict[str, str]) -> None:
    response = case.call(headers=bearer)
    refused = response.json() if response.status_code in (403, 422) else {}
    # What callers from elsewhere may not name (test_remote.py) is well-formed all the same.
    of_a_form = refused.get("field") in OF_A_FORM or NEWLINE in refused.get("detail", "")
    excluded = []
    if response.status_code == 403 or of_a_form:
        excluded.append(positive_data_acceptance)
    if values_lost(case, response):
        excluded.append(negative_data_rejection)
    case.validate_response(response, headers=bearer, excluded_checks=excluded)


def values_lost(case: schemathesis.Case, response: schemathesis.Response) -> bool:
    """Whether what was wrong may not have been sent: an empty list leaves no trace in a URL."""
    sent = parse_qs(urlsplit(str(response.request.url)).query, keep_blank_values=True)
    meant = {
        name: [str(one) for one in value] if isinstance(value, list) else [str(value)]
        for name, value in (case.query or {}).items()
    }
    return sent != meant
