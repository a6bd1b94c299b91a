"""TPC-C's throughput at another hit ratio, from one run that measured it before and after.

What a transaction needs is learned from the run's two arms (see ``demands``), and the network
solved again with what is asked about. An arm that the slow storage holds back tells little of the
rest of a transaction's time: what is learned from it holds for lower hit ratios, not for much
higher ones.

What the cache has the slow storage do in the background counts (see ``traffic``). How far off a
prediction of what was not measured may be comes from published windows (see ``doubt``), not from
the noise of the run.

Left out: locks that are held longer while the storage is slow, and how the hit ratio itself changes
with the cache's size.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from math import exp, log
from statistics import mean
from typing import TYPE_CHECKING

from hotset.core.errors import Remedy, RequestError
from hotset.core.record import Versioned
from hotset.core.words import deviation, percent, text_table
from hotset.reports.analysis import answer
from hotset.reports.model.base import ArmName
from hotset.reports.model.document import Arm, RunDocument
from hotset.reports.model.windows import Repeat

from .demands import (
    Demands,
    FlashPromise,
    Requests,
    SetUp,
    background,
    learn,
    lowest,
    solve_network,
    throughput_of,
    waiting_time,
)
from .doubt import KINDS, Doubt, Kind, doubt_of, in_words, together
from .traffic import (
    CacheKind,
    Traffic,
    assume_log_moved,
    assume_traffic,
    count_traffic,
    kind_of,
)

if TYPE_CHECKING:
    from rich.console import Console

FAST: tuple[ArmName, ...] = ("accelerated", "all-flash")
"""The first that a run has is learned from; all-flash does not tell what the cache itself costs."""
NEARLY_ALL = 0.95
"""Share of the attainable: what more flash adds from there on is not worth its price."""
SAME_RATIO = 0.001
"""Tolerance of hit ratios: no further apart than this, they count as the same."""
_PAIRS_MAX = 36
_OF_CACHE: tuple[Kind, ...] = ("hit ratio", "policy", "write mode", "block size")
"""Differences between caches: without one, and on flash alone, nothing of it is there."""


@dataclass(frozen=True, slots=True)
class PredictedLine:
    """A prediction, or the run's own measurement where nothing is ``unlike``: NOPM with its range
    (of what was measured its repeats; of all else the doubt of its kinds, no further than without a
    cache, and than on flash alone), and how many times those without a cache they are;
    how much of the CPU (all cores) and of the slow storage's best rate is used; where most of a
    transaction's time goes, with waiting for it.

    :ivar unlike: the differences from the run, by the kinds of :class:`Doubt`.
    """

    hit_ratio: float
    nopm: float
    nopm_low: float
    nopm_high: float
    factor: float
    response_ms: float
    cpu_share: float
    origin_share: float
    most_time: str
    unlike: tuple[Kind, ...]


@dataclass(frozen=True, slots=True)
class Ceiling:
    """All-flash as it was measured, beside what is predicted with everything cached: what it is
    faster by is the cost of the cache."""

    measured_nopm: float
    predicted_nopm: float


@dataclass(frozen=True, slots=True)
class Prediction:
    """:ivar learned_users: with which the run measured what is learned from it.
    :ivar requests_per_transaction: to the data disk, as the run's counters have them.
    :ivar enough_hit_ratio: from it on NOPM are :data:`NEARLY_ALL` of the attainable.
    :ivar doubts: of each kind that a line has.
    :ivar assumed: assumptions in place of counters that the run lacks, in words.
    """

    learned_users: int
    demands: Demands
    requests_per_transaction: float | None
    learned_from: tuple[str, ...]
    lines: tuple[PredictedLine, ...]
    ceiling: Ceiling | None
    enough_hit_ratio: float
    doubts: tuple[Doubt, ...]
    assumed: tuple[str, ...]


_COLUMNS = (
    "hit ratio",
    "NOPM",
    "from",
    "to",
    "factor",
    "ms",
    "CPU",
    "storage",
    "most time",
    "",
)


@dataclass(frozen=True)
class PredictedRun(Prediction, Versioned):
    """A run's prediction. ``storage``: the name of the slow storage that is asked about."""

    csv_rows = "lines"

    run: str
    storage: str

    def show(self, console: Console) -> None:
        rows = [
            (
                percent(line.hit_ratio),
                f"{line.nopm:,.0f}",
                f"{line.nopm_low:,.0f}",
                f"{line.nopm_high:,.0f}",
                f"{line.factor:.1f}",
                f"{line.response_ms:.1f}",
                percent(line.cpu_share, 0),
                percent(line.origin_share, 0),
                line.most_time,
                "predicted" if line.unlike else "measured",
            )
            for line in self.lines
        ]
        console.print(text_table(_COLUMNS, rows), markup=False, highlight=False)
        for line in self._notes():
            console.print(f"\n{line}", markup=False, highlight=False)

    def _notes(self) -> list[str]:
        need = self.demands
        counted = (
            ""
            if self.requests_per_transaction is None
            else f" (its counters: {self.requests_per_transaction:.1f} requests to the data disk)"
        )
        notes = [
            f"{percent(NEARLY_ALL, 0)} of the attainable throughput is reached at a hit ratio of"
            f" {percent(self.enough_hit_ratio)}: more flash than that gains little.",
            f"learned from {' and '.join(self.learned_from)} of run {self.run} with"
            f" {self.learned_users} users: a transaction needs {need.cpu_s * 1000:.2f} ms of a"
            f" core, {need.flash_s * 1000:.2f} ms of flash and log when nobody is in the way, and"
            f" {need.origin_reads:.1f} reads of the slow storage when nothing is cached{counted};"
            f" {percent(need.cores_used, 0)} of the cores can be kept busy. Slow storage:"
            f" {self.storage}.",
        ]
        if self.ceiling:
            notes.append(_cost_of_cache(self.ceiling))
        notes.append(in_words(self.doubts))
        if self.assumed:
            notes.append(
                "Not counted by the run, but assumed from published windows and simulations of"
                " small caches:"
                f" {'; '.join(self.assumed)}. Locks that are held longer on slow storage are"
                " ignored. Factor: compared with nothing cached."
            )
        return notes


