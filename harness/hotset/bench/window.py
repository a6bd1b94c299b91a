"""Windows of a workload, whichever it is: what each comes to, and a search over several."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Literal, TypeVar

from hotset.core.errors import (
    HotsetError,
    Interrupted,
    RequestError,
    ThresholdError,
    interrupted_by,
)
from hotset.core.progress import Reporter
from hotset.core.sql import DatabaseError
from hotset.core.units import parse_span
from hotset.databases.connect import SqlDatabase
from hotset.databases.postgres import copies, limits
from hotset.databases.postgres.client import PostgresDatabase
from hotset.load import search, steady
from hotset.load.record import Latency, RunFailed, WindowOptions, WindowResult
from hotset.load.search import FoundRate
from hotset.load.steady import Steadiness
from hotset.reports.model.windows import ServerIo, TimeUse

from . import thresholds
from .server.sampled import ServerUse, Watch
from .server.time_use import TimeSampler
from .thresholds import Threshold, Values, Verdict, judge

Result = TypeVar("Result", bound=WindowResult)
Options = TypeVar("Options", bound=WindowOptions)
State = Literal["complete", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class WindowTime:
    """Where the users' time went, in the window and second by second, and what the server counted
    meanwhile; ``missing`` says what of either could not be seen and what permits it."""

    window: TimeUse | None
    series: tuple[TimeUse | None, ...]
    missing: str
    io: ServerIo | None = None
    io_missing: str = ""


@dataclass(frozen=True, slots=True)
class Warned:
    """What makes a run's values doubtful.

    :ivar code: the same whatever the values: ``NOT_STEADY``, ``STATEMENT_TIMEOUT``.
    """

    code: str
    text: str


_COUNTED_ANEW = Warned(
    "COUNTED_ANEW",
    "the cache's counters began anew during the window, as when its policy, mode or size is"
    " changed: its hit ratio over the window is not known",
)


@dataclass(frozen=True, slots=True)
class Outcome(Generic[Result]):
    """A run as it is printed and written: the window (what there is of it), why it failed, what the
    thresholds came to, where the users' time went, what the server did, what its database is to be
    warned of; after a search for a rate the window at the highest one that held, and the search."""

    result: Result | None
    cause: str | None = None
    verdicts: tuple[Verdict, ...] = ()
    found: FoundRate[Result] | None = None
    time_use: WindowTime | None = None
    server: ServerUse | None = None
    warned: tuple[Warned, ...] = ()

    @property
    def is_partial(self) -> bool:
        """The window ended before its time."""
        return was_partial(self.result, self.cause)

    @property
    def state(self) -> State:
        """In one word."""
        if self.cause is None:
            return "complete"
        return INTERRUPTED if was_interrupted(self.cause) else "failed"


AnyOutcome = TypeVar("AnyOutcome", bound=Outcome[Any])

INTERRUPTED: Final = "interrupted"
"""The cause of a run that ended by Ctrl-C; where no user did it, what did follows a colon."""
_EDGE_S = 0.01


def was_partial(result: WindowResult | None, cause: str | None) -> bool:
    """Whether a run that ended for that cause ended before its window was over."""
    if result is None or cause is None:
        return False
    return result.window_end - result.window_start < result.options.duration_s - _EDGE_S


def was_interrupted(cause: str) -> bool:
    """Whether it is the cause of a run that was.

    >>> [was_interrupted(one) for one in ("interrupted", "interrupted: no room", "it failed")]
    [True, True, False]
    """
    return cause.partition(": ")[0] == INTERRUPTED


def cause_of(error: BaseException) -> str | None:
    """Why a run ended, of what ended it; None: it is a fault of hotset's own."""
    if isinstance(error, KeyboardInterrupt):
        why = interrupted_by(error)
        return f"{INTERRUPTED}: {why}" if why else INTERRUPTED
    if isinstance(error, ExceptionGroup):
        return f"{error.message}: {'; '.join(map(str, error.exceptions))}"
    return str(error) if isinstance(error, HotsetError) else None


def ended_by(outcome: AnyOutcome, error: BaseException) -> AnyOutcome:
    """The outcome of a run after which something else failed; what it failed of first counts."""
    return replace(outcome, cause=outcome.cause or cause_of(error))


