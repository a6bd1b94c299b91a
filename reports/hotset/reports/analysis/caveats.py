"""Limits of a run's claim. Every caveat is one member of `Code`, with its text and its advice.

`derive` works them out from the figures, so that none can be forgotten; renderers show
`of(document)`, which never shows fewer than `derive`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import Enum

from hotset.core import words

from ..model.document import CACHED_ARMS, CPU_BOUND_SHARE, Arm, RunDocument, WarmUpFigures
from ..model.setup import Calibration, Tier
from ..model.windows import Caveat, Repeat, Steadiness, Window
from . import answer, power, same_state

REPEATS_WANTED = 3
UNSTEADY_NAMED = 4
WINDOW_WANTED_S = 30
STEAL_BORNE = 0.05
OTHERS_BORNE = 0.1
MEMORY_FACTOR = 2  # buffers of half a database serve much of what is read twice
WARMUP_RATE_WANTED = 0.90  # of the origin's sequential rate
CALIBRATION_TOLERANCE = 0.15


class Code(Enum):
    """In the order in which they are shown: what voids a claim before what narrows it."""

    RUNNING = (
        "The run is running: what follows is only what has been measured until now.",
        "Wait until it has ended.",
    )
    INCOMPLETE = (
        "The run {state}: what follows is only what was measured until then.",
        "Resume the experiment; it continues at the first missing phase.",
    )
    CUT_SHORT = (
        "The run {state}: what follows is only what was measured until then.",
        "Measure again; compare nothing with this run.",
    )
    WARMUP_DIFFERS = (
        "{differing} of {sampled} sampled cache blocks differ from the slow storage.",
        "Do not use this cache: destroy it, warm it up again with the database stopped, and "
        "check the sample before starting the database.",
    )
    ANSWERS_DIFFER = (
        "The answers of {which} are not the same in all arms and repeats.",
        "Do not use these figures: check the database (its answers, against those of the same data "
        "elsewhere) and the cache.",
    )
    QUERIES_UNFINISHED = (
        "In {arm}, {which} did not finish: the totals are incomplete.",
        "Give the queries more time (tpch.timeout_s), or take a smaller scale.",
    )
    NOT_SIGNIFICANT = (
        "Not significant: the 95 % interval {interval} of the factor contains 1×.",
        "Add repeats; until then claim no difference.",
    )
    NO_INTERVAL = (
        "The factor has no interval: {repeats} cannot show how far runs lie apart.",
        "Add repeats (three or more); until then claim no difference.",
    )
    CPU_BOUND = (
        "CPU-bound: the server's CPU was {cpu} busy in the accelerated run{each}, so {what}; the"
        " storage could have given more. The factor changes with the CPU's speed.",
        "Give the server more cores, or compare latencies instead of throughput.",
    )
    STOLEN = (
        "Shared host: the hypervisor gave up to {worst} of the machine's CPU to others ({which})."
        " CPU-bound work was slowed by about as much, and not equally in all arms.",
        "Repeat when the host is quiet, or on a dedicated machine.",
    )
    LOADED = (
        "Busy computer: other programs used up to {worst} of its CPU before an arm started"
        " ({which}). CPU-bound work was slowed, and not equally in all arms.",
        "Repeat when nothing else runs on this computer.",
    )
    PROBE_BELOW = (
        "After the warm-up the probe's hit ratio was {ratio}, below the required {wanted}.",
        "Check that the hot set fits in the cache, or warm up more of the database.",
    )
    FITS_IN_MEMORY = (
        "The database ({database}) fits in {where} ({memory}): reads that memory serves "
        "never reach the cache.",
        "Use a larger database, or less memory, to measure the cache rather than the memory.",
    )
    FITS_IN_CACHE = (
        "The cache ({cache}) holds the whole database ({database}): nothing has to leave it, so"
        " this is the speed of the flash and not of a cache that has to choose.",
        "Take a cache of a half or a quarter of the database (tier.cache), or a larger database.",
    )
    LOG_MOVED = (
        "The log and temporary files moved to the flash with the cache ({volume} of it):"
        " the factor is not the cache's alone. {alone}.",
        "Measure the arm flash-volume, which has them there and no cache, and compare with it.",
    )
    QUERIES_FIT_IN_MEMORY = (
        "The TPC-H database ({database}) is not twice as large as the buffers ({memory}):"
        " after their first reads the queries are served by memory.",
        "Use a larger tpch.scale, or less memory, to measure the cache rather than the memory.",
    )
    USER_MODE_LINUX = (
        "User-Mode Linux: the kernel and its cache are real and ran at this computer's CPU speed,"
        " but as a process: one CPU, and system calls and process switches that cost tens of"
        " microseconds. That holds back the fast arms more than the slow one.",
        "Read the ratios between arms as a lower bound; run on the server itself for absolute"
        " figures.",
    )
    MODELLED_FLASH = (
        "Modelled flash: the cache was hotset's own engine in user space, and the flash below it a "
        "model{took}.",
        "Repeat with the kernel's dm-cache before deciding on it (tier.kind = 'dm-cache').",
    )
    MODELLED_STORAGE = (
        "Modelled storage: the slow storage was a model of “{name}”, not the device.",
        "Repeat on the real device (name it by id in the experiment) before buying.",
    )
    CALIBRATION_OFF = (
        "The storage model missed its own values by more than {tolerance}: {which}.",
        "Calibrate the model again, with nothing else running on the host.",
    )
    CHECKED_AFTER_LOAD = (
        "The twelve consistency conditions were checked after the load, not after each window.",
        "Set tpcc.check = 'every-arm' to check after each window, too; each check reads the whole"
        " database.",
    )
    ONE_MEASUREMENT = (
        "One measurement: it does not show how far two of them lie apart.",
        "Measure three times with one label before a change and three times with another after it,"
        " and compare the labels.",
    )
    FEW_REPEATS = (
        "Few repeats: {which}. Fewer than three cannot show how far runs lie apart.",
        "Use three repeats or more.",
    )
    SHORT_WINDOW = (
        "Short windows: only {which} were measured. A stall of a few seconds falls wholly inside or"
        " outside of such a window, which makes windows more alike than they are.",
        f"Measure for {WINDOW_WANTED_S} s or more (duration_s).",
    )
    SHORT_RAMPUP = (
        "Short ramp-up: a server had not read as much as its buffers hold ({buffers}) when its"
        " windows opened: {which}.{reckoned} Until its buffers are full it reads more and writes"
        " back less.",
        "Allow a preparation (warmup.probe_max_s) or ramp-up (rampup_s) as long as this takes.",
    )
    NOT_LEVEL = (
        "Reads were not level, or the server's buffers not full, when the preparation ended:"
        " {which}. The arms may not have been measured in the same state.",
        "Allow a longer preparation (warmup.probe_max_s).",
    )
    NOT_STEADY = (
        "Not steady within the window: {which}.",
        "Lengthen the ramp-up (rampup_s) and the window (duration_s). If only one"
        " kind of transaction is affected, its plan may have changed: run ANALYZE beforehand.",
    )
    NOT_DURABLE = (
        "A crash of the server would lose what was committed, by its settings: {which}. It writes"
        " less and waits less for it.",
        "Measure with the settings that the database is to have.",
    )
    SETTINGS_DIFFER = (
        "The arms were measured with other settings of the server: {which}. The factor is theirs,"
        " too.",
        "Measure the arms with the same settings.",
    )
    SETTINGS_CHANGED = (
        "The server's settings or files changed during the run: {which}.",
        "Make files as large as they become before the run, and leave the settings.",
    )
    IDLE_SECONDS = (
        "Nothing was committed for whole seconds: {which}.",
        "Look at the devices and the server's log of that time.",
    )
    COUNTED_ANEW = (
        "The cache's counters restarted during the window, as when its policy, mode or size is"
        " changed: its hit ratio over the window is not known.",
        "Measure again, and leave the cache as it is meanwhile.",
    )
    STATEMENT_TIMEOUT = (
        "The server cancelled {cancelled} statements: {limit}.",
        "Measure again without the limit.",
    )
    PLAN_CHANGED = (
        "A plan changed within the run: {which}.",
        "Run ANALYZE and measure again, or measure on a fresh copy.",
    )
    WORK_DIFFERS = (
        "The arms did not do the same work, by the pages per transaction that the server counted:"
        " {which}.{estimate} A server whose window opened before its buffers were full reads more"
        " and writes back less; with few transactions chance can do that, too.",
        "Lengthen the preparation (warmup.probe_max_s) until the buffers are full, and the window"
        " (duration_s); until the arms agree within 5 %, the factor is not the storage's alone.",
    )
    STEADINESS_UNKNOWN = (
        "Not known whether the windows were steady, as they had too few transactions to tell:"
        " {which}.",
        "Lengthen the window (duration_s); four times the transactions halve what chance explains.",
    )
    RATE_NOT_REACHED = (
        "More transactions were due than the users could do: {which} were skipped. Latencies count"
        " only those that were done.",
        "Take a lower rate, or more users.",
    )
    FAILED_TRANSACTIONS = (
        "{failed} failed ({causes}); they are not counted in the throughput.",
        "Look up the cause in the run's log; failures that pile up in one arm skew the factor.",
    )
    WARMUP_SLOW = (
        "The warm-up ran at {rate}, {share} of the slow storage's sequential rate ({origin}).",
        "Defragment the database files, or warm up while nothing else reads the slow storage.",
    )
    WORK_UNKNOWN = (
        "Not known whether the arms did the same work per transaction: the server's own counts of"
        " pages are missing for {which}.",
        "Run it again on a server that counts them, with a login that may see them.",
    )
    RAMPUP_UNKNOWN = (
        "Not known whether the server's buffers were full when windows opened, as the bytes that it"
        " read, the size of its buffers or the order of the windows is missing for {which}.",
        "Run it again on a server that counts what it reads, with a login that may see it.",
    )
    LEVEL_UNKNOWN = (
        "Not known whether reads were level when windows opened: {which}.",
        "Allow a longer preparation (warmup.probe_max_s): more seconds tell a change from chance.",
    )
    NOT_AUDITED = (
        "Results are TPROC-C (NOPM, TPM) and TPROC-H (seconds), derived from TPC-C and TPC-H;"
        " they are not audited TPC results.",
        "Do not compare them with results published by the TPC.",
    )

    def __init__(self, text: str, advice: str) -> None:
        self.text = text
        self.advice = advice

    def fill(self, **figures: str) -> Caveat:
        return Caveat(code=self.name, text=self.text.format(**figures), advice=self.advice)


def derive(document: RunDocument) -> tuple[Caveat, ...]:
    """Every caveat that the document's figures call for, in the order of `Code`."""
    caveats = [
        *_of_state(document),
        *_of_factor(document),
        *_of_conditions(document),
        *_of_repeats(document),
        *_of_queries(document),
        *_of_others(document),
        *_of_warmup(document),
        *([Code.NOT_AUDITED.fill()] if _is_tproc(document) else []),
    ]
    order = {code.name: place for place, code in enumerate(Code)}
    return tuple(sorted(caveats, key=lambda caveat: order.get(caveat.code, len(order))))


