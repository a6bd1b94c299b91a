"""Every external program is declared, and every declared program is used."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import pytest

from hotset.core.machines import programs
from hotset.core.machines.programs import PROGRAMS

FOLDERS = [
    Path(programs.__file__).parents[4] / name / "hotset" for name in ("cache-layer", "harness")
]


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    """Parsed here, as every worker of a run imports this file."""
    return {
        file: ast.parse(file.read_text(), str(file))
        for folder in FOLDERS
        for file in sorted(folder.rglob("*.py"))
        if file != Path(programs.__file__)
    }


def _functions(tree: ast.Module) -> Iterator[ast.AST]:
    yield tree
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _assigned(nodes: Iterable[ast.AST]) -> dict[str, ast.expr]:
    """Name → what it is given."""
    return {
        target.id: node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _first_word(node: ast.expr, known: dict[str, ast.expr]) -> str | None:
    """The program of an argv written out in the source, also through a name or a leading star."""
    if isinstance(node, ast.Name) and node.id in known:
        others = {name: value for name, value in known.items() if name != node.id}
        return _first_word(known[node.id], others)
    if isinstance(node, ast.List | ast.Tuple) and node.elts:
        first = node.elts[0]
        if isinstance(first, ast.Starred):
            return _first_word(first.value, known)
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            return PurePosixPath(first.value).name
    return None


@pytest.fixture(scope="module")
def called(trees: dict[Path, ast.Module]) -> dict[str, str]:
    """Program → where, for every call of run, stream or spawn whose argv stands in the source."""
    found: dict[str, str] = {}
    for file, tree in trees.items():
        constants = _assigned(tree.body)
        for function in _functions(tree):
            known = constants | _assigned(ast.walk(function))
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr in ("run", "stream", "spawn", "command", "leftover")
                ):
                    for argument in node.args[:2]:
                        name = _first_word(argument, known)
                        if name is not None:
                            found[name] = f"{file.name}:{node.lineno}"
    return found


def test_the_scan_finds_the_calls(called: dict[str, str]) -> None:
    assert {
        "dmsetup",
        "mount",
        "umount",
        "filefrag",
        "cache_restore",
        "iscsiadm",
        "sh",
        "ip",
        "qemu-system-x86_64",
        "truncate",
        "losetup",
        "cmp",
    } <= set(called)


def test_what_is_called_is_declared(called: dict[str, str]) -> None:
    assert {name: where for name, where in called.items() if name not in PROGRAMS} == {}


def test_what_is_declared_is_used(trees: dict[Path, ast.Module]) -> None:
    """As a word of its own somewhere in the source."""
    words = {
        node.value
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    assert set(PROGRAMS) - words == set()