def _cost_of_cache(ceiling: Ceiling) -> str:
    seen, cached = ceiling.measured_nopm, ceiling.predicted_nopm
    reached = f"All-flash, without a cache, reached {seen:,.0f} NOPM"
    if cached >= seen:
        return (
            f"{reached}, no more than with everything cached: what the cache costs does not show."
        )
    return (
        f"{reached}; with everything cached {cached:,.0f} are predicted"
        f" ({deviation(cached / seen - 1)}): the cost of the cache itself."
    )


def rates(points: Mapping[int, float], users: int) -> tuple[float, ...]:
    """IOPS with 1 to ``users`` requests under way, from some depths: between them on a straight
    line of logarithms, beyond them as the last.

    >>> [round(one) for one in rates({1: 100, 4: 400, 8: 600}, 10)]
    [100, 200, 300, 400, 456, 507, 555, 600, 600, 600]
    """
    depths = sorted(points)
    rates = []
    for depth in range(1, users + 1):
        below = max((known for known in depths if known <= depth), default=depths[0])
        above = min((known for known in depths if known >= depth), default=depths[-1])
        part = 0.0 if below == above else log(depth / below) / log(above / below)
        rates.append(exp(log(points[below]) * (1 - part) + log(points[above]) * part))
    return tuple(rates)


