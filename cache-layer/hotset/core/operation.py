"""Operations: what hotset can do, declared once for every way to call it.

An operation is a function over one request model. The command line makes its options of the
model's fields, the HTTP API its bodies and queries, PowerShell its cmdlets; the console calls it.
It returns a result and never prints: each caller shows that in its own way.
"""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import wraps
from pathlib import Path
from pkgutil import resolve_name
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from .errors import HotsetError, Remedy, RequestError
from .extras import Extra, explained, require
from .paths import through_links, write_whole
from .record import Result
from .rights import Needs, Right

if TYPE_CHECKING:
    from .progress import Reporter


@dataclass(frozen=True, slots=True)
class FieldKind:
    """A field's type without its wrappings.

    :ivar base: ``bool``, ``int``, ``float``, ``Path``, a ``Literal``, or ``str`` for all else.
    :ivar optional: it may be None.
    :ivar metadata: all constraints on the way to it.
    """

    base: Any
    is_list: bool
    optional: bool
    secret: bool
    metadata: tuple[Any, ...]

    @classmethod
    def from_field(cls, field: FieldInfo) -> FieldKind:
        metadata, optional, is_list = list(field.metadata), False, False
        annotation: Any = field.annotation
        while True:
            origin = get_origin(annotation)
            if origin is Annotated:
                annotation, *more = get_args(annotation)
                metadata += more
            elif origin in (Union, UnionType):
                optional = True
                annotation = next(arg for arg in get_args(annotation) if arg is not NoneType)
            elif origin is list:
                is_list, annotation = True, get_args(annotation)[0]
            else:
                break
        plain = annotation if annotation in (bool, int, float, Path) or origin is Literal else str
        return cls(plain, is_list, optional, annotation is SecretStr, tuple(metadata))

    def limit(self, name: str) -> Any:  # noqa: ANN401 - a number
        """``ge``, ``le`` or ``min_length`` of the constraints, None where there is none."""
        values = (getattr(mark, name, None) for mark in self.metadata)
        return next((value for value in values if value is not None), None)


@dataclass(frozen=True, slots=True)
class Lock:
    """Something of a place; ``name`` is None for all of it."""

    place: str
    name: str | None = None

    def __str__(self) -> str:
        return self.place if self.name is None else f"{self.place}: {self.name}"


def conflict(lock: Lock | None, other: Lock | None) -> bool:
    """True if two jobs need the same lock. A disk without a name may be any of its machine's."""
    if lock is None or other is None or lock.place != other.place:
        return False
    return lock.name is None or other.name is None or lock.name == other.name


Content = TypeVar("Content")


@dataclass(frozen=True, slots=True)
class Recorded(Result, Generic[Content]):
    """A record that is shown with something that is not in it."""

    content: Content

    def to_record(self) -> Content:
        return self.content


@dataclass(frozen=True, slots=True)
class Lines(Result):
    """A text and nothing else, such as a script, a unit or the commands of a dry run; what was
    done was told by messages. It has one form only, and is its own record."""

    lines: tuple[str, ...] = ()

    def to_text(self) -> str:
        return "\n".join(self.lines)

    def csv(self) -> str:
        return self.to_text()


class OutputError(HotsetError):
    """A file could not be written once there was something to write.

    :ivar output: the file.
    """

    def __init__(self, output: Path, error: OSError) -> None:
        super().__init__(f"{output} could not be written: {error.strerror or error}")
        self.output = output


def check_output(output: Path | None, field: str = "output") -> None:
    """See that a file can be written, and leave it as it is.

    :raises RequestError: it cannot; the message says why.
    """
    if output is None:
        return
    try:
        place = through_links(output)
        if place.is_dir() or not place.parent.is_dir():
            why = "it is a folder" if place.is_dir() else f"there is no folder {place.parent}"
            raise RequestError(f"{output} cannot be written: {why}", field=field)
        if place.is_file():
            place.open("ab").close()
        elif not place.exists():  # to open and close a pipe would end it for who reads
            tempfile.TemporaryFile(dir=place.parent).close()
    except OSError as error:
        raise RequestError(f"{output} cannot be written: {error.strerror}", field=field) from None


def _silent() -> Reporter:
    from .progress import Reporter

    return Reporter(quiet=True)


def _nobody(*texts: str) -> None:
    """Nobody listens, or can be asked."""


def _nobody_minds(texts: Iterable[str], field: str) -> None:
    """The command line may name any file."""


def _nobody_measures(wanted: int, field: str) -> None:
    """The command line may fill the disk."""