def list_caveats(document: RunDocument) -> tuple[Caveat, ...]:
    """The derived caveats, then the document's own that are not among them."""
    derived = derive(document)
    codes = {caveat.code for caveat in derived}
    return derived + tuple(caveat for caveat in document.warnings if caveat.code not in codes)


def _is_tproc(document: RunDocument) -> bool:
    """True if a workload of the TPC's was run: neither SQL of one's own nor disks alone."""
    return document.disks is None and (document.timed != "sql" or bool(document.power_arms))


def _of_state(document: RunDocument) -> Iterator[Caveat]:
    if document.state == "running":
        yield Code.RUNNING.fill()
    elif document.state != "complete":
        was = {"failed": "failed", "interrupted": "was interrupted"}
        code = Code.INCOMPLETE if document.measurement is None else Code.CUT_SHORT
        yield code.fill(state=was[document.state])


def _of_factor(document: RunDocument) -> Iterator[Caveat]:
    factor = document.factor()
    if factor is not None and not factor.has_interval:
        yield Code.NO_INTERVAL.fill(repeats=answer.repeats(document))
    elif factor is not None and factor.verdict == "not significant":
        interval = words.interval(factor.ci_low, factor.ci_high)
        yield Code.NOT_SIGNIFICANT.fill(interval=interval)
    cached = [arm for name in CACHED_ARMS if (arm := document.arm(name)) is not None]
    if cached:
        cpu = max(repeat.server_cpu or 0.0 for arm in cached for repeat in arm.repeats)
        if cpu > CPU_BOUND_SHARE or (factor is not None and factor.cpu_bound):
            # What it hides of the factor may be less than what the other work adds.
            differs = same_state.in_factor(document)
            what = "it held that run back" if differs else "the factor is understated"
            each = answer.cpu_ms(document, answer.figures(cached[-1]))
            per = "" if each is None else f" ({each:.2f} ms of a core for each transaction)"
            yield Code.CPU_BOUND.fill(cpu=words.percent(cpu, 0), each=per, what=what)
    yield from _of_cache(document, cached)


