"""What a server runs contains no model of a device and no simulator."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

CRATES = Path(__file__).parents[3] / "cache-layer/flashdev"
LAB = {"storage-model", "whatif", "flashdev"}


def _manifests() -> dict[str, dict[str, Any]]:
    """Of the workspace, by the package's name."""
    workspace = tomllib.loads((CRATES / "Cargo.toml").read_text())["workspace"]
    found = [
        tomllib.loads((CRATES / one / "Cargo.toml").read_text()) for one in workspace["members"]
    ]
    return {manifest["package"]["name"]: manifest for manifest in found}


def _needs(manifest: dict[str, Any]) -> set[str]:
    """What a package is built with, under whatever name and on whatever platform; tests not."""
    tables = [manifest, *manifest.get("target", {}).values()]
    kinds = ("dependencies", "build-dependencies")
    each = [pair for table in tables for kind in kinds for pair in table.get(kind, {}).items()]
    return {
        wanted.get("package", name) if isinstance(wanted, dict) else name for name, wanted in each
    }


def _closure(package: str, manifests: dict[str, dict[str, Any]]) -> set[str]:
    """All packages of ours that one is made of."""
    found: set[str] = set()
    left = {package}
    while left:
        one = left.pop()
        found.add(one)
        left |= (_needs(manifests[one]) & manifests.keys()) - found
    return found


def test_no_package_of_ours_goes_by_another_name_in_the_workspace() -> None:
    """Or :func:`_needs`, which reads no renaming in there, would miss it."""
    shared = tomllib.loads((CRATES / "Cargo.toml").read_text())["workspace"]["dependencies"]
    renamed = [name for name, one in shared.items() if isinstance(one, dict) and "package" in one]
    assert renamed == []


@pytest.mark.parametrize("program", ["hotset-engine", "hotset-boot"])
def test_a_servers_program_has_no_model_in_it(program: str) -> None:
    manifests = _manifests()
    assert _closure(program, manifests) & LAB == set()
    assert manifests.keys() >= LAB


def test_the_closure_is_followed_all_the_way() -> None:
    """A check that finds nothing anywhere would find no model either."""
    manifests = _manifests()
    assert {"cache-core", "block-trace", "virtual-time"} <= _closure("hotset-engine", manifests)
    assert _closure("flashdev", manifests) >= LAB
