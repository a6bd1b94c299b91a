"""The table of operations: what hotset can do, declared once for every way to call it.

An operation is a function over one request model. The command line makes its options of the
model's fields, the HTTP API its bodies and queries, PowerShell its cmdlets; the console calls it.
It returns a result and never prints: each caller shows that in its own way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import wraps
from typing import Any, TypeVar, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.fields import FieldInfo

from ..errors import Remedy, RequestError
from ..extras import Extra, explained, require
from .context import Context
from .lock import Lock
from .result import Result
from .rights import Needs, Right


class Kind(StrEnum):
    """How an operation is run."""

    QUERY = "query"
    """Answers in seconds and changes nothing but what is kept of runs, jobs and readings."""
    JOB = "job"
    """May take hours, or changes something: a process of its own that outlives its caller."""


@dataclass(frozen=True, slots=True)
class Cli:
    """How the command line takes a field, where not as an option of the field's name.

    :ivar argument: by its place, without a name.
    :ivar short: a letter, such as ``-n``.
    :ivar off: the option that says no, such as ``--no-check``.
    :ivar variable: of the environment, in place of the option.
    :ivar there: the names that there are on a machine, for whoever left out one that is needed.
    """

    argument: bool = False
    metavar: str | None = None
    short: str | None = None
    off: str | None = None
    variable: str | None = None
    there: Callable[[str], Sequence[str]] | None = None


class OnThisComputer:
    """Marks a field that names a file of the computer the command line runs on: no other caller
    may name one. The class itself is the mark."""


class Request(BaseModel):
    """What an operation is asked for. Its fields are named as the command line's options."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True, defer_build=True)


class Nothing(Request):
    """Nothing is asked."""


F = TypeVar("F", bound=Callable[[Any, Context], Result])


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    :ivar name: its words, such as ``tier status``.
    :ivar right: what it takes to call it.
    :ivar destroys: it can lose data that hotset cannot bring back.
    :ivar needs_yes: it is done only when the request says ``yes`` (``dry_run``, where there is one,
        shows it without).
    :ivar asked: which requests that goes for, and the question.
    :ivar question: what to ask before it, of those who can be asked; None: nothing is at stake.
    :ivar at_stake: what to say to those who cannot be asked; None: only that it changes something.
    :ivar progress: it tells how far it is.
    :ivar stored: the request with what a record that it names says in its place, so that this is
        looked at as if the request said it.
    :ivar lock: what it needs for itself while it runs.
    :ivar extras: what has to be installed before it begins; the rest is told where it is used.
    :ivar powershell: its cmdlet's approved verb and noun.
    :ivar module: which declares it.
    :ivar help: what it does, for people: one line, then more.
    """

    name: str
    kind: Kind
    right: Right
    request: type[Request]
    result: type[Result]
    function: Callable[[Any, Context], Result]
    destroys: bool
    needs_yes: bool
    asked: Callable[[Any], bool]
    question: Callable[[Any], str | None] | None
    at_stake: Callable[[Any], str | None]
    progress: bool
    stored: Callable[[Any], Request]
    lock: Callable[[Any], Lock | None]
    extras: tuple[Extra, ...]
    powershell: tuple[str, str]
    module: str
    help: str

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.name.split())

    @property
    def fields(self) -> Mapping[str, FieldInfo]:
        """Of the request, without those that name a file of the caller's own computer."""
        return {
            name: field
            for name, field in self.request.model_fields.items()
            if OnThisComputer not in field.metadata
        }

    def parse(self, values: Mapping[str, Any], strict: bool = True) -> Any:  # noqa: ANN401 - its own request
        """A request of these values, from this computer.

        :param strict: types as JSON has them; otherwise text is turned into what a field is
            (``"8"`` into 8), as a URL's query or a form needs it.
        :raises RequestError: names field, value and what would be right.
        """
        try:
            return self.request.model_validate(dict(values), strict=strict)
        except ValidationError as error:
            raise _refused(self, error) from None

    def parse_remote(self, values: Mapping[str, Any], strict: bool = True) -> Any:  # noqa: ANN401
        """As :meth:`parse`, from somebody who may not name files here and cannot be asked."""
        for name in values:
            if name not in self.fields:
                raise _unknown(self, name)
        if "password" in self.fields and values.get("password") is None:
            # Never that of this server's own environment.
            values = {**values, "password": ""}
        return self.parse(values, strict)

    def right_for(self, values: Mapping[str, Any]) -> Right:
        """What a request of these values takes: the operation's right, or more by a field that is
        set."""
        marked = [
            one.right
            for name, field in self.request.model_fields.items()
            for one in field.metadata
            if isinstance(one, Needs) and values.get(name)
        ]
        return max((self.right, *marked), key=list(Right).index)

    def require_confirmed(self, request: Request) -> None:
        """:raises RequestError: it is done only when told so, and the request does not say yes."""
        if not self.needs_yes or not self.asked(request):
            return
        if any(getattr(request, one, False) for one in ("yes", "dry_run")):
            return
        why = self.at_stake(request) or f"{self.name} changes or deletes something"
        remedies = [Remedy("do it", parameters={"yes": True})]
        if "dry_run" in self.request.model_fields:
            remedies.append(Remedy("see what would be done", parameters={"dry_run": True}))
        raise RequestError(why, *remedies, field="yes")


