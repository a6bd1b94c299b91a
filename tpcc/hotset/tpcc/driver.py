"""A timed run of TPC-C: one window, one result or one reason why not."""

import threading
import time
from contextlib import closing
from queue import Empty, SimpleQueue
from typing import Any

from hotset.core.errors import Remedy
from hotset.core.sql import Aborted, NotLoadedError, Row, ServerGone, SetupError
from hotset.load.processes import PythonCrew
from hotset.load.record import DRAIN_S, RunFailed, RunInterrupted
from hotset.load.run import Observer, follow, python_crew
from hotset.reports.model.windows import Repeat

from .data.nurand import Constants
from .database import Database, LibpqDatabase, Session
from .native import NativeCrew, settings
from .record import RunOptions
from .schema import (
    DISTRICTS,
    FIRST_ORDER,
    has_statement,
    require_finished,
    statement,
)
from .transactions import TpccWorkload, hottest_fifth


def run(database: Database, options: RunOptions, observe: Observer = lambda _: None) -> Repeat:
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
        "items": options.items,
        "isolation": isolation(database),
        "hottest_fifth": hottest_fifth(options.items),
    }
    workload = TpccWorkload(database, options, constants)
    try:
        with OrderCounter(database) as orders, _crew(workload) as crew:
            window = follow(crew, workload, observe, orders.ask)
            counted = orders.counts(DRAIN_S)
    except (RunFailed, RunInterrupted) as ended:
        ended.partial = ended.partial and ended.partial.model_copy(update=facts)
        raise
    if counted is not None:
        nopm, first = counted
        facts |= {"nopm_by_district": nopm, "orders_before": first - loaded}
    return window.model_copy(update=facts)


def isolation(database: Database) -> str | None:
    """The isolation level of a session like the users', as the server says; None: it does not."""
    with closing(database.session()) as session:
        try:
            ((level,),) = session.query(statement(database.engine, "isolation"))
        except (Aborted, ValueError):  # a compatible server may lack the view, or its row
            return None
    return None if level is None else str(level)


def _crew(workload: TpccWorkload) -> PythonCrew | NativeCrew:
    """The users: in the compiled driver where libpq reaches the database, else in Python."""
    database = workload.database
    if isinstance(database, LibpqDatabase):
        return NativeCrew(settings(database.libpq(), workload.options, workload.constants))
    return python_crew(workload)


def check_setup(database: Database, options: RunOptions) -> int:
    """The database's warehouses.

    Raises SetupError unless it holds complete tables and has room for the users.
    """
    with closing(database.session()) as session:
        try:
            count, highest = session.query(statement(database.engine, "count_warehouses"))[0]
        except Aborted as error:
            raise NotLoadedError(
                f"no TPC-C tables here ({error}): load the database first",
                Remedy("load it", "tpcc build"),
            ) from None
        if count != highest or not isinstance(highest, int):
            raise NotLoadedError(f"{count} warehouses, but numbered up to {highest}: load again")
        if highest < options.warehouses:
            raise NotLoadedError(
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
        self._sql = statement(database.engine, "count_orders")
        self._asked: SimpleQueue[bool] = SimpleQueue()
        self._answers: SimpleQueue[tuple[float, int] | None] = SimpleQueue()
        self._session = database.session()
        threading.Thread(target=self._serve, name="order-counter", daemon=True).start()

    def _serve(self) -> None:
        with closing(self._session):
            while self._asked.get():
                at = time.monotonic()
                try:
                    rows: list[Row] = self._session.query(self._sql)
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
