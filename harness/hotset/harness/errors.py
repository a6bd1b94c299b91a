"""Exit codes, and what every failure that hotset foresees carries.

==== ===========================================================
code meaning
==== ===========================================================
0    ok
1    a question was answered with no: nothing was done
2    wrong usage: flags, experiment file, unknown run
3    this computer lacks something; the message says what to do
4    the run failed: no result
5    a threshold was missed (probe hit ratio, calibration, a database that fails its check)
130  interrupted
==== ===========================================================
"""

from __future__ import annotations

from typing import TypeGuard

from hotset.cachelayer.common.errors import HotsetError, Remedy

DECLINED, USAGE, LACKS, FAILED, MISSED, INTERRUPTED = 1, 2, 3, 4, 5, 130


class KnownError(Exception):
    """The shape of an error that hotset foresees, of whichever folder: those below the harness
    share no base class, as none of them knows another."""

    exit_code: int
    http_status: int


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


def foreseen(error: BaseException) -> TypeGuard[KnownError]:
    """Whether it is a failure that hotset foresees; any other is a fault of hotset's own."""
    return hasattr(error, "exit_code") and hasattr(error, "http_status")


def code_of(error: BaseException) -> int | None:
    """The exit code for a failure that hotset foresees; None for any other."""
    return error.exit_code if foreseen(error) else None


def field_of(error: BaseException) -> str | None:
    """The request's field that is refused, in snake case."""
    field = getattr(error, "field", None)
    return field if isinstance(field, str) else None


def remedies_of(error: BaseException) -> tuple[Remedy, ...]:
    """What helps, the best first."""
    return tuple(getattr(error, "remedies", ()))
