"""Every command that is given can be typed as it stands."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hotset import health
from hotset.operations import table

FILES = sorted(Path(health.__path__[0]).glob("*.py"))
CALLS = [
    (file.name, node)
    for file in FILES
    for node in ast.walk(ast.parse(file.read_text()))
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "remedy"
]


def test_there_are_commands_to_look_at() -> None:
    assert len(CALLS) > 10


def test_a_remedy_is_an_operation_with_fields_of_its_own(subtests: pytest.Subtests) -> None:
    for file, call in CALLS:
        with subtests.test(file=file, line=call.lineno):
            operation = ast.literal_eval(call.args[1])
            fields = table.find(operation).fields
            given = {one.arg for one in call.keywords if one.arg is not None} or {"disk"}
            if (
                not any(one.arg is None for one in call.keywords)
                and operation != "warmup schedule list"
            ):
                assert given <= set(fields), f"{file}: {operation}"
            assert "machine" in fields
