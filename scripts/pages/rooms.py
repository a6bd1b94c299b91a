"""Who imports whom: what `harness/tests/project/test_house.py` holds to its rules, and
docs/reference/rooms.md shows."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

MODULES_MAX = 14
"""In a folder, of Python and of Rust."""
Module = tuple[str, ...]
"""A module's name, word by word."""
ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("cache-layer", "tpcc", "tpch", "reports", "harness")


@cache
def modules() -> dict[str, Path]:
    """The source files by their dotted names."""
    files = {}
    for folder in FOLDERS:
        for file in (ROOT / folder / "hotset").rglob("*.py"):
            name = ".".join(file.relative_to(ROOT / folder).with_suffix("").parts)
            files[name.removesuffix(".__init__")] = file
    return files


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def targets(module: str, node: ast.AST) -> Iterator[str]:
    """The modules of this project that an import names."""
    if isinstance(node, ast.Import):
        yield from (name.name for name in node.names if name.name in modules())
    if isinstance(node, ast.ImportFrom):
        package = module.split(".") if node.level else []
        is_package = modules()[module].name == "__init__.py"
        if node.level:
            package = package[: len(package) - node.level + is_package]
        source = ".".join([*package, *filter(None, [node.module])])
        for name in node.names:
            inside = f"{source}.{name.name}"
            if inside in modules():
                yield inside
            elif source in modules():
                yield source


@cache
def imports(module: str, lazy: bool = True) -> frozenset[str]:
    """:param lazy: also what its functions import, and what only types need."""
    whole = tree(modules()[module])
    nodes = ast.walk(whole) if lazy else iter(whole.body)
    return frozenset(target for node in nodes for target in targets(module, node)) - {module}


def beside(needed: Mapping[Module, Collection[Module]], parent: Module) -> dict[str, set[str]]:
    """Which of the rooms right below a parent need which others of them, by whatever way."""
    depth = len(parent)
    neighbours: dict[str, set[str]] = {}
    for name, others in needed.items():
        if name[:depth] == parent and len(name) > depth:
            near = {
                other[depth] for other in others if other[:depth] == parent and len(other) > depth
            }
            neighbours.setdefault(name[depth], set()).update(near - {name[depth]})
    return neighbours


def require_no_circle(graph: Mapping[str, Collection[str]], where: str) -> None:
    """:raises AssertionError: there is one; the message shows it."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as circle:
        raise AssertionError(f"a circle in {where}: {' <- '.join(circle.args[1])}") from None


def page() -> str:
    """docs/reference/rooms.md without its first line: the rooms, each below those that use it."""
    lines = [
        "# Rooms",
        "",
        "Each package of hotset, what it holds, and which others its modules import: when they are"
        " loaded, and only when a function needs them, which keeps `hotset --help` quick. Who may"
        " import whom, in functions too, is ruled in `pyproject.toml` (`tool.importlinter`).",
        "",
        "| package | holds | imports | only when needed |",
        "|---|---|---|---|",
    ]
    names = {room(name) for name in modules()}
    for name in sorted(names, key=lambda name: (len(_below(name)), name)):
        inside = [module for module in modules() if room(module) == name]
        soon = {room(imported) for module in inside for imported in imports(module, lazy=False)} - {
            name
        }
        late = {room(imported) for module in inside for imported in imports(module)} - {name} - soon
        lines.append(f"| `{name}` | {_purpose(name)} | {_list(soon)} | {_list(late)} |")
    return "\n".join(lines) + "\n"


def room(module: str) -> str:
    """The package that a module belongs to, such as `hotset.tier`."""
    return ".".join(module.split(".")[:2])


@cache
def _below(name: str) -> frozenset[str]:
    """All rooms that one needs, by whatever way."""
    near = {
        room(imported)
        for module in modules()
        if room(module) == name
        for imported in imports(module)
    }
    near -= {name}
    return frozenset(near).union(*(_below(other) for other in near))


def _purpose(name: str) -> str:
    docstring = ast.get_docstring(tree(modules()[name])) or ""
    return " ".join(docstring.partition("\n\n")[0].split()).rstrip(".").replace("|", "\\|")


def _list(names: set[str]) -> str:
    return ", ".join(f"`{name.removeprefix('hotset.')}`" for name in sorted(names)) or "–"
