"""The answer of a run: the sentence, labels and figures that the terminal and the report share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean

from hotset.core import words

from ..model.base import ArmName
from ..model.document import CACHED_ARMS, POLICY_ARMS, Arm, Factor, RunDocument
from ..model.measurement import Measurement
from ..model.windows import Condition, Latency, Repeat, Window
from . import same_state, units

ARM_ORDER: tuple[ArmName, ...] = (
    "baseline",
    "split-disks",
    "in-memory",
    "flash-volume",
    *CACHED_ARMS,
    "all-flash",
    "measured",
)
COMPARED: tuple[ArmName, ArmName] = ("baseline", "accelerated")
HIT_RATIO_DENOMINATOR = "hits / (hits + misses) of the cached device in the measured window"


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """One arm over its repeats. Means are plain means of the repeats' figures.

    :ivar rate: in the unit of `units.find_unit`.
    :ivar latency_ms: percentiles of all repeats' transactions together, see `mean_latency`.
    """

    name: ArmName
    repeats: tuple[Repeat, ...]
    rate: float
    rate_min: float
    rate_max: float
    tpm: float
    hit_ratio: float | None
    read_hit_ratio: float | None
    write_hit_ratio: float | None
    latency_ms: Latency | None
    server_cpu: float | None
    server_iowait: float | None
    failed: int
    retries: int


def arms(document: RunDocument) -> list[ArmFigures]:
    """The arms that were measured, in the order before, after, ceiling."""
    measured = [document.arm(name) for name in ARM_ORDER]
    return [figures(arm) for arm in measured if arm is not None]


def prefix(name: str, mark: str = ":") -> str:
    """Beginning of a sentence about an arm; the only arm of a measurement goes without saying."""
    return "" if name == "measured" else f"{name}{mark} "


def window_columns(document: RunDocument) -> tuple[str, ...]:
    """The heads of the labels of `label_windows`."""
    is_curve = document.measurement is not None and any(arm.curve for arm in document.arms)
    return ("arm", "repeat", *(("users",) if is_curve else ()))


def label_windows(document: RunDocument) -> Iterator[tuple[tuple[str, ...], Repeat]]:
    """Every window, of a measurement those of its curve as well, with their number of users."""
    count = len(window_columns(document))
    for name, window in _windows(document, with_curves=document.measurement is not None):
        yield (name, str(window.repeat), f"{window.users or 0:,}")[:count], window


def _windows(document: RunDocument, *, with_curves: bool) -> Iterator[tuple[ArmName, Repeat]]:
    for name in ARM_ORDER:
        for arm in (arm for arm in document.arms if arm.name == name):
            for window in (*(arm.curve if with_curves else ()), *arm.repeats):
                yield name, window


def check(document: RunDocument) -> list[tuple[str, tuple[Condition, ...]]]:
    """The conditions of TPC-C after each window, by the name of it."""
    return [
        (f"{prefix(name, ',')}{words.plural(window.users or 0, 'user')}", window.conditions)
        for name, window in _windows(document, with_curves=True)
        if window.conditions
    ]


def judge(document: RunDocument) -> Iterator[tuple[str, bool]]:
    """Requirements in words, and whether each holds: thresholds, the conditions of TPC-C."""
    for threshold in document.thresholds:
        who = f"{words.plural(threshold.users, 'user')}: " if threshold.users else ""
        yield who + threshold.text, threshold.met
    if checks := [conditions for _, conditions in check(document)]:
        yield judge_conditions(checks)


def judge_conditions(checks: Sequence[Sequence[Condition]]) -> tuple[str, bool]:
    """How many of TPC-C's hold each time they were checked."""
    held, count = (
        min(sum(condition.holds for condition in each) for each in checks),
        len(checks[-1]),
    )
    times = f", checked {len(checks)} times" if len(checks) > 1 else ""
    return f"consistency: {held} of {count} conditions hold{times}", held == count


def cpu_ms(document: RunDocument, of: Repeat | ArmFigures) -> float | None:
    """Milliseconds of a core for each transaction; None: not known."""
    if document.machine is None or of.server_cpu is None or not of.tpm:
        return None
    return of.server_cpu * document.machine.cores * 60_000 / of.tpm


