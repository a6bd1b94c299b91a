"""A timed run of a workload: users in processes of their own, one window, one result or one reason
why not."""

import math
import os
import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeAlias

from hotset.reports.model.windows import Repeat

from .processes import PythonCrew, WorkerDied
from .record import (
    NotServed,
    Phase,
    PhaseName,
    RunFailed,
    RunInterrupted,
    Tick,
)
from .samples import RunLog
from .served import shortfall
from .worker import Begin, Finished, Gone, Ready, Samples, run_worker
from .workload import Workload

_LEAD_S = 0.1
"""Time for the start signal to reach all workers before the start it names."""
_CONNECT_S = 60.0
"""Time for processes to start and all users to connect."""
_TICK_GRACE_S = 0.25
"""Samples of a second arrive a little after it."""

Observer: TypeAlias = Callable[[Tick | Phase], None]


class Crew(Protocol):
    """The users of a run, in workers of whatever kind. Messages are those of `worker`."""

    def __len__(self) -> int:
        """How many workers."""

    def tell(self, message: object) -> None:
        """Send a message to all of them."""

    def dismiss(self, worker: int, /) -> None:
        """Expect nothing more of one that said it is done."""

    def listen(self, timeout_s: float) -> Iterator[tuple[int, object]]:
        """Messages there are, as (worker, message), after waiting at most so long for one.

        Raises WorkerDied.
        """


def run_workload(workload: Workload, observe: Observer = lambda _: None) -> Repeat:
    """Run a workload and measure a window, its users in Python; errors as of `follow`."""
    with python_crew(workload) as crew:
        return follow(crew, workload, observe)


def follow(
    crew: Crew,
    workload: Workload,
    observe: Observer,
    at_edge: Callable[[], None] = lambda: None,
) -> Repeat:
    """The window of a crew's run.

    `observe` is called from this thread: with a Phase exactly as it begins, with a Tick every
    second. `at_edge` is called as the window opens and as it closes.

    Raises RunFailed if the server goes away, or into a state that does not pass (`sql.LASTING`),
    nothing commits for `options.stall_s`, or a worker dies; NotServed if the server did not do what
    was due (`served.shortfall`); RunInterrupted, a KeyboardInterrupt, on Ctrl-C.
    """
    return _Run(workload, observe, crew, at_edge).follow()


def python_crew(workload: Workload) -> PythonCrew:
    """A process for each core, which share the users."""
    users = workload.options.users
    size = min(os.cpu_count() or 1, users)
    shares = [range(first, users, size) for first in range(size)]
    return PythonCrew(run_worker, [(workload, share) for share in shares])


class _Run:
    """The parent's side of a run under way."""

    def __init__(
        self,
        workload: Workload,
        observe: Observer,
        crew: Crew,
        at_edge: Callable[[], None],
    ) -> None:
        self._options = workload.options
        self._kinds = workload.kinds
        self._observe = observe
        self._crew = crew
        self._at_edge = at_edge
        self._log: RunLog | None = None
        self._ready = self._finished = 0
        self._patience_s = _CONNECT_S
        self._last_success = time.monotonic()

    def follow(self) -> Repeat:
        """From the first connection to the result."""
        try:
            return self._follow()
        except KeyboardInterrupt:
            raise RunInterrupted(self._partial()) from None

    def _follow(self) -> Repeat:
        self._listen_while(lambda: self._ready < len(self._crew))
        self._patience_s = self._options.stall_s
        start = self._last_success = time.monotonic() + _LEAD_S
        log = self._log = RunLog(self._options, self._kinds, start, time.time() - time.monotonic())
        opens, closes = log.window
        self._crew.tell(Begin(start, opens, closes))
        for at, event in _timetable(start, opens, closes):
            self._listen_while(_before(at))
            if isinstance(event, int):
                self._observe(log.tick(event))
                continue
            if event != "rampup":
                self._at_edge()
            self._observe(Phase(event))
        self._last_success = time.monotonic()  # nothing new commits from here on
        self._listen_while(lambda: self._finished < len(self._crew))
        result = log.result()
        if cause := shortfall(result, log.ended_kinds()):
            raise NotServed(cause, result)
        return result

    def _listen_while(self, condition: Callable[[], float]) -> None:
        """Take in what workers send while `condition` holds (as a number: for so many seconds)."""
        while (left_s := condition()) > 0:
            try:
                for worker, message in self._crew.listen(min(left_s, 1.0)):
                    self._take(worker, message)
            except WorkerDied as death:
                raise self._failure(str(death)) from None
            if time.monotonic() - self._last_success > self._patience_s:
                raise self._stall_error()

    def _take(self, worker: int, message: object) -> None:
        match message:
            case Samples(tallies):
                assert self._log is not None
                if self._log.add(tallies):
                    self._last_success = time.monotonic()
                self._require_few_errors(self._log)
                if self._log.lasting is not None:
                    raise self._failure(f"the server cannot go on: {self._log.lasting}")
            case Ready():
                self._ready += 1
            case Finished():
                self._finished += 1
                self._crew.dismiss(worker)
            case Gone(cause):
                raise self._failure(cause)
            case _:
                raise AssertionError(f"unknown message {message!r}")

    def _require_few_errors(self, log: RunLog) -> None:
        most, failed = self._options.max_errors, log.failures.total()
        if most is not None and failed > most:
            causes = "; ".join(
                f"{cause} ({count:,})" for cause, count in log.failures.most_common(3)
            )
            raise self._failure(
                f"{failed:,} transactions failed, more than the {most:,} allowed: {causes}"
            )

    def _stall_error(self) -> RunFailed:
        if self._ready < len(self._crew):
            return self._failure(f"users not connected after {_CONNECT_S:g} s")
        last = self._log.last_failure() if self._log else None
        reason = f"; the last failure was: {last}" if last else ""
        return self._failure(f"no transaction completed for {self._options.stall_s:g} s{reason}")

    def _failure(self, cause: str) -> RunFailed:
        return RunFailed(cause, self._partial())

    def _partial(self) -> Repeat | None:
        """Return the result of the window so far; None if it has not opened."""
        now = time.monotonic()
        if self._log is None or now <= self._log.window[0]:
            return None
        return self._log.result(until=now)


def _before(at: float) -> Callable[[], float]:
    """Seconds left until a monotonic time."""
    return lambda: at - time.monotonic()


def _timetable(start: float, opens: float, closes: float) -> list[tuple[float, PhaseName | int]]:
    """When the observer is called with what: phases by name, ticks by their second from the
    window's opening."""
    phases: list[tuple[float, PhaseName | int]] = [
        (start, "rampup"),
        (opens, "measure"),
        (closes, "done"),
    ]
    seconds = range(-math.ceil(opens - start), int(closes - opens))
    ticks: list[tuple[float, PhaseName | int]] = [
        (opens + second + 1 + _TICK_GRACE_S, second) for second in seconds
    ]
    return sorted(phases + ticks, key=lambda entry: entry[0])
