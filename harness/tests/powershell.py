"""The PowerShell module as its grammar reads it: cmdlets, their parameters, and what they request.

A cmdlet's requests are literal in its text, ``Invoke-HotsetJob $PSCmdlet $Connection 'OPERATION' …
-Values @{…}``, so that they can be recorded without running it: every field with the type of its
expression.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import tree_sitter_powershell
from tree_sitter import Language, Node, Parser

MODULE = Path(__file__).parents[2] / "scripts" / "Hotset"
PREFIX = "/api/v1"
_TYPES = {
    "string": "string",
    "string[]": "array",
    "int": "integer",
    "Nullable[int]": "integer",
    "Nullable[long]": "integer",
    "double": "number",
    "Nullable[double]": "number",
    "double[]": "numbers",
    "Nullable[bool]": "boolean",
    "switch": "boolean",
    "object": "string",
    "object[]": "array",
}
_CONVERTED = re.compile(
    r"\(ConvertTo-Hotset(?:Choice|Dsn \$PSCmdlet|(?:Size|Time) \$PSCmdlet \w+) \$(\w+)\)"
)


def shell() -> str:
    """PowerShell, of HOTSET_PWSH or of the PATH; without one its tests are skipped."""
    found = os.environ.get("HOTSET_PWSH") or shutil.which("pwsh")
    if found is None:
        pytest.skip("no PowerShell here: https://aka.ms/install-powershell")
    return found


def hotset() -> str:
    """The command line of this checkout."""
    return str(Path(sys.executable).with_name("hotset"))


@dataclass(frozen=True)
class Parameter:
    """One of a cmdlet. ``type`` as it is written, ``allowed`` what ValidateSet lists, ``limits``
    those of ValidateRange, ``attributes`` all that stand before it."""

    name: str
    type: str
    allowed: tuple[str, ...]
    limits: tuple[float, ...]
    attributes: tuple[str, ...]


@dataclass(frozen=True)
class Field:
    """A field of a request: its type in JSON, and the values where only some are allowed."""

    type: str
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Request:
    """What is sent: ``path`` as the API's description has it, below the prefix. ``operation`` is
    empty where it is none, but a job's."""

    sender: str
    operation: str
    method: str
    path: str
    fields: dict[str, Field]


@dataclass(frozen=True)
class Function:
    """A function with its comment-based help, without the parameters of its inner blocks."""

    name: str
    help: str
    parameters: dict[str, Parameter]
    requests: tuple[Request, ...]
    node: Node

    def section(self, name: str) -> list[str]:
        """The texts of a section of its help."""
        found = re.findall(
            rf"^ *\.{name}\n(.*?)(?=^ *\.[A-Z]+|^ *#>)", self.help, re.MULTILINE | re.DOTALL
        )
        return [one.strip() for one in found]


def parse(path: Path) -> Node:
    return parse_text(path.read_text(encoding="utf-8"))


def parse_text(script: str) -> Node:
    # The grammar knows no suffixes of numbers: 1GB, 5L.
    script = re.sub(r"(?<=\d)([KMGT]B|L)\b", lambda found: " " * len(found[0]), script)
    language = Language(tree_sitter_powershell.language())
    return Parser(language).parse(script.encode()).root_node


def faults(node: Node) -> list[str]:
    """Where a text is no PowerShell."""
    return [
        f"line {one.start_point.row + 1}: {text(one)[:60]!r}"
        for one in inside(node)
        if one.type == "ERROR" or one.is_missing
    ]


def inside(node: Node, kind: str | None = None) -> Iterator[Node]:
    """A node and all below it, in the order of the text."""
    if kind is None or node.type == kind:
        yield node
    for child in node.children:
        yield from inside(child, kind)