def _of_cache(document: RunDocument, cached: list[Arm]) -> Iterator[Caveat]:
    """Yield what a factor is of besides a cache that has to choose."""
    observed = document.measurement.tier if document.measurement else None
    tier, database = document.tier or observed, document.database
    any_cached = bool(cached) or document.measurement is not None
    if tier and database and any_cached and 0 < database.bytes <= tier.cache_bytes:
        yield Code.FITS_IN_CACHE.fill(
            cache=words.size(tier.cache_bytes), database=words.size(database.bytes)
        )
    baseline = document.arm("baseline")
    if document.tier is None or not document.tier.volume_bytes or not (cached and baseline):
        return
    gain = answer.log_gain(document)
    alone = "What they give by themselves is not known"
    if gain is not None:
        alone = f"By themselves they give {words.factor(gain)}"
    yield Code.LOG_MOVED.fill(volume=words.size(document.tier.volume_bytes), alone=alone)


def _of_conditions(document: RunDocument) -> Iterator[Caveat]:
    machine, storage, database = document.machine, document.storage, document.database
    if machine is not None and machine.kind == "uml":
        yield Code.USER_MODE_LINUX.fill()
    if document.tier is not None and document.tier.emulated:
        yield Code.MODELLED_FLASH.fill(took=_time_of_modelled_flash(document, document.tier))
    if storage is not None and storage.kind == "modelled":
        yield Code.MODELLED_STORAGE.fill(name=storage.name)
    if storage is not None and storage.measured and storage.expected:
        off = calibration_errors(storage.measured, storage.expected)
        if off:
            which = words.enumerate_words(
                [f"{name} {words.deviation(error, 0)}" for name, error in off.items()]
            )
            tolerance = words.percent(CALIBRATION_TOLERANCE, 0)
            yield Code.CALIBRATION_OFF.fill(which=which, tolerance=tolerance)
    if database is not None and database.checked_after == "load":
        yield Code.CHECKED_AFTER_LOAD.fill()
    if database is not None:
        places = [("the database's buffers", database.buffers_bytes)]
        if machine is not None and not database.direct_io:
            places.append(("the machine's memory", machine.memory_bytes))
        for where, memory in places:
            if 0 < database.bytes <= memory:
                yield Code.FITS_IN_MEMORY.fill(
                    where=where, database=words.size(database.bytes), memory=words.size(memory)
                )
                break
        if 0 < database.tpch_bytes < MEMORY_FACTOR * database.buffers_bytes:
            yield Code.QUERIES_FIT_IN_MEMORY.fill(
                database=words.size(database.tpch_bytes), memory=words.size(database.buffers_bytes)
            )


