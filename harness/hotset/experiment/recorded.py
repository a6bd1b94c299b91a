"""The steps of an experiment as a run takes them: measured, and kept in the journal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from statistics import fmean

from hotset.bench import tpcc as checks
from hotset.bench.thresholds import ThresholdMissedError
from hotset.block.extents import Run
from hotset.core import words
from hotset.core.machines.local import Local
from hotset.hitratio.sampler import busy
from hotset.reports.analysis import stats, units
from hotset.reports.analysis.headlines import write_headlines
from hotset.reports.model import base, document, windows
from hotset.reports.model.document import Workload
from hotset.tier.base import Warmup
from hotset.tpcc.data import consistency

from . import learning, sequence, table_hits, timed
from .file.spec import Spec, WarmupTable
from .journal import Journal
from .measure import highest_rate, measure, run_queries
from .preparation import OnProbe, prepare
from .sequence import Turn
from .site.arms import Placed, Workloads
from .site.context import Site
from .timed import Timed

_RATE_SEED = 30_000
_SEEDS_APART = 1000
_PROBE_QUERIES = (6, 12)
_OTHERS_S = 0.5
"""A demo has six arms, and does nothing meanwhile."""


class Recorded:
    """The work of a run, for :func:`.sequence.walk`; what the journal has is not done again."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._others = 0.0
        """Share of this computer's CPU that was busy before the arm was set up."""
        self._fastest: windows.Repeat | None = None
        """The arm's window of most users and without a rate, where it has just been measured."""
        self._preparation: windows.Preparation | None = None
        """Preparation of the arm, where it had a load of many users."""

    def is_done(self, spec: Spec, turn: Turn, workload: Workload) -> bool:
        want = spec.timed
        if workload == "tpch" or want is None:
            return self._journal.has(turn.arm, turn.repeat, workload)
        sought = not want.find_rate or self._journal.has_rate(turn.arm, turn.repeat)
        return sought and self._journal.has(turn.arm, turn.repeat, workload, want.users)

    def learn(self, site: Site, workloads: Workloads) -> tuple[Run, ...]:
        with self._journal.phase(" ".join(("learn", *_workloads_of(site, workloads)))):
            return learning.hottest(site, workloads)

    @contextmanager
    def turn(self, site: Site, turn: Turn) -> Iterator[None]:
        name = " ".join((turn.arm, str(turn.repeat), *_workloads_of(site, turn.workloads)))
        with self._journal.phase(name):
            site.report.say(f"{turn.arm}, repeat {turn.repeat} of {site.spec.repeats}")
            self._others = min(1.0, busy(Local(), _OTHERS_S))
            self._fastest = self._preparation = None
            yield
        self._say_result(site, turn.repeat)

    def _say_result(self, site: Site, repeat: int) -> None:
        """After a repeat of all arms: their results until now, and how long the others take."""
        left = [turn for turn in sequence.turns(site.spec) if not self._is_over(site.spec, turn)]
        if not left or any(turn.repeat == repeat for turn in left):
            return
        document = self._journal.document
        for sentence in write_headlines(document.model_copy(update=stats.compare_arms(document))):
            site.report.say(sentence)
        took = [
            phase.seconds for phase in document.phases if phase.name.split()[0] in site.spec.arms
        ]
        seconds = fmean(took) * len(left)
        what = words.plural(left[-1].repeat - repeat, "more repeat")
        site.report.say(f"{what}, about {words.duration(seconds)}")

    def _is_over(self, spec: Spec, turn: Turn) -> bool:
        return all(self.is_done(spec, turn, workload) for workload in turn.workloads)

    def begin(self, site: Site, turn: Turn, placed: Placed) -> None:
        """Prepare the arm, each in the same way: a server that has just started reads more than one
        whose buffers are full.

        :raises ThresholdMissedError: the probe's hit ratio stayed below the asked one.
        """
        run = timed.find_timed(site.spec)

        def on_probe(hit_ratio: float | None, seconds: float) -> None:
            self._check_probe(site, turn, placed, hit_ratio, seconds)

        if run is not None and run.name in turn.workloads:
            self._prepare(site, turn, placed, run, on_probe)
        else:
            # Two of the queries add little to the time of all 22.
            with site.report.task("preparing the server: two queries"):
                probe = _probe(site, placed)
            on_probe(probe.hit_ratio, probe.duration_s)

    def window(self, site: Site, turn: Turn, placed: Placed, run: Timed, users: int) -> None:
        """A seed of its own for each number of users: the same rows again would be in memory."""
        if self._journal.has(turn.arm, turn.repeat, run.name, [users]):
            return
        want = run.want
        seed = (
            want.seed + turn.repeat + _SEEDS_APART * (len(want.users) - 1 - want.users.index(users))
        )
        before = table_hits.begin(placed)
        with site.report.task(run.title(users)):
            options = run.options(users, want.rampup_s, want.duration_s, seed)
            options = replace(options, rate_per_s=want.rate_per_s)
            measured = measure(site, placed, run, options)
        parts = table_hits.since(site, placed, run.name, before)
        _check(site, placed)
        record = measured.model_copy(
            update={
                "repeat": turn.repeat,
                "others_cpu": self._others,
                "parts": tuple(parts),
                "preparation": self._preparation,
            }
        )
        self._journal.add_repeat(turn.arm, record, users == want.most_users)
        if users == want.most_users:
            self._fastest = measured
        with_users = f" with {words.plural(users, 'user')}" if len(want.users) > 1 else ""
        site.report.say(
            f"{turn.arm}{with_users}: {words.count(record.rate)} {units.UNITS[run.name].short},"
            f" server CPU {words.percent(record.server_cpu, 0)}{_hits(record)},"
            f" {record.failed} failed{_describe_skipped(record)}"
        )

    def find_rate(self, site: Site, turn: Turn, placed: Placed, run: Timed) -> None:
        if self._journal.has_rate(turn.arm, turn.repeat):
            return
        want = run.want
        seed = want.seed + turn.repeat + _RATE_SEED
        options = run.options(want.most_users, want.rampup_s, want.duration_s, seed)
        limits = " and ".join(want.find_rate)
        with site.report.task(f"searching for the highest rate with {limits}"):
            highest = highest_rate(site, placed, run, options, self._fastest)
        record = highest.model_copy(update={"repeat": turn.repeat})
        self._journal.add_rate(turn.arm, record)
        rate = "no rate meets it" if record.rate_per_s is None else f"{record.rate_per_s:,.1f}/s"
        site.report.say(f"{turn.arm}: {rate}")

    def queries(self, site: Site, turn: Turn, placed: Placed) -> None:
        want = site.spec.tpch
        assert want is not None
        with site.report.task(f"TPC-H, scale {want.scale:g}, 22 queries"):
            measured = run_queries(site, placed, want)
        record = measured.model_copy(update={"repeat": turn.repeat, "others_cpu": self._others})
        self._journal.add_power_run(turn.arm, record)
        more = "" if record.complete else " and more (a query did not finish)"
        site.report.say(
            f"{turn.arm}: {len(record.queries)} queries in {record.total_s:.1f} s{more},"
            f" server CPU {words.percent(record.server_cpu, 0)}{_hits(record)}"
        )

    def _prepare(
        self, site: Site, turn: Turn, placed: Placed, run: Timed, on_probe: OnProbe
    ) -> None:
        # The arm in memory has read all of it before it is handed out.
        buffers = 0 if turn.arm == "in-memory" else int(site.buffers(turn.workloads))
        with site.report.task(f"preparing the server: {run.title(run.want.most_users)}"):
            done = prepare(site, placed, run, buffers, turn.repeat, on_probe)
        self._preparation = done
        site.report.say(f"{turn.arm}: after {done.seconds:.0f} s of load {_LEVEL[done.level]}")

    def _check_probe(
        self, site: Site, turn: Turn, placed: Placed, ratio: float | None, seconds: float
    ) -> None:
        """The hit ratio of a cache must reach the asked figure, or there is no measured run."""
        want, warmed = site.spec.warmup, placed.warmed
        if warmed is None:
            return
        if turn.arm == _first_cached(site.spec):
            self._journal.add_warmup(_warmup_record(warmed, ratio, seconds, want, turn.repeat))
        site.report.say(
            f"warm-up {warmed.bytes} in {warmed.seconds:.1f} s, {warmed.mb_per_s:.1f} MB/s of the"
            f" origin's {warmed.origin_mb_per_s:.1f}; probe hit ratio {words.percent(ratio)}"
        )
        if ratio is None or ratio < want.probe_hit_ratio:
            raise ThresholdMissedError(
                f"the probe after the warm-up had a hit ratio of {words.percent(ratio)}, below"
                f" warmup.probe_hit_ratio = {words.percent(want.probe_hit_ratio)}: the cache is too"
                f" small for the database, or the warm-up method ({want.method}) did not fill it"
            )


