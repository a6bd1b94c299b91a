"""Scripts for SQL Server: T-SQL statements that end in semicolons, and lines that draw a variable.

``\\set NAME random(A, B)`` draws one. ``:NAME`` takes it, or one that was defined for all scripts,
but not in strings, quoted names and comments, and not behind another colon. PostgreSQL's scripts
are pgbench's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from hotset.core.errors import Remedy

from .sources import ScriptError

BUILT_IN = ("client_id",)
Bound: TypeAlias = int | str
"""A number, or the name of a variable."""


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL to send.

    :ivar line: where it begins.
    :ivar parts: its text, between the variables.
    :ivar names: the variables, one fewer than there are parts.
    """

    line: int
    parts: tuple[str, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Draw:
    """``\\set``: an integer from ``low`` to ``high``, all alike."""

    line: int
    name: str
    low: Bound
    high: Bound


@dataclass(frozen=True, slots=True)
class Script:
    """One of them.

    :ivar file: its name in messages.
    :ivar used: the variables it takes, and the line where each first does.
    """

    file: str
    commands: tuple[Statement | Draw, ...]
    used: dict[str, int]

    def statements(self) -> Iterator[Statement]:
        """All of them."""
        return (command for command in self.commands if isinstance(command, Statement))

    def sets(self) -> set[str]:
        """The variables it draws."""
        return {command.name for command in self.commands if isinstance(command, Draw)}


def read(file: str, text: str) -> Script:
    """
    >>> script = read("a.sql", "\\\\set n random(1, 9)\\nSELECT :n; -- :x\\nSELECT ':'\\n")
    >>> [(one.line, one.parts, one.names) for one in script.statements()]
    [(2, ('SELECT ', ''), ('n',)), (3, ("SELECT ':'",), ())]

    :raises ScriptError: it is empty, or a line of it is wrong.
    """
    return _Reader(file, text).script()


def require_set(scripts: Iterable[Script], defined: Iterable[str]) -> None:
    """See that each variable is set somewhere.

    :raises ScriptError: one never is.
    """
    every = list(scripts)
    known = {*BUILT_IN, *defined}.union(*(script.sets() for script in every))
    for script in every:
        for name, line in script.used.items():
            if name not in known:
                raise ScriptError(
                    script.file,
                    line,
                    f"nothing sets :{name}: a script can, with \\set",
                    Remedy("set it for all scripts", parameters={"define": f"{name}=VALUE"}),
                )


_NAME = r"[A-Za-z_][A-Za-z_0-9]*"
_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*)"
    r"|(?P<string>'[^']*')"
    r'|(?P<kept>"[^"]*"|\[[^\]]*\]|::)'
    r"|(?P<unclosed>['\"])"
    rf"|:(?P<variable>{_NAME})"
    r"|\\(?P<command>[^\n]*)"
    r"|(?P<end>;)"
    r"|(?P<other>[^-/'\"\[:\\;]+|.)",
    re.S,
)
"""A doubled quote is the end of one string and the begin of the next."""
_COMMENT = re.compile(r"/\*|\*/")
_RANDOM = re.compile(
    rf"set\s+({_NAME})\s+random\s*\(\s*(-?[0-9]+|:{_NAME})\s*,\s*(-?[0-9]+|:{_NAME})\s*\)\s*"
)


class _Reader:
    """Goes through a script once, token by token."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = text.replace("\r\n", "\n")
        self._line = 1
        self._commands: list[Statement | Draw] = []
        self._used: dict[str, int] = {}
        self._strings: list[tuple[int, str]] = []
        self._begin()

    def _begin(self) -> None:
        """Another statement, of which nothing has come: it is on no line yet."""
        self._begun, self._parts, self._names = 0, [""], list[str]()

    def script(self) -> Script:
        place = 0
        while match := _TOKEN.match(self._text, place):
            self._line, kind = self._text.count("\n", 0, place) + 1, str(match.lastgroup)
            place = self._comment_end(place) if match[0] == "/*" else match.end()
            self._take(kind, match[kind], self._text[match.start() : place])
        self._end()
        script = Script(self._file, tuple(self._commands), self._used)
        if not any(True for _ in script.statements()):
            raise self._error(1, "there is no statement in it")
        self._require_no_variable_in_strings(script)
        return script

    def _take(self, kind: str, word: str, text: str) -> None:
        """
        :param word: of the text, what its kind is about.
        """
        if kind == "unclosed":
            raise self._error(self._line, f"{word} has no end")
        if kind == "command":
            self._end()
            self._commands.append(self._draw(word))
        elif kind == "end":
            self._end()
        elif kind == "variable":
            self._begun = self._begun or self._line
            self._used.setdefault(word, self._line)
            self._names.append(word)
            self._parts.append("")
        elif self._begun or (kind != "comment" and text.strip()):
            if kind == "string":
                self._strings.append((self._line, text))
            if not self._begun:
                blank = len(text) - len(text.lstrip())
                self._begun, text = self._line + text.count("\n", 0, blank), text[blank:]
            self._parts[-1] += text

    def _end(self) -> None:
        if self._begun:
            self._parts[-1] = self._parts[-1].rstrip()
            self._commands.append(Statement(self._begun, tuple(self._parts), tuple(self._names)))
        self._begin()

    def _comment_end(self, place: int) -> int:
        """T-SQL's comments nest."""
        depth = 0
        for match in _COMMENT.finditer(self._text, place):
            depth += 1 if match[0] == "/*" else -1
            if not depth:
                return match.end()
        raise self._error(self._line, "a comment has no end: */ is missing")

    def _draw(self, text: str) -> Draw:
        match = _RANDOM.fullmatch(text)
        if match is None:
            raise self._error(
                self._line,
                f"\\{text.strip()}: on SQL Server a script has \\set NAME random(A, B), of numbers"
                " or :names, and no more of pgbench's language: write it in T-SQL",
                Remedy("give a value to all scripts", parameters={"define": "NAME=VALUE"}),
            )
        return Draw(self._line, match[1], self._bound(match[2]), self._bound(match[3]))

    def _bound(self, text: str) -> Bound:
        if not text.startswith(":"):
            return int(text)
        self._used.setdefault(text[1:], self._line)
        return text[1:]

    def _require_no_variable_in_strings(self, script: Script) -> None:
        for line, string in self._strings:
            for name in re.findall(f":({_NAME})", string):
                if name in script.sets() | script.used.keys():
                    raise self._error(
                        line,
                        f":{name} stands in a string, where it stays as it is: write"
                        f" CONCAT('…', :{name}, '…'), or :{name} alone",
                    )

    def _error(self, line: int, problem: str, *remedies: Remedy) -> ScriptError:
        return ScriptError(self._file, line, problem, *remedies)
