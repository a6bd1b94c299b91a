"""A timed run: users in processes of their own, one window, one result or one reason why not."""

import math
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields, replace
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias

from hotset.core.sql import Aborted, Row, ServerGone

from .data.nurand import Constants
from .database import Database, LibpqDatabase, Session
from .native import NativeCrew, settings
from .processes import Crew, WorkerDied
from .schema import DISTRICTS, FIRST_ORDER, SetupError, has_statement, require_finished, statement
from .transactions import hottest_fifth
from .window.record import (
    DRAIN_S,
    NotServed,
    Phase,
    PhaseName,
    RunFailed,
    RunInterrupted,
    RunOptions,
    RunResult,
    Tick,
    WindowResult,
)
from .window.samples import NEW_ORDER, RunLog
from .window.served import shortfall
from .worker import Begin, Finished, Gone, Ready, Samples, run_worker
from .workload import TpccWorkload, Workload

_LEAD_S = 0.1
"""Time for the start signal to reach all workers before the start it names."""
_CONNECT_S = 60.0
"""Time for processes to start and all users to connect."""
_TICK_GRACE_S = 0.25
"""Samples of a second arrive a little after it."""

Observer: TypeAlias = Callable[[Tick | Phase], None]


def run(database: Database, options: RunOptions, observe: Observer = lambda _: None) -> RunResult:
    """Run TPC-C against a loaded database and measure a window.

    `observe` is called from this thread: with a Phase exactly as it begins, with a Tick
    every second. It should return within some tens of milliseconds, or what follows is
    reported late (the window itself is not moved: workers keep to the clock).

    Raises CannotConnect; SetupError if the database does not hold the warehouses or takes no
    writes; RunFailed if the server goes away, nothing commits for `options.stall_s`, or a worker
    dies; NotServed if the server did not do what was due (`served.shortfall`); RunInterrupted, a
    KeyboardInterrupt, on Ctrl-C. The workers are gone when either arrives.
    """
    loaded = check_setup(database, options) * DISTRICTS * FIRST_ORDER
    constants = Constants.for_run(options.seed if options.popular is None else options.popular)
    facts: dict[str, Any] = {
        "isolation": isolation(database),
        "hottest_fifth": hottest_fifth(options.items),
    }
    workload = TpccWorkload(database, options, constants)
    try:
        with OrderCounter(database) as orders, _crew(workload) as crew:
            window = follow(crew, workload, observe, orders.ask)
            counted = orders.counts(DRAIN_S)
    except (RunFailed, RunInterrupted) as ended:
        ended.partial = ended.partial and _of_tpcc(ended.partial, options, facts)
        raise
    result = _of_tpcc(window, options, facts)
    if counted is None:
        return result
    nopm, first = counted
    return replace(result, nopm_by_district=nopm, orders_before=first - loaded)


def run_workload(workload: Workload, observe: Observer = lambda _: None) -> WindowResult:
    """Run any workload and measure a window, as `run` does TPC-C, its users in Python."""
    with python_crew(workload) as crew:
        return follow(crew, workload, observe)


def follow(
    crew: Crew | NativeCrew,
    workload: Workload,
    observe: Observer,
    at_edge: Callable[[], None] = lambda: None,
) -> WindowResult:
    """The window of a crew's run. `at_edge` is called as it opens and as it closes."""
    return _Run(workload, observe, crew, at_edge).follow()


def isolation(database: Database) -> str | None:
    """The isolation level of a session like the users', as the server says; None: it does not."""
    with closing(database.session()) as session:
        try:
            ((level,),) = session.query(statement(database.engine, "isolation"))
        except (Aborted, ValueError):  # a compatible server may lack the view, or its row
            return None
    return None if level is None else str(level)


def _of_tpcc(window: WindowResult, options: RunOptions, facts: dict[str, Any]) -> RunResult:
    minutes = (window.window_end - window.window_start) / 60
    values = {one.name: getattr(window, one.name) for one in fields(WindowResult)}
    new_orders = window.kinds[NEW_ORDER].committed
    return RunResult(**{**values, "options": options, **facts}, nopm=new_orders / minutes)


def _crew(workload: TpccWorkload) -> Crew | NativeCrew:
    """The users: in the compiled driver where libpq reaches the database, else in Python."""
    database = workload.database
    if isinstance(database, LibpqDatabase):
        return NativeCrew(settings(database.libpq(), workload.options, workload.constants))
    return python_crew(workload)