def predict(
    run: RunDocument,
    iops: Mapping[int, float],
    hit_ratios: Sequence[float],
    *,
    flash: FlashPromise | None = None,
    users: int | None = None,
    cores: int | None = None,
    asked_iops: Mapping[int, float] | None = None,
    cache: CacheKind | None = None,
) -> Prediction:
    """Predict the run's set-up, or one with other users, cores, slow storage or cache.

    :param iops: of the run's slow storage by queue depth.
    :param flash: of the run's flash; None: not known.
    :param asked_iops: of the storage to predict; the run's if None.
    :param cache: the one to predict; the run's if None.
    :raises RequestError: the run lacks what is learned from it; says how to get that.
    """
    taught = teach(run, iops, flash, users)
    users = users or taught.measured.users
    asked = SetUp(
        users,
        cores or taught.measured.cores,
        rates(asked_iops or iops, users),
        taught.traffic_of(cache),
    )
    return predict_by(taught, asked, hit_ratios)


@dataclass(frozen=True, slots=True)
class Taught:
    """The lessons of a run.

    :ivar measured: the set-up that it was measured in.
    :ivar iops: of its slow storage by queue depth.
    :ivar hit_ratio: of the fast arm.
    :ivar arms_nopm: of the windows of both arms.
    :ivar each: by each pair of a window of the baseline and one of the fast arm.
    :ivar share: NOPM of TPM.
    :ivar all_flash_nopm: of its windows, also where flash alone was learned from.
    :ivar log_moved: how many times as much the baseline does with its log where the cache has it.
    :ivar log_measured: the run measured that.
    """

    arms: tuple[ArmName, ArmName]
    measured: SetUp
    iops: Mapping[int, float]
    hit_ratio: float
    arms_nopm: tuple[tuple[float, ...], tuple[float, ...]]
    each: tuple[Demands, ...]
    share: float
    requests: float | None
    all_flash_nopm: tuple[float, ...]
    log_moved: float
    log_measured: bool

    def traffic_of(self, cache: CacheKind | None) -> Traffic | None:
        """Return a cache's traffic (None: the run's), as the run counted it if it is the same."""
        own = self.measured.traffic
        if cache is None or (own is not None and own.kind == cache):
            return own
        return assume_traffic(cache)


def teach(
    run: RunDocument,
    iops: Mapping[int, float],
    flash: FlashPromise | None,
    users: int | None = None,
    fast: ArmName | None = None,
    log_moved: float | None = None,
) -> Taught:
    """A run that measured several numbers of users teaches what it measured nearest to those asked
    about.

    :param fast: the arm to learn from beside the baseline; None: the first of :data:`FAST`.
    :param log_moved: what a log on flash gives by itself; None: as measured, or else as assumed.
    """
    near = taught_users(run, users, fast)
    baseline, quick = _arms(run, fast)
    assert run.machine
    cached = run.arm("accelerated")
    with_cache = [] if cached is None else windows(cached, run).get(near, [])
    kind = kind_of(run.tier)
    traffic = None if kind is None else count_traffic(kind, with_cache)
    measured = SetUp(near, run.machine.cores, rates(iops, near), traffic)
    slow_windows, fast_windows = windows(baseline, run)[near], windows(quick, run)[near]
    pairs = [*product(slow_windows, fast_windows)][:_PAIRS_MAX]
    # On flash alone there was no cache to move anything.
    as_measured = replace(measured, traffic=None) if quick is not cached else measured
    requests = _requests(fast_windows) or _requests(with_cache)
    alone = run.arm("all-flash")
    seen = [] if alone is None else windows(alone, run).get(near, [])
    volume = answer.log_gain(run, near)
    moved = log_moved or volume or (assume_log_moved() if _has_volume(run) else 1.0)
    return Taught(
        (baseline.name, quick.name),
        measured,
        iops,
        mean(1.0 if window.hit_ratio is None else window.hit_ratio for window in fast_windows),
        (
            tuple(window.rate for window in slow_windows),
            tuple(window.rate for window in fast_windows),
        ),
        tuple(learn(*pair, as_measured, flash, requests, moved) for pair in pairs),
        sum(window.rate for _, window in pairs) / sum(window.tpm for _, window in pairs),
        None if requests is None else requests.reads + requests.writes,
        tuple(window.rate for window in seen),
        moved,
        volume is not None or (run.tier is not None and not _has_volume(run)),
    )


