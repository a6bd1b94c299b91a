"""Scripts in pgbench's language: SQL statements that end in semicolons, and lines that begin with a
backslash.

What stands behind a colon is a variable, but not in strings, quoted names and comments, and not
behind another colon (a cast). pgbench replaces it in strings, too; here that is an error that
says what to write.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from hotset.core.errors import Remedy, RequestError

from .expressions import BUILT_IN, Evaluate, ExpressionError, parse
from .functions import ValueProblem


class ScriptError(RequestError):
    """A script cannot be read; names file and line."""

    def __init__(self, file: str, line: int, problem: str, *remedies: Remedy) -> None:
        super().__init__(f"{file}:{line}: {problem}", *remedies, field="script")


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL to send.

    :ivar line: where it begins.
    :ivar parts: its text, between the variables.
    :ivar names: the variables, one fewer than there are parts.
    :ivar prefix: with ``\\gset`` and ``\\aset``, which keep the last row's columns in variables:
        what their names begin with; None without.
    :ivar one_row: with ``\\gset``: it has to be one row.
    """

    line: int
    parts: tuple[str, ...]
    names: tuple[str, ...]
    prefix: str | None = None
    one_row: bool = False


@dataclass(frozen=True, slots=True)
class Assign:
    """``\\set``"""

    line: int
    name: str
    value: Evaluate


@dataclass(frozen=True, slots=True)
class Sleep:
    """``\\sleep``; ``unit_s`` in seconds."""

    line: int
    amount: Evaluate
    unit_s: float


@dataclass(frozen=True, slots=True)
class Choice:
    """``\\if``: line, condition and block of each branch; ``\\else`` is always true."""

    line: int
    branches: tuple[tuple[int, Evaluate, Block], ...]


