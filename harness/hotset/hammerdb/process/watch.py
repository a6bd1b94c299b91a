"""State of a run by its lines: is it going on, and did it end well?

HammerDB's exit code is 0 on nearly every failure, a run whose user broke off still prints a
result, and a build whose worker died waits for it for ever.
"""

from __future__ import annotations

import time
from collections import Counter as Tally
from collections.abc import Callable, Iterable

from .failures import HammerdbFailed
from .output import (
    AllComplete,
    Counter,
    GeometricMean,
    Job,
    Line,
    Message,
    OtherScale,
    ProcedureError,
    Query,
    QuerySet,
    Refresh,
    TestResult,
    User,
    UserError,
    UserState,
    WindowEdge,
)

IDLE_TPM = 60
"""A server that commits no more than this per minute is idle: the counter's own queries."""
WRAP_UP_S = 180.0
"""After the window HammerDB gathers its users' timings, up to a minute of silence by itself."""
ERRORS_MAX = 1000
"""Failed transactions of one user after which its connection counts as broken."""
_TOLD_TWICE = (User, TestResult, Query, QuerySet, GeometricMean, Refresh, AllComplete)


class Watch:
    """Follows one run; `take` raises as soon as it cannot end well."""

    def __init__(self, stall_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._stall_s = stall_s
        self._clock = clock
        self._progress = clock()
        self._broken: UserError | None = None
        self.lines: list[Line] = []
        self.errors: Tally[int] = Tally()
        self.edges: dict[str, float] = {}

    def take(self, line: Line) -> None:
        """One more line.

        :raises HammerdbFailed: a virtual user failed, or another reason to stop at once.
        """
        if self._broken is not None:
            self._add_cause(line)
            return
        if isinstance(line, ProcedureError):
            self._fail_transaction(line)  # not kept: a broken connection makes thousands
            return
        self.lines.append(line)
        if not (isinstance(line, Counter) and line.value <= IDLE_TPM):
            self._progress = self._clock()
        if isinstance(line, WindowEdge):
            self.edges[line.phase] = time.time()
        elif isinstance(line, UserError):
            self._broken = line
        elif isinstance(line, User) and line.state == "failed":
            raise HammerdbFailed(f"virtual user {line.user} failed: {self._last_words(line.user)}")
        elif isinstance(line, OtherScale):
            raise HammerdbFailed(
                f"the database holds scale factor {line.scale}, not the requested one"
            )
        elif isinstance(line, Counter):
            self._check_stall()

    def silence(self) -> None:
        """No line came for a second, or none will come any more.

        :raises HammerdbFailed: a virtual user broke off before, or it is silent for too long.
        """
        if self._broken is not None:
            cause = self._broken.cause or "no cause"
            raise HammerdbFailed(f"virtual user {self._broken.user} gave up: {cause}")
        self._check_stall()

    def _add_cause(self, line: Line) -> None:
        """The cause of a break may go on over several lines; any other line is its end."""
        assert self._broken is not None
        if not isinstance(line, Message) or line.user:
            self.silence()
        elif line.text:
            self._broken = UserError(self._broken.user, f"{self._broken.cause}; {line.text}")

    def _check_stall(self) -> None:
        quiet_s = self._clock() - self._progress
        allowed_s = max(self._stall_s, WRAP_UP_S) if "done" in self.edges else self._stall_s
        if quiet_s >= allowed_s:
            raise HammerdbFailed(
                f"stalled: no progress for {quiet_s:.0f} s (stall_s is {self._stall_s:.0f});"
                f" the last was: {self._last_words(None)}"
            )

    def _fail_transaction(self, line: ProcedureError) -> None:
        self.errors[line.user] += 1
        if self.errors[line.user] >= ERRORS_MAX:
            raise HammerdbFailed(
                f"{ERRORS_MAX} transactions of virtual user {line.user} failed, the last one"
                f" {line.procedure}: its connection is gone, or HammerDB did not build this"
                " database"
            )

    def _last_words(self, user: int | None) -> str:
        words = (
            line.text
            for line in reversed(self.lines)
            if isinstance(line, Message) and line.text and user in (None, line.user)
        )
        return next(words, "nothing")


def require_success(lines: Iterable[Line], users: int) -> str:
    """The job's name, if the script finished and all of `users` users did their part.

    :raises HammerdbFailed: says which condition does not hold.
    """
    lines = list(lines)
    jobs = [line.job for line in lines if isinstance(line, Job)]
    if len(jobs) != 1:
        last = next((line.text for line in reversed(lines) if isinstance(line, Message)), "nothing")
        raise HammerdbFailed(f"HammerDB ended before its script did; its last words: {last}")
    if not any(isinstance(line, AllComplete) for line in lines):
        raise HammerdbFailed("HammerDB did not report all virtual users complete")
    started, succeeded = _users(lines, "running"), _users(lines, "success")
    if started != list(range(1, users + 1)) or succeeded != started:
        raise HammerdbFailed(
            f"{users} virtual users were asked for, {len(started)} started and"
            f" {len(succeeded)} finished well"
        )
    return jobs[0]


def agree(spoken: Iterable[Line], recorded: Iterable[Line]) -> None:
    """See that HammerDB's output and its own record tell the same.

    :raises HammerdbFailed: names the first difference.
    """
    first, other = (
        sorted(repr(line) for line in lines if isinstance(line, _TOLD_TWICE))
        for lines in (spoken, recorded)
    )
    if first != other:
        odd = sorted(set(first).symmetric_difference(other)) or ["a line reported twice"]
        raise HammerdbFailed(f"HammerDB's output and its record differ, first in {odd[0]}")


def result_of(lines: Iterable[Line]) -> TestResult:
    """The one result of a timed run.

    :raises HammerdbFailed: there is none, or more.
    """
    results = [line for line in lines if isinstance(line, TestResult)]
    if len(results) != 1:
        raise HammerdbFailed(f"HammerDB printed {len(results)} test results instead of one")
    return results[0]


def queries_of(lines: Iterable[Line]) -> list[Query]:
    """The 22 queries, in the order they ran.

    :raises HammerdbFailed: some did not run, or returned no rows.
    """
    lines = list(lines)
    queries = [line for line in lines if isinstance(line, Query)]
    ended = [line for line in lines if isinstance(line, QuerySet)]
    if sorted(query.number for query in queries) != list(range(1, 23)) or len(ended) != 1:
        raise HammerdbFailed(f"the 22 queries were asked for, {len(queries)} ran")
    returned = [line.queries for line in lines if isinstance(line, GeometricMean)]
    if returned != [22]:
        raise HammerdbFailed(
            f"not all 22 queries returned rows, HammerDB counts {returned}: the database is not"
            " whole"
        )
    return queries


def _users(lines: Iterable[Line], state: UserState) -> list[int]:
    return sorted(line.user for line in lines if isinstance(line, User) and line.state == state)
