"""How a workload is run on a database of yours: once, until it is steady, at the highest rate that
meets limits, with several numbers of users. What differs by workload and driver is abstract."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar, Generic

from hotset.core import words
from hotset.core.errors import RequestError
from hotset.core.progress import Reporter
from hotset.databases.product import SqlDatabase
from hotset.load import steady
from hotset.load.record import RunFailed, RunInterrupted
from hotset.load.run import Observer
from hotset.load.search import FoundRate, Limits
from hotset.reports.model.windows import Repeat

from . import window
from .live import following
from .server.time_use import sample
from .thresholds import Threshold, Values, judge
from .window import Options, Outcome


class Runs(ABC, Generic[Options]):
    """A workload by a driver."""

    suite: ClassVar[str]
    """Name of its thresholds' suite in JUnit XML."""

    def __init__(self, report: Reporter) -> None:
        self._report = report

    @abstractmethod
    def title(self, options: Options) -> str:
        """Describe the run, for people."""

    @abstractmethod
    def drive(
        self, database: SqlDatabase, options: Options, observe: Observer = lambda _: None
    ) -> Repeat:
        """Run it and measure a window.

        :param observe: is told of each second, where the driver tells of them. What it raises ends
            the run.
        :raises RunFailed: it has no result, or not the whole of it.
        """

    def follow(self, database: SqlDatabase, options: Options) -> Repeat:
        """Drive the run, and show it as it happens."""
        with following(self._report, options, self.title(options)) as observe:
            return self.drive(database, options, observe)

    @abstractmethod
    def limits(self, texts: Sequence[str]) -> list[Threshold]:
        """
        :raises ThresholdFormError: one cannot be read or names no metric of this workload.
        """

    @abstractmethod
    def values(self, result: Repeat) -> Values:
        """Return the values that thresholds can refer to."""

    @abstractmethod
    def rate(self, result: Repeat) -> str:
        """Its throughput, for people."""

    def require_options(self, options: Options, *, until_steady: bool, find_rate: bool) -> None:
        """See that it can be run so, which is known before anything connects.

        :raises RequestError: the driver has no such run; a window is too short to be judged; a
            search has a rate already.
        """
        if until_steady and options.duration_s < steady.LEAST_S:
            raise RequestError(
                f"duration {options.duration_s:g} s: whether a window is steady shows from"
                f" {steady.LEAST_S:g} s on",
                field="duration",
            )
        if find_rate and options.rate_per_s is not None:
            raise RequestError("a search sets the rate itself: leave the rate out", field="rate")

    def check(self, database: SqlDatabase) -> None:
        """See that it can be run: on the server itself.

        :raises PrerequisiteError: it cannot.
        """
        database.require_direct()

    def check_database(self, outcome: Outcome, database: SqlDatabase) -> Outcome:
        """With what is to be checked on a database that nothing runs on any more; a check that
        fails, or is interrupted, leaves what was measured."""
        if outcome.cause is not None:
            return outcome
        try:
            return self.check_afterwards(outcome, database)
        except BaseException as error:
            if window.cause_of(error) is None:
                raise
            return window.end_with(outcome, error)

    def ending(self, outcome: Outcome) -> tuple[window.State, str | None]:
        """How a run ended, and why."""
        return outcome.state, outcome.cause

    def check_afterwards(self, outcome: Outcome, database: SqlDatabase) -> Outcome:  # noqa: ARG002
        """With what is to be checked after a complete run."""
        return outcome

    def warn(self, outcome: Outcome, database: SqlDatabase) -> Outcome:
        """With what makes its values doubtful, which the database tells once a run has ended."""
        if outcome.result is None:
            return outcome
        return window.warn(outcome, *window.limit_of(database, outcome.result))

    def run(self, database: SqlDatabase, options: Options) -> Outcome:
        """One window; a run that fails leaves what it measured until then."""
        try:
            with sample(database) as sampler:
                result = self.follow(database, options)
        except (RunFailed, RunInterrupted) as ended:
            return self._end(ended)
        reads = sampler.reads_each_second(result.span[0], len(result.series))
        return Outcome(window.add_time(window.with_reads(result, reads), sampler))

    def _end(self, ended: RunFailed | RunInterrupted) -> Outcome:
        """:raises RunInterrupted: before there was anything to keep."""
        if isinstance(ended, RunFailed):
            return Outcome(ended.partial, ended.cause)
        if ended.partial is None:
            raise ended
        return Outcome(ended.partial, window.cause_of(ended))

    def run_until_steady(self, database: SqlDatabase, options: Options, limit_s: float) -> Outcome:
        """Windows one after the other until one is known to be steady or ``limit_s`` are over; the
        last counts. A window too short to tell is followed by one of twice its length."""
        deadline = time.monotonic() + limit_s
        while True:
            outcome = self.run(database, options)
            result = outcome.result
            if outcome.cause is not None or result is None or result.steady:
                return outcome
            left_s = deadline - time.monotonic()
            reason = window.not_steady(result)
            if left_s < options.duration_s:
                self._report.say(f"{reason}: after {limit_s:g} s the last window counts")
                return outcome
            self._report.say(f"{reason}; again, for at most {left_s:.0f} s more")
            longer_s = options.duration_s * (1 if result.not_steady else 2)
            options = replace(
                options, rampup_s=0, seed=options.seed + 1, duration_s=min(longer_s, left_s // 1)
            )

    def find_rate(self, database: SqlDatabase, options: Options, texts: Sequence[str]) -> Outcome:
        """Search for the highest rate of transactions at which all limits hold; one that is cut
        short leaves its result until then."""
        missed = window.judge_limits(self.limits(texts), self.values)
        kept: list[FoundRate] = []
        cause = None
        try:
            rate = window.find_rate(
                lambda options: self.follow(database, options),
                options,
                Limits(tuple(texts), missed),
                self._report,
                keep=kept.append,
            )
        except (RunFailed, RunInterrupted) as ended:
            if not kept:
                return self._end(ended)
            cause, rate = window.cause_of(ended), kept[-1]
        return Outcome(rate.window, cause, rate=rate.record)

    def curve(
        self, each_users: Sequence[int], options: Options, drive: Callable[[Options], Outcome]
    ) -> Iterator[Outcome]:
        """A run for each number of users; one that fails is the last.

        :param drive: runs one.
        """
        for number, users in enumerate(each_users):
            # A seed of its own: the same rows again would be in memory.
            try:
                outcome = drive(replace(options, users=users, seed=options.seed + number))
            except BaseException as error:
                # What was measured before is a result all the same.
                cause = window.cause_of(error)
                if not number or cause is None:
                    raise
                who = (
                    "" if window.was_interrupted(cause) else f"with {words.plural(users, 'user')}: "
                )
                outcome = Outcome(None, f"{who}{cause}")
            yield outcome
            if outcome.result is None or outcome.cause is not None:
                return
            self._report.say(f"{words.plural(users, 'user')}: {self.rate(outcome.result)}")

    def with_verdicts(self, outcome: Outcome, wanted: Sequence[Threshold]) -> Outcome:
        """The outcome with a verdict on each threshold, where there is a result to judge. A run
        that failed meets none."""
        if outcome.result is None:
            return outcome
        values = self.values(outcome.result)
        known = dict.fromkeys(values) if outcome.cause is not None else values
        return replace(outcome, verdicts=tuple(judge(wanted, known)))
