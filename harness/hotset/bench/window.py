"""Windows of a workload, whichever it is: the result of each, and a search over several."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final, Literal, TypeVar

from hotset.core.errors import (
    HotsetError,
    Interrupted,
    RequestError,
    ThresholdError,
    interruption_reason,
)
from hotset.core.progress import Reporter
from hotset.core.sql import DatabaseError
from hotset.core.units import Bytes, parse_span
from hotset.databases.product import SqlDatabase
from hotset.load import search, steady
from hotset.load.record import RunFailed, WindowOptions
from hotset.load.search import FoundRate, Limits
from hotset.reports.analysis.caveats import Code
from hotset.reports.model.windows import (
    Caveat,
    Condition,
    HighestRate,
    Latency,
    Repeat,
    Steadiness,
    Verdict,
)

from . import thresholds
from .server import sampled as server
from .server.sampled import Watch
from .server.time_use import TimeSampler
from .thresholds import Threshold, Values, judge

Options = TypeVar("Options", bound=WindowOptions)
State = Literal["complete", "failed", "interrupted"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """A run as it ended: its window (what there is of it), why it failed, what the thresholds came
    to; after a search for a rate the window at the highest one that held, and the search."""

    result: Repeat | None
    cause: str | None = None
    verdicts: tuple[Verdict, ...] = ()
    rate: HighestRate | None = None

    @property
    def state(self) -> State:
        """In one word."""
        if self.cause is None:
            return "complete"
        return INTERRUPTED if was_interrupted(self.cause) else "failed"

    @property
    def broken(self) -> list[Condition]:
        """Conditions of TPC-C that do not hold."""
        conditions = self.result.conditions if self.result else None
        return [condition for condition in conditions or () if not condition.holds]

    def amend(self, **fields: Any) -> Outcome:  # noqa: ANN401 - of the window
        """With these fields of its window, where it has one."""
        if self.result is None:
            return self
        return replace(self, result=self.result.model_copy(update=fields))


INTERRUPTED: Final = "interrupted"
"""The cause of a run that ended by Ctrl-C; where no user did it, what did follows a colon."""


def was_interrupted(cause: str) -> bool:
    """True if this is the cause of a run that was interrupted.

    >>> [was_interrupted(one) for one in ("interrupted", "interrupted: no room", "it failed")]
    [True, True, False]
    """
    return cause.partition(": ")[0] == INTERRUPTED


def cause_of(error: BaseException) -> str | None:
    """Why a run ended, of what ended it; None: it is a fault of hotset's own."""
    if isinstance(error, KeyboardInterrupt):
        why = interruption_reason(error)
        return f"{INTERRUPTED}: {why}" if why else INTERRUPTED
    if isinstance(error, ExceptionGroup):
        return f"{error.message}: {'; '.join(map(str, error.exceptions))}"
    return str(error) if isinstance(error, HotsetError) else None


def end_with(outcome: Outcome, error: BaseException) -> Outcome:
    """The outcome of a run after which something else failed; what it failed of first counts."""
    return replace(outcome, cause=outcome.cause or cause_of(error))


def add_server_use(outcome: Outcome, watch: Watch, block: Bytes) -> Outcome:
    """The outcome with what the server did over its window, where it is watched.

    :param block: of the cache.
    """
    if outcome.result is None or (use := watch(*outcome.result.span)) is None:
        return outcome
    outcome = replace(outcome, result=server.add_use(outcome.result, use, block))
    return warn(outcome, Code.COUNTED_ANEW.fill()) if use.window.restarted else outcome


def warn(outcome: Outcome, *more: Caveat) -> Outcome:
    """The outcome with more that makes its values doubtful."""
    warnings = outcome.result.warnings if outcome.result else ()
    return outcome.amend(warnings=(*warnings, *more))


def limit_of(database: SqlDatabase, result: Repeat) -> list[Caveat]:
    """The server's own limit of time for a statement, where statements of a run were cancelled."""
    cancelled = sum(
        count
        for kind in result.transactions.values()
        for cause, count in kind.failed.items()
        if database.cancelled and database.cancelled in cause
    )
    try:
        limit = database.limit() if cancelled else ""
    except DatabaseError:
        return []
    return [Code.STATEMENT_TIMEOUT.fill(cancelled=f"{cancelled:,}", limit=limit)] if limit else []


def with_reads(result: Repeat, reads: Sequence[float] | None) -> Repeat:
    """With the verdict on reads per transaction, where the rest of the window was judged.

    :param reads: of pages in each of its seconds; None: not seen.
    """
    if reads is None or not result.steadiness:
        return result
    verdict = steady.judge_reads(reads, [point.tpm / 60 for point in result.series])
    more = () if verdict is None else (verdict,)
    return result.model_copy(update={"steadiness": (*result.steadiness, *more)})


def not_steady(result: Repeat) -> str:
    """Why a window does not pass for steady."""
    if result.not_steady:
        return (
            f"not steady ({', '.join(_describe_verdict(verdict) for verdict in result.not_steady)})"
        )
    if result.not_known:
        few = ", ".join(_describe_verdict(verdict) for verdict in result.not_known)
        return f"too few transactions to know whether it is steady ({few})"
    return "not known whether it is steady (the window was too short to judge)"


def _describe_verdict(verdict: Steadiness) -> str:
    return {"tpm": "throughput", "reads": "reads per transaction", "latency_ms": verdict.of}[
        verdict.measure
    ]