@dataclass(frozen=True, slots=True)
class Context:
    """Where progress goes.

    :ivar report: long work says here how far it is.
    :ivar message: takes a sentence for who called: what was done, or is worth knowing.
    :ivar require_files: refuses the files that another one names, of the field that is given, where
        who asks may not name them.
    :ivar faults: what is to be told as an error once the result was shown, such as a file that
        could not be written.
    :ivar require_room: refuses to make files of so many bytes here, for the field that is given,
        where who asks has to leave room.
    :ivar ask_for_name: has the name typed of what is about to be overwritten, which is described:
        of those who can be asked. It raises where another one is typed.
    """

    report: Reporter = field(default_factory=_silent)
    message: Callable[[str], None] = _nobody
    ask_for_name: Callable[[str, str], None] = _nobody
    require_files: Callable[[Iterable[str], str], None] = _nobody_minds
    require_room: Callable[[int, str], None] = _nobody_measures
    faults: list[HotsetError] = field(default_factory=list)

    def write(self, output: Path | None, text: str) -> None:
        """Write a file beside the result, where one was asked for. One that cannot be written costs
        nobody the result: see :attr:`faults`."""
        self.faults[:] = [
            fault
            for fault in self.faults
            if not (isinstance(fault, OutputError) and fault.output == output)
        ]
        if output is not None:
            try:
                write_whole(output, text)
            except OSError as error:
                self.faults.append(OutputError(output, error))

    def outcome(self, result: Result) -> None:
        """
        :raises Exception: what a result that was shown amounts to, or the file that lacks it.
        """
        failure = result.failure()
        failures: list[Exception] = [*self.faults]
        failures = failures if failure is None else [failure, *failures]
        for other in failures[1:]:
            failures[0].add_note(str(other))
        if failures:
            raise failures[0]

    def note(self, text: str) -> None:
        """Print a remark that is no part of the result."""
        self.message(f"note: {text}")


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
    :ivar candidates: the names on a machine, for callers that left out a needed one.
    """

    argument: bool = False
    metavar: str | None = None
    short: str | None = None
    off: str | None = None
    variable: str | None = None
    candidates: Callable[[str], Sequence[str]] | None = None


class OnThisComputer:
    """Marks a field that names a file of the computer the command line runs on: no other caller
    may name one. The class itself is the mark."""


class Request(BaseModel):
    """Parameters of an operation. Its fields are named as the command line's options."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True, defer_build=True)


class Nothing(Request):
    """Nothing is asked."""


