"""Failures that hotset foresees, as data: whoever asked words them in its own language.

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

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

DECLINED, USAGE, LACKS, FAILED, MISSED, INTERRUPTED = 1, 2, 3, 4, 5, 130


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

    :cvar exit_code: what a program ends with.
    :cvar http_status: what the HTTP API answers with.
    :ivar field: the request's field that is refused, in snake case; None where it is not one alone.
    :ivar remedies: what helps, the best first.
    """

    exit_code: ClassVar[int] = FAILED
    http_status: ClassVar[int] = 424

    def __init__(self, message: str, *remedies: Remedy, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field
        self.remedies = remedies

    def __str__(self) -> str:
        return str(self.args[0])


class RequestError(HotsetError, ValueError):
    """What was asked for cannot be done as it was asked."""

    exit_code = USAGE
    http_status = 422


class NotFoundError(RequestError):
    """What was named does not exist."""

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
    """What was measured is worse than what was asked for."""

    exit_code = MISSED


def interrupted_by(error: BaseException) -> str:
    """What ended something, as the signal's handler said it; empty: a user did.

    >>> interrupted_by(KeyboardInterrupt("the disk is full")), interrupted_by(KeyboardInterrupt())
    ('the disk is full', '')
    """
    found: BaseException | None = error
    while found is not None:
        if type(found) is KeyboardInterrupt:
            return str(found)
        found = found.__context__
    return ""


def code_of(error: BaseException) -> int | None:
    """The exit code for a failure that hotset foresees; None for any other."""
    return error.exit_code if isinstance(error, HotsetError) else None


def field_of(error: BaseException) -> str | None:
    """The request's field that is refused, in snake case."""
    return error.field if isinstance(error, HotsetError) else None


def remedies_of(error: BaseException) -> tuple[Remedy, ...]:
    """What helps, the best first."""
    return error.remedies if isinstance(error, HotsetError) else ()
