"""How a workload is run on a database of yours: once, until it is steady, at the highest rate that
meets limits, with several numbers of users. What differs by workload and driver is abstract."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic

from hotset.core import words
from hotset.core.errors import RequestError
from hotset.core.progress import Reporter
from hotset.databases.connect import SqlDatabase, require_direct
from hotset.load import steady
from hotset.load.record import RunFailed, RunInterrupted
from hotset.load.search import FoundRate

from . import window
from .server.time_use import TimeSampler, readings
from .thresholds import Threshold, Values, judge
from .window import AnyOutcome, Options


class Runs(ABC, Generic[Options, AnyOutcome]):
    """A workload by a driver."""

    suite: ClassVar[str]
    """Of its thresholds in JUnit XML."""

    def __init__(self, outcome: Callable[..., AnyOutcome], report: Reporter) -> None:
        """:param outcome: what a run is kept as."""
        self._outcome = outcome
        self._report = report

    @abstractmethod
    def drive(self, database: SqlDatabase, options: Options) -> Any:  # noqa: ANN401 - a WindowResult
        """
        :raises RunFailed: it has no result, or not the whole of it.
        """

    @abstractmethod
    def limits(self, texts: Sequence[str]) -> list[Threshold]:
        """
        :raises ThresholdFormError: one cannot be read or names no metric of this workload.
        """

    @abstractmethod
    def values(self, result: Any) -> Values:  # noqa: ANN401 - of `drive`
        """What limits can name."""

    @abstractmethod
    def rate(self, result: Any) -> str:  # noqa: ANN401 - of `drive`
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
        require_direct(database)

    def check_database(self, outcome: AnyOutcome, database: SqlDatabase) -> AnyOutcome:
        """With what is to be checked on a database that nothing runs on any more; a check that
        fails, or is interrupted, leaves what was measured."""
        if outcome.cause is not None:
            return outcome
        try:
            return self.check_afterwards(outcome, database)
        except BaseException as error:
            if window.cause_of(error) is None:
                raise
            return window.ended_by(outcome, error)

    def ending(self, outcome: AnyOutcome) -> tuple[window.State, str | None]:
        """How a run ended, and why."""
        return outcome.state, outcome.cause

    def check_afterwards(self, outcome: AnyOutcome, database: SqlDatabase) -> AnyOutcome:  # noqa: ARG002
        """With what is to be checked after a complete run."""
        return outcome

    def warn(self, outcome: AnyOutcome, database: SqlDatabase) -> AnyOutcome:
        """With what makes its values doubtful, which the database tells once a run has ended."""
        if outcome.result is None:
            return outcome
        found = window.limit_of(database, outcome.result)
        return replace(outcome, warned=(*outcome.warned, *found))

    def run(self, database: SqlDatabase, options: Options) -> AnyOutcome:
        """One window; a run that fails leaves what it measured until then."""
        try:
            with TimeSampler(readings(database)) as sampler:
                result = self.drive(database, options)
        except (RunFailed, RunInterrupted) as ended:
            return self._ended(ended)
        start, seconds = result.window_start, len(result.series)
        result = window.with_reads(result, sampler.reads_each_second(start, seconds))
        return self._outcome(result, time_use=window.time_use(sampler, result))

    def _ended(self, ended: RunFailed | RunInterrupted) -> AnyOutcome:
        """:raises RunInterrupted: before there was anything to keep."""
        if isinstance(ended, RunFailed):
            return self._outcome(ended.partial, ended.cause)
        if ended.partial is None:
            raise ended
        return self._outcome(ended.partial, window.cause_of(ended))

    def run_until_steady(
        self, database: SqlDatabase, options: Options, limit_s: float
    ) -> AnyOutcome:
        """Windows one after the other until one is known to be steady or ``limit_s`` are over; the
        last counts. A window too short to tell is followed by one of twice its length."""
        deadline = time.monotonic() + limit_s
        while True:
            outcome = self.run(database, options)
            result = outcome.result
            if outcome.cause is not None or result is None or result.steady:
                return outcome
            left_s = deadline - time.monotonic()
            said = window.not_steady(result)
            if left_s < options.duration_s:
                self._report.say(f"{said}: after {limit_s:g} s the last window counts")
                return outcome
            self._report.say(f"{said}; again, for at most {left_s:.0f} s more")
            longer_s = options.duration_s * (1 if result.not_steady else 2)
            options = replace(
                options, rampup_s=0, seed=options.seed + 1, duration_s=min(longer_s, left_s // 1)
            )

    def find_rate(
        self, database: SqlDatabase, options: Options, limits: Sequence[Threshold]
    ) -> AnyOutcome:
        """Search for the highest rate of transactions at which all limits hold; one that is cut
        short leaves what it had come to."""
        missed = window.missed_limits(limits, self.values)
        kept: list[FoundRate[Any]] = []
        cause = None
        try:
            found = window.find_rate(
                lambda one: self.drive(database, one),
                options,
                missed,
                self._report,
                keep=kept.append,
            )
        except (RunFailed, RunInterrupted) as ended:
            if not kept:
                return self._ended(ended)
            cause, found = window.cause_of(ended), kept[-1]
        return self._outcome(found.highest.result if found.highest else None, cause, found=found)

    def curve(
        self, each_users: Sequence[int], options: Options, drive: Callable[[Options], AnyOutcome]
    ) -> Iterator[AnyOutcome]:
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
                outcome = self._outcome(None, f"{who}{cause}")
            yield outcome
            if outcome.result is None or outcome.cause is not None:
                return
            self._report.say(f"{words.plural(users, 'user')}: {self.rate(outcome.result)}")

    def with_verdicts(self, outcome: AnyOutcome, wanted: Sequence[Threshold]) -> AnyOutcome:
        """The outcome with a verdict on each threshold, where there is a result to judge. A run
        that failed meets none."""
        if outcome.result is None:
            return outcome
        values = self.values(outcome.result)
        known = dict.fromkeys(values) if outcome.cause is not None else values
        return replace(outcome, verdicts=tuple(judge(wanted, known)))
