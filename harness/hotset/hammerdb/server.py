"""The server's own account of a run by HammerDB, which tells no seconds and drops the server's
words: orders, whether it can write, what its users are in."""

from __future__ import annotations

import threading
import time
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from itertools import pairwise
from queue import Empty, SimpleQueue
from typing import Literal, Self, TypeAlias

from hotset.core.sql import LASTING, Aborted, ServerGone
from hotset.databases.product import SqlDatabase
from hotset.load.record import DRAIN_S
from hotset.reports.model.windows import Unfinished
from hotset.tpcc.schema import statement, unqualified

from . import tables

_EACH_S = 1.0
_LATE_S = 0.25
"""How long after the end of a second its count may be made."""

Edge: TypeAlias = Literal["opens", "closes"]


@dataclass(frozen=True, slots=True)
class Reading:
    """The server at one moment.

    :ivar at: ``time.monotonic()`` once it had answered.
    :ivar orders: ever entered; None: not asked for.
    :ivar unable: why a session cannot write; empty: it can.
    :ivar ages: for how long each user's session has been in its procedure, 0 where in none; None:
        not asked for.
    """

    at: float
    orders: int | None
    unable: str
    ages: tuple[float, ...] | None


class Server(AbstractContextManager["Server"]):
    """Reads it at the edges of the window and each second from its opening on, in a thread, so that
    a slow server delays nothing. Where counting orders may wait for a user's lock (SQL Server),
    they are counted at the edges alone."""

    def __init__(self, connection: SqlDatabase) -> None:
        """Connect. Raises CannotConnect."""
        self._engine = engine = connection.engine
        has_users = tables.SQL.has(engine, "users")
        self._users = tables.SQL.statement(engine, "users") if has_users else ""
        self._asked: SimpleQueue[Edge | None] = SimpleQueue()
        self._edges: SimpleQueue[Reading | None] = SimpleQueue()
        self._session = connection.session()
        self._readings: list[Reading] = []
        self.unable = ""
        """Why sessions could not write when somebody looked; empty: they could, or nobody did."""
        self._opened: Reading | None = None
        self._closed: Reading | None = None
        threading.Thread(target=self._serve, name="server-beside", daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._asked.put(None)

    def ask(self, edge: Edge) -> None:
        """Read now, as the window opens or closes."""
        self._asked.put(edge)

    def edges(self, patience_s: float) -> tuple[Reading, Reading] | None:
        """The readings at the window's edges; None if one of them failed or is late."""
        try:
            first, last = (self._edges.get(timeout=patience_s) for _ in range(2))
        except Empty:
            return None
        if first is None or last is None:
            return None
        self._opened, self._closed = first, last
        return first, last

    def each_second(self) -> list[int] | None:
        """Orders of each whole second of the window, those that were seen late in the second in
        which they were seen; None: not counted by seconds."""
        if self._opened is None or self._closed is None or not self._users:
            return None
        opened, closed = self._opened, self._closed
        known = [
            (reading.at - opened.at, reading.orders) for reading in self._readings if reading.orders
        ]
        counts = [
            [orders for at, orders in known if at <= second + _LATE_S][-1]
            for second in range(int(closed.at - opened.at) + 1)
        ]
        return [after - before for before, after in pairwise(counts)]

    def users(self) -> int | None:
        """How many users had a session just before the window closed; None: not known."""
        closed = self._closed
        seen = [reading.ages for reading in self._readings if closed and reading.at < closed.at]
        known = [ages for ages in seen if ages is not None]
        return len(known[-1]) if any(known) else None

    def unfinished(self) -> Unfinished | None:
        """Transactions that began in the window or before, and had not ended long after it."""
        if self._closed is None:
            return None
        for reading in self._readings:
            after_s = reading.at - self._closed.at
            if after_s >= DRAIN_S and reading.ages is not None:
                stuck = [age - after_s for age in reading.ages if age > after_s]
                return Unfinished(count=len(stuck), oldest_s=max(stuck)) if stuck else None
        return None

    def _serve(self) -> None:
        begun: float | None = None
        with closing(self._session):
            while True:
                try:
                    edge = self._asked.get(timeout=_until_next(begun))
                    if edge is None:
                        return
                except Empty:
                    edge = None
                try:
                    reading = self._read(orders=edge is not None or bool(self._users))
                except (Aborted, ServerGone) as error:
                    # Else the users' own connections tell the reason.
                    self.unable = self.unable or (str(error) if error.cause in LASTING else "")
                    self._edges.put(None)
                    return
                self._readings.append(reading)
                self.unable = self.unable or reading.unable
                begun = begun or reading.at
                if edge is not None:
                    self._edges.put(reading)

    def _read(self, orders: bool) -> Reading:
        ((reason,),) = self._session.query(statement(self._engine, "read_only"))
        ages = [age for (age,) in self._session.query(self._users)] if self._users else None
        count: int | None = None
        if orders:
            ((total,),) = self._session.query(unqualified(statement(self._engine, "count_orders")))
            count = int(str(total))
        return Reading(
            time.monotonic(),
            count,
            "" if reason is None else str(reason),
            None if ages is None else tuple(float(str(age)) for age in ages),
        )


def _until_next(begun: float | None) -> float | None:
    """Seconds until the next whole one since the opening; None: the window is not open."""
    return None if begun is None else _EACH_S - (time.monotonic() - begun) % _EACH_S