def python_crew(workload: Workload) -> Crew:
    """A process for each core, which share the users."""
    users = workload.options.users
    size = min(os.cpu_count() or 1, users)
    shares = [range(first, users, size) for first in range(size)]
    return Crew(run_worker, [(workload, share) for share in shares])


def check_setup(database: Database, options: RunOptions) -> int:
    """The database's warehouses.

    Raises SetupError unless it holds complete tables and has room for the users.
    """
    with closing(database.session()) as session:
        try:
            count, highest = session.query(statement(database.engine, "count_warehouses"))[0]
        except Aborted as error:
            raise SetupError(f"no TPC-C tables here ({error}): load the database first") from None
        if count != highest or not isinstance(highest, int):
            raise SetupError(f"{count} warehouses, but numbered up to {highest}: load again")
        if highest < options.warehouses:
            raise SetupError(
                f"the database has {highest} warehouses, the run needs {options.warehouses}:"
                " load more, or run on fewer"
            )
        require_finished(database, session)
        ((reason,),) = session.query(statement(database.engine, "read_only"))
        if reason is not None:
            raise SetupError(f"TPC-C writes, and {reason}")
        if has_statement(database.engine, "connections"):
            _check_room(session, statement(database.engine, "connections"), options.users)
    return highest


def _check_room(session: Session, connections: str, users: int) -> None:
    """A connection per user and the order counter's."""
    setting, limit, free = session.query(connections)[0]
    assert isinstance(free, int)
    if users > free:  # the order counter takes the connection that asked
        raise SetupError(
            f"{users} users need {users + 1} connections, but the server has {free + 1} left"
            f" ({setting} = {limit}): raise {setting} and restart it, or run fewer users"
        )


class OrderCounter:
    """Reads sum(d_next_o_id) at the window's edges, in a thread: a slow disk delays nothing."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._asked: SimpleQueue[bool] = SimpleQueue()
        self._answers: SimpleQueue[tuple[float, int] | None] = SimpleQueue()
        self._session = database.session()
        threading.Thread(target=self._serve, name="order-counter", daemon=True).start()

    def _serve(self) -> None:
        sql = statement(self._database.engine, "count_orders")
        with closing(self._session):
            while self._asked.get():
                at = time.monotonic()
                try:
                    rows: list[Row] = self._session.query(sql)
                    self._answers.put((at, int(str(rows[0][0]))))
                except (Aborted, ServerGone):
                    self._answers.put(None)  # the users' own connections tell the reason

    def __enter__(self) -> "OrderCounter":
        return self

    def __exit__(self, *_: object) -> None:
        self._asked.put(False)

    def ask(self) -> None:
        """Count now."""
        self._asked.put(True)

    def counts(self, patience_s: float) -> tuple[float, int] | None:
        """The rate per minute between the first two counts, and the first; None if one of them
        failed or is late."""
        try:
            first = self._answers.get(timeout=patience_s)
            second = self._answers.get(timeout=patience_s)
        except Empty:
            return None
        if first is None or second is None:
            return None
        return (second[1] - first[1]) / (second[0] - first[0]) * 60, first[1]


class _Run:
    """The parent's side of a run under way."""

    def __init__(
        self,
        workload: Workload,
        observe: Observer,
        crew: Crew | NativeCrew,
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

    def follow(self) -> WindowResult:
        """From the first connection to the result."""
        try:
            return self._follow()
        except KeyboardInterrupt:
            raise RunInterrupted(self._partial()) from None

    def _follow(self) -> WindowResult:
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
        if cause := shortfall(result):
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
                raise self._stalled()

    def _take(self, worker: int, message: object) -> None:
        match message:
            case Samples(tallies):
                assert self._log is not None
                if self._log.add(tallies):
                    self._last_success = time.monotonic()
                self._require_few_errors(self._log)
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

    def _stalled(self) -> RunFailed:
        if self._ready < len(self._crew):
            return self._failure(f"users not connected after {_CONNECT_S:g} s")
        last = self._log.last_failure() if self._log else None
        reason = f"; the last failure was: {last}" if last else ""
        return self._failure(f"no transaction completed for {self._options.stall_s:g} s{reason}")

    def _failure(self, cause: str) -> RunFailed:
        return RunFailed(cause, self._partial())

    def _partial(self) -> WindowResult | None:
        """What the window held if it had opened."""
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