def add_server_use(outcome: AnyOutcome, watch: Watch) -> AnyOutcome:
    """The outcome with what the server did over its window, where it is watched."""
    if outcome.result is None:
        return outcome
    server = watch(outcome.result)
    if server is not None and server.window.counted_anew:
        outcome = replace(outcome, warned=(*outcome.warned, _COUNTED_ANEW))
    return replace(outcome, server=server)


def limit_of(database: SqlDatabase, result: WindowResult) -> list[Warned]:
    """The server's own limit of time for a statement, where statements of a run were cancelled."""
    cancelled = sum(
        count
        for kind in result.kinds.values()
        for cause, count in kind.failed.items()
        if f"error {limits.CANCELLED}" in cause
    )
    if not cancelled or not isinstance(database, PostgresDatabase):
        return []
    try:
        limit = database.statement_limit()
    except DatabaseError:
        return []
    if not limit.limit_ms:
        return []
    return [Warned("STATEMENT_TIMEOUT", f"the server cancelled {cancelled:,} statements: {limit}")]


def with_reads(result: Result, reads: Sequence[float] | None) -> Result:
    """With the verdict on reads per transaction, where the rest of the window was judged.

    :param reads: of pages in each of its seconds; None: not seen.
    """
    if reads is None or not result.steadiness:
        return result
    found = steady.judge_reads(reads, [one.transactions for one in result.series])
    return replace(result, steadiness=[*result.steadiness, found]) if found else result


def not_steady(result: WindowResult) -> str:
    """Why a window does not pass for steady."""
    if result.not_steady:
        return f"not steady ({', '.join(_judged(one) for one in result.not_steady)})"
    if result.not_known:
        few = ", ".join(_judged(one) for one in result.not_known)
        return f"too few transactions to know whether it is steady ({few})"
    return "not known whether it is steady (the window was too short to judge)"


def _judged(one: Steadiness) -> str:
    return {"tpm": "throughput", "reads": "reads per transaction", "latency_ms": one.of}[
        one.measure
    ]


def time_use(sampler: TimeSampler, result: WindowResult) -> WindowTime:
    """Over the window of a run, by whichever driver."""
    start, end = result.window_start, result.window_end
    return WindowTime(
        sampler.window(start, end),
        tuple(sampler.each_second(start, math.ceil(end - start))),
        sampler.missing,
        sampler.io_window(start, end),
        sampler.io_missing,
    )


@contextmanager
def copy_of(database: SqlDatabase, report: Reporter) -> Iterator[SqlDatabase]:
    """A copy of the database for one run.

    :raises RequestError: it is not PostgreSQL's.
    :raises CopyFailed: it cannot be copied.
    """
    with copies.copy_database(copyable(database), report) as copy:
        yield copy


def copyable(database: SqlDatabase) -> PostgresDatabase:
    """:raises RequestError: it is not PostgreSQL's."""
    if not isinstance(database, PostgresDatabase):
        raise RequestError(
            "copies are made on PostgreSQL; on SQL Server restore a backup before each run",
            field="fresh",
        )
    return database


def seconds(text: str, field: str) -> float:
    """A number alone is one of seconds.

    >>> seconds("10m", "until_steady"), seconds("90", "until_steady")
    (600.0, 90.0)

    :raises RequestError: it is no time.
    """
    try:
        return parse_span(f"{text}s" if text.strip().replace(".", "", 1).isdecimal() else text)
    except ValueError as error:
        raise RequestError(f"{field}: {error}", field=field) from None


_RATE = re.compile(rf"({thresholds.WHOLE}(?:\.[0-9]+)?)\s*(?:/s)?")
_MAYBE_THOUSANDS = re.compile(r"[0-9]{1,3}\.[0-9]{3}")


def rate_per_s(text: str | None) -> float | None:
    """
    >>> rate_per_s("1,500/s"), rate_per_s(None)
    (1500.0, None)

    :raises RequestError: it is no rate.
    """
    if text is None:
        return None
    found = _RATE.fullmatch(text.strip())
    if found is None or _MAYBE_THOUSANDS.fullmatch(found[1]):
        raise RequestError(
            f"rate {text!r}: give transactions per second, such as 500/s, 1,500/s or 2.5/s",
            field="rate",
        )
    return float(re.sub("[_,]", "", found[1]))


