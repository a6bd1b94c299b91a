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
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import connection
from random import Random
from typing import Any, TypeAlias

from hotset.core.sql import Aborted, IntendedRollback, ServerGone

from .arrivals import LATE_S, Arrivals
from .processes import Channel
from .record import DRAIN_S, WindowOptions
from .samples import Recorder, Tally
from .streams import stream
from .workload import User, UserFailed, Workload

RETRIES = 10
"""Repetitions of a transaction the server aborted before it counts as failed."""
BACKOFF_S = 0.002
"""The longest pause before the first repetition; the second's is twice that, and so on."""
FAILURE_PAUSE_S = 0.05
"""The pause after a failed transaction: a server that refuses everything gets no flood."""
REPORT_GRACE_S = 0.02
"""After a whole second, when to report it: its last samples are in by then."""


Transact: TypeAlias = Callable[[int, float], None]
"""Does a transaction of this kind, whose latency counts from then."""


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
    """The start of work for the users of a process, and its end."""

    def __init__(self, users: int) -> None:
        self.begun = threading.Event()
        self.start = self.end = 0.0
        self._missing = threading.Semaphore(0)
        self._users = users

    def count_connection(self) -> None:
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
    under_way: dict[int, tuple[int, float]] = {}
    threads = [
        threading.Thread(
            target=_user,
            args=(channel, gate, workload, user, recorder, arrivals, under_way),
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
    patience_s = 0.0 if arrivals is None else workload.options.patience_s
    _drain(channel, recorder, threads, DRAIN_S + patience_s)
    now = time.monotonic()
    for kind, since in list(under_way.values()):
        recorder.record_unfinished(kind, since, now)
    if arrivals is not None:  # stuck users leave arrivals, all of which have waited too long
        arrivals.take(now, recorder.record_skip)
    channel.send(Samples(recorder.collect()))
    channel.send(Finished())
    channel.receive()  # stay until the parent has read everything and lets go


def _drain(
    channel: Channel, recorder: Recorder, threads: list[threading.Thread], patience_s: float
) -> None:
    """Wait for the users to finish, and tell every second what they do."""
    deadline = time.monotonic() + patience_s
    while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
        until = min(deadline, time.monotonic() + 1.0)
        for thread in threads:
            thread.join(max(0.0, until - time.monotonic()))
        channel.send(Samples(recorder.collect()))


def _arrivals(options: WindowOptions, users: range) -> Arrivals | None:
    """When transactions are due for these users; None when as soon as a user is free."""
    if options.rate_per_s is None:
        return None
    share = len(users) / options.users
    return Arrivals(options.seed, users.start, options.rate_per_s * share, options.patience_s)


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
    under_way: dict[int, tuple[int, float]],
) -> None:
    """A user's thread. Whatever goes wrong ends the run, with the reason.

    `under_way` has the kind of each user's transaction and since when.
    """

    def transact(kind: int, since: float) -> None:
        under_way[number] = kind, since
        _transact(user, kind, recorder, backoff, since)
        del under_way[number]

    backoff = stream(0, threading.current_thread().name)
    try:
        with closing(workload.user(number)) as user:
            gate.count_connection()
            gate.begun.wait()
            time.sleep(max(0.0, gate.start - time.monotonic()))
            if arrivals is not None:
                _serve(user, transact, recorder, arrivals)
            else:
                _work(user, transact, gate)
    except ServerGone as gone:
        channel.send(Gone(gone.cause))
    except UserFailed as failed:
        channel.send(Gone(str(failed)))
    except Exception:
        channel.send(Gone(f"internal error of user {number}:\n{traceback.format_exc()}"))


def _work(user: User, transact: Transact, gate: _Gate) -> None:
    """Transaction after transaction, with the user's own pauses, until the window closes."""
    pause_s = user.first_pause_s
    while True:
        step = user.next()
        pause_s += step.before_s
        if time.monotonic() + pause_s >= gate.end:
            return
        if pause_s > 0:
            time.sleep(pause_s)
        transact(step.kind, time.monotonic())
        pause_s = step.after_s


def _serve(user: User, transact: Transact, recorder: Recorder, arrivals: Arrivals) -> None:
    """Transactions when they are due, until all that were due in the window are done."""
    while (due := arrivals.take(time.monotonic(), recorder.record_skip)) is not None:
        step = user.next()
        time.sleep(max(0.0, due - time.monotonic()))
        recorder.record_start(due, late=time.monotonic() - due > LATE_S)
        transact(step.kind, due)


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
            now = time.monotonic()
            if not again:
                recorder.record_failure(kind, since, now, aborted.cause, aborted.message)
                time.sleep(FAILURE_PAUSE_S)
                return
            recorder.event(kind, now, "retry", aborted.cause)
            time.sleep(backoff.random() * BACKOFF_S * (attempt + 1))
        else:
            recorder.commit(kind, since, time.monotonic())
            return
