"""The factor: how many times faster one arm is than another, and how sure that is.

The ratio is that of the arms' means over their repeats: of throughput (NOPM in TPC-C, else
transactions a second), of the total seconds of the 22 queries, of 95th percentiles, of the highest
rates that met the limits. Its 95 % interval comes from the repeats and nothing else: Welch's t on
the logarithms of the repeats' values, whose degrees of freedom follow Satterthwaite (Biometrics
Bulletin 2, 1946); widened to the observed ratio should that lie outside.

A repeat is one value. What a window holds (seconds, queries) is no sample of its own: the seconds
of a window, and the queries of a run, rise and fall together, and drawing them one by one makes
intervals that hold the true ratio in 70 to 90 % of the cases and are called 95 %. Repeats that lie
closer together than the counting of what they completed allows (a Poisson count's variance) did so
by chance: their spread is taken as that.

Fewer than three repeats have no interval, and nothing is called significant: one repeat shows no
spread; with two of each the interval would be honest and say nothing (it reaches from a fifth of
the ratio to five times as much where the repeats lie 10 % apart).

Simulated with the spreads of the published runs (`reports/tests/test_coverage.py`), the interval
holds the true ratio in 94 to 97 % of the cases with three and five repeats.

Assumptions: repeats of the two arms were interleaved, so that slow drift of the machine is spread
over both. It says nothing about other hardware, other data sizes, or a bias that all repeats share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hotset.core import words

from ..model.document import Arm, Factor, PowerArm, RunDocument, Workload

LEAST_REPEATS = 3
"""Fewer in one of the arms: no interval."""
CONFIDENCE = 0.95
_STEPS = 10_000
METHOD = "Welch's t on the logarithms of the repeats' mean throughput"
POWER_METHOD = "Welch's t on the logarithms of the runs' total seconds"
RATE_METHOD = (
    "Welch's t on the logarithms of the repeats' highest rates, with the resolution of the search"
)

Floats = NDArray[np.float64]
Interval: TypeAlias = tuple[float, float, float]
"""(value, low, high); all three the same where there is no interval."""


class NoFactor(ValueError):
    """Two arms that cannot be compared; the text says why."""


def compare_arms(document: RunDocument) -> dict[str, Any]:
    """The fields of a document that follow from its arms, as far as these were measured."""
    return {"factors": _factors(document), "rate_factor": _rate_factor(document)}


def _factors(document: RunDocument) -> dict[Workload, Factor | None]:
    """Accelerated against baseline, for each workload that has both."""
    factors: dict[Workload, Factor | None] = {}
    base, fast = document.arm("baseline"), document.arm("accelerated")
    slow, quick = document.power_arm("baseline"), document.power_arm("accelerated")
    with suppress(NoFactor):
        # At a given rate each arm does what is due: a ratio would say nothing.
        if base is not None and fast is not None and fast.rate_per_s is None:
            factors[fast.workload] = factor(fast, base, document.arm("all-flash"))
    with suppress(NoFactor):
        if slow is not None and quick is not None:
            factors["tpch"] = power_factor(quick, slow, document.power_arm("all-flash"))
    return factors


def _rate_factor(document: RunDocument) -> Factor | None:
    base, fast = document.arm("baseline"), document.arm("accelerated")
    if base is not None and fast is not None:
        with suppress(NoFactor):
            return rate_factor(fast, base, document.arm("all-flash"))
    return None


def factor(accelerated: Arm, baseline: Arm, all_flash: Arm | None = None) -> Factor:
    """Accelerated against baseline, and as a share of all-flash where that was measured."""
    gain, of_flash = ratio_with_interval(accelerated, baseline), None
    if all_flash is not None and all_flash.repeats:
        of_flash = ratio_with_interval(accelerated, all_flash)
    return _factor(gain, of_flash, METHOD, accelerated.cpu_bound)


def power_factor(
    accelerated: PowerArm, baseline: PowerArm, all_flash: PowerArm | None = None
) -> Factor:
    """How many times less time the queries took accelerated, and as a share of all-flash's speed.

    Raises NoFactor when a query did not finish: then there is no total.
    """
    gain, of_flash = ratio_of_totals(baseline, accelerated), None
    if all_flash is not None and all_flash.complete:
        of_flash = ratio_of_totals(all_flash, accelerated)
    return _factor(gain, of_flash, POWER_METHOD, accelerated.cpu_bound)


def rate_factor(accelerated: Arm, baseline: Arm, all_flash: Arm | None = None) -> Factor:
    """How many times the rate of transactions that meets the limits; see `RATE_METHOD`.

    Raises NoFactor where none was sought, or none held.
    """
    gain, of_flash = ratio_of_rates(accelerated, baseline), None
    if all_flash is not None and all_flash.rates:
        of_flash = ratio_of_rates(accelerated, all_flash)
    return _factor(gain, of_flash, RATE_METHOD, accelerated.cpu_bound)


def ratio_of_rates(numerator: Arm, denominator: Arm) -> Interval:
    """Compute the ratio of the arms' mean highest rates. The true rate lies somewhere between the
    highest that held and the lowest that did not, anywhere with equal chance."""
    return ratio_of_means(
        _rates(numerator), _rates(denominator), (_resolution(numerator), _resolution(denominator))
    )


def ratio_of_latencies(numerator: Arm, denominator: Arm) -> Interval:
    """Compute the ratio of the arms' mean 95th percentiles."""
    return ratio_of_means(_latencies(numerator), _latencies(denominator))


def ratio_of_totals(numerator: PowerArm, denominator: PowerArm) -> Interval:
    """Compute the ratio of the arms' mean total seconds."""
    return ratio_of_means(_totals(numerator), _totals(denominator))


