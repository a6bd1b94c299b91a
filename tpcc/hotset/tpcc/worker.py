"""A worker process: some of a run's users, a thread and a connection each.

For workloads and engines that the compiled driver (`native`) does not run, which call through a
Python client library. Threads are enough here because such a library waits for its server without
the interpreter's lock; processes are needed because the rest of a transaction does not, and one
core of Python would bound the run.
"""

import math
import threading
import time
import traceback
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import connection
from random import Random
from typing import Any

from .data.nurand import stream
from .database import Aborted, IntendedRollback, ServerGone
from .processes import Channel
from .window.arrivals import LATE_S, Arrivals
from .window.record import WindowOptions
from .window.samples import Outcome, Recorder, Tally
from .workload import User, UserFailed, Workload

RETRIES = 10
"""Repetitions of a transaction the server aborted before it counts as failed."""
BACKOFF_S = 0.002
"""The longest pause before the first repetition; the second's is twice that, and so on."""
FAILURE_PAUSE_S = 0.05
"""The pause after a failed transaction: a server that refuses everything gets no flood."""
REPORT_GRACE_S = 0.02
"""After a whole second, when to report it: its last samples are in by then."""
DRAIN_S = 10.0
"""How long transactions under way at the end may take to finish."""


@dataclass(frozen=True, slots=True)
class Ready:
    """To the parent: all users are connected."""


@dataclass(frozen=True, slots=True)
class Begin:
    """From the parent, in monotonic seconds: when to start, when the window opens, and when to
    stop starting transactions."""

    start: float
    opens: float
    end: float


@dataclass(frozen=True, slots=True)
class Samples:
    """To the parent, every second: what all users of this process did."""

    tallies: list[Tally]


@dataclass(frozen=True, slots=True)
class Gone:
    """To the parent: the run is over, because of this."""

    cause: str


@dataclass(frozen=True, slots=True)
class Finished:
    """To the parent: the window is over and so are this process's users; nothing follows."""


class _Gate:
    """What the users of a process wait for, and until when they work."""

    def __init__(self, users: int) -> None:
        self.begun = threading.Event()
        self.start = self.end = 0.0
        self._missing = threading.Semaphore(0)
        self._users = users

    def connected(self) -> None:
        """One more user has a connection."""
        self._missing.release()

    def wait_for_users(self) -> None:
        """Until all users are connected."""
        for _ in range(self._users):
            self._missing.acquire()

    def begin(self, start: float, end: float) -> None:
        """Let the users go."""
        self.start, self.end = start, end
        self.begun.set()


def run_worker(pipe: "connection.Connection[Any, Any]", workload: Workload, users: range) -> None:
    """The process's main thread: connect, wait for the start, report every second."""
    channel = Channel(pipe)
    gate = _Gate(len(users))
    recorder = Recorder(len(workload.kinds))
    arrivals = _arrivals(workload.options, users)
    threads = [
        threading.Thread(
            target=_user,
            args=(channel, gate, workload, user, recorder, arrivals),
            name=f"user-{user}",
            daemon=True,
        )
        for user in users
    ]
    for thread in threads:
        thread.start()
    gate.wait_for_users()
    channel.send(Ready())
    begin = channel.receive()
    assert isinstance(begin, Begin)
    recorder.begin(begin.opens, begin.end)
    if arrivals is not None:
        arrivals.begin(begin.start, begin.end)
    gate.begin(begin.start, begin.end)
    for boundary in _boundaries(begin):
        time.sleep(max(0.0, boundary - time.monotonic()))
        channel.send(Samples(recorder.collect()))
    deadline = time.monotonic() + DRAIN_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if arrivals is not None:  # users who are still stuck leave arrivals that nobody took
        arrivals.take(time.monotonic(), recorder.skipped)
    channel.send(Samples(recorder.collect()))
    channel.send(Finished())
    channel.receive()  # stay until the parent has read everything and lets go


def _arrivals(options: WindowOptions, users: range) -> Arrivals | None:
    """When transactions are due for these users; None when as soon as a user is free."""
    if options.rate_per_s is None:
        return None
    share = len(users) / options.users
    return Arrivals(options.seed, users.start, options.rate_per_s * share)


def _boundaries(begin: Begin) -> list[float]:
    """When to report: after each whole second of the window and the ramp-up, and after the end, by
    a grace for the last sample."""
    first = -math.ceil(begin.opens - begin.start)
    seconds = range(first + 1, int(begin.end - begin.opens) + 1)
    ends = [*(begin.opens + second for second in seconds), begin.end]
    return [at + REPORT_GRACE_S for at in ends]


def _user(
    channel: Channel,
    gate: _Gate,
    workload: Workload,
    number: int,
    recorder: Recorder,
    arrivals: Arrivals | None,
) -> None:
    """A user's thread. Whatever goes wrong ends the run, with the reason."""
    try:
        with closing(workload.user(number)) as user:
            gate.connected()
            gate.begun.wait()
            time.sleep(max(0.0, gate.start - time.monotonic()))
            if arrivals is not None:
                _serve(user, recorder, arrivals)
            else:
                _work(user, recorder, gate)
    except ServerGone as gone:
        channel.send(Gone(gone.cause))
    except UserFailed as failed:
        channel.send(Gone(str(failed)))
    except Exception:
        channel.send(Gone(f"internal error of user {number}:\n{traceback.format_exc()}"))


def _work(user: User, recorder: Recorder, gate: _Gate) -> None:
    """Transaction after transaction, with the user's own pauses, until the window closes."""
    backoff = stream(0, threading.current_thread().name)
    pause_s = user.first_pause_s
    while True:
        step = user.next()
        pause_s += step.before_s
        if time.monotonic() + pause_s >= gate.end:
            return
        if pause_s > 0:
            time.sleep(pause_s)
        _transact(user, step.kind, recorder, backoff, time.monotonic())
        pause_s = step.after_s


def _serve(user: User, recorder: Recorder, arrivals: Arrivals) -> None:
    """Transactions when they are due, until the window closes."""
    backoff = stream(0, threading.current_thread().name)
    while (due := arrivals.take(time.monotonic(), recorder.skipped)) is not None:
        step = user.next()
        time.sleep(max(0.0, due - time.monotonic()))
        recorder.started(due, late=time.monotonic() - due > LATE_S)
        _transact(user, step.kind, recorder, backoff, due)


def _transact(user: User, kind: int, recorder: Recorder, backoff: Random, since: float) -> None:
    """One transaction, repeated while the server aborts it for reasons that pass.

    Its latency counts from `since`.
    """
    for attempt in range(RETRIES + 1):
        try:
            user.perform()
        except IntendedRollback:
            recorder.event(kind, time.monotonic(), "rolled back")
            return
        except Aborted as aborted:
            again = aborted.retryable and attempt < RETRIES
            outcome: Outcome = "retry" if again else "failed"
            recorder.event(kind, time.monotonic(), outcome, aborted.cause)
            if not again:
                time.sleep(FAILURE_PAUSE_S)
                return
            time.sleep(backoff.random() * BACKOFF_S * (attempt + 1))
        else:
            now = time.monotonic()
            recorder.commit(kind, now, now - since)
            return