def _time_of_modelled_flash(document: RunDocument, tier: Tier) -> str:
    """The time that its reads took, where it is known; the model's is of one of 8 KiB alone."""
    reads = [
        device.read
        for arm in document.arms
        if arm.name in CACHED_ARMS
        for repeat in arm.repeats
        for device in repeat.devices
        if device.is_cache and device.read.latency_ms_mean is not None
    ]
    if tier.flash_model_read_us is None or not reads:
        return ""
    many = sum(read.iops for read in reads)
    took_us = sum(read.iops * (read.latency_ms_mean or 0.0) for read in reads) / many * 1000
    return (
        f", which answered reads of the cache in {took_us:.0f} µs, the way to it not counted"
        f" (its model: {tier.flash_model_read_us:.0f} µs for 8 KiB)"
    )


def calibration_errors(measured: Calibration, expected: Calibration) -> dict[str, float]:
    """Figures outside the tolerance: name → relative error."""
    errors = {}
    for name in Calibration.model_fields:
        got, wanted = getattr(measured, name), getattr(expected, name)
        if got is not None and wanted is not None:
            error = got / wanted - 1
            if abs(error) > CALIBRATION_TOLERANCE:
                errors[name.replace("_", " ")] = error
    return errors


def _of_repeats(document: RunDocument) -> Iterator[Caveat]:
    arms = [arm for arm in document.arms if arm.repeats]
    few = [arm for arm in arms if len(arm.repeats) < REPEATS_WANTED]
    if few and document.measurement is not None:
        yield Code.ONE_MEASUREMENT.fill()
    elif few:
        which = [f"{words.plural(len(arm.repeats), 'repeat')} of {arm.name}" for arm in few]
        yield Code.FEW_REPEATS.fill(which=words.enumerate_words(which))
    shortest = min((repeat.duration_s for arm in arms for repeat in arm.repeats), default=None)
    if shortest is not None and shortest < WINDOW_WANTED_S:
        yield Code.SHORT_WINDOW.fill(which=f"{shortest:.0f} s")
    yield from _of_ramp_ups(document)
    yield from _of_work(document)
    yield from _of_settings(arms)
    yield from _of_steadiness(arms)
    for arm in arms:
        for repeat in (*arm.curve, *arm.repeats):
            yield from _plan_changes(repeat)
            yield from repeat.warnings
    skipped = [
        f"{repeat.arrived.skipped:,} of {repeat.arrived.due:,} in {arm.name}, repeat"
        f" {repeat.repeat}"
        for arm in arms
        for repeat in arm.repeats
        if repeat.arrived and repeat.arrived.skipped
    ]
    if skipped:
        yield Code.RATE_NOT_REACHED.fill(which=words.enumerate_words(skipped))
    failed = {arm.name: sum(repeat.failed for repeat in arm.repeats) for arm in arms}
    if any(failed.values()):
        total = words.plural(sum(failed.values()), "transaction")
        causes = _causes(arms)
        by_arm = [f"{number:,} in {name}" for name, number in failed.items() if number]
        yield Code.FAILED_TRANSACTIONS.fill(
            failed=total, causes="; ".join([words.enumerate_words(by_arm), *causes])
        )