def text(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode()


@cache
def functions(folder: str) -> dict[str, Function]:
    """All functions of a folder of the module, by their names."""
    found = (
        _function(node, folder == "Public")
        for path in sorted((MODULE / folder).glob("*.ps1"))
        for node in inside(parse(path), "function_statement")
    )
    return {one.name: one for one in found}


def requests() -> list[Request]:
    return [request for one in functions("Public").values() for request in one.requests]


def exported() -> list[str]:
    """What the manifest exports."""
    root = parse(MODULE / "Hotset.psd1")
    entry = next(
        one for one in inside(root, "hash_entry") if text(one).startswith("FunctionsToExport")
    )
    return [text(one).strip("'") for one in inside(entry, "string_literal")]


def _function(node: Node, is_cmdlet: bool) -> Function:
    name = text(next(inside(node, "function_name")))
    comments = [text(one) for one in node.children if one.type == "comment"]
    block = next(inside(node, "param_block"), None)
    parameters = (
        {}
        if block is None
        else {one.name: one for one in map(_parameter, inside(block, "script_parameter"))}
    )
    commands = [
        one
        for one in inside(node, "command")
        if text(next(inside(one, "command_name"))) in _SENDERS
    ]
    found = tuple(_request(name, parameters, one) for one in commands if is_cmdlet)
    return Function(name, "\n".join(comments), parameters, found, node)


def _parameter(node: Node) -> Parameter:
    types = [text(one)[1:-1] for one in inside(node, "type_literal")]
    attributes = [text(one) for one in inside(node, "attribute")]
    sets = [one for one in inside(node, "attribute") if text(one).startswith("[ValidateSet(")]
    allowed = [
        text(literal).strip("'") for one in sets for literal in inside(one, "string_literal")
    ]
    ranges = [one for one in attributes if one.startswith("[ValidateRange(")]
    limits = [float(word) for one in ranges for word in re.findall(r"[0-9.]+", one)]
    name = next(text(one) for one in node.children if one.type == "variable")
    return Parameter(
        name.removeprefix("$"),
        types[0] if types else "",
        tuple(allowed),
        tuple(limits),
        tuple(attributes),
    )


_SENDERS = {
    "Invoke-HotsetQuery": re.compile(r"\S+ \$PSCmdlet \$Connection '([^']+)'"),
    "Invoke-HotsetJob": re.compile(r"\S+ \$PSCmdlet \$Connection '([^']+)' -AsJob"),
}


def _request(sender: str, parameters: dict[str, Parameter], command: Node) -> Request:
    helper = text(next(inside(command, "command_name")))
    words = _SENDERS[helper].match(text(command))
    assert words is not None, f"{sender}: {text(command)!r} is not a literal request"
    fields = {}
    for entry in inside(command, "hash_entry"):
        name = text(next(inside(entry, "key_expression")))
        value = entry.children[-1]
        fields[name] = _field(sender, parameters, text(value))
    known = operations()[words[1]]
    path = known["Path"].removeprefix(PREFIX)
    # What the API has of jobs is no operation.
    operation = "" if words[1].startswith("jobs ") else words[1]
    return Request(sender, operation, known["Method"].lower(), path, fields)


@cache
def operations() -> dict[str, dict[str, str]]:
    """The module's table of operations."""
    table = (MODULE / "Private/Operations.ps1").read_text(encoding="ascii")
    return {
        name: dict(re.findall(r"(\w+) = '([^']*)'", entry))
        for name, entry in re.findall(r"^    '([^']+)' += @\{ (.*) \}$", table, re.MULTILINE)
    }


def _field(sender: str, parameters: dict[str, Parameter], expression: str) -> Field:
    if expression.startswith("$login."):
        name = expression.removeprefix("$login.")
        return Field("string", parameters[name].allowed if name in parameters else ())
    converted = _CONVERTED.fullmatch(expression)
    parameter = parameters.get(converted[1] if converted else expression.removeprefix("$"))
    if parameter is not None:
        return Field(_TYPES[parameter.type], parameter.allowed)
    if expression.startswith("-not ") or expression in ("$go", "($Mark -or $Wait)"):
        return Field("boolean")
    if expression.endswith(".ToArray()") or expression.startswith("(Get-HotsetRunOrder "):
        return Field("array")
    if expression in ("$each", "$one", "$begin") or " -join ',' " in f"{expression} ":
        return Field("string")
    raise AssertionError(f"{sender}: of which type is {expression!r}?")
