"""Runs of SQL scripts: one window, several until one is steady, a search for a rate, a curve."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from hotset.cachelayer.common.errors import RequestError
from hotset.reports.model import words
from hotset.tpcc import driver
from hotset.tpcc.window.record import RunFailed, WindowOptions, WindowResult

from ...databases.time_use import TimeSampler, readings
from ...terminal.live import following
from ...terminal.progress import Reporter
from ...thresholds import Threshold, parse, require_known
from .. import window
from .users import SqlWorkload

Outcome: TypeAlias = window.Outcome[WindowResult]


def options(*, rate: str | None, **named: float) -> WindowOptions:
    """
    :param rate: such as ``500/s``.
    :raises RequestError: one of them makes no run; the message names it.
    """
    return window.options(WindowOptions, rate, **named)


def run(workload: SqlWorkload, report: Reporter) -> Outcome:
    """One window; a run that fails leaves what it measured until then."""
    try:
        with TimeSampler(readings(workload.database)) as sampler:
            result = _drive(workload, report)
    except RunFailed as failure:
        return window.Outcome(failure.partial, failure.cause)
    return window.Outcome(result, time_use=window.time_use(sampler, result))


def _drive(workload: SqlWorkload, report: Reporter) -> WindowResult:
    names = ", ".join(workload.kinds)
    title = f"{names}, {words.plural(workload.options.users, 'user')}"
    with following(report, workload.options, title) as observe:
        return driver.run_workload(workload, observe)


def run_until_steady(workload: SqlWorkload, limit_s: float, report: Reporter) -> Outcome:
    """Windows one after the other until one is steady or ``limit_s`` are over; the last counts.

    :raises RequestError: the window is too short to be judged.
    """

    def one(options: WindowOptions) -> Outcome:
        return run(replace(workload, options=options), report)

    return window.until_steady(one, workload.options, limit_s, report)


def find_rate(workload: SqlWorkload, limits: Sequence[Threshold], report: Reporter) -> Outcome:
    """Search for the highest rate of transactions at which all limits hold.

    :raises RequestError: the options give a rate already.
    """
    if workload.options.rate_per_s is not None:
        raise RequestError("a search sets the rate itself: leave the rate out", field="rate")

    def one(options: WindowOptions) -> WindowResult:
        return _drive(replace(workload, options=options), report)

    try:
        found = window.find_rate(one, workload.options, window.missed(limits, values), report)
    except RunFailed as failure:
        return window.Outcome(failure.partial, failure.cause)
    return window.Outcome(found.highest.result if found.highest else None, found=found)


def curve(
    each_users: Sequence[int],
    workload: SqlWorkload,
    drive: Callable[[SqlWorkload], Outcome],
    report: Reporter,
) -> Iterator[Outcome]:
    """A run for each number of users; one that fails is the last."""

    def say(outcome: Outcome) -> None:
        if (result := outcome.result) is not None:
            users = words.plural(result.options.users, "user")
            report.say(f"{users}: {result.tpm / 60:,.1f} TPS")

    def one(options: WindowOptions) -> Outcome:
        return drive(replace(workload, options=options))

    return window.curve(each_users, workload.options, one, _failed, say)


def _failed(cause: str) -> Outcome:
    return window.Outcome(None, cause)


def values(result: WindowResult) -> dict[str, float | None]:
    """What thresholds can name, by metric."""
    return {"tps": result.tpm / 60, **window.values(result)}


def limits(texts: Sequence[str], kinds: Sequence[str]) -> list[Threshold]:
    """Thresholds of a run.

    :raises ThresholdFormError: one cannot be read or names no metric of these scripts.
    """
    found = [parse(text) for text in texts]
    require_known(found, ("tps", *window.metrics(kinds)))
    return found


def judged(outcome: Outcome, wanted: Sequence[Threshold]) -> Outcome:
    """The outcome with a verdict on each threshold, where there is a result to judge."""
    return window.judged(outcome, wanted, values)
