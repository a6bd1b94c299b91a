"""The examples in the docstrings of what runs SQL scripts."""

from __future__ import annotations

import doctest
from importlib import import_module

import pytest

MODULES = (
    "benchmarks.disks.disk_metrics",
    "benchmarks.sql.expressions",
    "benchmarks.sql.functions",
    "benchmarks.sql.script",
    "benchmarks.sql.suggest",
    "benchmarks.sql.users",
    "benchmarks.window",
    "databases.postgres.costly",
    "databases.postgres.statements",
    "databases.statements",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_hold(name: str) -> None:
    found = doctest.testmod(import_module(f"hotset.harness.{name}"))
    assert found.attempted
    assert found.failed == 0
