"""How many can be served: the highest rate of arrivals at which a limit holds.

First a run without a rate says what the server can do at most; then the interval between what holds
and what does not is halved until its ends lie within the resolution. A rate also has to be served:
everything that was due is done, and the queue does not grow. Near its highest throughput a server
always has a queue, now long, now short: what counts is the trend over the whole window, beyond what
chance explains.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar, cast

from .record import NotServed, WindowOptions, WindowResult

RESOLUTION = 0.05
"""The search ends when the lowest rate that failed is so much above the highest that held."""
LOWEST_SHARE = 1 / 64
"""Of the highest throughput: below this the search gives up."""
GROWTH_SHARE = 0.02
"""Of what was due: the queue may grow by so much over a window."""
CHANCE = 2.0
"""By so many standard deviations it may grow by chance. That of arrivals less departures, both
random, over a window is the root of twice their number."""

Options = TypeVar("Options", bound=WindowOptions)
Result = TypeVar("Result", bound=WindowResult)
Judge = Callable[[Result], str]
"""Why a limit does not hold, empty where all do."""


@dataclass(frozen=True, slots=True)
class Trial(Generic[Result]):
    """One run at one rate.

    reached_per_s  transactions completed a second, rolled back ones too
    missed         why the rate does not hold, empty where it does

    Each has a seed of its own (`result.options.seed`): the same rows again would be in memory.
    """

    rate_per_s: float
    reached_per_s: float
    missed: str
    result: Result = field(repr=False)

    @property
    def holds(self) -> bool:
        return not self.missed


@dataclass(frozen=True, slots=True)
class FoundRate(Generic[Result]):
    """What a search came to.

    highest        the run at the highest rate that held; None if not even the lowest did
    highest_per_s  transactions a second that users without pause get done
    trials         in the order they were run
    """

    highest: Trial[Result] | None
    highest_per_s: float
    trials: list[Trial[Result]]


def find_rate(
    run: Callable[[Options], Result],
    options: Options,
    judge: Judge[Result],
    observe: Callable[[FoundRate[Result]], None] = lambda _: None,
    fastest: Result | None = None,
) -> FoundRate[Result]:
    """Search for the highest rate at which `judge` finds nothing missed.

    `options` are those of every run, their own rate aside; `fastest` is a run without a rate, where
    there has just been one. `observe` gets what the search has come to after each trial. Raises
    what `run` raises.
    """
    highest_per_s = _done_per_s(fastest or run(replace(options, rate_per_s=None)))
    held, failed = 0.0, highest_per_s
    found: FoundRate[Result] = FoundRate(None, highest_per_s, [])
    while (rate_per_s := _between(held, failed, highest_per_s)) is not None:
        seed = options.seed + 1 + len(found.trials)
        trial = _trial(run, replace(options, rate_per_s=rate_per_s, seed=seed), judge)
        if trial.holds:
            held = rate_per_s
        else:
            failed = rate_per_s
        best = trial if trial.holds else found.highest
        found = FoundRate(best, highest_per_s, [*found.trials, trial])
        observe(found)
    return found


def _trial(
    run: Callable[[Options], Result], options: Options, judge: Judge[Result]
) -> Trial[Result]:
    rate_per_s = options.rate_per_s
    assert rate_per_s is not None
    try:
        result = run(options)
        fault = explain_miss(result, judge)
    except NotServed as failure:
        result, fault = cast("Result", failure.partial), failure.cause
    return Trial(rate_per_s, _done_per_s(result), fault, result)


def explain_miss(result: Result, judge: Judge[Result]) -> str:
    """Why a run with a rate does not hold; empty where it does."""
    arrived = result.arrived
    if arrived is None:
        raise ValueError("the run had no rate")
    if arrived.skipped:
        return f"{arrived.skipped:,} of {arrived.due:,} transactions skipped"
    if result.unfinished:
        return f"{result.unfinished.count:,} of {arrived.due:,} transactions did not end"
    if arrived.growth > max(GROWTH_SHARE * arrived.due, CHANCE * math.sqrt(2 * arrived.due)):
        return f"the queue grew by {arrived.growth:,.0f} of {arrived.due:,} transactions due"
    return judge(result)


def _between(held: float, failed: float, highest: float) -> float | None:
    """The next rate to try; None when the search is over.

    >>> _between(0, 100, 100), _between(50, 100, 100), _between(98, 100, 100)
    (50.0, 75.0, None)
    """
    middle = (held + failed) / 2
    if held:
        return middle if failed > held * (1 + RESOLUTION) else None
    return middle if middle > highest * LOWEST_SHARE else None


def _done_per_s(result: WindowResult) -> float:
    """Transactions completed a second: committed, rolled back as meant, or failed."""
    rolled_back = sum(kind.rolled_back for kind in result.kinds.values())
    seconds = result.window_end - result.window_start
    return result.tpm / 60 + (rolled_back + result.failed) / seconds