def _has_volume(run: RunDocument) -> bool:
    """True if the run's cache has a volume beside it on the flash, which takes the log."""
    return run.tier is not None and run.tier.volume_bytes > 0


def taught_users(run: RunDocument, users: int | None, fast: ArmName | None = None) -> int:
    """Find the number of users, measured before and after, that is nearest to a given number (None:
    the run's): by ratio, and of two that are as near the larger, at which more waited."""
    baseline, quick = _arms(run, fast)
    assert run.database
    wanted = users or run.database.users
    assert wanted is not None  # TPC-C was measured
    counts = sorted(windows(baseline, run).keys() & windows(quick, run).keys(), reverse=True)
    return min(counts, key=lambda count: abs(log(count / wanted)))


def predict_by(
    taught: Taught, asked: SetUp, hit_ratios: Sequence[float], also: Collection[Kind] = ()
) -> Prediction:
    """Predict as :func:`predict` does, from what was learned.

    :param also: other differences from the run.
    """
    typical = _typical(taught.each)
    lines = tuple(_line(taught, typical, asked, ratio, also) for ratio in hit_ratios)
    kinds = [kind for kind in KINDS if any(kind in line.unlike for line in lines)]
    ceiling = None
    if taught.all_flash_nopm and taught.arms[1] != "all-flash":
        ceiling = Ceiling(mean(taught.all_flash_nopm), _nopm(taught, typical, taught.measured, 1.0))
    return Prediction(
        taught.measured.users,
        typical,
        taught.requests,
        taught.arms,
        lines,
        ceiling,
        _first_with(lambda ratio: _nopm(taught, typical, asked, ratio), NEARLY_ALL),
        tuple(doubt_of(kind) for kind in kinds),
        _assumptions(taught, asked.traffic),
    )


def _nopm(taught: Taught, demands: Demands, setup: SetUp, hit_ratio: float) -> float:
    return throughput_of(demands, setup, hit_ratio) * 60 * taught.share


def _line(
    taught: Taught, typical: Demands, asked: SetUp, hit_ratio: float, also: Collection[Kind]
) -> PredictedLine:
    solved = solve_network(typical, asked, hit_ratio)
    each_takes = waiting_time(typical, asked, hit_ratio) + background(typical, asked, hit_ratio)
    unlike = _unlike(taught, asked, hit_ratio, also)
    nopm = _expected(taught, typical, asked, hit_ratio, unlike)
    low, high = _range(taught, asked, hit_ratio, unlike, nopm)
    without = _expected(taught, typical, asked, 0.0, _unlike(taught, asked, 0.0, also))
    throughput = nopm / 60 / taught.share
    return PredictedLine(
        hit_ratio,
        nopm,
        low,
        high,
        nopm / without,
        solved.response_s * solved.throughput / throughput * 1000,
        throughput * typical.cpu_s / asked.cores,
        throughput * each_takes / max(asked.iops),
        max((load.present, load.name) for load in solved.loads)[1],
        unlike,
    )


def _expected(
    taught: Taught, typical: Demands, asked: SetUp, hit_ratio: float, unlike: Collection[Kind]
) -> float:
    """The NOPM that the run measured, where nothing is unlike; else those of the network."""
    if unlike:
        return _nopm(taught, typical, asked, hit_ratio)
    return mean(taught.arms_nopm[hit_ratio > SAME_RATIO])


