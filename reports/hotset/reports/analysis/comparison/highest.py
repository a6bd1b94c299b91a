"""The highest rate of transactions that meets the experiment's limits, before and after."""

from __future__ import annotations

from statistics import fmean

from hotset.core import words

from ...model.base import ArmName
from ...model.document import RunDocument
from ...model.windows import HighestRate, Latency
from .. import answer

TITLE = "Highest rate that meets the limits"
COLUMNS = ("arm", "repeat", "rate per s", "p50 ms", "p95 ms", "p99 ms", "missed at", "because")
TRIAL_COLUMNS = ("arm", "repeat", "rate per s", "done per s", "")


def find_highest(document: RunDocument, arm: ArmName) -> tuple[HighestRate, ...]:
    """An arm's searches, by repeat."""
    return next((measured.rates for measured in document.arms if measured.name == arm), ())


def mean_rate(document: RunDocument, arm: ArmName) -> float | None:
    """Transactions a second, a repeat in which no rate held as 0; None where none was sought."""
    rates = find_highest(document, arm)
    return fmean(rate.rate_per_s or 0.0 for rate in rates) if rates else None


def limits(document: RunDocument) -> str:
    """Name the limits that the rates had to meet; empty where no rate was searched for."""
    every = (rate.limits for arm in document.arms for rate in arm.rates)
    return " and ".join(next(every, ()))


def headline(document: RunDocument) -> str | None:
    """The factor that users feel, in one sentence; None where no rate was sought."""
    asked = limits(document)
    if not asked:
        return None
    before, after = (mean_rate(document, name) for name in answer.COMPARED)
    factor = document.rate_factor
    if factor is None:
        each = [
            f"{answer.prefix(arm.name, '')}{_rate(mean_rate(document, arm.name))}"
            for arm in document.arms
            if arm.rates
        ]
        return f"Highest rate with {asked}: {words.enumerate_words(each)}."
    sentence = (
        f"With {asked} the server takes {_rate(after)} instead of {_rate(before)}:"
        f" {words.factor(factor.ratio)} as many ({answer.interval(document, factor)})"
    )
    if factor.of_all_flash is not None:
        sentence += f", {words.percent(factor.of_all_flash, 0)} of all-flash"
    return answer.claim(factor, f"{sentence}.")


def rows(document: RunDocument) -> list[tuple[str, ...]]:
    """A row for each arm and repeat."""
    return [
        (
            name,
            str(rate.repeat),
            words.count(rate.rate_per_s) if rate.rate_per_s else "none",
            *words.latencies(_latency(rate)),
            words.count(rate.failed_per_s),
            _why(rate),
        )
        for name in answer.ARM_ORDER
        for rate in find_highest(document, name)
    ]


def sentences(document: RunDocument) -> list[str]:
    """Result of each search, and the users' rate without pauses."""
    return [
        f"{answer.prefix(arm.name)}{held}; users without pause get"
        f" {words.count(rate.unpaced_per_s)}/s done."
        for arm in document.arms
        for rate in arm.rates
        if rate.unpaced_per_s is not None
        for held in [f"{rate.rate_per_s:,.1f}/s holds" if rate.rate_per_s else "no rate holds"]
    ]


def trial_rows(document: RunDocument) -> list[tuple[str, ...]]:
    """Rows of `TRIAL_COLUMNS`: every rate that was tried, the lowest first."""
    return [
        (
            name,
            str(rate.repeat),
            f"{trial.rate_per_s:,.1f}",
            f"{trial.reached_per_s:,.1f}",
            trial.missed or "holds",
        )
        for name in answer.ARM_ORDER
        for rate in find_highest(document, name)
        for trial in sorted(rate.trials, key=lambda trial: trial.rate_per_s)
    ]


def _rate(per_s: float | None) -> str:
    return f"{words.count(per_s)} transactions/s" if per_s else "no rate at all"


def _latency(rate: HighestRate) -> Latency | None:
    """At the highest rate."""
    at = (trial.latency_ms for trial in rate.trials if trial.rate_per_s == rate.rate_per_s)
    return next(at, None)


def _why(rate: HighestRate) -> str:
    """Name the limit that the next higher rate missed."""
    missed = (trial.missed for trial in rate.trials if trial.rate_per_s == rate.failed_per_s)
    return next(missed, "all that the users get done without pause")