def log_gain(document: RunDocument, users: int | None = None) -> float | None:
    """How many times as much the baseline does with its log on flash; None: not measured.

    :param users: with so many; None: with those of the run.
    """

    def rate(name: ArmName) -> float | None:
        arm = document.arm(name)
        if arm is None:
            return None
        own = document.database.users if document.database else None
        windows = arm.repeats if users is None else (*arm.curve, *arm.repeats)
        return mean_of(
            window.rate for window in windows if users is None or (window.users or own) == users
        )

    alone, before = rate("flash-volume"), rate("baseline")
    return alone / before if alone and before else None


def figures(arm: Arm) -> ArmFigures:
    repeats = arm.repeats

    def mean(figure: Callable[[Repeat], float | None]) -> float | None:
        return mean_of(figure(repeat) for repeat in repeats)

    return ArmFigures(
        name=arm.name,
        repeats=repeats,
        rate=fmean(repeat.rate for repeat in repeats),
        rate_min=min(repeat.rate for repeat in repeats),
        rate_max=max(repeat.rate for repeat in repeats),
        tpm=fmean(repeat.tpm for repeat in repeats),
        hit_ratio=mean(lambda repeat: repeat.hit_ratio),
        read_hit_ratio=mean(lambda repeat: repeat.read_hit_ratio),
        write_hit_ratio=mean(lambda repeat: repeat.write_hit_ratio),
        latency_ms=mean_latency(repeat.latency_ms for repeat in repeats),
        server_cpu=mean(lambda repeat: repeat.server_cpu),
        server_iowait=mean(lambda repeat: repeat.server_iowait),
        failed=sum(repeat.failed for repeat in repeats),
        retries=sum(repeat.retries for repeat in repeats),
    )


def mean_latency(each: Iterable[Latency | None]) -> Latency | None:
    """The percentiles of all transactions together, from the sum of the histograms; where a driver
    tells no histogram (HammerDB), the means of the percentiles that are known. None where none is.
    """
    latencies = [latency for latency in each if latency is not None and latency.p95 is not None]
    if not latencies:
        return None
    if len(latencies) == 1:
        return latencies[0]
    histograms = tuple(latency.histogram for latency in latencies if latency.histogram is not None)
    if len(histograms) == len(latencies):
        return _merge(histograms)
    return Latency(
        p50=mean_of(each.p50 for each in latencies),
        p90=mean_of(each.p90 for each in latencies),
        p95=mean_of(each.p95 for each in latencies),
        p99=mean_of(each.p99 for each in latencies),
        p99_9=mean_of(each.p99_9 for each in latencies),
        p99_99=mean_of(each.p99_99 for each in latencies),
    )


@lru_cache(maxsize=512)
def _merge(histograms: tuple[str, ...]) -> Latency:
    from hdrh.histogram import HdrHistogram

    first, *others = map(HdrHistogram.decode, histograms)
    for other in others:
        first.add(other)

    def at(percentile: float) -> float:
        return float(first.get_value_at_percentile(percentile)) / 1e3

    return Latency(
        p50=at(50),
        p90=at(90),
        p95=at(95),
        p99=at(99),
        p99_9=at(99.9),
        p99_99=at(99.99),
        histogram=str(first.encode().decode("ascii")),
    )


def mean_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def headline(document: RunDocument) -> str:
    """The answer in one sentence, never without its interval; empty where the experiment has the
    22 queries alone."""
    if document.timed is None and document.power_arms:
        return ""
    factor = document.factor()
    if sentence := _at_a_rate(document):
        return sentence
    if factor is None:
        has_policies = any(document.arm(name) for name in POLICY_ARMS)
        return "" if has_policies else f"No factor: {_why_no_factor(document)}."
    ceiling = (
        f", at {words.percent(factor.of_all_flash, 0)} of all-flash" if factor.of_all_flash else ""
    )
    says = claim(
        factor,
        f"With the flash cache {units.find_unit(document).workload} ran"
        f" {words.factor(factor.ratio)} as fast ({interval(document, factor)}){ceiling}.",
    )
    compared = [arm for arm in map(document.arm, COMPARED) if arm is not None]
    notes = [f"in {arm.name} {sentence}" for arm in compared if (sentence := qualify(arm.repeats))]
    return f"{says} Note: {words.enumerate_words(notes)}." if notes else says


