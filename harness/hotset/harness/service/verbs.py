"""The CLI's verbs as data: which are offered, what each takes, and how that is written in argv.

Request models are made from the CLI's own parser, so that a program's request and a user's command
line cannot drift apart. Fields are named as the CLI's options, in snake case. What the service
decides itself is no field: how a verb prints, and files on the server's own disk for it to write
or to read a password from. Where the CLI takes ``--password-file``, the model has ``password``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal

import typer.main
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from typer.core import TyperArgument, TyperCommand, TyperOption

from hotset.harness.cli.codes import code_of
from hotset.harness.cli.options import Format

Words = tuple[str, ...]
Kind = Literal["now", "job"]
ValueKind = Literal["switch", "number", "text"]

_NOW = (
    "doctor", "database counters", "database show", "heat map", "heat top", "lab status",
    "report hit-ratio", "report metrics", "report run", "runs compare", "runs list", "runs rm",
    "runs show", "tier explain", "tier resident", "tier status", "warmup jobs", "warmup list",
    "warmup plan", "warmup schedule list",
)  # fmt: skip
_JOBS = (
    "database clear-cache", "database memory", "database place", "database statistics", "demo",
    "disk calibrate", "experiment plan", "experiment run", "heat start", "heat stop",
    "lab calibrate", "lab down", "lab image", "lab up", "tier activate", "tier create",
    "tier deactivate", "tier destroy", "tier detach", "tier flush", "tier repair", "tier resize",
    "tpcc build", "tpcc check", "tpcc drop", "tpcc run", "tpch build", "tpch check", "tpch drop",
    "tpch run", "warmup exclude", "warmup pin", "warmup restore", "warmup run",
    "warmup schedule add", "warmup schedule remove", "warmup snapshot", "warmup unpin",
)  # fmt: skip
LEFT_OUT = {
    "console": "it is what asks",
    "jobs": "the service has them itself",
    "lab shell": "it needs a terminal",
    "tier watch": "it never ends",
    "top": "it needs a terminal",
}
"""Verbs, or whole groups of them, that are not offered, and why."""

# What the CLI asks about on a terminal, or does only when told so.
_ASKS = {"runs rm", "tpcc drop", "database clear-cache", "database memory", "database place",
         "database statistics"}  # fmt: skip
# The units that it writes read the file on the machine that they run on.
_KEEPS_PASSWORD_FILE = {"warmup schedule add"}
TEXT_MAX, _LIST_MAX = 4096, 1000
# Neither argv nor the environment can hold a NUL, and no name of ours has a control character.
TEXT_PATTERN = r"^[^\x00-\x1f\x7f]*$"
_KINDS: dict[Any, ValueKind] = {bool: "switch", int: "number", float: "number"}
_WRITES = {"output", "publish"}  # files and folders of the server's own disk
_PASSWORD = "password"  # noqa: S105 - a field's name
_VARIABLE = "HOTSET_PASSWORD"
_PASSWORD_FIELD = Annotated[
    str | None,
    Field(
        max_length=TEXT_MAX, pattern=TEXT_PATTERN, repr=False,
        description="The database user's. It is never kept.",
        json_schema_extra={"format": "password", "writeOnly": True},
    ),
]  # fmt: skip


class UnknownVerbError(ValueError):
    """Not a verb that is offered."""


class RefusedError(ValueError):
    """Values that a verb does not take; the message names field, value and remedy.

    :ivar field: the field's name, None where it is not one alone.
    """

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class Parameter:
    """How a field is written in argv: ``flag`` is empty for an argument without a name."""

    flag: str
    no_flag: str
    kind: ValueKind
    is_list: bool

    def written(self, value: object) -> list[str]:
        """A value as argv has it."""
        if self.kind == "switch":
            return [text for text in (self.flag if value else self.no_flag,) if text]
        texts = [str(one) for one in (value if isinstance(value, list) else [value])]
        return [f"{self.flag}={text}" for text in texts] if self.flag else texts


@dataclass(frozen=True, slots=True)
class Call:
    """A verb with values that it takes: ``values`` are those that were given, without secrets."""

    verb: Verb
    values: Mapping[str, Any]
    password: str | None = dataclass_field(repr=False)

    @property
    def argv(self) -> tuple[str, ...]:
        return self.verb.argv(self.values)

    @property
    def environment(self) -> dict[str, str]:
        """Of the child process: this one's, and the request's password in place of any other."""
        inherited = {name: value for name, value in os.environ.items() if name != _VARIABLE}
        given = {} if self.password is None else {_VARIABLE: self.password}
        # Wide: what is said is not to be broken into lines here.
        return inherited | given | {"HOTSET_PROGRESS": "json", "NO_COLOR": "1", "TERM": "dumb",
                                    "COLUMNS": "1000"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb of the CLI.

    :ivar kind: ``now`` answers in seconds and changes nothing but the archive; ``job`` may take
        hours, or changes something.
    :ivar prints_json: the verb has ``--format json``; otherwise it prints lines, if anything.
    :ivar asks: it is done only with ``yes`` (or, where there is one, rehearsed by ``dry_run``).
    """

    words: Words
    kind: Kind
    help: str
    model: type[BaseModel]
    parameters: Mapping[str, Parameter]
    prints_json: bool
    asks: bool

    @property
    def name(self) -> str:
        return " ".join(self.words)

    def call(self, values: Mapping[str, Any], strict: bool = True) -> Call:
        """The verb with these values.

        :param strict: types as JSON has them; otherwise text is turned into what a field is
            (``"8"`` into 8), as a URL's query or a form needs it.
        :raises RefusedError: it does not take them.
        """
        try:
            request = self.model.model_validate(dict(values), strict=strict)
        except ValidationError as error:
            raise _refused(self, error) from None
        given = request.model_dump(exclude_unset=True, exclude_none=True)
        password = given.pop(_PASSWORD, None)
        self._look_at(given)
        return Call(self, MappingProxyType(given), password)

    def argv(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """The words and the values as the command line has them, passwords left out."""
        given = [(parameter, values[field]) for field, parameter in self.parameters.items()
                 if values.get(field) is not None]  # fmt: skip
        options = [text for one, value in given if one.flag for text in one.written(value)]
        # In the parser's order, and behind a --: they may begin with a dash.
        arguments = [text for one, value in given if not one.flag for text in one.written(value)]
        options += ["--format=json"] * self.prints_json
        return (*self.words, *options, *(["--", *arguments] if arguments else []))

    def _look_at(self, values: Mapping[str, Any]) -> None:
        """What must be known before anything is written down or shown in a process list."""
        if self.asks and not values.get("yes") and not values.get("dry_run"):
            rehearse = ' or "dry_run": true' * ("dry_run" in self.parameters)
            raise RefusedError(f'yes: {self.name} changes or deletes something: add "yes": true'
                               f"{rehearse}", "yes")  # fmt: skip
        for field, check in (("dsn", _check_dsn), ("machine", _check_machine)):
            if isinstance(values.get(field), str):
                try:
                    check(values)
                except Exception as error:
                    if code_of(error) is None:
                        raise
                    own = f"; a request has `{_PASSWORD}` for it" * (_VARIABLE in str(error))
                    raise RefusedError(f"{field}: {error}{own}", field) from None


def find(words: Words) -> Verb:
    """A verb by its words, such as ``("tier", "status")``.

    :raises UnknownVerbError: none of that name is offered.
    """
    verb = every().get(tuple(words))
    if verb is None:
        raise UnknownVerbError(f"{' '.join(words)!r} is not a verb that is offered here; `hotset"
                               " --help` and the API's description name them")  # fmt: skip
    return verb


@cache
def every() -> Mapping[Words, Verb]:
    """All verbs that are offered, by their words."""
    from hotset.harness.cli import app

    commands = dict(commands_of(typer.main.get_command(app)))
    kinds: dict[str, Kind] = {**dict.fromkeys(_NOW, "now"), **dict.fromkeys(_JOBS, "job")}
    found = {tuple(name.split()): kind for name, kind in kinds.items()}
    return MappingProxyType({words: _verb(words, kind, commands[words])
                             for words, kind in sorted(found.items())})  # fmt: skip


def commands_of(command: Any, words: Words = ()) -> Iterator[tuple[Words, TyperCommand]]:  # noqa: ANN401 - a group or a command
    """All verbs of the parser, offered or not."""
    if isinstance(command, TyperCommand):
        yield words, command
        return
    for name, inner in command.commands.items():
        yield from commands_of(inner, (*words, name))


def _verb(words: Words, kind: Kind, command: TyperCommand) -> Verb:
    name = " ".join(words)
    fields: dict[str, Any] = {}
    parameters: dict[str, Parameter] = {}
    prints_json = False
    for parameter in command.params:
        assert isinstance(parameter, TyperOption | TyperArgument)
        field = _field_name(parameter)
        if field == "format" and parameter.type_descriptor.annotation is Format:
            prints_json = True
        elif field == "password_file" and name not in _KEEPS_PASSWORD_FILE:
            fields[_PASSWORD] = (_PASSWORD_FIELD, None)
        elif field != "quiet" and (field not in _WRITES or parameter.required):
            fields[field] = _field(parameter)
            parameters[field] = _parameter(parameter)
    model = create_model(
        "".join(part.title() for part in name.replace("-", " ").split()),
        __config__=ConfigDict(extra="forbid", allow_inf_nan=False),
        __doc__=command.help,
        **fields,
    )
    said = " ".join((command.help or "").split())
    return Verb(words, kind, said, model, MappingProxyType(parameters), prints_json, name in _ASKS)


def _field_name(parameter: TyperOption | TyperArgument) -> str:
    return _flag(parameter.opts).removeprefix("--").replace("-", "_") or parameter.name


def _flag(names: list[str]) -> str:
    return next((name for name in names if name.startswith("--")), "")


def _parameter(parameter: TyperOption | TyperArgument) -> Parameter:
    described = parameter.type_descriptor
    kind = _KINDS.get(described.annotation, "text")
    return Parameter(
        _flag(parameter.opts), _flag(parameter.secondary_opts), kind, described.is_list
    )


def _field(parameter: TyperOption | TyperArgument) -> tuple[Any, Any]:
    """The type and the default of a field, as pydantic takes them."""
    described = parameter.type_descriptor
    info = described.parameter_info
    about = Field(description=parameter.help, ge=info.min, le=info.max)
    text = Annotated[str, Field(max_length=TEXT_MAX, pattern=TEXT_PATTERN)]
    kind: Any = described.annotation
    if described.is_list:
        at_least = int(parameter.required)
        kind = Annotated[list[text], Field(min_length=at_least, max_length=_LIST_MAX)]
    elif not described.is_choice and kind not in _KINDS:
        kind = text
    if parameter.required:
        return Annotated[kind, about], ...
    default = parameter.default
    if default is None:
        return Annotated[kind | None, about], None
    return Annotated[kind, about], default


def _refused(verb: Verb, error: ValidationError) -> RefusedError:
    """The first fault, with the field's name, the value and what would be right."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"] if isinstance(part, str | int))
    name = field.partition(".")[0]
    if first["type"] == "extra_forbidden":
        known = ", ".join(verb.model.model_fields) or "none"
        return RefusedError(f"{name}: `{verb.name}` has no such field; it has: {known}", name)
    if first["type"] == "missing":
        return RefusedError(f"{name}: it is missing; `{verb.name}` needs it", name)
    shown = "" if name == _PASSWORD else f" {_short(first['input'])}"
    if first["type"] == "string_pattern_mismatch":
        return RefusedError(f"{field}:{shown} holds control characters: leave them out", name)
    words = first["msg"]
    return RefusedError(f"{field}:{shown} is refused: {words[:1].lower()}{words[1:]}", name)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _check_dsn(values: Mapping[str, Any]) -> None:
    """It names a database and holds no password, which argv would show."""
    from hotset.harness.engines import connect

    connect.database(values.get("engine", "postgres"), values["dsn"])


def _check_machine(values: Mapping[str, Any]) -> None:
    """It is a machine's name and holds no password."""
    from hotset.cachelayer import machines

    if ":" in values["machine"]:
        machines.account(values["machine"])