_LEVEL = {
    True: "reads are level",
    False: "reads are not level",
    None: "it is not known whether reads are level",
}


def _first_cached(spec: Spec) -> base.ArmName:
    """The arm whose warm-ups the document tells: where policies are arms, each has its own."""
    return next(arm for arm in document.CACHED_ARMS if arm in spec.arms)


def _workloads_of(site: Site, workloads: Workloads) -> Workloads:
    """The workloads of a placement, where there is a choice of them."""
    return workloads if len(site.spec.placements) > 1 else ()


def _describe_skipped(record: windows.Repeat) -> str:
    arrived = record.arrived
    return f", {arrived.skipped:,} of {arrived.due:,} skipped" if arrived else ""


def _check(site: Site, placed: Placed) -> None:
    """:raises Violated: a consistency condition of TPC-C does not hold."""
    want = site.spec.tpcc
    if want is None or want.check != "every-arm":
        return
    numbers = checks.HAMMERDB_KEEPS if want.driver == "hammerdb" else consistency.ALL
    consistency.require(checks.check(placed.server.database("tpcc"), site.report, numbers))


def _hits(record: windows.Window) -> str:
    return f", hit ratio {words.percent(record.hit_ratio)}" if record.hit_ratio is not None else ""


def _probe(site: Site, placed: Placed) -> windows.PowerRun:
    """Where only TPC-H is placed: two of its queries, one that scans and one that joins."""
    assert site.spec.tpch is not None
    return run_queries(site, placed, site.spec.tpch, _PROBE_QUERIES)


def _warmup_record(
    warmed: Warmup, ratio: float | None, probe_s: float, want: WarmupTable, repeat: int
) -> document.WarmUpRepeat:
    return document.WarmUpRepeat(
        repeat=repeat,
        method=warmed.method,
        order=want.order,
        bytes=int(warmed.bytes),
        seconds=warmed.seconds,
        mb_per_s=warmed.mb_per_s,
        origin_mb_per_s=warmed.origin_mb_per_s,
        sampled_blocks=warmed.sampled_blocks,
        differing_blocks=warmed.differing_blocks,
        probe_hit_ratio=ratio,
        probe_hit_ratio_min=want.probe_hit_ratio,
        probe_seconds=probe_s,
    )