def qualify(repeats: Sequence[Repeat]) -> str:
    """Notes that a figure is not told without: that a crash would lose commits, and seconds in
    which nothing was committed; empty: there are none."""
    loses = dict.fromkeys(kind for repeat in repeats for kind in repeat.loses_commits)
    seconds = [second for repeat in repeats for second in repeat.idle_seconds]
    notes = [f"a crash would lose commits ({', '.join(loses)})"] if loses else []
    if seconds:
        notes.append(f"nothing was committed for {len(seconds)} s, from second {seconds[0]} on")
    return ", ".join(notes)


def claim(factor: Factor, says: str) -> str:
    """A sentence about a factor, with its verdict in front where that is not what it says."""
    begins = {"not significant": "No significant difference", "slower": "Slower"}
    verdict = begins.get(factor.verdict)
    return says if verdict is None else f"{verdict}: {says[0].lower()}{says[1:]}"


def interval(document: RunDocument, factor: Factor, timed: bool = True) -> str:
    """How sure a factor is, as shown beside it."""
    if factor.has_interval:
        return f"95 % interval {words.interval(factor.ci_low, factor.ci_high)}"
    return f"{repeats(document, timed)}: how far runs lie apart is not known"


def repeats(document: RunDocument, timed: bool = True) -> str:
    """How many there are of the arms that the factor compares, and has no interval of, in words.

    :param timed: of the workload of many users; otherwise of the 22 queries.
    """
    each = [document.arm(name) if timed else document.power_arm(name) for name in COMPARED]
    least = min((len(arm.repeats) for arm in each if arm is not None), default=0)
    alike = f"{words.plural(least, 'repeat')} that do not differ"
    return {1: "one repeat", 2: "two repeats"}.get(least, alike)


def _at_a_rate(document: RunDocument) -> str:
    """The latencies, where transactions arrived at a given rate in both arms; else empty."""
    before, after = (document.arm(name) for name in COMPARED)
    if before is None or after is None or after.rate_per_s is None:
        return ""
    slow, quick = figures(before).latency_ms, figures(after).latency_ms
    if slow is None or quick is None:
        return ""
    return (
        f"At {words.count(after.rate_per_s)} transactions/s, 95 % of them took at most"
        f" {words.milliseconds(quick.p95)} ms with the flash cache, and"
        f" {words.milliseconds(slow.p95)} ms without."
    )


def ceiling_interval(factor: Factor) -> str | None:
    low, high = factor.of_all_flash_ci_low, factor.of_all_flash_ci_high
    if low is None or high is None or low == high:
        return None
    return f"{100 * low:.0f}–{words.percent(high, 0)}"


def _why_no_factor(document: RunDocument) -> str:
    missing = [name for name in COMPARED if document.arm(name) is None]
    if missing:
        were = "was" if len(missing) == 1 else "were"
        return f"{words.enumerate_words(list(missing))} {were} not measured"
    return "the run has no factor"


def conditions(document: RunDocument) -> tuple[str, ...]:
    """Labels that belong beside every figure of the run."""
    labels = []
    machine, tier, storage = document.machine, document.tier, document.storage
    if machine is not None and machine.kind == "uml":
        labels.append("User-Mode Linux")
    if tier is not None and document.database and 0 < document.database.bytes <= tier.cache_bytes:
        labels.append("all cached")
    if tier is not None and tier.emulated:
        labels.append("modelled flash")
    if storage is not None and storage.kind == "modelled":
        labels.append("modelled storage")
    return tuple(labels)


def verdicts(document: RunDocument) -> tuple[str, ...]:
    """Labels that belong beside the factor."""
    labels = []
    factor, accelerated = document.factor(), document.arm("accelerated")
    if factor is not None and factor.doubt:
        labels.append(factor.doubt)
    if (factor is not None and factor.cpu_bound) or (accelerated and accelerated.cpu_bound):
        differs = same_state.in_factor(document)
        labels.append("CPU-bound" if differs else "CPU-bound: factor understated")
    if document.state != "complete":
        labels.append("still running" if document.state == "running" else f"run {document.state}")
    return tuple(labels)


