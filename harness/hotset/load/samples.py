"""From single transactions to figures: what users record, and what the parent makes of it.

Users count each transaction in the second in which it ended, and its latency, in an HDR histogram
per kind, in the second in which it began (was sent, or due): what ends after the window is no part
of the throughput, but its latency is told, or the slowest would be left out, and of what does not
end at all its age. Seconds count from the window's opening, so those of the ramp-up are negative;
what begins after the window counts nowhere. A second of a process takes a few kilobytes, however
much its users do.
"""

import math
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from hotset.core.sql import LASTING
from hotset.reports.model.windows import (
    Arrived,
    Latency,
    Repeat,
    Second,
    Steadiness,
    Transaction,
    Unfinished,
)

from . import arrivals, served, steady
from .latency import Latencies
from .record import PhaseName, Tick, WindowOptions

NEW_ORDER = "new_order"
"""TPC-C counts these apart."""
Outcome = Literal["rolled back", "retry", "failed", "unfinished"]
_NO_LATENCY = Latency()
_EDGE_S = 0.01
"""A window that ends so much earlier than it should is whole."""


@dataclass(frozen=True, slots=True)
class Tally:
    """One second of one process's users.

    second      from the window's opening
    histograms  latencies of the commits that began in it, by number of kind, as
                `Latencies.encoded`
    committed   commits that ended in it, by number of kind
    outcomes    number of kind, outcome, cause, the server's words and count of everything but
                commits
    due         transactions that were due in this second, where they have times of their own
    late        of these, how many started late
    skipped     of these, how many were given up without a start
    """

    second: int
    histograms: tuple[str | None, ...]
    committed: tuple[int, ...]
    outcomes: tuple[tuple[int, Outcome, str, str, int], ...] = ()
    due: int = 0
    late: int = 0
    skipped: int = 0

    @property
    def has_success(self) -> bool:
        """Anything got through: committed, or rolled back as meant."""
        return any(self.committed) or any(outcome[1] == "rolled back" for outcome in self.outcomes)


@dataclass(slots=True)
class _Second:
    """A second under way."""

    latencies: "defaultdict[int, Latencies]" = field(default_factory=lambda: defaultdict(Latencies))
    committed: "Counter[int]" = field(default_factory=Counter)
    outcomes: "Counter[tuple[int, Outcome, str]]" = field(default_factory=Counter)
    messages: dict[tuple[int, Outcome, str], str] = field(default_factory=dict)
    due: int = 0
    late: int = 0
    skipped: int = 0

    def tally(self, second: int, kinds: int) -> Tally:
        encoded = {kind: latencies.encode() for kind, latencies in self.latencies.items()}
        return Tally(
            second,
            tuple(encoded.get(kind) for kind in range(kinds)),
            tuple(self.committed[kind] for kind in range(kinds)),
            tuple(
                (*key, self.messages.get(key, ""), count) for key, count in self.outcomes.items()
            ),
            self.due,
            self.late,
            self.skipped,
        )


