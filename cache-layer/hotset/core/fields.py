"""Fields that several requests share: their types, limits and help texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Ge, Le, MinLen
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    StringConstraints,
    WithJsonSchema,
)

from .errors import ConflictError, Remedy, RequestError
from .operation import Cli, OnThisComputer
from .rights import Names, Needs, Right
from .sql import EngineName
from .units import SIZE_PATTERN, Bytes
from .words import LABEL_PATTERN

T = TypeVar("T")
TEXT_MAX, LIST_MAX = 4096, 1000
_SIZE_PATTERN = SIZE_PATTERN.replace(r"\s*", " *")
_RATE_PATTERN = _SIZE_PATTERN.removesuffix("$") + "(/s)?$"
# Neither argv nor the environment can hold a NUL, and no name of ours has a control character.
TEXT_PATTERN = r"^[^\x00-\x1f\x7f]*$"
Text = Annotated[str, StringConstraints(max_length=TEXT_MAX, pattern=TEXT_PATTERN)]
Texts = Annotated[list[Text], Field(max_length=LIST_MAX)]
# By what the text names: what callers from elsewhere may name of it is in `remote`.
Word = Annotated[Text, Names.WORD]
Words = Annotated[Texts, Names.WORD]
Expression = Annotated[Text, Names.NOTHING]
Expressions = Annotated[Texts, Names.NOTHING]
ReadFile = Annotated[Text, Names.FILE]
WrittenFile = Annotated[Text, Names.OUTPUT]
DiskModel = Annotated[Text, Names.MODEL]
DiskModels = Annotated[Texts, Names.MODEL]
Device = Annotated[Text, Names.DEVICE]
OnDisk = Annotated[Text, Names.ON_DISK]
Targets = Annotated[Texts, Names.ON_DISK]
Settings = Annotated[Texts, Names.SETTINGS]
Server = Annotated[Text, Names.DATABASE]
Seed = Annotated[int, Ge(0), Le(2**53)]
POPULAR = 1
"""Which rows are popular in runs without a seed: always the same, as with people, but who comes
asks for other rows of them each time."""
DAYS_S = 14 * 24 * 3600
"""The longest that anything may take, in seconds."""
Driver = Literal["hotset", "hammerdb"]

# A caller that gives an empty name, as of a variable that was never set, does not mean the only
# one there is, or this computer.
Name = Annotated[Text, MinLen(1)]
Machine = Annotated[
    Name,
    Field(
        description="Where the disks are: this computer, the lab that `hotset lab up` started, or"
        " a server (its host key in ~/.ssh/known_hosts; HOTSET_SSH_KEY names a key"
        " file).",
    ),
    Cli(metavar="local|vm|ssh://[USER@]HOST[:PORT]", variable="HOTSET_MACHINE"),
    Names.MACHINE,
]
SampledServer = Annotated[
    Name | None,
    Field(
        description="Also sample the database's server: its CPU, and the I/O of the devices below"
        " its accelerated disks. By default this computer, if a PostgreSQL database lies on one of"
        " its accelerated disks."
    ),
    Cli(metavar="local|vm|ssh://[USER@]HOST[:PORT]"),
    Names.MACHINE,
]
CheckedServer = Annotated[
    Name | None,
    Field(
        description="Check this machine instead: which kinds of cache it can have, and what its"
        " disks lack."
    ),
    Cli(metavar="local|vm|ssh://[USER@]HOST[:PORT]"),
    Names.MACHINE,
]


Dsn = Annotated[
    Text,
    Field(
        description="Where the database is, for instance postgresql://user@host:5432/tpcc or"
        " sqlserver://user@host/tpcc?trust=yes. No password:"
        " it is asked for on a terminal, or comes of --password-file, HOTSET_PASSWORD or, for"
        " PostgreSQL, ~/.pgpass."
    ),
    Cli(variable="HOTSET_DSN"),
    Names.DATABASE,
]
OptionalDsn = Annotated[
    Text | None,
    Field(description="The database, to find tables and databases by their files. No password."),
    Cli(variable="HOTSET_DSN"),
    Names.DATABASE,
    # A caller that may only read must not have hotset connect anywhere.
    Needs(Right.OPERATE),
]
Product = Annotated[EngineName, Field(description="The database product.")]


def _printable(password: SecretStr) -> SecretStr:
    text = password.get_secret_value()
    if not text.isprintable() and any("\ud800" <= sign <= "\udfff" for sign in text):
        raise ValueError("it is not valid unicode")
    if not re.fullmatch(TEXT_PATTERN, text):
        raise ValueError("it contains control characters: leave them out")
    return password


Password = Annotated[
    Annotated[SecretStr, Field(max_length=TEXT_MAX), AfterValidator(_printable)] | None,
    Field(
        description="The database user's password. It is never stored.",
        json_schema_extra={"format": "password", "writeOnly": True},
    ),
]
DriverField = Annotated[
    Driver,
    Field(
        description="hotset's own driver, or HammerDB from the release that HAMMERDB_HOME names."
    ),
]
Rampup = Annotated[
    float, Field(ge=0, le=DAYS_S, description="Seconds to run before measuring starts.")
]
Duration = Annotated[
    float, Field(ge=1, le=DAYS_S, description="Length of the measured window, in seconds.")
]
UntilSteady = Annotated[
    Expression | None,
    Field(
        description="Repeat the window until it is known to be steady (as SNIA's PTS defines it),"
        " for at most this long, such as 10m. The last window counts."
    ),
]
Output = Annotated[
    Path | None,
    Field(description="Also write everything as JSON to this file."),
    Cli(short="-o"),
    OnThisComputer,
]
Junit = Annotated[
    Path | None,
    Field(description="Write the thresholds as JUnit XML to this file."),
    OnThisComputer,
]


def thresholds(examples: str) -> Any:  # noqa: ANN401 - pydantic's own
    """Describe a field of thresholds."""
    return Field(description=f"Exit with code 5 unless this holds, such as {examples}. Repeatable.")


def _label(text: object) -> object:
    # A newline at its end is left to the pattern, which names it.
    if isinstance(text, str) and not re.match(LABEL_PATTERN, text):
        raise ValueError(
            "a label begins with a letter from A to Z; letters, digits, dots, hyphens and"
            " underscores may follow"
        )
    return text


def _no_run(label: str) -> str:
    if label == "last":
        raise ValueError("last is the newest run: take another label")
    return label


RunLabel = Annotated[
    Annotated[
        str,
        StringConstraints(pattern=LABEL_PATTERN, max_length=64),
        BeforeValidator(_label),
        AfterValidator(_no_run),
    ]
    | None,
    Field(
        description="What to call the measurement in the archive of runs, such as before:"
        " measurements of one label are compared together."
    ),
    Cli(metavar="NAME"),
    Names.NOTHING,
]
Keep = Annotated[
    bool,
    Field(description="Keep what was measured as a run in the archive."),
    Cli(off="--no-keep"),
]
Yes = Annotated[bool, Field(description="Do not ask for confirmation.")]
Force = Annotated[bool, Field(description="Overwrite the file, if there is one.")]


def require_new(output: str, force: bool) -> None:
    """:raises ConflictError: such a file holds something, and nobody said that it may go."""
    file = Path(output)
    if not force and file.is_file() and file.stat().st_size:
        raise ConflictError(
            f"{output} exists",
            Remedy("overwrite it", parameters={"force": True}),
            field="output",
        )


def size(text: Any) -> Any:  # noqa: ANN401 - whatever was given
    """A size as users write it, checked; requests keep the text."""
    if isinstance(text, str):
        Bytes.parse(text)
    return text


Size = Annotated[
    Expression, BeforeValidator(size), WithJsonSchema({"type": "string", "pattern": _SIZE_PATTERN})
]


def rate(text: Any) -> Any:  # noqa: ANN401 - whatever was given
    """Bytes a second as users write them, such as 50MB/s, checked."""
    if isinstance(text, str) and Bytes.parse(text.removesuffix("/s")) < 1:
        raise ValueError("a rate must be more than 0")
    return text


Rate = Annotated[
    Expression, BeforeValidator(rate), WithJsonSchema({"type": "string", "pattern": _RATE_PATTERN})
]


USERS_MAX = 10_000
_COUNT = r"[1-9][0-9]{0,4}"


def users(given: Any) -> Any:  # noqa: ANN401 - whatever was given
    """A number of users, or several that rise, as text; :func:`each_users` reads it."""
    text = str(given) if isinstance(given, int) and not isinstance(given, bool) else given
    if isinstance(text, str):
        each_users(text)
    return text


def each_users(text: str) -> list[int]:
    """
    >>> each_users("16"), each_users("1,2, 4")
    ([16], [1, 2, 4])

    :raises ValueError: they are no numbers from 1 that rise.
    """
    parts = [part.strip() for part in text.split(",")]
    counts = [int(part) for part in parts if re.fullmatch(_COUNT, part)]
    rising = all(before < after for before, after in pairwise(counts))
    if len(counts) != len(parts) or not rising or counts[-1] > USERS_MAX:
        raise ValueError(
            f"give a number from 1 to {USERS_MAX:,}, or a rising list, such as 1,2,4,8"
        )
    return counts


Users = Annotated[
    Expression,
    BeforeValidator(users),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": USERS_MAX},
                {"type": "string", "pattern": f"^{_COUNT}(, *{_COUNT})*$"},
            ]
        }
    ),
]


def maybe_size(text: str | None) -> Bytes | None:
    return None if text is None else Bytes.parse(text)


def maybe_rate(text: str | None) -> Bytes | None:
    """Bytes a second."""
    return None if text is None else Bytes.parse(text.removesuffix("/s"))


def secret(password: SecretStr | None) -> str | None:
    return None if password is None else password.get_secret_value()


Run = Annotated[
    Word,
    Field(description="A run's id, the beginning of one, or 'last'."),
    Cli(argument=True, metavar="RUN"),
]


def parse_field(field: str, parse: Callable[[], T]) -> T:
    """Parse a field's text; errors name the field.

    :raises RequestError: it refuses it.
    """
    try:
        return parse()
    except ValueError as error:
        raise RequestError(str(error), field=field) from None
