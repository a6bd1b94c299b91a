"""Statements of pgbench's scripts as the server describes them, before a window begins: pgbench
sends one when a user first comes to it, which of a rare script may be late in the window.

Only what is wrong whatever was run before is told: scripts that make or move what others name are
left to pgbench.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from .sources import ScriptError, Source
from .workload import SqlWorkload


class Describes(Protocol):
    """A database whose server reads a statement without running it."""

    def describe(self, statements: Iterable[str]) -> list[str | None]:
        """Return what the server has against each; None: nothing that is lasting."""


_MAKES = re.compile(
    r"\b(create|alter|drop|into\s+temp\w*|search_path|execute)\b|\A\s*do\b", re.IGNORECASE
)
_TOKEN = re.compile(
    r"(?P<end>;|\\[ga]set\b[^\n]*)"
    r"|(?P<meta>^[ \t]*(?!\\[ga]set\b)\\(?:\\\n|[^\n])*)"
    r"|(?P<comment>--[^\n]*|/\*(?:(?!/\*|\*/).|/\*.*?\*/)*\*/)"
    r"|(?P<quoted>(?<!\w)[eE]'(?:[^'\\]|''|\\.)*'|'(?:[^']|'')*'|\"[^\"]*\"|\$(?P<tag>\w*)\$.*?\$(?P=tag)\$|::)"
    r"|:(?P<variable>[A-Za-z_]\w*)"
    r"|(?P<other>[^-/'\"$;:\\\neE]+|.)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """One of a script: its ``line``, its text with the variables numbered, and the first variable
    that stands in a string."""

    line: int
    text: str
    quoted_variable: str


def read(source: Source) -> Iterator[Statement]:
    """
    >>> script = r"\\set id 1" + "\\nSELECT ':id' WHERE 1 = :id; SELECT 2::int \\\\gset"
    >>> [(one.line, one.text, one.quoted_variable) for one in read(Source("a", "a", 1, script))]
    [(2, "SELECT ':id' WHERE 1 = $1", 'id'), (2, 'SELECT 2::int', '')]
    """
    parts, names, line, quoted = list[str](), list[str](), 0, ""
    for match in _TOKEN.finditer(f"{source.text}\n;"):
        kind = str(match.lastgroup)
        if kind == "end":
            if text := "".join(parts).strip():
                yield Statement(line, text, quoted)
            parts, names, line, quoted = [], [], 0, ""
        elif kind in ("meta", "comment"):
            parts.append(" ")
        elif kind == "variable":
            name = match["variable"]
            names += [] if name in names else [name]
            parts.append(f"${names.index(name) + 1}")
        else:
            if match[0].startswith(("'", "e'", "E'")):
                variable = re.search(r"(?<!:):([A-Za-z_]\w*)", match[0])
                quoted = quoted or (variable[1] if variable else "")
            parts.append(match[0])
        if not line and "".join(parts).strip():
            line = source.text.count("\n", 0, match.start()) + 1


def check(workload: SqlWorkload, database: Describes) -> None:
    """Have the server read every statement.

    :raises ScriptError: it finds one that no run of it could get through; names file and line.
    """
    scripts = [(source, list(read(source))) for source in workload.sources]
    if workload.protocol != "prepared" or any(
        _MAKES.search(statement.text) for _, statements in scripts for statement in statements
    ):
        return
    for source, statements in scripts:
        set_names = {*workload.defined, *re.findall(r"^\s*\\set\s+(\w+)", source.text, re.M)}
        refusals = database.describe(statement.text for statement in statements)
        for statement, refusal in zip(statements, refusals, strict=True):
            if refusal is not None:
                raise ScriptError(source.file_name, statement.line, refusal)
            if statement.quoted_variable in set_names:
                raise ScriptError(
                    source.file_name,
                    statement.line,
                    f":{statement.quoted_variable} stands in a string, where a prepared statement"
                    " has no parameter: put it beside the string, as 'a' || :name does",
                )