class Recorder:
    """Records of one process's users since the last collection; any thread may record."""

    def __init__(self, kinds: int) -> None:
        """:param kinds: of transactions, which go by their numbers from 0."""
        self._kinds = kinds
        self._lock = threading.Lock()
        self._opens, self._closes = 0.0, math.inf
        self._seconds = defaultdict[int, _Second](_Second)

    def begin(self, opens: float, closes: float) -> None:
        """Say when the window opens and closes, in monotonic seconds."""
        self._opens, self._closes = opens, closes

    def commit(self, kind: int, since: float, end: float) -> None:
        """Record a committed transaction that was sent, or due, at `since`."""
        with self._lock:
            if second := self._second(since):
                second.latencies[kind].record(end - since)
            if second := self._second(end):
                second.committed[kind] += 1

    def event(
        self, kind: int, at: float, outcome: Outcome, cause: str = "", message: str = ""
    ) -> None:
        """Record a rollback or a retry."""
        key = kind, outcome, cause
        with self._lock:
            if second := self._second(at):
                second.outcomes[key] += 1
                if message:
                    second.messages.setdefault(key, message)

    def record_unfinished(self, kind: int, since: float, now: float) -> None:
        """Record a transaction that is still under way when the users are sent home: its latency
        is at least its age. One of the ramp-up was under way from the window's first second on."""
        self.event(kind, since, "unfinished")
        with self._lock:
            if second := self._second(max(since, self._opens)):
                second.latencies[kind].record(now - since)

    def record_failure(self, kind: int, since: float, end: float, cause: str, message: str) -> None:
        """Record a transaction that was given up, in the server's words. After the window it counts
        in the second in which it began."""
        self.event(kind, end if end < self._closes else since, "failed", cause, message)

    def record_start(self, due: float, late: bool) -> None:
        """Record that a transaction was due and starts."""
        with self._lock:
            if second := self._second(due):
                second.due += 1
                second.late += late

    def record_skip(self, due: float) -> None:
        """Record that a transaction was due and is given up, since no user was free for it."""
        with self._lock:
            if second := self._second(due):
                second.due += 1
                second.skipped += 1

    def _second(self, at: float) -> _Second | None:
        if at >= self._closes:
            return None
        return self._seconds[math.floor(at - self._opens)]

    def collect(self) -> list[Tally]:
        """Take away what there is."""
        with self._lock:
            seconds, self._seconds = self._seconds, defaultdict(_Second)
        return [seconds[number].tally(number, self._kinds) for number in sorted(seconds)]