def _of_work(document: RunDocument) -> Iterator[Caveat]:
    differences = same_state.differences(document)
    if differences:
        equal, factor = same_state.factor_at_equal_work(document), document.factor()
        estimate = ""
        if equal is not None and factor is not None:
            estimate = (
                f" At equal work the factor would be about {same_state.about(equal)}, not"
                f" {words.factor(factor.ratio)} (an estimate that counts a page read like one"
                " written)."
            )
        yield Code.WORK_DIFFERS.fill(which=same_state.describe(differences), estimate=estimate)
    unknown = same_state.unknown(document)
    if unknown:
        yield Code.WORK_UNKNOWN.fill(which=words.enumerate_words(unknown))


def _of_ramp_ups(document: RunDocument) -> Iterator[Caveat]:
    ramp_ups = same_state.ramp_ups(document)
    short, unknown = same_state.too_short(ramp_ups), same_state.not_reckoned(ramp_ups)
    if short and document.database is not None:
        buffers = words.size(document.database.buffers_bytes)
        prepared = all(repeat.preparation for arm in document.arms for repeat in arm.repeats)
        reckoned = "" if prepared else " What it had read is reckoned at the rate of its windows."
        yield Code.SHORT_RAMPUP.fill(buffers=buffers, which="; ".join(short), reckoned=reckoned)
    if unknown:
        yield Code.RAMPUP_UNKNOWN.fill(which=words.enumerate_words(unknown))
    # Only an experiment prepares its servers.
    levels = same_state.levels(document) if document.measurement is None else {}
    for level, code in ((False, Code.NOT_LEVEL), (None, Code.LEVEL_UNKNOWN)):
        if level in levels:
            yield code.fill(which=words.enumerate_words(levels[level]))


