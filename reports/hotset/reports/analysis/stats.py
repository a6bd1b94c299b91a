"""The factor: how many times faster one arm is than another, and how sure that is.

Method: hierarchical bootstrap of the ratio of the mean throughput (NOPM in TPC-C, else transactions
a second).

For each arm and each of 10,000 resamples:

1. draw as many repeats as the arm has, with replacement;
2. within each drawn repeat, draw contiguous 5-second blocks of its per-second series (circular
   blocks, with replacement) until they cover the window, and take their mean; the series is
   first scaled so that its own mean is the repeat's reported throughput, which counts the whole
   window;
3. average over the drawn repeats.

The ratio of the two arms' averages is one resample; the interval is its 2.5th to 97.5th
percentile, widened to the observed ratio should that lie outside. The random numbers are seeded:
the same document gives the same interval.

Assumptions: repeats of the two arms were interleaved, so that slow drift of the machine is spread
over both; dependence between seconds dies out within a block (a checkpoint or write-back stall of
over 5 s is seen only through the differences between repeats); the series has every second, idle
ones included.

Limits: with n repeats the spread between repeats is underestimated by about √((n − 1)/n), so an
interval from two repeats is too narrow (it reflects about 70 % of that spread) and one repeat
shows no spread between repeats at all: there, the interval covers only the noise within the
window. Simulated (5 % spread between repeats, 30 % between seconds, 60-s windows, 200 runs each),
the interval held the true ratio in 72, 89, 94 and 96 % of the runs with 1, 2, 3 and 5 repeats, so
three repeats are the least that deserve the words "95 %". It says
nothing about other hardware, other data sizes, or a bias that all repeats share.

Power runs of TPC-H (`power_factor`) are compared by their total seconds. A resample draws, for
each query on its own, as many repeats as the arm has, with replacement, takes their mean and adds
the queries up: queries of one run are taken as independent of each other. One repeat has no
spread, so no interval, and is never called significant.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..model.document import Arm, Factor, PowerArm
from ..model.windows import Repeat

RESAMPLES = 10_000
BLOCK_S = 5
SEED = 20140228
INTERVAL_PERCENT = (2.5, 97.5)
METHOD = (
    f"hierarchical bootstrap of the ratio of mean throughput: repeats, then {BLOCK_S}-s blocks; "
    f"{RESAMPLES} resamples, percentiles, seed {SEED}"
)

POWER_METHOD = (
    f"bootstrap of the ratio of total seconds: each query's repeats; {RESAMPLES} resamples,"
    f" percentiles, seed {SEED}"
)

RATE_METHOD = (
    "bootstrap of the ratio of mean highest rates: repeats, and between the highest rate that held"
    f" and the lowest that did not; {RESAMPLES} resamples, percentiles, seed {SEED}"
)

Floats = NDArray[np.float64]
Interval: TypeAlias = tuple[float, float, float]
"""(value, low, high)."""


class NoFactor(ValueError):
    """Two arms that cannot be compared; the text says why."""


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
    """Of the arms' mean highest rates."""
    above, below = (_rate_ranges(arm) for arm in (numerator, denominator))
    ratio = float(above[:, 0].mean() / below[:, 0].mean())
    return _bootstrapped(ratio, above, below, _resampled_rates)


def _bootstrapped(
    ratio: float,
    above: Floats,
    below: Floats,
    resampled: Callable[[Floats, np.random.Generator], Floats],
) -> Interval:
    """A ratio with the interval of its resamples."""
    each = [
        resampled(observed, np.random.default_rng((SEED, place)))
        for place, observed in enumerate((above, below))
    ]
    low, high = np.percentile(each[0] / each[1], INTERVAL_PERCENT)
    return ratio, min(float(low), ratio), max(float(high), ratio)


def ratio_of_latencies(numerator: Arm, denominator: Arm) -> Interval:
    """Of the arms' mean 95th percentiles; one repeat has no spread."""
    above, below = (_latencies(arm) for arm in (numerator, denominator))
    ratio = float(above.mean() / below.mean())
    if min(len(above), len(below)) < 2:
        return ratio, ratio, ratio
    return _bootstrapped(ratio, above, below, _resampled_means_of)


def _latencies(arm: Arm) -> Floats:
    """The 95th percentile by repeat."""
    found = [one.latency_ms.p95 if one.latency_ms else 0.0 for one in arm.repeats]
    if not found or 0 in found:
        raise NoFactor(f"a repeat of the {arm.name} arm has no latency")
    return np.array(found, dtype=np.float64)


def _resampled_means_of(values: Floats, random: np.random.Generator) -> Floats:
    means: Floats = random.choice(values, size=(len(values), RESAMPLES)).mean(axis=0)
    return means


def _rate_ranges(arm: Arm) -> Floats:
    """By repeat: the highest rate that held, and the lowest that did not."""
    if not arm.rates:
        raise NoFactor(f"no rate was sought in the {arm.name} arm")
    if any(one.rate_per_s is None for one in arm.rates):
        raise NoFactor(f"no rate meets the limits in the {arm.name} arm")
    return np.array([(one.rate_per_s, one.failed_per_s) for one in arm.rates], dtype=np.float64)


