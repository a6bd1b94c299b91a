"""Options of commands, and what they have in common besides: passwords, the screen."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hotset.core import environment
from hotset.core.errors import RequestError
from hotset.core.sql import EngineName

if TYPE_CHECKING:
    from rich.console import Console

_LEAST_COLUMNS = 80
"""Below this, tables cut numbers off; lines that are too long merely wrap."""
_IN_A_PIPE = 10_000
"""No table is wider: a file or the next program gets times and paths whole."""


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="Output format.")]
HostOption = Annotated[
    str,
    typer.Option(
        "--machine",
        envvar="HOTSET_MACHINE",
        metavar="local|vm|ssh://[USER@]HOST[:PORT]",
        help="Where the disks are: this computer, the lab that `hotset lab up` started, or"
        " a server (its host key in ~/.ssh/known_hosts; HOTSET_SSH_KEY names a key"
        " file).",
    ),
]
DiskOption = Annotated[
    str | None,
    typer.Option("--disk", metavar="NAME", help="The disk, by an option as in every command."),
]
ServerOption = Annotated[EngineName, typer.Option("--engine", help="The database product.")]
OptionalDsn = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        envvar="HOTSET_DSN",
        help="The database, to find tables and databases by their files. No password.",
    ),
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only errors.")]
PasswordFileOption = Annotated[
    Path | None, typer.Option("--password-file", help="A file that holds the password.")
]


def one_disk(argument: str | None, named: str | None) -> str | None:
    """The disk that is named by its place, by `--disk`, or alike by both.

    :raises RequestError: they are two.
    """
    if None not in (argument, named) and argument != named:
        raise RequestError(f"{argument} and --disk {named} are two disks: name one", field="disk")
    return argument if named is None else named


@contextmanager
def asking_here() -> Iterator[None]:
    """Have a password that a database asks for typed here, where this is a terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        yield
        return
    with environment.asking(lambda whose: getpass(f"{whose}: ", sys.stderr)):
        yield


def password_of(file: Path | None) -> str | None:
    """The password of a file; None: none is named.

    :raises RequestError: it cannot be read.
    """
    if file is None:
        return None
    try:
        password = file.read_text(encoding="utf-8-sig").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file in UTF-8"
        raise RequestError(f"{file} cannot be read: {reason}", field="password_file") from None
    if not password.isprintable() and len(password.splitlines()) > 1:
        raise RequestError(
            f"{file} has more than one line: the password is one", field="password_file"
        )
    return password


def screen() -> Console:
    """Standard output for people: as wide as their terminal, and as wide as need be in a pipe or a
    file, unless ``COLUMNS`` says how wide."""
    from rich.console import Console

    console = Console(highlight=False)
    if console.is_terminal or os.environ.get("COLUMNS", "").isdecimal():
        console.width = max(console.width, _LEAST_COLUMNS)
    else:
        console.width = _IN_A_PIPE
    return console
