"""What SECURITY.md says to be shown by a test is."""

from __future__ import annotations

import re

import pytest

from hotset.core.paths import repository_file

NAMED = sorted(
    set(re.findall(r"`([\w/]+\.py)::(\w+)`", repository_file("SECURITY.md").read_text()))
)


def test_many_are_named() -> None:
    assert len(NAMED) > 50


@pytest.mark.parametrize(("file", "name"), NAMED, ids=[name for _, name in NAMED])
def test_it_is_there(file: str, name: str) -> None:
    folders = (repository_file(one) / "tests" for one in ("cache-layer", "harness"))
    found = [path for folder in folders if (path := folder / file).exists()]
    assert any(f"\ndef {name}(" in path.read_text() for path in found), f"{file} has no {name}"
