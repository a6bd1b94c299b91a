"""The examples in docstrings hold, in every module that has some."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("cache-layer/hotset", "harness/hotset", "reports/hotset", "tpcc/hotset", "tpch/hotset")
FOLDERS += tuple(f"scripts/{name}" for name in ("campaign", "measure", "pages", "release"))


def modules() -> list[str]:
    """By the names that import them."""
    return [
        ".".join(path.relative_to((ROOT / folder).parent).with_suffix("").parts)
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if ">>> " in path.read_text(encoding="utf-8")
    ]


def test_the_examples_of_a_module_hold(subtests: pytest.Subtests) -> None:
    for name in modules():
        with subtests.test(name=str(name)):
            tried = doctest.testmod(import_module(name))
            assert (tried.attempted > 0, tried.failed) == (True, 0)
