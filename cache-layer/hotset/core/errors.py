"""Failures that hotset foresees, as data: each caller words them in its own language.

The command line, the HTTP API, the console and PowerShell tell a user the same failure. So an error
carries what is wrong as plain English, which field of the request it is about, and what helps as an
operation with its parameters, and never the words of one of those callers (`--yes`, `-Force`).

Exit codes:

==== ===========================================================
code meaning
==== ===========================================================
0    ok
1    a question was answered with no: nothing was done
2    wrong usage: flags, experiment file, unknown run
3    this computer lacks something; the message says what to do
4    the run failed: no result
5    a threshold was missed (probe hit ratio, calibration, a database that fails its check), or
     something is to be done about a disk (``tier health``)
130  interrupted
==== ===========================================================
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import ClassVar

_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}
"""HTTP statuses of which Python before 3.13 has older names."""
DECLINED, USAGE, LACKS, FAILED, MISSED, INTERRUPTED = 1, 2, 3, 4, 5, 130


@dataclass(frozen=True, slots=True)
class Remedy:
    """Remedy for an error.

    :ivar purpose: what it achieves, read after "to": ``write back what is dirty``.
    :ivar operation: the operation to run, such as ``tier flush``; None: the failed one again.
    :ivar parameters: what to give it; of the failed one again, what to add.
    """

    purpose: str
    operation: str | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)


GIVE_PASSWORD = Remedy("give the password", parameters={"password": "…"})


class HotsetError(Exception):
    """Something failed in a way that hotset foresees.

    :cvar exit_code: what a program ends with.
    :cvar http_status: what the HTTP API answers with.
    :ivar kind: what it is, where callers tell it from others of its status, such as ``log-in``.
    :ivar field: the request's field that is refused, in snake case; None where it is not one alone.
    :ivar remedies: remedies, the best first.
    """

    exit_code: ClassVar[int] = FAILED
    http_status: ClassVar[int] = 424

    kind: str = ""

    def __init__(
        self, message: str, *remedies: Remedy, field: str | None = None, kind: str = ""
    ) -> None:
        super().__init__(message)
        self.field = field
        self.remedies = remedies
        if kind:
            self.kind = kind

    def __str__(self) -> str:
        return str(self.args[0])


class RequestError(HotsetError, ValueError):
    """The request cannot be carried out as given."""

    exit_code = USAGE
    http_status = 422


class NotFoundError(RequestError):
    """The named thing does not exist."""

    http_status = 404


class ConflictError(RequestError):
    """It does not go together with what is there."""

    http_status = 409


class PrerequisiteError(HotsetError):
    """Something is missing or in the way; the message says how to change that."""

    exit_code = LACKS
    http_status = 409


class ForbiddenError(HotsetError):
    """Who asks may not; the message names the right that is missing."""

    exit_code = LACKS
    http_status = 403


class Interrupted(HotsetError):
    """Ctrl-C ended it, and there is a result of what was done until then."""

    exit_code = INTERRUPTED


class ThresholdError(HotsetError):
    """A measurement is worse than the threshold."""

    exit_code = MISSED


def interruption_reason(error: BaseException) -> str:
    """Return the reason of an interrupt, as the signal's handler gave it; empty: a user's.

    >>> [interruption_reason(KeyboardInterrupt(*one)) for one in (("the disk is full",), ())]
    ['the disk is full', '']
    """
    cause: BaseException | None = error
    while cause is not None:
        if type(cause) is KeyboardInterrupt:
            return str(cause)
        cause = cause.__context__
    return ""


def code_of(error: BaseException) -> int | None:
    """The exit code for a failure that hotset foresees; None for any other."""
    return error.exit_code if isinstance(error, HotsetError) else None


def field_of(error: BaseException) -> str | None:
    """The request's field that is refused, in snake case."""
    return error.field if isinstance(error, HotsetError) else None


def type_of(error: HotsetError) -> str:
    """Return what a failure is, as the API's problems and jobs name it.

    >>> type_of(NotFoundError("no run x")), type_of(HotsetError("refused", kind="log-in"))
    ('urn:hotset:not-found', 'urn:hotset:log-in')
    """
    return f"urn:hotset:{error.kind or title_of(error.http_status).lower().replace(' ', '-')}"


