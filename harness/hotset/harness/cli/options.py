"""Options that several verbs share, and what comes of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from hotset.cachelayer.card import Card, Disk
    from hotset.cachelayer.machine import Machine
    from hotset.cachelayer.units import Bytes


class Format(StrEnum):
    """How a reading verb prints."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="How to print it.")]
MachineOption = Annotated[
    Literal["auto", "local", "image", "vm"], typer.Option("--machine", help="Where the lab stands.")
]
HostOption = Annotated[
    str,
    typer.Option(
        "--machine",
        envvar="HOTSET_MACHINE",
        metavar="local|vm|ssh://[USER@]HOST[:PORT]",
        help="Where the tier is: this computer, the lab left up by `hotset lab up`, or a server"
        " (its host key in ~/.ssh/known_hosts; HOTSET_SSH_KEY names a key file).",
    ),
]
DiskArgument = Annotated[
    str | None,
    typer.Argument(metavar="[DISK]", help="The accelerated disk; the only one if left out."),
]
DiskOption = Annotated[
    str | None, typer.Option("--disk", help="The accelerated disk; the only one if left out.")
]
ServerOption = Annotated[
    Literal["postgres", "sqlserver"], typer.Option("--engine", help="The database product.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only errors.")]
SetOption = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Replace a value of the experiment file, for instance tpcc.users=32. Repeatable.",
    ),
]
EngineOption = Annotated[
    Literal["postgres", "sqlserver"], typer.Option("--engine", help="The product.")
]
DsnOption = Annotated[
    str,
    typer.Option(
        "--dsn",
        envvar="HOTSET_DSN",
        help="Where the database is, for instance postgresql://user@host:5432/tpcc or"
        " sqlserver://user@host/tpcc?trust=yes. No password:"
        " that is read from HOTSET_PASSWORD or --password-file.",
    ),
]
PasswordFileOption = Annotated[
    Path | None, typer.Option("--password-file", help="A file that holds the password.")
]
DriverOption = Annotated[
    Literal["hotset", "hammerdb"],
    typer.Option(
        "--driver",
        help="Who does the work: hotset's own driver, or HammerDB from the release that"
        " HAMMERDB_HOME names.",
    ),
]


def size_of(text: str, option: str) -> Bytes:
    """A size that an option names."""
    from hotset.cachelayer.units import Bytes

    try:
        return Bytes.parse(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


@contextmanager
def disk_of(machine: str, disk: str | None) -> Iterator[tuple[Machine, Card, Disk]]:
    """The disk a user means, on its card and machine."""
    from hotset.cachelayer import card, machines

    with machines.opened(machine) as there:
        yield there, *card.find(there, disk)