def add_time(result: Repeat, sampler: TimeSampler) -> Repeat:
    """A window with where its users' time went, second by second too, and what the server counted
    meanwhile, by whichever driver."""
    start, end = result.span
    rampup = sampler.io_window(start - result.rampup_s, start) if result.rampup_s else None
    each = sampler.each_second(start, math.ceil(end - start))
    update = {
        "rampup_read_bytes": (rampup and rampup.read_bytes) if result.rampup_s else 0,
        "settings": sampler.settings,
        "warnings": (*result.warnings, *_changed(sampler)),
        "time": sampler.window(start, end),
        "time_missing": sampler.missing,
        "server_io": sampler.io_window(start, end),
        "server_io_missing": sampler.io_missing,
        # The last second may have begun without being seen.
        "series": tuple(
            second.model_copy(update={"time": use})
            for second, use in zip_longest(result.series, each[: len(result.series)])
        ),
    }
    return result.model_copy(update=update)


def _changed(sampler: TimeSampler) -> Iterator[Caveat]:
    """Settings of the server that were others when the run had ended; files that grew too."""
    before, after = sampler.settings or {}, sampler.settings_after or {}
    changed = [
        f"{name} was {value}, then {after[name]}"
        for name, value in before.items()
        if after.get(name, value) != value
    ]
    if changed:
        yield Code.SETTINGS_CHANGED.fill(which="; ".join(changed))


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
    match = _RATE.fullmatch(text.strip())
    if match is None or _MAYBE_THOUSANDS.fullmatch(match[1]):
        raise RequestError(
            f"rate {text!r}: give transactions per second, such as 500/s, 1,500/s or 2.5/s",
            field="rate",
        )
    return float(re.sub("[_,]", "", match[1]))


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
    run: Callable[[Options], Repeat],
    options: Options,
    limits: Limits,
    report: Reporter,
    fastest: Repeat | None = None,
    keep: Callable[[FoundRate], None] = lambda _: None,
) -> FoundRate:
    """Search for the highest rate of transactions that misses no limit.

    :param fastest: a run without a rate, where there has just been one.
    :param keep: gets the search's result after each trial.
    :raises RunFailed: one of the runs has no result.
    """

    def drive(options: Options) -> Repeat:
        rate = options.rate_per_s
        report.say("as fast as the users can" if rate is None else f"{rate:,.1f}/s")
        return run(options)

    def say(rate: FoundRate) -> None:
        trial = rate.record.trials[-1]
        report.say(f"{trial.rate_per_s:,.1f}/s: {trial.missed or 'holds'}")
        keep(rate)

    return search.find_rate(drive, options, limits, say, fastest)


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
    """Metrics that thresholds can name of any workload with these kinds of transactions."""
    of_kinds = (f"{name}({kind})" for kind in kinds for name in _LATENCIES)
    return (*COUNTS, *_LATENCIES, *of_kinds)


def values(result: Repeat) -> dict[str, float | None]:
    """By metric; ``failed`` and ``retries`` over all kinds, ``late`` and ``skipped`` only with a
    rate."""
    arrived = result.arrived
    by_metric: dict[str, float | None] = {
        "tpm": result.tpm,
        "failed": result.failed,
        "retries": result.retries,
        "late": arrived.late if arrived else None,
        "skipped": arrived.skipped if arrived else None,
        **_latencies(result.latency_ms, ""),
    }
    for name, kind in result.transactions.items():
        by_metric |= _latencies(kind.latency_ms, f"({name})")
    return by_metric


def _latencies(latency_ms: Latency | None, of: str) -> Values:
    return {f"{name}{of}": getattr(latency_ms, field, None) for name, field in _LATENCIES.items()}


def judge_limits(limits: Sequence[Threshold], values: Callable[[Repeat], Values]) -> search.Judge:
    """Says of a result which limits it missed; empty where it met all. A kind of transaction that
    did not occur meets its own."""

    def say(result: Repeat) -> str:
        verdicts = judge(limits, values(result))
        return "; ".join(
            verdict.text for verdict in verdicts if verdict.measured is not None and not verdict.met
        )

    return say


def junit_xml(points: Sequence[Outcome], suite: str) -> str:
    """The thresholds as JUnit XML, by number of users."""
    results = [(point.result, point.verdicts) for point in points if point.result is not None]
    cases = [
        thresholds.Case.from_verdict(f"{suite}.{result.users}-users", verdict)
        for result, verdicts in results
        for verdict in verdicts
    ]
    return thresholds.junit(suite, cases, sum(result.duration_s for result, _ in results))


def failure(points: Sequence[Outcome], require: Callable[[Outcome], None]) -> Exception | None:
    """Return what ``require`` raises for the first point it refuses."""
    try:
        for outcome in points:
            require(outcome)
    except Exception as error:
        return error
    return None


def require(outcome: Outcome) -> None:
    """
    :raises Interrupted: it was, by Ctrl-C.
    :raises RunFailed: there is no result, or not the whole of it.
    :raises ThresholdError: a threshold was missed, or no rate held the limits.
    """
    if outcome.cause is not None and was_interrupted(outcome.cause):
        raise Interrupted(f"{outcome.cause}; what had been measured is in the result")
    if outcome.cause is not None:
        raise RunFailed(outcome.cause, outcome.result)
    if outcome.rate is not None and outcome.rate.rate_per_s is None:
        last = outcome.rate.trials[-1]
        raise ThresholdError(f"no rate holds: at {last.rate_per_s:,.1f}/s {last.missed}")
    thresholds.require(outcome.verdicts)
