"""How many can be served: the highest rate of arrivals at which a limit holds.

First a run without a rate says what the server can do at most; then the interval between what holds
and what does not is halved until its ends lie within the resolution. A rate also has to be served:
everything that was due is done, and the queue does not grow. Near its highest throughput a server
always has a queue, now long, now short: what counts is the trend over the whole window, beyond what
chance explains.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from hotset.reports.model.windows import HighestRate, RateTrial, Repeat

from .record import NotServed, WindowOptions

RESOLUTION = 0.05
"""The search ends when the lowest rate that failed is so much above the highest that held."""
LOWEST_SHARE = 1 / 64
"""Share of the highest throughput below which the search gives up."""
GROWTH_SHARE = 0.02
"""Share of due transactions by which the queue may grow over a window."""
CHANCE = 2.0
"""By so many standard deviations it may grow by chance. That of arrivals less departures, both
random, over a window is the root of twice their number."""

Options = TypeVar("Options", bound=WindowOptions)
Judge = Callable[[Repeat], str]
"""Why a limit does not hold, empty where all do."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that a rate must meet.

    texts   as the user gave them
    missed  which of them a window misses
    """

    texts: tuple[str, ...]
    missed: Judge


@dataclass(frozen=True, slots=True)
class FoundRate:
    """The result of a search.

    record  with its trials in the order they were run, each with a seed of its own: the same rows
            again would be in memory
    window  at the highest rate that held; None if not even the lowest did
    """

    record: HighestRate
    window: Repeat | None = None


def find_rate(
    run: Callable[[Options], Repeat],
    options: Options,
    limits: Limits,
    observe: Callable[[FoundRate], None] = lambda _: None,
    fastest: Repeat | None = None,
) -> FoundRate:
    """Search for the highest rate that meets the limits.

    `options` are those of every run, their own rate aside; `fastest` is a run without a rate, where
    there has just been one. `observe` gets the search's result after each trial. Raises
    what `run` raises.
    """
    unpaced_per_s = _done_per_s(fastest or run(replace(options, rate_per_s=None)))
    rate = FoundRate(
        HighestRate(
            repeat=1,
            limits=limits.texts,
            users=options.users,
            failed_per_s=unpaced_per_s,
            unpaced_per_s=unpaced_per_s,
            trials=(),
        )
    )
    while (rate_per_s := _next_rate(rate.record)) is not None:
        seed = options.seed + 1 + len(rate.record.trials)
        trial, window = _try(run, replace(options, rate_per_s=rate_per_s, seed=seed), limits.missed)
        update = {
            "trials": (*rate.record.trials, trial),
            "failed_per_s" if trial.missed else "rate_per_s": rate_per_s,
        }
        record = rate.record.model_copy(update=update)
        rate = FoundRate(record, rate.window if trial.missed else window)
        observe(rate)
    return rate


def _try(
    run: Callable[[Options], Repeat], options: Options, missed: Judge
) -> tuple[RateTrial, Repeat]:
    rate_per_s = options.rate_per_s
    assert rate_per_s is not None
    try:
        window = run(options)
        fault = explain_miss(window, missed)
    except NotServed as failure:
        window, fault = failure.partial, failure.cause
    latency_ms = window.latency_ms and window.latency_ms.model_copy(update={"histogram": None})
    trial = RateTrial(
        rate_per_s=rate_per_s,
        reached_per_s=_done_per_s(window),
        missed=fault,
        seed=options.seed,
        latency_ms=latency_ms,
    )
    return trial, window


def explain_miss(result: Repeat, judge: Judge) -> str:
    """Why a run with a rate does not hold; empty where it does."""
    arrived = result.arrived
    if arrived is None:
        raise ValueError("the run had no rate")
    if arrived.skipped:
        return f"{arrived.skipped:,} of {arrived.due:,} transactions skipped"
    if result.unfinished:
        return f"{result.unfinished.count:,} of {arrived.due:,} transactions did not end"
    assert arrived.growth is not None
    if arrived.growth > max(GROWTH_SHARE * arrived.due, CHANCE * math.sqrt(2 * arrived.due)):
        return f"the queue grew by {arrived.growth:,.0f} of {arrived.due:,} transactions due"
    return judge(result)


def _next_rate(record: HighestRate) -> float | None:
    assert record.unpaced_per_s is not None
    return _between(record.rate_per_s or 0.0, record.failed_per_s, record.unpaced_per_s)


def _between(held: float, failed: float, highest: float) -> float | None:
    """The next rate to try; None when the search is over.

    >>> _between(0, 100, 100), _between(50, 100, 100), _between(98, 100, 100)
    (50.0, 75.0, None)
    """
    middle = (held + failed) / 2
    if held:
        return middle if failed > held * (1 + RESOLUTION) else None
    return middle if middle > highest * LOWEST_SHARE else None


def _done_per_s(result: Repeat) -> float:
    """Transactions completed a second: committed, rolled back as meant, or failed."""
    rolled_back = sum(kind.rolled_back for kind in result.transactions.values())
    return result.tpm / 60 + (rolled_back + result.failed) / result.duration_s
