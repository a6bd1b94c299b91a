"""No message leads nowhere: what a text of ours names as a command or an option is one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotset.core.errors import HotsetError, Remedy, RequestError
from hotset.core.operation import Context, Kind, Lines, Request, declared, operation
from hotset.core.rights import Right
from hotset.experiment.site.live import Live
from hotset.operations import table
from pages import reference
from tests.support import written

ROOT = Path(__file__).parents[3]
FOLDERS = ("cache-layer/hotset", "harness/hotset", "reports/hotset", "tpcc/hotset", "tpch/hotset")
TREES = {
    path: ast.parse(path.read_text(encoding="utf-8"))
    for folder in FOLDERS
    for path in sorted((ROOT / folder).rglob("*.py"))
}
COMMANDS = dict(reference.commands(written.TREE, ("hotset",)))
OPTIONS = {
    name
    for command in COMMANDS.values()
    for parameter in command.params
    for name in (*parameter.opts, *parameter.secondary_opts)
} | {"--help"}
OTHERS = re.compile(
    r"`[^`]*`|\b(?:apt-get|blockdev|docker|flashdev|hotset-engine|journalctl|losetup|modprobe|"
    r"pg_ctl|sg_persist|stat|systemctl|usermod|uv)\b[^;:()]*"
)
"""Commands of other programs: they end where a clause does."""


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """What is written for people: texts with a space, on one line, that are no docstrings. What is
    put into one is a letter."""
    within = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in ast.walk(node)
        if part is not node
    }
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(values):
                text = "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "X" for part in values
                )
            case ast.Constant(value=str(text)) if id(node) not in within | alone:
                pass
            case _:
                continue
        # Neither a script nor a word of another program's command line.
        if " " in text.strip() and not re.search(r"\n|\$|^--", text):
            yield node.lineno, text


def test_a_command_in_a_message_exists_with_its_options() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {command}"
        for path, tree in TREES.items()
        for line, text in _texts(tree)
        for command in re.findall(r"`(hotset [^`]+)`", text)
        if not written.exists(command)
    ]
    assert wrong == []


def test_an_option_in_a_message_is_one_of_some_command() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: {option} in {text!r}"
        for path, tree in TREES.items()
        for line, text in _texts(tree)
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*\b", OTHERS.sub("", text))
        if option not in OPTIONS
    ]
    assert wrong == []


def test_what_the_lab_says_to_try_names_its_disk() -> None:
    """Beside another disk three were refused, with a command for that one as the way out."""
    lab = Live("lab", "/dev/hotset/lab", "/dev/loop1", "/dev/loop2", "/volume", "host=db", "/pw", 2)
    takes = {
        " ".join(words): any("--disk" in one.opts for one in command.params)
        for words, command in COMMANDS.items()
    }
    # Of all disks, if of none by name.
    takes["hotset tier status"] = False
    silent = [
        one
        for one in lab.next_commands
        if any(takes[words] for words in takes if one.startswith(f"{words} ") or one == words)
        and not re.search(r" lab\b(?! (?:up|down))", one)
    ]
    assert silent == []


def _remedies() -> Iterator[tuple[str, str, set[str]]]:
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Remedy":
                named = {one.arg: one.value for one in node.keywords}
                given = [
                    *node.args[1:],
                    *(named[n] for n in ("operation", "parameters") if n in named),
                ]
                name = next((one.value for one in given if isinstance(one, ast.Constant)), None)
                keys = {
                    str(key.value)
                    for one in given
                    if isinstance(one, ast.Dict)
                    for key in one.keys
                    if isinstance(key, ast.Constant)
                }
                if name is not None:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", str(name), keys


def test_a_remedy_is_an_operation_with_its_own_fields() -> None:
    found = list(_remedies())
    assert len(found) > 50
    # Of the commands that are no operations: the name alone is looked at.
    others = {words[1:] for words in COMMANDS} - {one.words for one in table.every()}
    wrong = [
        f"{place}: {name} {keys}"
        for place, name, keys in found
        if tuple(name.split()) not in others
        and not keys <= set(table.find(name).request.model_fields)
    ]
    assert wrong == []


def test_what_is_done_only_when_told_so_can_be_told_so() -> None:
    lacking = [one.name for one in table.every() if one.needs_yes and "yes" not in one.fields]
    assert lacking == []


class _Moved(Request):
    flash: str = ""


def test_a_refusal_advises_no_option_that_its_command_has_not() -> None:
    """`tier import` was refused with `add --yes`, which it does not have."""
    advised = (
        Remedy("use it all the same", parameters={"yes": True}),
        Remedy("take that one", parameters={"flash": "/dev/b"}),
        Remedy("see them", "tier status"),
    )

    def refuse(request: _Moved, context: Context) -> Lines:  # noqa: ARG001
        raise RequestError("it holds data", *advised, field="origin")

    refuse.__annotations__ = {"request": "_Moved", "return": "Lines"}
    name = "tier try-refusal"
    try:
        operation(name, Kind.QUERY, Right.READ, ("Test", "HotsetRefusal"))(refuse)
        with pytest.raises(HotsetError) as refused:
            declared[name].function(_Moved(), Context())
    finally:
        declared.pop(name, None)
    assert refused.value.remedies == advised[1:]
    assert refused.value.field is None