def ratio_with_interval(numerator: Arm, denominator: Arm) -> Interval:
    """Compute the ratio of the arms' mean throughput."""
    least = _counting(numerator), _counting(denominator)
    return ratio_of_means(_throughput(numerator), _throughput(denominator), least=least)


def ratio_of_means(
    above: Sequence[float],
    below: Sequence[float],
    more: tuple[float, float] = (0.0, 0.0),
    least: tuple[float, float] = (0.0, 0.0),
) -> Interval:
    """Compute the ratio of the means of positive values, one of each repeat.

    `more` are variances of each arm's logarithms beside those that its repeats show; `least`, what
    those variances are at least, where the repeats differ at all.

    >>> [round(one, 3) for one in ratio_of_means([10, 11, 12], [5, 5.1, 4.9])]
    [2.2, 1.772, 2.716]
    >>> ratio_of_means([10, 11], [5, 5.1, 4.9])
    (2.1, 2.1, 2.1)
    """
    ratio = float(np.mean(above) / np.mean(below))
    if min(len(above), len(below)) < LEAST_REPEATS:
        return ratio, ratio, ratio
    logs = np.log(above), np.log(below)
    seen = [float(each.var(ddof=1)) + extra for each, extra in zip(logs, more, strict=True)]
    if not any(seen):
        return ratio, ratio, ratio
    parts = [
        max(spread, floor) / len(each)
        for spread, floor, each in zip(seen, least, logs, strict=True)
    ]
    variance = math.fsum(parts)
    freedom = variance**2 / math.fsum(
        part**2 / (len(each) - 1) for part, each in zip(parts, logs, strict=True)
    )
    middle = float(logs[0].mean() - logs[1].mean())
    reach = student(freedom) * math.sqrt(variance)
    return ratio, min(math.exp(middle - reach), ratio), max(math.exp(middle + reach), ratio)


def write_interval(interval: Interval) -> str:
    """
    >>> write_interval((2.2, 1.772, 2.716)), write_interval((2.1, 2.1, 2.1))
    ('2.2× (1.77–2.7)', '2.1× (–)')
    """
    ratio, low, high = interval
    within = words.interval(low, high) if low != high else words.ABSENT
    return f"{words.factor(ratio)} ({within})"


def student(freedom: float) -> float:
    """How many standard errors Student's t interval reaches to either side.

    With t = √ν tan θ the density is that of cos θ to the power of ν - 1.

    >>> [round(student(freedom), 2) for freedom in (1, 2, 4, 30)]
    [12.71, 4.3, 2.78, 2.04]
    """
    angles = np.linspace(0.0, math.pi / 2, _STEPS + 1)
    density = np.cos(angles) ** (freedom - 1)
    area = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    angle = float(np.interp(CONFIDENCE * area[-1], area, angles))
    return math.sqrt(freedom) * math.tan(angle)


def _throughput(arm: Arm) -> list[float]:
    if not arm.repeats:
        raise NoFactor(f"the {arm.name} arm has no repeats")
    return _positive(arm, [repeat.rate for repeat in arm.repeats], "completed nothing")


def _counting(arm: Arm) -> float:
    """The variance of the logarithm of a repeat's count of what it completed."""
    counts = [
        (repeat.tpm if repeat.nopm is None else repeat.nopm) / 60 * repeat.duration_s
        for repeat in arm.repeats
    ]
    return float(np.mean([1 / count for count in counts if count] or [0.0]))


def _latencies(arm: Arm) -> list[float]:
    """The 95th percentile by repeat."""
    each = [repeat.latency_ms.p95 if repeat.latency_ms else None for repeat in arm.repeats]
    return _positive(arm, [p95 or 0.0 for p95 in each] or [0.0], "has no latency")


def _positive(arm: Arm, values: list[float], otherwise: str) -> list[float]:
    if min(values) <= 0:
        raise NoFactor(f"a repeat of the {arm.name} arm {otherwise}")
    return values


def _rates(arm: Arm) -> list[float]:
    """The highest that held, by repeat."""
    if not arm.rates:
        raise NoFactor(f"no rate was sought in the {arm.name} arm")
    rates = [rate.rate_per_s for rate in arm.rates if rate.rate_per_s is not None]
    if len(rates) < len(arm.rates):
        raise NoFactor(f"no rate meets the limits in the {arm.name} arm")
    return rates


def _resolution(arm: Arm) -> float:
    """The variance of a uniform distribution between the logarithms of the rates that held and
    did not, over the repeats."""
    widths = [
        math.log(max(rate.failed_per_s, rate.rate_per_s) / rate.rate_per_s)
        for rate in arm.rates
        if rate.rate_per_s
    ]
    return float(np.mean(np.square(widths))) / 12


def _totals(arm: PowerArm) -> list[float]:
    """Seconds of all queries, by run."""
    if not arm.complete:
        raise NoFactor(f"a query of the {arm.name} arm did not finish: no total")
    if len({tuple(sorted(query.number for query in run.queries)) for run in arm.repeats}) != 1:
        raise NoFactor(f"the repeats of the {arm.name} arm ran different queries")
    return [run.total_s for run in arm.repeats]


def _factor(gain: Interval, of_flash: Interval | None, method: str, cpu_bound: bool) -> Factor:
    """A ratio without an interval is not significant."""
    ratio, low, high = gain
    flash_ratio, flash_low, flash_high = of_flash or (None, None, None)
    return Factor(
        ratio=ratio,
        ci_low=low,
        ci_high=high,
        ci_method=method,
        significant=words.verdict(ratio, low, high) in ("faster", "slower"),
        of_all_flash=flash_ratio,
        of_all_flash_ci_low=flash_low,
        of_all_flash_ci_high=flash_high,
        cpu_bound=cpu_bound,
    )