def standing(document: RunDocument) -> str:
    """How far a run is that is not complete, and where it stopped or what it is at."""
    if document.state == "running":
        return f"RUNNING since {document.started_at:%Y-%m-%d %H:%M} UTC in {document.under_way}"
    where = document.under_way and f" in {document.under_way}"
    if document.failure is not None:
        where = f" in {document.failure.phase}: {document.failure.text}"
    return f"{document.state.upper()} after {words.duration(document.seconds)}{where or ''}"


def gaps(document: RunDocument) -> tuple[str, ...]:
    """List what the document lacks, one sentence each."""
    if document.measurement is not None:
        return tuple(_gaps_of_measurement(document, document.measurement))
    missing = []
    meanings: dict[ArmName, str] = {
        "baseline": "what the slow storage does alone is unknown",
        "accelerated": "what the cache gains is unknown",
        "all-flash": "the ceiling is unknown",
    }
    if any(document.arm(name) for name in POLICY_ARMS):
        del meanings["accelerated"]
    queries_alone = document.timed is None and bool(document.power_arms)
    for name, meaning in meanings.items():
        if document.arm(name) is None and not queries_alone:
            missing.append(f"{name} was not measured: {meaning}.")
    compared = [document.arm(name) for name in COMPARED]
    if document.factor() is None and all(arm and arm.rate_per_s is None for arm in compared):
        missing.append("There is no factor, though both arms were measured.")
    if document.warmup is None:
        missing.append("No warm-up is recorded: how full the cache was is unknown.")
    elif document.warmup.probe_hit_ratio is None:
        missing.append("There was no probe after the warm-up.")
    accelerated = document.arm("accelerated")
    if accelerated is not None and figures(accelerated).hit_ratio is None:
        missing.append("The hit ratio of the accelerated arm is not known.")
    nouns = {
        "machine": document.machine,
        "slow storage": document.storage,
        "tier": document.tier,
        "database": document.database,
    }
    unknown = [noun for noun, record in nouns.items() if record is None]
    if unknown:
        missing.append(f"Not recorded: {words.enumerate_words(unknown)}.")
    return tuple(missing)


def _gaps_of_measurement(document: RunDocument, measurement: Measurement) -> Iterator[str]:
    if measurement.tier_unknown:
        yield f"Not known whether the database lay on a tier: {measurement.tier_unknown}."
    windows: list[Window] = [repeat for arm in document.arms for repeat in arm.repeats]
    windows += [repeat for arm in document.power_arms for repeat in arm.repeats]
    if measurement.tier is not None and any(window.hit_ratio is None for window in windows):
        yield "The hit ratio over the window is not known: the tier's counters were not sampled."
    if windows and any(window.server_cpu is None for window in windows):
        yield "Not sampled: the server's CPU and devices (--sample names the server)."
    if document.database is None:
        yield "Not recorded: the database's size and its server's version."


def warmup_line(document: RunDocument) -> str | None:
    """The warm-up in one sentence."""
    warmup = document.warmup
    if warmup is None:
        return None
    first = ", hottest blocks first" if warmup.order == "heat" else ""
    share = words.percent(warmup.mb_per_s / warmup.origin_mb_per_s, 0)
    parts = [
        f"Warm-up ({warmup.method}{first}): {words.size(warmup.bytes)} in "
        f"{words.duration(warmup.seconds)}, {words.rate(warmup.mb_per_s)} "
        f"= {share} of the slow storage's sequential {words.rate(warmup.origin_mb_per_s)}",
        f"{warmup.differing_blocks:,} of {warmup.sampled_blocks:,} sampled blocks differ",
    ]
    if warmup.probe_hit_ratio is not None:
        parts.append(
            f"probe hit ratio {words.percent(warmup.probe_hit_ratio)} "
            f"(required: {words.percent(warmup.probe_hit_ratio_min)})"
        )
    return "; ".join(parts) + "."