def _of_settings(arms: list[Arm]) -> Iterator[Caveat]:
    loses = {
        arm.name: lost for arm in arms for repeat in arm.repeats if (lost := repeat.loses_commits)
    }
    if loses:
        which = "; ".join(f"{arm}: {', '.join(names)}" for arm, names in loses.items())
        yield Code.NOT_DURABLE.fill(which=which)
    by_name: dict[str, dict[str, list[str]]] = {}
    for arm in arms:
        for repeat in arm.repeats:
            for name, value in (repeat.settings or {}).items():
                by_name.setdefault(name, {}).setdefault(value, []).append(arm.name)
    differ = [
        f"{name} " + ", ".join(f"{value} in {names[0]}" for value, names in values.items())
        for name, values in by_name.items()
        if len(values) > 1 and not name.endswith("files")
    ]
    if differ:
        yield Code.SETTINGS_DIFFER.fill(which="; ".join(differ))


def _of_steadiness(arms: list[Arm]) -> Iterator[Caveat]:
    idle = [
        f"{arm.name}, repeat {repeat.repeat}: {words.plural(len(seconds), 'second')}, from second"
        f" {seconds[0]} on"
        for arm in arms
        for repeat in arm.repeats
        if (seconds := repeat.idle_seconds)
    ]
    if idle:
        yield Code.IDLE_SECONDS.fill(which="; ".join(idle))
    unsteady = [
        f"{arm.name}, repeat {repeat.repeat}: {unsteadiness(verdict)}"
        for arm in arms
        for repeat in arm.repeats
        for verdict in repeat.steadiness
        if verdict.steady is False
    ]
    if unsteady:
        more = len(unsteady) - UNSTEADY_NAMED
        named = "; ".join(unsteady[:UNSTEADY_NAMED]) + (f"; and {more} more" if more > 0 else "")
        yield Code.NOT_STEADY.fill(which=named)
    unknown = [
        f"{_MEASURED[measure]} in {arm.name} ({words.enumerate_words(repeats)})"
        for arm in arms
        for measure in ("tpm", "reads")
        if (repeats := _unknown(arm, measure))
    ]
    if unknown:
        yield Code.STEADINESS_UNKNOWN.fill(which="; ".join(unknown))


def _plan_changes(window: Repeat) -> Iterator[Caveat]:
    at = f"with {words.plural(window.users, 'user')}, " if window.users else ""
    for change in window.plan_changes:
        times = ""
        if change.latency_ms is not None:
            first, last = (f"{value:.2f}" for value in change.latency_ms)
            times = f"; its mean latency was {first} ms in the first fifth, {last} ms in the last"
        kind = change.kind.replace("_", "-")
        which = f"{at}{kind}, {change.what}: {change.before} became {change.after}{times}"
        yield Code.PLAN_CHANGED.fill(which=which)


_MEASURED = {"tpm": "the throughput", "reads": "reads per transaction"}


def _unknown(arm: Arm, measure: str) -> list[str]:
    """The repeats of which it is not known whether they were steady."""
    return [
        f"repeat {repeat.repeat}"
        for repeat in arm.repeats
        for verdict in repeat.steadiness
        if verdict.measure == measure and verdict.steady is None
    ]


