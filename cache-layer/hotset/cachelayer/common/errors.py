"""Failures that hotset foresees, as data: whoever asked words them in its own language.

The command line, the HTTP API, the console and PowerShell tell a user the same failure. So an error
carries what is wrong as plain English, which field of the request it is about, and what helps as an
operation with its parameters, and never the words of one of those callers (`--yes`, `-Force`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Remedy:
    """What helps.

    :ivar purpose: what it achieves, read after "to": ``write back what is dirty``.
    :ivar operation: the operation to run, such as ``tier flush``; None: the failed one again.
    :ivar parameters: what to give it; of the failed one again, what to add.
    """

    purpose: str
    operation: str | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)


class HotsetError(Exception):
    """Something failed in a way that hotset foresees.

    :cvar exit_code: what a program ends with: 2 a request is refused, 3 something is missing here,
        4 it failed, 5 a threshold is missed.
    :cvar http_status: what the HTTP API answers with.
    :ivar field: the request's field that is refused, in snake case; None where it is not one alone.
    :ivar remedies: what helps, the best first.
    """

    exit_code: ClassVar[int] = 4
    http_status: ClassVar[int] = 424

    def __init__(self, message: str, *remedies: Remedy, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.remedies = remedies

    def __str__(self) -> str:
        return str(self.args[0])


class RequestError(HotsetError, ValueError):
    """What was asked for cannot be done as it was asked."""

    exit_code = 2
    http_status = 422


class NotFoundError(RequestError):
    """What was named does not exist."""

    http_status = 404


class ConflictError(RequestError):
    """It does not go together with what is there."""

    http_status = 409


class PrerequisiteError(HotsetError):
    """Something is missing or in the way; the message says how to change that."""

    exit_code = 3
    http_status = 409
