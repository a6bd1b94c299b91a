"""The examples in docstrings hold, in every module that has some."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("cache-layer", "harness", "reports", "tpcc", "tpch")


def modules() -> list[str]:
    """By the names that import them."""
    scripts = (
        path.stem
        for path in (ROOT / "scripts").glob("*.py")
        if ">>> " in path.read_text(encoding="utf-8")
    )
    return sorted(scripts) + sorted(
        ".".join(path.relative_to(ROOT / package).with_suffix("").parts)
        for package in PACKAGES
        for path in (ROOT / package / "hotset").rglob("*.py")
        if ">>> " in path.read_text(encoding="utf-8")
    )


def test_the_examples_of_a_module_hold(subtests: pytest.Subtests) -> None:
    for name in modules():
        with subtests.test(name=str(name)):
            tried = doctest.testmod(import_module(name))
            assert (tried.attempted > 0, tried.failed) == (True, 0)