def _resampled_rates(ranges: Floats, random: np.random.Generator) -> Floats:
    count = len(ranges)
    drawn = ranges[random.integers(count, size=(count, RESAMPLES))]
    means: Floats = random.uniform(drawn[..., 0], drawn[..., 1]).mean(axis=0)
    return means


def _factor(gain: Interval, of_flash: Interval | None, method: str, cpu_bound: bool) -> Factor:
    """A ratio without a spread (one repeat of the queries) is not significant."""
    ratio, low, high = gain
    flash_ratio, flash_low, flash_high = of_flash or (None, None, None)
    return Factor(
        ratio=ratio,
        ci_low=low,
        ci_high=high,
        ci_method=method,
        significant=low != high and not low <= 1 <= high,
        of_all_flash=flash_ratio,
        of_all_flash_ci_low=flash_low,
        of_all_flash_ci_high=flash_high,
        cpu_bound=cpu_bound,
    )


def ratio_of_totals(numerator: PowerArm, denominator: PowerArm) -> Interval:
    """Of the arms' mean total seconds."""
    for arm in (numerator, denominator):
        if not arm.complete:
            raise NoFactor(f"a query of the {arm.name} arm did not finish: no total")
    above, below = _seconds(numerator), _seconds(denominator)
    ratio = float(above.mean(axis=0).sum() / below.mean(axis=0).sum())
    if min(len(above), len(below)) < 2:
        return ratio, ratio, ratio
    return _bootstrapped(ratio, above, below, _resampled_totals)


def _seconds(arm: PowerArm) -> Floats:
    """Seconds by repeat (rows) and query (columns, by number)."""
    rows = [sorted((query.number, query.seconds) for query in run.queries) for run in arm.repeats]
    asked = {tuple(number for number, _ in row) for row in rows}
    if len(asked) != 1:
        raise NoFactor(f"the repeats of the {arm.name} arm ran different queries")
    return np.array([[seconds for _, seconds in row] for row in rows], dtype=np.float64)


def _resampled_totals(seconds: Floats, random: np.random.Generator) -> Floats:
    repeats, queries = seconds.shape
    totals = np.zeros(RESAMPLES)
    for query in range(queries):
        drawn = random.integers(repeats, size=(repeats, RESAMPLES))
        totals += seconds[drawn, query].mean(axis=0)
    return totals


def ratio_with_interval(numerator: Arm, denominator: Arm) -> Interval:
    """Of the arms' mean throughput."""
    above, below = _observed_mean(numerator), _observed_mean(denominator)
    # One generator per arm: an arm's resamples do not depend on the length of the other's series.
    above_means = _resampled_means(numerator, np.random.default_rng((SEED, 0)))
    below_means = _resampled_means(denominator, np.random.default_rng((SEED, 1)))
    if np.mean(below_means <= 0) > (100 - INTERVAL_PERCENT[1]) / 100:
        raise NoFactor(
            f"the {denominator.name} arm stood still for most of its windows: the ratio has no "
            "upper bound; measure longer windows"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(below_means > 0, above_means / below_means, np.inf)
    # "inverted_cdf" picks a resample instead of interpolating, so a rare infinity stays outside.
    low, high = np.percentile(ratios, INTERVAL_PERCENT, method="inverted_cdf")
    ratio = above / below
    return ratio, min(float(low), ratio), max(float(high), ratio)


def _observed_mean(arm: Arm) -> float:
    if not arm.repeats:
        raise NoFactor(f"the {arm.name} arm has no repeats")
    mean = sum(repeat.rate for repeat in arm.repeats) / len(arm.repeats)
    if mean <= 0:
        raise NoFactor(f"the {arm.name} arm completed nothing")
    return mean


def _resampled_means(arm: Arm, random: np.random.Generator) -> Floats:
    """The arm's mean throughput in each resample."""
    by_repeat = [_resampled_windows(repeat, len(arm.repeats), random) for repeat in arm.repeats]
    # windows[i, j, k]: resample k of repeat i, drawn for the j-th place of the average. A repeat
    # that is drawn twice must not bring the same blocks twice, hence one draw per place.
    windows = np.stack(by_repeat)
    count = len(arm.repeats)
    drawn = random.integers(count, size=(count, RESAMPLES))
    places = np.arange(count)[:, None]
    picked: Floats = windows[drawn, places, np.arange(RESAMPLES)[None, :]]
    means: Floats = picked.mean(axis=0)
    return means


def _resampled_windows(repeat: Repeat, places: int, random: np.random.Generator) -> Floats:
    """Resampled throughput of one repeat: one row for each place it may be drawn into."""
    series = np.fromiter((second.rate for second in repeat.series), dtype=np.float64)
    if series.size <= BLOCK_S or series.mean() <= 0:
        return np.full((places, RESAMPLES), repeat.rate)
    scaled = series * (repeat.rate / series.mean())
    circular = np.concatenate([scaled, scaled[: BLOCK_S - 1]])
    blocks = np.lib.stride_tricks.sliding_window_view(circular, BLOCK_S).mean(axis=1)
    blocks_per_window = -(-series.size // BLOCK_S)
    sums = np.zeros((places, RESAMPLES))
    for _ in range(blocks_per_window):  # in turn: all at once would be GBs for an hour's window
        sums += blocks[random.integers(blocks.size, size=(places, RESAMPLES))]
    windows: Floats = sums / blocks_per_window
    return windows