class RunLog:
    """All tallies of a run, in the parent. Times are monotonic seconds."""

    def __init__(
        self,
        options: WindowOptions,
        kinds: Sequence[str],
        start: float,
        epoch: float,
    ) -> None:
        """`kinds` are the names of the transactions; `start` is when ramp-up begins; `epoch` is the
        wall clock's zero on that scale."""
        self._options = options
        self._kinds = kinds
        self._new_order = kinds.index(NEW_ORDER) if NEW_ORDER in kinds else None
        self._start = start
        self._epoch = epoch
        self._tallies: dict[int, list[Tally]] = defaultdict(list)
        self._uncounted: list[Tally] = []
        """Tallies since the last tick."""
        self._last_failure: tuple[int, str] | None = None
        self._failures: Counter[str] = Counter()
        self._messages: dict[tuple[int, str], str] = {}
        self.lasting: str | None = None
        """A state of the server that does not pass, in its own words."""

    @property
    def window(self) -> tuple[float, float]:
        """When the window opens and closes."""
        opens = self._start + self._options.rampup_s
        return opens, opens + self._options.duration_s

    def add(self, tallies: Iterable[Tally]) -> bool:
        """Keep what came; True if anything in it got through (committed, or rolled back as
        meant)."""
        success = False
        for tally in tallies:
            self._tallies[tally.second].append(tally)
            self._uncounted.append(tally)
            success |= tally.has_success
            for kind, outcome, cause, message, count in tally.outcomes:
                if outcome != "failed":
                    continue
                if message:
                    self._messages.setdefault((kind, cause), message)
                failure = _describe(cause, message)
                if cause in LASTING:
                    self.lasting = failure
                self._failures[failure] += count
                if tally.second >= (self._last_failure or (-math.inf,))[0]:
                    self._last_failure = tally.second, failure
        return success

    def last_failure(self) -> str | None:
        """The cause of the latest failed transaction."""
        return self._last_failure[1] if self._last_failure else None

    @property
    def failures(self) -> "Counter[str]":
        """How many transactions have failed by now, ramp-up included, by cause."""
        return self._failures

    def ended_kinds(self) -> list[str]:
        """Kinds of which none got through any more, in words."""
        whole = range(math.floor(self._options.duration_s))
        each = [self._tallies.get(second, ()) for second in whole]
        endings = (
            served.ended(
                name, [sum(tally.committed[kind] for tally in tallies) for tallies in each]
            )
            for kind, name in enumerate(self._kinds)
        )
        return [ending for ending in endings if ending]

    def tick(self, second: int) -> Tick:
        """The figures of one second from the window's opening, and with them of earlier ones what a
        busy computer has reported since the tick before."""
        rampup_seconds = math.ceil(self._options.rampup_s)
        phase: PhaseName = "measure" if second >= 0 else "rampup"
        tallies = [tally for tally in self._uncounted if tally.second <= second]
        self._uncounted = [tally for tally in self._uncounted if tally.second > second]
        figures = _Figures(
            self._kinds, [each for each in tallies if (each.second < 0) == (second < 0)]
        )
        latency_ms = figures.latency() or _NO_LATENCY
        return Tick(
            second + rampup_seconds,
            phase,
            self._new_orders(figures),
            figures.count(),
            figures.total("failed"),
            latency_ms.mean,
            latency_ms.p95,
            latency_ms.p50,
            latency_ms.p99,
        )

    def _new_orders(self, figures: "_Figures") -> int | None:
        return None if self._new_order is None else figures.count(self._new_order)

    def result(self, until: float = math.inf) -> Repeat:
        """Figures of the window, or of its part before `until`."""
        opens, ends = self.window
        closes = min(ends, until)
        seconds = range(max(0, math.ceil(closes - opens)))
        each = [_Figures(self._kinds, self._tallies.get(second, ())) for second in seconds]
        whole = _Figures(self._kinds)
        for figures in each:
            whole.add(figures)
        minutes = (closes - opens) / 60
        new_orders = self._new_orders(whole)
        return Repeat(
            users=self._options.users,
            rampup_s=self._options.rampup_s,
            seed=self._options.seed,
            opened_at=datetime.fromtimestamp(self._epoch + opens, UTC),
            duration_s=closes - opens,
            partial=closes < ends - _EDGE_S,
            nopm=None if new_orders is None else new_orders / minutes,
            tpm=whole.count() / minutes,
            transactions={
                name: whole.transaction(kind, self._messages)
                for kind, name in enumerate(self._kinds)
            },
            latency_ms=whole.latency(),
            failed=whole.total("failed"),
            retries=whole.total("retry"),
            series=tuple(
                figures.second(number, self._new_orders(figures))
                for number, figures in zip(seconds, each, strict=True)
            ),
            arrived=self._arrivals(whole, each, closes - opens),
            unfinished=self._count_unfinished(closes),
            steadiness=_steadiness(self._kinds, each) if closes - opens >= steady.LEAST_S else (),
        )

    def _arrivals(
        self, whole: "_Figures", each: "list[_Figures]", length_s: float
    ) -> Arrived | None:
        rate_per_s = self._options.rate_per_s
        if rate_per_s is None:
            return None
        edges = [*map(float, range(len(each))), length_s]
        due, done = [figures.due for figures in each], [figures.done for figures in each]
        return whole.count_arrivals(rate_per_s, arrivals.growth(edges, due, done))

    def _count_unfinished(self, closes: float) -> Unfinished | None:
        """Count transactions under way when the users were stopped, the ramp-up's too."""
        counts = {
            second: sum(
                count
                for tally in tallies
                for *key, count in tally.outcomes
                if key[1] == "unfinished"
            )
            for second, tallies in self._tallies.items()
        }
        stuck = [second for second, count in counts.items() if count]
        if not stuck:
            return None
        opens, _ = self.window
        return Unfinished(count=sum(counts.values()), oldest_s=closes - opens - min(stuck))


def _describe(cause: str, message: str) -> str:
    """
    >>> _describe("error 42501", "permission denied for table stock"), _describe("deadlock", "")
    ('error 42501: permission denied for table stock', 'deadlock')
    """
    return f"{cause}: {message}" if message else cause