def title_of(status: int) -> str:
    """The name of an HTTP status (RFC 9110).

    >>> title_of(404), title_of(422)
    ('Not Found', 'Unprocessable Content')
    """
    return _TITLES.get(status) or HTTPStatus(status).phrase


def remedies_of(error: BaseException) -> tuple[Remedy, ...]:
    """Return an error's remedies, the best first."""
    return error.remedies if isinstance(error, HotsetError) else ()


# Arguments without a name: the messages about them say what they are.
ARGUMENTS = frozenset(
    (
        *("device", "disk", "file", "flash_name", "job", "member", "name", "names", "recording"),
        *("run", "runs", "socket", "target", "targets", "trace"),
    )
)


def of_command_line(error: BaseException, typed: Sequence[str] = ()) -> str:
    """Format an error for the command line: the field as an option, the remedies as commands.

    :param typed: the words of the command that failed.
    """
    field = field_of(error)
    text = _with_remedies(error, lambda remedy: command(remedy, typed))
    if field is None or field in ARGUMENTS:
        return text
    # One with a point is a key of an experiment file.
    return f"{field if '.' in field else option(field)}: {text}"


def of_api(error: BaseException) -> str:
    """Format an error as a problem's ``detail``: the field by name, the remedies as requests."""
    field = field_of(error)
    text = _with_remedies(error, request)
    return text if field is None or text.startswith(f"{field}:") else f"{field}: {text}"


def command(remedy: Remedy, typed: Sequence[str] = ()) -> str:
    """
    :param typed: the words of the command that failed.

    >>> command(Remedy("write it back", "tier flush", {"disk": "shop"}))
    '`hotset tier flush shop`'
    >>> command(Remedy("overwrite it", parameters={"yes": True}))
    'add --yes'
    >>> command(Remedy("leave it out", parameters={"refresh": False}))
    'add --no-refresh'
    >>> command(Remedy("name one", parameters={"disk": "shop"}), ["warmup", "plan", "heat"])
    '`hotset warmup plan heat --disk shop`'
    """
    if "password" in remedy.parameters:
        return "set HOTSET_PASSWORD or add --password-file FILE"
    if remedy.operation is None and typed and "disk" in remedy.parameters:
        return f"`{shlex.join(['hotset', *typed, *_all_words(remedy.parameters, frozenset())])}`"
    if remedy.operation is None:
        return f"add {shlex.join(_all_words(remedy.parameters, ARGUMENTS - {'disk'}))}"
    return f"`{command_line(remedy.operation, remedy.parameters)}`"


def command_line(operation: str, parameters: Mapping[str, object]) -> str:
    """Build the command line of an operation.

    >>> command_line("tier detach", {"disk": "shop", "flash_is_dead": True})
    'hotset tier detach shop --flash-is-dead'
    >>> command_line("warmup pin", {"targets": "table:public.stock", "disk": "shop"})
    'hotset warmup pin table:public.stock --disk shop'
    """
    # The arguments of a warm-up are its targets; any command has `--disk` as well.
    named = frozenset(("disk",)) if operation.startswith("warmup ") else frozenset()
    return shlex.join(["hotset", *operation.split(), *_all_words(parameters, ARGUMENTS - named)])


def request(remedy: Remedy) -> str:
    """
    >>> request(Remedy("write it back", "tier flush", {"disk": "shop"}))
    'tier flush with disk=shop'
    """
    given = ", ".join(f"{name}={_plain(value)}" for name, value in remedy.parameters.items())
    if remedy.operation is None:
        return f"add {given}"
    return f"{remedy.operation} with {given}" if given else remedy.operation


def option(field: str) -> str:
    """
    >>> option("flash_is_dead")
    '--flash-is-dead'
    """
    return "--" + field.replace("_", "-")


def _with_remedies(error: BaseException, worded: Callable[[Remedy], str]) -> str:
    parts = [f"to {remedy.purpose}: {worded(remedy)}" for remedy in remedies_of(error)]
    return "; ".join((str(error), *parts))


def _all_words(
    parameters: Mapping[str, object], arguments: frozenset[str] = ARGUMENTS
) -> list[str]:
    return [word for name, value in parameters.items() for word in _words(name, value, arguments)]


def _words(name: str, value: object, arguments: frozenset[str]) -> list[str]:
    if isinstance(value, bool):
        return [option(name if value else f"no_{name}")]
    return [str(value)] if name in arguments else [option(name), str(value)]


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