def _range(
    taught: Taught, asked: SetUp, hit_ratio: float, unlike: Collection[Kind], middle: float
) -> tuple[float, float]:
    """The least NOPM and the most."""
    if not unlike:
        seen = taught.arms_nopm[hit_ratio > SAME_RATIO]
        return min(seen), max(seen)
    every = [middle, *(_nopm(taught, demands, asked, hit_ratio) for demands in taught.each)]
    low, high = _known(taught, asked, unlike)
    doubt = together(unlike)
    return (
        min(middle, max(low, min(*every, middle / doubt))),
        max(middle, min(high, max(*every, middle * doubt))),
    )


def _known(taught: Taught, asked: SetUp, unlike: Collection[Kind]) -> tuple[float, float]:
    """The ends of what is known of a set-up: without a cache, and on flash alone."""
    others: set[Kind] = {kind for kind in unlike if kind not in _OF_CACHE}
    without = replace(asked, traffic=None)
    doubt = together(others)
    low = min(_nopm(taught, demands, without, 0.0) for demands in taught.each)
    fast = [_nopm(taught, demands, without, 1.0) for demands in taught.each]
    if (asked.users, asked.cores) == (taught.measured.users, taught.measured.cores):
        fast += taught.all_flash_nopm
    return low / doubt, max(fast) * doubt


def _unlike(
    taught: Taught, asked: SetUp, hit_ratio: float, also: Collection[Kind]
) -> tuple[Kind, ...]:
    """List what in a prediction was not measured by the run."""
    measured, kinds = taught.measured, set(also)
    if min(abs(hit_ratio - seen) for seen in (0.0, taught.hit_ratio)) > SAME_RATIO:
        kinds.add("hit ratio")
    if asked.users != measured.users:
        kinds.add("users")
    if asked.cores != measured.cores:
        kinds.add("cores")
    if asked.iops != rates(taught.iops, asked.users):
        kinds.add("storage")
    if hit_ratio > 0:
        # Flash alone teaches nothing of a cache, even where the run names one.
        own = None if taught.arms[1] == "all-flash" else measured.traffic
        unlike = _unlike_cache(own, asked.traffic)
        # Windows of other hit ratios differ in these, too.
        kinds |= unlike - {"policy", "block size"} if "hit ratio" in kinds else unlike
    return tuple(kind for kind in KINDS if kind in kinds)


def _unlike_cache(own: Traffic | None, other: Traffic | None) -> set[Kind]:
    """List how a cache differs from the one that a run measured. With a cache where it measured
    none, or the other way around, nothing of it is known to be the same."""
    if own is None or other is None:
        return set() if own is other else {"policy", "write mode", "block size"}
    unlike: dict[Kind, bool] = {
        "policy": own.kind.policy != other.kind.policy,
        "write mode": own.write_through != other.write_through,
        "block size": own.kind.block_bytes != other.kind.block_bytes,
    }
    return {kind for kind, is_unlike in unlike.items() if is_unlike}


def _assumptions(taught: Taught, traffic: Traffic | None) -> tuple[str, ...]:
    """List what the model takes from elsewhere, as no counter of the run has it."""
    assumptions = []
    if not taught.log_measured and taught.log_moved == 1:
        assumptions.append("that the log stayed on the slow storage, as the run does not say")
    elif not taught.log_measured:
        assumptions.append(
            f"that the log on flash gives {taught.log_moved:.2f} times by itself, as no arm has it"
            " there without a cache (flash-volume)"
        )
    if traffic is None:
        return tuple(assumptions)
    if taught.requests is None:
        assumptions.append(
            "which share of the requests are writes, where the disk did not count them"
        )
    whole = f"{percent(taught.hit_ratio)} hits"
    for name, words in (
        ("promoted", "how many misses promote a block"),
        ("written_back", "how many writes are written back as one block"),
    ):
        if traffic.write_through if name == "written_back" else traffic.kind.reads_once:
            continue
        but = f" but at {whole}" if name in traffic.measured else ""
        assumptions.append(f"{words}{but}")
    return (*assumptions, "what moving a block costs the slow storage")