declared: dict[str, Operation] = {}
"""By name: those whose modules have been loaded."""


def operation(
    name: str,
    kind: Kind,
    right: Right,
    powershell: tuple[str, str],
    *,
    destroys: bool = False,
    needs_yes: bool = False,
    asked: Callable[[Any], bool] = lambda request: True,  # noqa: ARG005
    question: Callable[[Any], str | None] | None = None,
    at_stake: Callable[[Any], str | None] = lambda request: None,  # noqa: ARG005
    progress: bool = False,
    stored: Callable[[Any], Request] = lambda request: request,
    lock: Callable[[Any], Lock | None] = lambda request: None,  # noqa: ARG005
    extras: tuple[Extra, ...] = (),
) -> Callable[[F], F]:
    """Declare an operation; see :class:`Operation`."""

    def declare(function: F) -> F:
        hints = get_type_hints(function)
        if name in declared:
            raise ValueError(f"operation {name} is declared twice")
        declared[name] = Operation(
            name,
            kind,
            right,
            next(iter(hints.values())),
            hints["return"],
            _explained(function, extras),
            destroys,
            needs_yes or question is not None,
            asked,
            question,
            at_stake,
            progress,
            stored,
            lock,
            extras,
            powershell,
            function.__module__,
            inspect.getdoc(function) or "",
        )
        return function

    return declare


def _explained(function: F, extras: tuple[Extra, ...]) -> F:
    """It, with what it lacks told by the extra that brings it."""

    @wraps(function)
    def run(request: Any, context: Context) -> Result:  # noqa: ANN401 - its own request
        require(*extras)
        with explained():
            return function(request, context)

    return cast("F", run)


def _refused(found: Operation, error: ValidationError) -> RequestError:
    """The first fault, with the field's name, the value and what would be right."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"] if isinstance(part, str | int))
    name = field.partition(".")[0]
    if first["type"] == "extra_forbidden":
        return _unknown(found, name)
    if first["type"] == "missing":
        return RequestError(f"{found.name} needs it", field=name)
    if first["type"] == "string_too_short":
        return RequestError(f"an empty {name} names nothing", field=name)
    secret = name == "password"
    shown = "" if secret else f"{_short(first['input'])} "
    if first["type"] == "string_pattern_mismatch":
        return RequestError(f"{shown}contains control characters: leave them out", field=name)
    words = first["msg"].removeprefix("Value error, ")
    return RequestError(f"{shown}is refused: {words[:1].lower()}{words[1:]}", field=name)


def _unknown(found: Operation, name: str) -> RequestError:
    known = ", ".join(found.fields) or "none"
    return RequestError(f"{found.name} has no such field; it has: {known}", field=name)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
