"""How an error is told: the same failure in the words of the command line and of the HTTP API."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping

from .errors import Remedy, field_of, remedies_of

# Arguments without a name: the messages about them say what they are.
ARGUMENTS = frozenset(
    (
        *("card", "device", "disk", "file", "job", "member", "name", "names", "recording"),
        *("run", "runs", "socket", "target", "targets", "trace"),
    )
)

_DISK_BY_NAME = frozenset(
    f"warmup {verb}"
    for verb in (
        *("exclude", "pin", "plan", "refresh", "restore", "run", "schedule add", "share"),
        "unpin",
    )
)
"""Operations of the command line that take a disk as an option: their arguments are targets."""


def of_command_line(error: BaseException) -> str:
    """As `hotset` prints it: the field as an option, what helps as a command."""
    field = field_of(error)
    text = _with_remedies(error, command)
    if field is None or field in ARGUMENTS:
        return text
    # One with a point is a key of an experiment file.
    return f"{field if '.' in field else option(field)}: {text}"


def of_api(error: BaseException) -> str:
    """As a problem's ``detail``: the field by its name, what helps as a request."""
    field = field_of(error)
    text = _with_remedies(error, request)
    return text if field is None or text.startswith(f"{field}:") else f"{field}: {text}"


def command(remedy: Remedy) -> str:
    """
    >>> command(Remedy("write it back", "tier flush", {"disk": "shop"}))
    '`hotset tier flush shop`'
    >>> command(Remedy("overwrite it", parameters={"yes": True}))
    'add --yes'
    >>> command(Remedy("leave it out", parameters={"refresh": False}))
    'add --no-refresh'
    """
    if "password" in remedy.parameters:
        return "set HOTSET_PASSWORD or add --password-file FILE"
    if remedy.operation is None:
        return f"add {shlex.join(_all_words(remedy.parameters))}"
    return f"`{command_line(remedy.operation, remedy.parameters)}`"


def command_line(operation: str, parameters: Mapping[str, object]) -> str:
    """What to type for an operation.

    >>> command_line("tier detach", {"disk": "shop", "flash_is_dead": True})
    'hotset tier detach shop --flash-is-dead'
    >>> command_line("warmup pin", {"targets": "table:public.stock", "disk": "shop"})
    'hotset warmup pin table:public.stock --disk shop'
    """
    named = frozenset(("disk",)) if operation in _DISK_BY_NAME else frozenset()
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
    parts = [f"to {one.purpose}: {worded(one)}" for one in remedies_of(error)]
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