Command: TypeAlias = Statement | Assign | Sleep | Choice
Block: TypeAlias = tuple[Command, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """One of them.

    :ivar file: as it is called in messages.
    :ivar used: the variables it takes, and the line where each first does.
    :ivar sets: the variables it sets.
    :ivar prefixes: of the variables that its ``\\gset`` and ``\\aset`` set: only rows tell which.
    """

    file: str
    block: Block
    used: dict[str, int]
    sets: frozenset[str]
    prefixes: frozenset[str]

    def statements(self) -> Iterator[Statement]:
        """All of them, in all branches."""
        yield from _statements(self.block)


def _statements(block: Block) -> Iterator[Statement]:
    for command in block:
        if isinstance(command, Statement):
            yield command
        elif isinstance(command, Choice):
            for _, _, inner in command.branches:
                yield from _statements(inner)


def read(file: str, text: str) -> Script:
    """
    >>> script = read("a.sql", "\\\\set n random(1, 9)\\nSELECT :n::int; -- :x\\nSELECT ':'\\n")
    >>> [(one.line, one.parts, one.names) for one in script.statements()]
    [(2, ('SELECT ', '::int'), ('n',)), (3, ("SELECT ':'",), ())]

    :raises ScriptError: it is empty, or a line of it is wrong.
    """
    return _Reader(file, text).script()


def require_set(scripts: Iterable[Script], defined: Iterable[str]) -> None:
    """See that each variable is set somewhere, as far as that can be told before a run.

    :raises ScriptError: one never is.
    """
    every = list(scripts)
    prefixes = tuple(prefix for script in every for prefix in script.prefixes)
    known = {*BUILT_IN, *defined, *(name for script in every for name in script.sets)}
    for script in every:
        for name, line in script.used.items():
            if name not in known and not name.startswith(prefixes):
                raise ScriptError(
                    script.file,
                    line,
                    f"nothing sets :{name}: a script can, with \\set",
                    Remedy("set it for all scripts", parameters={"define": f"{name}=VALUE"}),
                )


_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_VARIABLE = re.compile(r":([A-Za-z_][A-Za-z_0-9]*)")
_DOLLAR = re.compile(r"\$([A-Za-z_][A-Za-z_0-9]*)?\$")
_ESCAPES = re.compile(r"(?<![A-Za-z_0-9$])[eE]$")
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_KNOWN = ("set", "sleep", "gset", "aset", "if", "elif", "else", "endif")
_NO_PIPELINE = "statements are sent one after the other: leave pipelines out"
_UNSUPPORTED = {
    "shell": "no programs are run",
    "setshell": "no programs are run",
    "startpipeline": _NO_PIPELINE,
    "syncpipeline": _NO_PIPELINE,
    "endpipeline": _NO_PIPELINE,
    ";": "statements are sent one by one: end each with a plain semicolon",
}


@dataclass(slots=True)
class _Open:
    """An ``\\if`` that is not closed."""

    line: int
    branches: list[tuple[int, Evaluate, Block]]
    condition: tuple[int, Evaluate]
    before: list[Command]
    has_else: bool = False


class _Reader:
    """Goes through a script once, from its first character to its last."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = text.replace("\r\n", "\n")
        self._place = 0
        self._block: list[Command] = []
        self._open: list[_Open] = []
        self._used: dict[str, int] = {}
        self._sets: set[str] = set()
        self._prefixes: set[str] = set()
        self._in_strings: list[tuple[str, int]] = []

    def script(self) -> Script:
        while self._skip_space():
            if self._text[self._place] == "\\":
                self._meta()
            else:
                self._statement()
        if self._open:
            raise self._error(self._open[-1].line, "\\if without \\endif")
        block = tuple(self._block)
        if not any(True for _ in _statements(block)):
            raise self._error(1, "there is no statement in it")
        for name, line in self._in_strings:
            if name in self._sets or name in self._used:
                raise self._error(
                    line,
                    f":{name} stands in a string, where it stays as it is: write"
                    f" '…' || :{name} || '…' (SQL Server: CONCAT), or :{name} alone",
                )
        sets, prefixes = frozenset(self._sets), frozenset(self._prefixes)
        return Script(self._file, block, self._used, sets, prefixes)

    def _error(self, line: int, problem: str) -> ScriptError:
        return ScriptError(self._file, line, problem)

    @property
    def _line(self) -> int:
        return self._text.count("\n", 0, self._place) + 1

    def _skip_space(self) -> bool:
        """To the next command; False at the end."""
        while self._place < len(self._text):
            if self._text[self._place].isspace() or self._text[self._place] == ";":
                self._place += 1
            elif self._text.startswith(("--", "/*"), self._place):
                self._skip_comment()
            else:
                return True
        return False

    def _skip_comment(self) -> None:
        if self._text.startswith("--", self._place):
            end = self._text.find("\n", self._place)
            self._place = len(self._text) if end < 0 else end
            return
        line, depth = self._line, 0
        while self._place < len(self._text):
            if self._text.startswith("/*", self._place):
                depth, self._place = depth + 1, self._place + 2
            elif self._text.startswith("*/", self._place):
                depth, self._place = depth - 1, self._place + 2
                if not depth:
                    return
            else:
                self._place += 1
        raise self._error(line, "a comment has no end: */ is missing")

    def _statement(self) -> None:
        line, begun = self._line, self._place
        parts: list[str] = []
        names: list[str] = []
        text = self._text
        while self._place < len(text) and text[self._place] not in ";\\":
            at = text[self._place]
            if at in "'\"":
                self._skip_quoted(begun)
            elif text.startswith(("--", "/*"), self._place):
                self._skip_comment()
            elif at == "$" and (found := _DOLLAR.match(text, self._place)):
                self._skip_dollars(found[0])
            elif text.startswith("::", self._place):
                self._place += 2
            elif at == ":" and (found := _VARIABLE.match(text, self._place)):
                self._used.setdefault(found[1], self._line)
                parts.append(text[begun : self._place])
                names.append(found[1])
                self._place = begun = found.end()
            else:
                self._place += 1
        parts.append(text[begun : self._place].rstrip())
        statement = Statement(line, tuple(parts), tuple(names))
        self._block.append(self._ended(statement))

    def _ended(self, statement: Statement) -> Statement:
        """Past its semicolon, or with the \\gset that ends it."""
        if self._text.startswith(";", self._place):
            self._place += 1
            return statement
        found = re.compile(r"\\([ga]set)\b[ \t]*([^\n]*)").match(self._text, self._place)
        if found is None:
            if self._text.startswith("\\;", self._place):
                raise self._error(self._line, f"\\; is not supported: {_UNSUPPORTED[';']}")
            return statement
        prefix = found[2].strip().rstrip(";")
        if prefix and not _NAME.fullmatch(prefix):
            raise self._error(self._line, f"\\{found[1]} takes a prefix for names, not {prefix!r}")
        self._place = found.end()
        self._prefixes.add(prefix)
        return Statement(
            statement.line, statement.parts, statement.names, prefix, found[1] == "gset"
        )

    def _skip_quoted(self, begun: int) -> None:
        quote, line, start = self._text[self._place], self._line, self._place
        escapes = quote == "'" and _ESCAPES.search(self._text[max(begun, start - 2) : start])
        self._place += 1
        while self._place < len(self._text):
            at = self._text[self._place]
            self._place += 2 if escapes and at == "\\" else 1
            if at == quote:
                if not self._text.startswith(quote, self._place):
                    if quote == "'":
                        self._note_variables(start, line)
                    return
                self._place += 1
        raise self._error(line, f"{quote} has no end")

    def _note_variables(self, start: int, line: int) -> None:
        string = self._text[start : self._place]
        self._in_strings += [(name, line) for name in _VARIABLE.findall(string)]

    def _skip_dollars(self, tag: str) -> None:
        end = self._text.find(tag, self._place + len(tag))
        if end < 0:
            raise self._error(self._line, f"{tag} has no end")
        self._place = end + len(tag)

    def _meta(self) -> None:
        line = self._line
        found = re.compile(r"\\([^\s\\]*)((?:[^\n\\]|\\\n|\\)*)").match(self._text, self._place)
        assert found is not None
        self._place = found.end()
        name, rest = found[1].lower(), found[2].replace("\\\n", " ").strip()
        if name in _UNSUPPORTED:
            raise self._error(line, f"\\{name} is not supported: {_UNSUPPORTED[name]}")
        if name not in _KNOWN:
            known = ", ".join(f"\\{one}" for one in _KNOWN)
            raise self._error(line, f"there is no command \\{name}; there are {known}")
        if name in ("gset", "aset"):
            raise self._error(line, f"\\{name} ends a statement, and here is none")
        if rest and name in ("else", "endif"):
            raise self._error(line, f"nothing belongs behind \\{name}, but there is {rest!r}")
        getattr(self, f"_{name}")(line, rest)

    def _expression(self, line: int, text: str) -> Evaluate:
        try:
            evaluate, names = parse(text)
        except (ExpressionError, ValueProblem) as error:
            raise self._error(line, str(error)) from None
        for name in names:
            self._used.setdefault(name, line)
        return evaluate

    def _set(self, line: int, rest: str) -> None:
        name, *text = rest.split(maxsplit=1) or [""]
        if not text or not _NAME.fullmatch(name):
            raise self._error(line, "\\set takes a name and an expression")
        self._block.append(Assign(line, name, self._expression(line, text[0])))
        self._sets.add(name)

    def _sleep(self, line: int, rest: str) -> None:
        found = re.fullmatch(r"([0-9]+\s*|:\w+(?:\s+|$))(us|ms|s)?", rest)
        if found is None:
            raise self._error(line, "\\sleep takes a number or a variable, and us, ms or s")
        amount, unit = found[1].strip(), found[2] or "s"
        self._block.append(Sleep(line, self._expression(line, amount), _UNITS[unit]))

    def _if(self, line: int, rest: str) -> None:
        condition = line, self._expression(line, rest)
        self._open.append(_Open(line, [], condition, self._block))
        self._block = []

    def _next_branch(self, line: int, name: str) -> _Open:
        if not self._open:
            raise self._error(line, f"\\{name} without \\if")
        found = self._open[-1]
        if found.has_else and name != "endif":
            raise self._error(line, f"\\{name} behind \\else")
        found.branches.append((*found.condition, tuple(self._block)))
        self._block = []
        return found

    def _elif(self, line: int, rest: str) -> None:
        found = self._next_branch(line, "elif")
        found.condition = line, self._expression(line, rest)

    def _else(self, line: int, rest: str) -> None:  # noqa: ARG002
        found = self._next_branch(line, "else")
        found.condition, found.has_else = (line, parse("true")[0]), True

    def _endif(self, line: int, rest: str) -> None:  # noqa: ARG002
        found = self._next_branch(line, "endif")
        self._open.pop()
        self._block = [*found.before, Choice(found.line, tuple(found.branches))]
