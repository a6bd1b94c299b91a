"""Who imports whom, how many modules a folder holds, how long functions are."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from hotset.cli.groups import GROUPS

ROOT = Path(__file__).parents[3]
FOLDERS = ("cache-layer", "tpcc", "tpch", "reports", "harness")
MODULES_MAX = 14
LINES_MAX = 40


@cache
def modules() -> dict[str, Path]:
    """The source files by their dotted names."""
    found = {}
    for folder in FOLDERS:
        for file in (ROOT / folder / "hotset").rglob("*.py"):
            name = ".".join(file.relative_to(ROOT / folder).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = file
    return found


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def targets(module: str, node: ast.AST) -> Iterator[str]:
    """The modules of this project that an import names."""
    if isinstance(node, ast.Import):
        yield from (one.name for one in node.names if one.name in modules())
    if isinstance(node, ast.ImportFrom):
        package = module.split(".") if node.level else []
        is_package = modules()[module].name == "__init__.py"
        if node.level:
            package = package[: len(package) - node.level + is_package]
        source = ".".join([*package, *filter(None, [node.module])])
        for one in node.names:
            inside = f"{source}.{one.name}"
            if inside in modules():
                yield inside
            elif source in modules():
                yield source


@cache
def imports(module: str, lazy: bool = True) -> frozenset[str]:
    """:param lazy: also what its functions import, and what only types need."""
    whole = tree(modules()[module])
    nodes = ast.walk(whole) if lazy else iter(whole.body)
    return frozenset(one for node in nodes for one in targets(module, node)) - {module}


def check(graph: Mapping[str, Collection[str]], where: str = "the project") -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        raise AssertionError(f"a circle in {where}: {' <- '.join(circle.args[1])}") from None


def test_no_circle_not_even_one_of_lazy_imports_or_of_types() -> None:
    check({name: imports(name) for name in modules()})


def test_no_circle_of_the_folders_beside_each_other() -> None:
    for package in {name.rpartition(".")[0] for name in modules()} - {""}:
        beside: dict[str, set[str]] = {}
        depth = len(package.split("."))
        for name in modules():
            if name.startswith(f"{package}."):
                room = name.split(".")[depth]
                inside = (one for one in imports(name) if one.startswith(f"{package}."))
                near = {one.split(".")[depth] for one in inside}
                beside.setdefault(room, set()).update(near - {room})
        check(beside, package)


def test_a_lazy_import_is_of_what_is_not_loaded_anyway() -> None:
    """Its reason is time: what a command does not need is not loaded for it."""

    @cache
    def loaded(module: str) -> frozenset[str]:
        found: set[str] = set()
        left = {module}
        while left:
            one = left.pop()
            found.add(one)
            left |= imports(one, lazy=False) - found
        return frozenset(found)

    needless = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {one}"
        for name, file in modules().items()
        for function in ast.walk(tree(file))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for one in targets(name, node)
        if one in loaded(name)
    ]
    assert not needless


def test_folders_hold_few_modules() -> None:
    held: dict[Path, int] = {}
    for file in modules().values():
        held[file.parent] = held.get(file.parent, 0) + (file.name != "__init__.py")
    assert {folder: count for folder, count in held.items() if count > MODULES_MAX} == {}


def lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Without signature and docstring."""
    said = ast.get_docstring(function) is not None and len(function.body) > 1
    return (function.end_lineno or 0) - function.body[1 if said else 0].lineno + 1


def test_functions_fit_a_screen() -> None:
    long = [
        f"{file.relative_to(ROOT)}:{node.lineno}: {node.name}, {lines(node)} lines"
        for file in [*modules().values(), *(ROOT / "scripts").glob("*.py")]
        for node in ast.walk(tree(file))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and lines(node) > LINES_MAX
    ]
    assert not long


def test_messages_of_the_cache_layer_name_no_command() -> None:
    """They reach callers of the API, too: what helps is a `Remedy`, which each caller words."""
    command = re.compile(rf"\bhotset ({'|'.join(GROUPS)})\b")
    named = [
        f"{file.relative_to(ROOT)}:{one.lineno}: {one.value}"
        for file in (ROOT / "cache-layer" / "hotset").rglob("*.py")
        for raised in ast.walk(tree(file))
        if isinstance(raised, ast.Raise)
        for one in ast.walk(raised)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
        if command.search(one.value)
    ]
    assert not named
