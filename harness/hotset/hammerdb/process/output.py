"""HammerDB's lines as records.

The lines are those of HammerDB 6.0 (`src/generic/gencli.tcl`, `src/*/…oltp.tcl`, `…olap.tcl`). A
line that is none of these is a Message: HammerDB says many things, and none of them is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

UserState = Literal["running", "success", "failed"]
Edge = Literal["rampup", "measure", "done"]

_PRODUCT = r"(?P<product>[A-Za-z][A-Za-z0-9 ]*?)"
_COUNTER = re.compile(rf"(?P<value>\d+) {_PRODUCT} (?P<metric>tpm|qph)")
_VUSER = re.compile(r"Vuser (?P<user>\d+):(?P<text>.*)")
_ERROR = re.compile(r"Error in Virtual User (?P<user>\d+): ?(?P<cause>.*)")
_JOB = re.compile(r"JOBID=.*jobid=(?P<job>[0-9A-F]+)")
_STATES: dict[str, UserState] = {
    "RUNNING": "running",
    "FINISHED SUCCESS": "success",
    "FINISHED FAILED": "failed",
}
_EDGES: dict[str, Edge] = {
    "Rampup complete, Taking start": "measure",
    "Test complete, Taking end": "done",
    "Beginning rampup": "rampup",
}


@dataclass(frozen=True, slots=True)
class Counter:
    """The transaction counter: a rate over its last interval, as the whole server sees it."""

    value: int
    product: str
    metric: str


@dataclass(frozen=True, slots=True)
class User:
    """A virtual user began or ended; number 1 of a timed run is the monitor."""

    user: int
    state: UserState


@dataclass(frozen=True, slots=True)
class UserError:
    """A virtual user broke off."""

    user: int
    cause: str


@dataclass(frozen=True, slots=True)
class AllComplete:
    """Every virtual user ended, well or not."""


@dataclass(frozen=True, slots=True)
class Job:
    """The last line of hotset's own script: HammerDB came back to it."""

    job: str


@dataclass(frozen=True, slots=True)
class TestResult:
    """New orders per minute, and the server's own transactions per minute."""

    nopm: int
    tpm: int
    product: str


@dataclass(frozen=True, slots=True)
class WindowEdge:
    """The monitor crossed a boundary of the timed run."""

    phase: Edge


@dataclass(frozen=True, slots=True)
class Query:
    """One TPC-H query finished."""

    user: int
    number: int
    seconds: float


@dataclass(frozen=True, slots=True)
class QuerySet:
    """22 queries finished; whole seconds."""

    user: int
    number: int
    seconds: int


@dataclass(frozen=True, slots=True)
class GeometricMean:
    """Geometric mean of the queries that returned rows, and their number."""

    user: int
    queries: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Refresh:
    """RF1 (new sales) or RF2 (old sales) finished."""

    function: Literal[1, 2]
    seconds: float


@dataclass(frozen=True, slots=True)
class ProcedureError:
    """A transaction failed and was not repeated; HammerDB drops the server's words."""

    user: int
    procedure: str


@dataclass(frozen=True, slots=True)
class OtherScale:
    """The tables hold another scale factor than was asked for."""

    scale: int


@dataclass(frozen=True, slots=True)
class Message:
    """Anything else; user 0 is the program itself."""

    user: int
    text: str


Line: TypeAlias = (
    Counter
    | User
    | UserError
    | AllComplete
    | Job
    | TestResult
    | WindowEdge
    | Query
    | QuerySet
    | GeometricMean
    | Refresh
    | ProcedureError
    | OtherScale
    | Message
)


_FORMS: tuple[tuple[re.Pattern[str], Callable[[int, re.Match[str]], Line]], ...] = (
    (
        re.compile(rf"TEST RESULT : System achieved (\d+) NOPM from (\d+) {_PRODUCT} TPM"),
        lambda _, match: TestResult(int(match[1]), int(match[2]), match["product"]),
    ),
    (
        re.compile(r"query (\d+) completed in (\d+(?:\.\d+)?) seconds"),
        lambda user, match: Query(user, int(match[1]), float(match[2])),
    ),
    (
        re.compile(r"Completed (\d+) query set\(s\) in (\d+) seconds"),
        lambda user, match: QuerySet(user, int(match[1]), int(match[2])),
    ),
    (
        re.compile(
            r'Geometric mean of query times returning rows \((\d+)\) is "?(\d+(?:\.\d+)?)"?'
        ),
        lambda user, match: GeometricMean(user, int(match[1]), float(match[2])),
    ),
    (
        re.compile(r"(New|Old) Sales refresh complete in (\d+(?:\.\d+)?) seconds"),
        lambda _, match: Refresh(1 if match[1] == "New" else 2, float(match[2])),
    ),
    (
        re.compile(r"([A-Z][A-Za-z ]+?) Procedure Error set RAISEERROR.*"),
        lambda user, match: ProcedureError(user, match[1]),
    ),
    (
        re.compile(r"The setting of the scale factor .* updating the scale factor to (\d+)\."),
        lambda _, match: OtherScale(int(match[1])),
    ),
)


def parse(raw: str) -> Line:
    """One line of standard output, whatever its ends (HammerDB writes carriage returns).

    >>> parse("Vuser 1:TEST RESULT : System achieved 61884 NOPM from 142211 PostgreSQL TPM")
    TestResult(nopm=61884, tpm=142211, product='PostgreSQL')
    >>> parse("Vuser 3:FINISHED FAILED")
    User(user=3, state='failed')
    """
    line = raw.strip()
    if line == "ALL VIRTUAL USERS COMPLETE":
        return AllComplete()
    if match := _COUNTER.fullmatch(line):
        return Counter(int(match["value"]), match["product"], match["metric"])
    if match := _ERROR.fullmatch(line):
        return UserError(int(match["user"]), match["cause"])
    if match := _JOB.fullmatch(line):
        return Job(match["job"])
    if match := _VUSER.fullmatch(line):
        return parse_line(int(match["user"]), match["text"].strip())
    return Message(0, line)


def parse_line(user: int, text: str) -> Line:
    """Parse a virtual user's line, without the `Vuser N:` before it (as in table JOBOUTPUT)."""
    if text in _STATES:
        return User(user, _STATES[text])
    for form, make in _FORMS:
        if match := form.fullmatch(text):
            return make(user, match)
    edges = (WindowEdge(phase) for start, phase in _EDGES.items() if text.startswith(start))
    return next(edges, Message(user, text))
