"""The crates: what a server runs contains no model of a device and no simulator, and the files of a
crate keep the rules of the house."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pages.rooms import MODULES_MAX, Module, beside, require_no_circle

CRATES = Path(__file__).parents[3] / "cache-layer/crates"
LAB = {"storage-model", "whatif", "flashdev"}
SOURCES = [*sorted(CRATES.glob("*/src")), CRATES.parents[1] / "tpcc/driver/src"]


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


def _modules(source: Path) -> dict[Module, Path]:
    """The files of a crate by the names of their modules; those of tests not."""
    found = {}
    for path in source.rglob("*.rs"):
        name = path.relative_to(source).with_suffix("").parts
        name = name[:-1] if name[-1] in ("mod", "lib", "main") else name
        if not any(word.endswith("tests") or word == "properties" for word in name):
            found[name] = path
    return found


def _paths(tree: str) -> Iterator[str]:
    """The paths of a tree of imports: of ``a::{b, c::{d}}`` ``a::b`` and ``a::c::d``."""
    head, brace, rest = tree.strip().partition("{")
    if not brace:
        yield head.partition(" as ")[0].strip()
        return
    depth, word = 0, ""
    for char in rest.rpartition("}")[0] + ",":
        if char == "," and depth == 0:
            if word.strip():
                yield from _paths(head + word.strip())
            word = ""
        else:
            depth += (char == "{") - (char == "}")
            word += char


def _needed(name: Module, path: Path, modules: dict[Module, Path]) -> set[Module]:
    """The modules of its crate that a file names, in its imports or where it calls them."""
    text = re.sub(r"//.*", "", path.read_text().partition("#[cfg(test)]\nmod tests")[0])
    trees = re.findall(r"\buse\s+([^;]+);", text)
    calls = re.findall(r"\b(?:crate|super)(?:::\w+)+", text)
    found = set()
    for words in (path.split("::") for tree in [*trees, *calls] for path in _paths(tree)):
        base, rest = {"crate": ((), words[1:]), "self": (name, words[1:])}.get(
            words[0], (name, words)
        )
        while rest and rest[0] == "super":
            base, rest = base[:-1], rest[1:]
        if words[0] in ("crate", "self", "super"):
            longest = (base + tuple(rest[:end]) for end in range(len(rest), 0, -1))
            found.update([next((one for one in longest if one in modules), name)])
    return found - {name}


@pytest.mark.parametrize("source", SOURCES, ids=lambda one: one.parent.name)
def test_no_circle_of_the_modules_beside_each_other(source: Path) -> None:
    modules = _modules(source)
    needed = {name: _needed(name, path, modules) for name, path in modules.items()}
    for parent in {name[:-1] for name in modules if name}:
        require_no_circle(beside(needed, parent), "::".join(parent) or "the crate")


def test_a_module_that_another_names_is_found() -> None:
    """In an import of several, and in a call by its path."""
    modules = _modules(CRATES / "cache-core/src")
    fetch = ("engine", "migration", "fetch")
    assert ("engine", "migration", "task") in _needed(fetch, modules[fetch], modules)
    assert set(_paths("a::{b, c::{d as e}}")) == {"a::b", "a::c::d"}


@pytest.mark.parametrize("source", SOURCES, ids=lambda one: one.parent.name)
def test_a_folder_of_rust_holds_no_more_than_one_can_look_over(source: Path) -> None:
    names = {name for name in _modules(source) if name}
    for parent in {name[:-1] for name in names}:
        inside = {name[-1] for name in names if name[:-1] == parent}
        assert len(inside) <= MODULES_MAX, f"{'/'.join(parent)}: {sorted(inside)}"