F = TypeVar("F", bound=Callable[[Any, Context], Result])


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation.

    :ivar name: its words, such as ``tier status``.
    :ivar right: right that a caller needs.
    :ivar returns: the class of its result, ``module:Class``: loaded when asked for.
    :ivar destroys: it can lose data that hotset cannot bring back.
    :ivar stops: it stops a service, keeps one from starting again, or cuts power.
    :ivar needs_yes: it is done only when the request says ``yes`` (``dry_run``, where there is one,
        shows it without).
    :ivar asked: which requests that goes for, and the question.
    :ivar question: what to ask before it, of those who can be asked; None: nothing is at stake.
    :ivar at_stake: what to say to those who cannot be asked; None: only that it changes something.
    :ivar progress: it tells how far it is.
    :ivar stored: the request with what a record that it names says in its place, so that this is
        looked at as if the request said it.
    :ivar lock: lock that it holds while it runs.
    :ivar extras: what has to be installed before it begins; the rest is told where it is used.
    :ivar powershell: its cmdlet's approved verb and noun.
    :ivar module: which declares it.
    :ivar help: what it does, for people: one line, then more.
    """

    name: str
    kind: Kind
    right: Right
    request: type[Request]
    returns: str
    function: Callable[[Any, Context], Result]
    destroys: bool
    stops: bool
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
    def is_text(self) -> bool:
        """Its result has one form only."""
        # One of another module is not loaded to be asked.
        return self.returns.startswith(f"{self.module}:") and issubclass(self.result, Lines)

    @property
    def result(self) -> type[Result]:
        kind: type[Result] = resolve_name(self.returns)
        return kind

    @property
    def fields(self) -> Mapping[str, FieldInfo]:
        """Fields of the request, without those that name a file of the caller's own computer."""
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
            raise _refusal(self, error) from None

    def parse_remote(self, values: Mapping[str, Any], strict: bool = True) -> Any:  # noqa: ANN401
        """Do as :meth:`parse`, for a caller who may not name files here and cannot be asked."""
        for name in values:
            if name not in self.fields:
                raise _unknown(self, name)
        if "password" in self.fields and values.get("password") is None:
            # Never that of this server's own environment.
            values = {**values, "password": ""}
        return self.parse(values, strict)

    def right_for(self, values: Mapping[str, Any]) -> Right:
        """Return the right that a request of these values needs: the operation's, or more by a
        field that is set."""
        marked = [
            mark.right
            for name, field in self.request.model_fields.items()
            for mark in field.metadata
            if isinstance(mark, Needs) and values.get(name)
        ]
        return max((self.right, *marked), key=list(Right).index)

    def require_confirmed(self, request: Request) -> None:
        """:raises RequestError: it is done only when told so, and the request does not say yes."""
        if not self.needs_yes or not self.asked(request):
            return
        if any(getattr(request, name, False) for name in ("yes", "dry_run")):
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
    result: str = "",
    destroys: bool = False,
    stops: bool = False,
    needs_yes: bool = False,
    asked: Callable[[Any], bool] = lambda request: True,  # noqa: ARG005
    question: Callable[[Any], str | None] | None = None,
    at_stake: Callable[[Any], str | None] = lambda request: None,  # noqa: ARG005
    progress: bool = False,
    stored: Callable[[Any], Request] = lambda request: request,
    lock: Callable[[Any], Lock | None] = lambda request: None,  # noqa: ARG005
    extras: tuple[Extra, ...] = (),
) -> Callable[[F], F]:
    """Declare an operation; see :class:`Operation`.

    :param result: ``module:Class`` within hotset, of a result that is loaded when it is needed.
    """

    def declare(function: F) -> F:
        request, returned = (function.__annotations__[name] for name in ("request", "return"))
        if name in declared:
            raise ValueError(f"operation {name} is declared twice")
        declared[name] = Operation(
            name,
            kind,
            right,
            resolve_name(f"{function.__module__}:{request}"),
            f"hotset.{result}" if result else f"{function.__module__}:{returned}",
            _explain_missing(function, extras),
            destroys,
            stops,
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


def _explain_missing(function: F, extras: tuple[Extra, ...]) -> F:
    """It, with what it lacks told by the extra that brings it, and no remedy that it has not."""

    @wraps(function)
    def run(request: Any, context: Context) -> Result:  # noqa: ANN401 - its own request
        require(*extras)
        try:
            with explained():
                return function(request, context)
        except HotsetError as error:
            _leave_out_unknown(error, type(request).model_fields)
            raise

    return cast("F", run)


def _leave_out_unknown(error: HotsetError, fields: Collection[str]) -> None:
    """Leave out remedies and the field of other operations: what several of them call does not
    know whose request it is, and advises `--yes` to one that has no such option."""
    error.remedies = tuple(
        remedy
        for remedy in error.remedies
        if remedy.operation is not None or set(remedy.parameters) <= set(fields)
    )
    if error.field is not None and error.field.partition(".")[0] not in fields:
        error.field = None


def _refusal(operation: Operation, error: ValidationError) -> RequestError:
    """The first fault, with the field's name, the value and what would be right."""
    first = error.errors(include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"] if isinstance(part, str | int))
    name = field.partition(".")[0]
    if first["type"] == "extra_forbidden":
        return _unknown(operation, name)
    if first["type"] == "missing":
        return RequestError(f"{operation.name} needs it", field=name)
    if first["type"] == "string_too_short":
        return RequestError(f"an empty {name} names nothing", field=name)
    secret = name == "password"
    shown = "" if secret else f"{_short(first['input'])} "
    if first["type"] == "string_pattern_mismatch":
        return RequestError(f"{shown}contains control characters: leave them out", field=name)
    words = first["msg"].removeprefix("Value error, ")
    return RequestError(f"{shown}is refused: {words[:1].lower()}{words[1:]}", field=name)


def _unknown(operation: Operation, name: str) -> RequestError:
    known = ", ".join(operation.fields) or "none"
    return RequestError(f"{operation.name} has no such field; it has: {known}", field=name)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


# Units of what the JSON of a result holds, told by the ends of names, as everywhere in hotset.
_UNITS = {
    "_bytes": "bytes",
    "_mb_per_s": "MB/s",
    "_ms": "ms",
    "_us": "µs",
    "_s": "s",
    "_ratio": "0-1",
    "_share": "0-1",
}
_WHOLE = {"bytes": "bytes", "seconds": "s", "iops": "requests/s", "share": "0-1"}


def unit_of(name: str) -> str | None:
    """
    >>> unit_of("dirty_bytes"), unit_of("read_mb_per_s"), unit_of("hit_ratio"), unit_of("disk")
    ('bytes', 'MB/s', '0-1', None)
    """
    if name in _WHOLE:
        return _WHOLE[name]
    return next((unit for end, unit in _UNITS.items() if name.endswith(end)), None)


def add_units(schema: dict[str, Any]) -> None:
    """An ``x-unit`` on each field of a JSON Schema whose name tells it."""
    for name, about in schema.get("properties", {}).items():
        unit = unit_of(name)
        if unit is not None:
            about["x-unit"] = unit
