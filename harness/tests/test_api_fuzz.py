"""The HTTP API fuzzed from its own description: no 5xx, and every answer is as described.

The child process is replaced, in the open, by one that does nothing and answers ``{}``: the verbs
run as whoever runs the tests, often root on a developer's machine, and a fuzzer that is let loose
on `tier destroy` would sooner or later find a real card. What is fuzzed is all that lies before and
behind that process: tokens, bodies, queries, the models made from the parser, argv, job records and
streams. What the real verbs answer is in test_api.py.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import positive_data_acceptance
from schemathesis.config import SchemathesisConfig

from hotset.harness.api import app, tokens
from hotset.harness.service import jobs, now

# A child that gets argv and environment of the real one, and does nothing; a report is any file.
CHILD = """#!/bin/sh
case "$*" in *--format=html*) echo "$0" ;; *) echo '{}' ;; esac
[ -z "$HOTSET_JOB" ] || echo 0 > "$HOTSET_JOB/code"
"""
EXAMPLES = 4
# Verbs that POST are all made by the same few lines from models that test_service_verbs.py goes
# through one by one; these have all kinds of fields among them.
POSTED = {"/database/memory", "/experiment/run", "/report/hit-ratio", "/tier/create", "/tpcc/drop",
          "/tpcc/run", "/warmup/run", "/jobs/{id}/cancel"}  # fmt: skip
# Too large is refused before it is looked at.
REFUSED = ["400", "401", "404", "405", "409", "413", "415", "422"]
CONFIG = SchemathesisConfig.from_dict(
    {"checks": {"negative_data_rejection": {"expected-statuses": REFUSED}}}
)
SCHEMA = schemathesis.openapi.from_asgi("/openapi.json", app.create(), config=CONFIG).include(
    lambda ctx: ctx.operation.method.upper() != "POST" or ctx.operation.path in POSTED
)
# Texts with a form that a schema cannot tell, and what is asked before something is deleted.
OF_A_FORM = {"dsn", "machine", "yes"}


@pytest.fixture
def bearer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The header of a token, for an API whose verbs do nothing."""
    child = tmp_path / "child"
    child.write_text(CHILD)
    child.chmod(0o700)
    for module in (now, jobs):
        monkeypatch.setattr(module, "PROGRAM", (str(child),))
    return {"Authorization": f"Bearer {tokens.create('fuzz')}"}


@SCHEMA.parametrize()
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_5xx_and_every_answer_is_as_described(
    case: schemathesis.Case, bearer: dict[str, str]
) -> None:
    response = case.call(headers=bearer)
    loose = response.status_code == 422 and response.json().get("field") in OF_A_FORM
    excluded = [positive_data_acceptance] if loose else []
    case.validate_response(response, headers=bearer, excluded_checks=excluded)
