"""A worker process: some of a run's users, a thread and a connection each.

For engines that the compiled driver (`native`) cannot reach, which call through a Python client
library. Threads are enough here because such a library waits for its server without the
interpreter's lock; processes are needed because the rest of a transaction does
not, and one core of Python would bound the run.
"""

import threading
import time
import traceback
from contextlib import closing
from dataclasses import dataclass
from multiprocessing import connection
from random import Random
from typing import Any

from hotset.tpcc.database import Aborted, Database, IntendedRollback, ServerGone, Session, Value
from hotset.tpcc.nurand import Constants, stream
from hotset.tpcc.processes import Channel
from hotset.tpcc.record import RunOptions
from hotset.tpcc.samples import Batch, Event, Recorder, joined
from hotset.tpcc.transactions import KEYING_S, PROCEDURE, Kind, Terminal

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
    """From the parent: start at this monotonic time, stop starting transactions at that."""

    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Samples:
    """To the parent, every second: what all users of this process did."""

    batch: Batch


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


def run_worker(
    pipe: "connection.Connection[Any, Any]",
    database: Database,
    options: RunOptions,
    constants: Constants,
    users: range,
) -> None:
    """The process's main thread: connect, wait for the start, report every second."""
    channel = Channel(pipe)
    gate = _Gate(len(users))
    recorders = [Recorder() for _ in users]
    threads = [
        threading.Thread(
            target=_user,
            args=(channel, gate, database, options, constants, user, recorder),
            name=f"user-{user}",
            daemon=True,
        )
        for user, recorder in zip(users, recorders, strict=True)
    ]
    for thread in threads:
        thread.start()
    gate.wait_for_users()
    channel.send(Ready())
    begin = channel.receive()
    assert isinstance(begin, Begin)
    gate.begin(begin.start, begin.end)

    def report() -> None:
        channel.send(Samples(joined([recorder.collect() for recorder in recorders])))

    for boundary in _boundaries(begin.start, begin.end):
        time.sleep(max(0.0, boundary - time.monotonic()))
        report()
    deadline = time.monotonic() + DRAIN_S
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    report()
    channel.send(Finished())
    channel.receive()  # stay until the parent has read everything and lets go


def _boundaries(start: float, end: float) -> list[float]:
    """When to report: after each whole second and after the end, by a grace for the last sample."""
    seconds = int(end - start)
    ends = [*(start + second for second in range(1, seconds + 1)), end]
    return [at + REPORT_GRACE_S for at in ends]


def _user(
    channel: Channel,
    gate: _Gate,
    database: Database,
    options: RunOptions,
    constants: Constants,
    user: int,
    recorder: Recorder,
) -> None:
    """A user's thread. Whatever goes wrong ends the run, with the reason."""
    try:
        terminal = Terminal(
            user, options.warehouses, options.seed, constants, options.all_warehouses
        )
        with closing(database.session()) as session:
            gate.connected()
            gate.begun.wait()
            time.sleep(max(0.0, gate.start - time.monotonic()))
            if options.think_time:
                _work_humanly(session, terminal, recorder, gate)
            else:
                _work(session, terminal, recorder, gate)
    except ServerGone as gone:
        channel.send(Gone(gone.cause))
    except Exception:
        channel.send(Gone(f"internal error of user {user}:\n{traceback.format_exc()}"))


def _work(session: Session, terminal: Terminal, recorder: Recorder, gate: _Gate) -> None:
    """Transaction after transaction, without pause, until the window closes."""
    backoff = stream(0, threading.current_thread().name)
    end = gate.end
    while True:
        kind, args = terminal.next()
        if time.monotonic() >= end:
            return
        _transact(session, kind, args, recorder, backoff)


def _work_humanly(session: Session, terminal: Terminal, recorder: Recorder, gate: _Gate) -> None:
    """The same at the pace of a person at a terminal (clause 5.2.5)."""
    backoff = stream(0, threading.current_thread().name)
    # People do not all sit down in the same second: the first pause is a random part of one.
    pause_s = backoff.random() * KEYING_S[Kind.NEW_ORDER]
    while True:
        kind, args = terminal.next()
        pause_s += KEYING_S[kind]
        if time.monotonic() + pause_s >= gate.end:
            return
        time.sleep(pause_s)
        _transact(session, kind, args, recorder, backoff)
        pause_s = terminal.think_s(kind)


def _transact(
    session: Session, kind: Kind, args: tuple[Value, ...], recorder: Recorder, backoff: Random
) -> None:
    """One transaction, repeated while the server aborts it for reasons that pass."""
    procedure = PROCEDURE[kind]
    started = time.monotonic()
    for attempt in range(RETRIES + 1):
        try:
            session.call(procedure, args)
        except IntendedRollback:
            recorder.event(Event(time.monotonic(), kind, "rolled back"))
            return
        except Aborted as aborted:
            again = aborted.retryable and attempt < RETRIES
            outcome: Any = "retry" if again else "failed"
            recorder.event(Event(time.monotonic(), kind, outcome, aborted.cause))
            if not again:
                time.sleep(FAILURE_PAUSE_S)
                return
            time.sleep(backoff.random() * BACKOFF_S * (attempt + 1))
        else:
            now = time.monotonic()
            recorder.commit(kind, now, now - started)
            return