def _steadiness(kinds: Sequence[str], seconds: "list[_Figures]") -> tuple[Steadiness, ...]:
    """Judge the throughput, and each kind that occurs in every round; whole seconds only."""
    verdicts = [steady.judge_rate([figures.count() for figures in seconds])]
    for kind, name in enumerate(kinds):
        each = [figures.latencies(kind) for figures in seconds]
        rounds = [Latencies.total(each[span.start : span.stop]) for span in steady.spans(len(each))]
        if all(len(latencies) for latencies in rounds):
            alone = [error / mean for mean, error in map(Latencies.mean_ms, rounds)]
            verdicts.append(
                steady.judge_latency(name, [latencies.sum_ms() for latencies in each], alone)
            )
    return tuple(verdicts)


class _Figures:
    """The sum of some tallies."""

    def __init__(self, kinds: Sequence[str], tallies: Iterable[Tally] = ()) -> None:
        self._latencies = [Latencies() for _ in kinds]
        self._committed = [0 for _ in kinds]
        self._outcomes: Counter[tuple[int, Outcome, str]] = Counter()
        self.due = self._late = self._skipped = 0
        for tally in tallies:
            for latencies, text in zip(self._latencies, tally.histograms, strict=True):
                if text is not None:
                    latencies.add(Latencies(text))
            self._count(tally.committed)
            for kind, outcome, cause, _, count in tally.outcomes:
                self._outcomes[kind, outcome, cause] += count
            self.due += tally.due
            self._late += tally.late
            self._skipped += tally.skipped

    def add(self, other: "_Figures") -> None:
        for latencies, more in zip(self._latencies, other._latencies, strict=True):
            latencies.add(more)
        self._count(other._committed)
        self._outcomes += other._outcomes
        self.due += other.due
        self._late += other._late
        self._skipped += other._skipped

    def _count(self, committed: Sequence[int]) -> None:
        for kind, count in enumerate(committed):
            self._committed[kind] += count

    def count(self, kind: int | None = None) -> int:
        """Commits, of one kind or all."""
        return sum(self._committed) if kind is None else self._committed[kind]

    @property
    def done(self) -> int:
        """Transactions that ended, however."""
        return self.count() + self.total("rolled back") + self.total("failed")

    def latency(self) -> Latency | None:
        """Return the latency over all kinds."""
        whole = Latencies()
        for latency in self._latencies:
            whole.add(latency)
        return whole.latency()

    def total(self, outcome: Outcome) -> int:
        return sum(count for key, count in self._outcomes.items() if key[1] == outcome)

    def causes(self, kind: int, outcome: Outcome) -> dict[str, int]:
        outcomes = self._outcomes.items()
        return {key[2]: count for key, count in outcomes if key[:2] == (kind, outcome)}

    def latencies(self, kind: int) -> Latencies:
        return self._latencies[kind]

    def count_arrivals(self, rate_per_s: float, growth: float) -> Arrived:
        return Arrived(
            rate_per_s=rate_per_s,
            due=self.due,
            late=self._late,
            skipped=self._skipped,
            growth=growth,
        )

    def transaction(self, kind: int, messages: Mapping[tuple[int, str], str]) -> Transaction:
        failed, retries = self.causes(kind, "failed"), self.causes(kind, "retry")
        return Transaction(
            committed=self.count(kind),
            rolled_back=sum(self.causes(kind, "rolled back").values()),
            retries=sum(retries.values()),
            retry_causes=retries,
            failed={
                _describe(cause, messages.get((kind, cause), "")): count
                for cause, count in failed.items()
            },
            latency_ms=self._latencies[kind].latency(),
            unfinished=sum(self.causes(kind, "unfinished").values()),
        )

    def second(self, number: int, new_orders: int | None) -> Second:
        latency_ms = self.latency() or _NO_LATENCY
        return Second(
            second=number,
            nopm=None if new_orders is None else new_orders * 60,
            tpm=self.count() * 60,
            failed=self.total("failed"),
            late=self._late,
            skipped=self._skipped,
            latency_ms_mean=latency_ms.mean,
            latency_ms_p50=latency_ms.p50,
            latency_ms_p95=latency_ms.p95,
            latency_ms_p99=latency_ms.p99,
        )