def options(kind: Callable[..., Options], rate: str | None, **named: Any) -> Options:  # noqa: ANN401
    """Options of a run.

    :param kind: what they are made as, which checks them.
    :param rate: such as ``500/s``.
    :raises RequestError: one of them makes no run; the message names it.
    """
    try:
        return kind(**named, rate_per_s=rate_per_s(rate))
    except RequestError:
        raise
    except ValueError as error:
        raise RequestError(str(error)) from None


def require_one_number(each_users: Sequence[int]) -> None:
    """:raises RequestError: a search for a rate is to have several numbers of users."""
    if len(each_users) > 1:
        raise RequestError(
            "a search for a rate takes one number of users: the connections of the application",
            field="find_rate",
        )


def find_rate(
    run: Callable[[Options], Result],
    options: Options,
    judge: search.Judge[Result],
    report: Reporter,
    fastest: Result | None = None,
    keep: Callable[[FoundRate[Result]], None] = lambda _: None,
) -> FoundRate[Result]:
    """Search for the highest rate of transactions at which `judge` finds nothing missed.

    :param fastest: a run without a rate, where there has just been one.
    :param keep: gets what the search has come to after each trial.
    :raises RunFailed: one of the runs has no result.
    """

    def one(options: Options) -> Result:
        rate = options.rate_per_s
        report.say("as fast as the users can" if rate is None else f"{rate:,.1f}/s")
        return run(options)

    def say(found: FoundRate[Result]) -> None:
        trial = found.trials[-1]
        report.say(f"{trial.rate_per_s:,.1f}/s: {trial.missed or 'holds'}")
        keep(found)

    return search.find_rate(one, options, judge, say, fastest)


_LATENCIES = {
    "mean": "mean",
    "p50": "p50",
    "p90": "p90",
    "p95": "p95",
    "p99": "p99",
    "p99.9": "p99_9",
    "p99.99": "p99_99",
    "max": "max",
}
COUNTS = ("tpm", "failed", "retries", "late", "skipped")


def metrics(kinds: Sequence[str]) -> tuple[str, ...]:
    """What thresholds can name of any workload with these kinds of transactions."""
    of_kinds = (f"{name}({kind})" for kind in kinds for name in _LATENCIES)
    return (*COUNTS, *_LATENCIES, *of_kinds)


def values(result: WindowResult) -> dict[str, float | None]:
    """By metric; ``failed`` and ``retries`` over all kinds, ``late`` and ``skipped`` only with a
    rate."""
    arrived = result.arrived
    found: dict[str, float | None] = {
        "tpm": result.tpm,
        "failed": result.failed,
        "retries": sum(sum(kind.retries.values()) for kind in result.kinds.values()),
        "late": arrived.late if arrived else None,
        "skipped": arrived.skipped if arrived else None,
        **_latencies(result.latency_ms, ""),
    }
    for name, kind in result.kinds.items():
        found |= _latencies(kind.latency_ms, f"({name})")
    return found


def _latencies(latency_ms: Latency, of: str) -> Values:
    return {f"{name}{of}": getattr(latency_ms, field) for name, field in _LATENCIES.items()}


def missed_limits(
    limits: Sequence[Threshold], values: Callable[[Result], Values]
) -> Callable[[Result], str]:
    """Says of a result which limits it missed; empty where it met all. A kind of transaction that
    did not occur meets its own."""

    def say(result: Result) -> str:
        verdicts = judge(limits, values(result))
        return "; ".join(
            str(verdict) for verdict in verdicts if verdict.value is not None and not verdict.met
        )

    return say


def failure(
    points: Sequence[AnyOutcome], require: Callable[[AnyOutcome], None]
) -> Exception | None:
    """What ``require`` raises of the first point that it refuses."""
    try:
        for outcome in points:
            require(outcome)
    except Exception as error:
        return error
    return None


def require(outcome: Outcome[Result]) -> None:
    """
    :raises Interrupted: it was, by Ctrl-C.
    :raises RunFailed: there is no result, or not the whole of it.
    :raises ThresholdError: a threshold was missed, or no rate held the limits.
    """
    if outcome.cause is not None and was_interrupted(outcome.cause):
        raise Interrupted(f"{outcome.cause}; what had been measured is in the result")
    if outcome.cause is not None:
        raise RunFailed(outcome.cause, outcome.result)
    if outcome.found is not None and outcome.found.highest is None:
        last = outcome.found.trials[-1]
        raise ThresholdError(f"no rate holds: at {last.rate_per_s:,.1f}/s {last.missed}")
    thresholds.require(outcome.verdicts)
