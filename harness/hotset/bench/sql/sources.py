"""The scripts of a run as they were given: files, weights and variables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from hotset.core.errors import Remedy, RequestError
from hotset.core.sql import Value

WEIGHT_MAX = 1_000_000


class ScriptError(RequestError):
    """A script cannot be read; names file and line."""

    def __init__(self, file: str, line: int, problem: str, *remedies: Remedy) -> None:
        super().__init__(f"{file}:{line}: {problem}", *remedies, field="script")


@dataclass(frozen=True, slots=True)
class Source:
    """A script as it was given.

    :ivar name: of its transactions, in results and thresholds.
    :ivar weight: how often it is run, beside the others.
    """

    name: str
    file: str
    weight: int
    text: str = field(repr=False)

    @property
    def file_name(self) -> str:
        """Name of the file, for messages."""
        return Path(self.file).name


def source(given: str, folder: Path = Path()) -> Source:
    """A script by its file's name, with its weight behind an ``@`` (1 without).

    :param folder: the folder that the name is relative to.
    :raises RequestError: there is no such file, or the weight is none.
    :raises ScriptError: it would run a program.
    """
    file, weight = split(given)
    try:
        # Windows' editors put a byte order mark in front.
        text = (folder / file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise RequestError(f"{file}: {reason}", field="script") from None
    name = re.sub(r"[^a-z0-9_]+", "_", Path(file).stem.lower())
    source = Source(name, file, weight, text)
    _require_no_program(source)
    return source


# pgbench skips spaces, and ends of lines behind a backslash, before a command's name.
_PROGRAM = re.compile(r"\\[\s\\]*((?:set)?shell)\b", re.I)


def _require_no_program(source: Source) -> None:
    """pgbench would run it with hotset's own rights."""
    if match := _PROGRAM.search(source.text):
        line = source.text.count("\n", 0, match.start()) + 1
        raise ScriptError(
            source.file_name, line, f"\\{match[1]} is not supported: scripts run no programs"
        )


def split(given: str) -> tuple[str, int]:
    """
    >>> split("sql/checkout.sql@70"), split("search.sql")
    (('sql/checkout.sql', 70), ('search.sql', 1))

    :raises RequestError: the weight is no number from 1.
    """
    file, sign, weight = given.rpartition("@")
    if not sign or "/" in weight:
        return given, 1
    if not re.fullmatch(r"[1-9][0-9]*", weight) or int(weight) > WEIGHT_MAX:
        raise RequestError(
            f"{given}: the weight behind @ is a number from 1 to {WEIGHT_MAX:,}; a file with @ in"
            f" its name is written {given}@1",
            field="script",
        )
    return file, int(weight)


def sources(given: list[str], folder: Path = Path()) -> tuple[Source, ...]:
    """All scripts of a run.

    :raises RequestError: there is none, or two have the same name.
    :raises ScriptError: one of them would run a program.
    """
    sources = [source(text, folder) for text in given]
    names = [source.name for source in sources]
    for name in names:
        if names.count(name) > 1:
            raise RequestError(
                f"two scripts are called {name}: their results could not be told apart,"
                " rename one file",
                field="script",
            )
    if not sources:
        raise RequestError("name at least one script", field="script")
    return tuple(sources)


_DEFINED = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)=(.*)")


def parse_definitions(given: list[str]) -> dict[str, Value]:
    """
    >>> parse_definitions(["scale=10", "part=1.5", "name=x"])
    {'scale': 10, 'part': 1.5, 'name': 'x'}

    :raises RequestError: one is not NAME=VALUE.
    """
    values: dict[str, Value] = {}
    for text in given:
        match = _DEFINED.fullmatch(text)
        if match is None:
            raise RequestError(f"{text!r}: give NAME=VALUE", field="define")
        values[match[1]] = _number(match[2])
    return values


def _number(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