def windows(arm: Arm, run: RunDocument) -> dict[int, list[Repeat]]:
    """Windows of TPC-C in which something was done and the CPU was watched, by number of users."""
    assert run.database is not None
    by_users: dict[int, list[Repeat]] = {}
    for repeat in (*arm.curve, *arm.repeats):
        if repeat.nopm and repeat.server_cpu is not None:
            users = repeat.users or run.database.users
            assert users is not None
            by_users.setdefault(users, []).append(repeat)
    return by_users


def _arms(run: RunDocument, name: ArmName | None) -> tuple[Arm, Arm]:
    baseline = run.arm("baseline")
    names = FAST if name is None else (name,)
    fast = next((arm for name in names if (arm := run.arm(name))), None)
    complete = run.database is not None and run.machine is not None and run.storage is not None
    if (
        baseline is None
        or fast is None
        or not complete
        or not windows(baseline, run).keys() & windows(fast, run).keys()
    ):
        raise RequestError(
            f"run {run.run} did not measure TPC-C before (baseline) and after (accelerated or"
            " all-flash), so nothing can be learned from it",
            Remedy("make a run that does", "demo"),
            field="run",
        )
    return baseline, fast


def _typical(each: Sequence[Demands]) -> Demands:
    means = (mean(getattr(demands, name.name) for demands in each) for name in fields(Demands))
    return Demands(*means)


def _requests(taught: Sequence[Repeat]) -> Requests | None:
    """To the cached device for each transaction, where both reads and writes are counted."""
    requests = []
    for repeat in taught:
        counted, done = repeat.counters, repeat.tpm / 60 * repeat.duration_s
        if counted and counted.write_hits is not None and counted.write_misses is not None and done:
            reads = counted.read_hits + counted.read_misses
            writes = counted.write_hits + counted.write_misses
            requests.append(Requests(reads / done, writes / done))
    if not requests:
        return None
    return Requests(
        mean(request.reads for request in requests), mean(request.writes for request in requests)
    )


def _first_with(nopm: Callable[[float], float], share: float) -> float:
    """The lowest hit ratio at which that share of the attainable is reached."""
    wanted = share * nopm(1.0)
    return lowest(0.0, 1.0, lambda ratio: nopm(ratio) >= wanted)


def iops_from_text(text: str) -> dict[int, float]:
    """Depths and IOPS as users write them.

    >>> iops_from_text("1:126, 16:850")
    {1: 126.0, 16: 850.0}
    """
    by_depth = {}
    for word in text.split(","):
        depth, _, iops = word.strip().partition(":")
        if not depth.isdigit() or int(depth) < 1:
            raise ValueError(f"{word.strip()!r} is not DEPTH:IOPS, such as 16:850")
        try:
            by_depth[int(depth)] = float(iops)
        except ValueError:
            raise ValueError(f"{word.strip()!r} is not DEPTH:IOPS, such as 16:850") from None
        if not by_depth[int(depth)] > 0:
            raise ValueError(f"{word.strip()!r}: IOPS are more than 0")
    return by_depth


def points_of(promise: Mapping[str, object]) -> dict[int, float]:
    """IOPS by queue depth out of what a model promises (``flashdev expect``)."""
    every = promise["random_read_8k"]
    assert isinstance(every, Iterable)
    return {int(point["queue_depth"]): float(point["iops"]) for point in every}


def flash_of(promise: Mapping[str, object]) -> FlashPromise:
    """Parse the promise of a flash model (``flashdev expect``)."""
    every, write_ms = promise["random_read_8k"], promise["random_write_8k_ms"]
    assert isinstance(every, list)
    assert isinstance(write_ms, float)
    read_ms = next(point["latency_ms_mean"] for point in every if point["queue_depth"] == 1)
    return FlashPromise(read_ms / 1e3, write_ms / 1e3, max(point["iops"] for point in every))