def unsteadiness(verdict: Steadiness) -> str:
    """Describe what did not stay steady, or may not have, where, and by how much."""
    what = _MEASURED.get(verdict.measure, f"{verdict.of.replace('_', '-')}'s mean latency")
    show = {"tpm": words.count, "latency_ms": words.milliseconds, "reads": _tenths}[verdict.measure]
    unit = {"tpm": " TPM", "latency_ms": " ms", "reads": ""}[verdict.measure]
    between = f"{show(min(verdict.rounds))} to {show(max(verdict.rounds))}{unit}"
    return f"{what} ({between}, from second {verdict.second})"


def _tenths(number: float) -> str:
    return f"{number:.1f}"


def _causes(arms: list[Arm]) -> list[str]:
    """The recorded causes, most frequent first."""
    causes: Counter[str] = Counter()
    for arm in arms:
        for repeat in arm.repeats:
            causes.update(_causes_of(repeat))
    return [f"{cause} {number:,}" for cause, number in causes.most_common(3)]


def _causes_of(repeat: Repeat) -> Counter[str]:
    causes: Counter[str] = Counter()
    for transaction in repeat.transactions.values():
        causes.update(transaction.failed)
    return causes


def _of_others(document: RunDocument) -> Iterator[Caveat]:
    """Yield caveats about the CPU that the hypervisor and other programs took."""
    windows: list[tuple[str, Window]] = [
        *((arm.name, repeat) for arm in document.arms for repeat in arm.repeats),
        *((arm.name, repeat) for arm in document.power_arms for repeat in arm.repeats),
    ]
    stolen = [(name, window.server_steal) for name, window in windows]
    others = [(name, window.others_cpu) for name, window in windows]
    for code, shares, borne in (
        (Code.STOLEN, stolen, STEAL_BORNE),
        (Code.LOADED, others, OTHERS_BORNE),
    ):
        worst = {name: max(share for arm, share in shares if arm == name) for name, _ in shares}
        robbed = {name: share for name, share in worst.items() if share > borne}
        if robbed:
            listed = [f"{name} {words.percent(share, 0)}" for name, share in robbed.items()]
            highest = words.percent(max(robbed.values()), 0)
            yield code.fill(worst=highest, which=words.enumerate_words(listed))


def _of_queries(document: RunDocument) -> Iterator[Caveat]:
    different = power.differing(document)
    if different:
        which = words.enumerate_words([f"query {number}" for number in different])
        yield Code.ANSWERS_DIFFER.fill(which=which)
    for arm in document.power_arms:
        if arm.repeats and not arm.complete:
            yield Code.QUERIES_UNFINISHED.fill(arm=arm.name, which=power.name_unfinished(arm))


def _of_warmup(document: RunDocument) -> Iterator[Caveat]:
    warmup = document.warmup
    if warmup is None:
        return
    # A good mean must not hide a bad repeat.
    each: list[WarmUpFigures] = [warmup, *warmup.repeats]
    worst = max(each, key=lambda figures: figures.differing_blocks)
    if worst.differing_blocks:
        yield Code.WARMUP_DIFFERS.fill(
            differing=f"{worst.differing_blocks:,}", sampled=f"{worst.sampled_blocks:,}"
        )
    below = [
        (figures.probe_hit_ratio, figures.probe_hit_ratio_min)
        for figures in each
        if figures.probe_hit_ratio is not None
        and figures.probe_hit_ratio < figures.probe_hit_ratio_min
    ]
    if below:
        ratio, wanted = min(below)
        yield Code.PROBE_BELOW.fill(ratio=words.percent(ratio), wanted=words.percent(wanted))
    slowest = min(each, key=lambda figures: figures.mb_per_s / figures.origin_mb_per_s)
    share = slowest.mb_per_s / slowest.origin_mb_per_s
    if share < WARMUP_RATE_WANTED:
        yield Code.WARMUP_SLOW.fill(
            rate=words.rate(slowest.mb_per_s),
            share=words.percent(share, 0),
            origin=words.rate(slowest.origin_mb_per_s),
        )
