"""The power run (clause 5.3.3): RF1, the 22 queries in the order of stream 0, RF2."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

from hotset.core.errors import Remedy
from hotset.core.sql import DatabaseError
from hotset.reports.model.windows import PowerRun, Query

from .. import queries as the_queries
from .. import schema
from ..database import Database, Session
from ..record import Event, Refreshed, RunFailed, RunInterrupted, power_run
from . import refresh as refreshing
from . import stream
from .refresh import UpdateSet
from .streams import ORDERS

INTERRUPTED = "interrupted"
"""The cause of a run that ended by Ctrl-C."""


def run(
    database: Database,
    scale: float | None = None,
    *,
    seed: int | None = None,
    queries: Sequence[int] = the_queries.ALL,
    timeout_s: float | None = None,
    refresh: bool = True,
    observe: Callable[[Event], None] = lambda _: None,
) -> PowerRun:
    """Run the queries one after the other on one connection.

    :param scale: what the database should hold; None: whatever it holds.
    :param seed: draws the parameters (clause 2.4.x.3); None: the validation parameters.
    :param queries: which of the 22; their order is stream 0's.
    :param timeout_s: for each query; one that takes longer is cancelled, and the run goes on.
    :param refresh: frame the queries by RF1 and RF2. The answers then count RF1's rows.
    :raises SetupError: the scale is not loaded.
    :raises RunFailed: RF1 was refused. Whatever fails later is in the result.
    :raises RunInterrupted: Ctrl-C, when there was something to keep.
    """
    results: list[Query] = []
    with closing(database.session()) as session:
        size = schema.require_scale(session, scale)
        ask = partial(
            stream.run,
            session,
            database.engine,
            size,
            [n for n in ORDERS[0] if n in set(queries)],
            seed=seed,
            stream=0,
            timeout_s=timeout_s,
            observe=observe,
            results=results,
        )
        update = refreshing.update_set(size, 0) if refresh else None
        clock = stream.Clock()
        started = clock.now()
        try:
            if update is None:
                cause, refresh_s = ask(), None
            else:
                cause, refresh_s = _frame(database, session, update, ask, observe)
        except KeyboardInterrupt:
            if not results:
                raise
            partial_run = power_run(size, seed, started, clock.now(), results, None, INTERRUPTED)
            raise RunInterrupted(partial_run) from None
    return power_run(size, seed, started, clock.now(), results, refresh_s, cause)


def _frame(
    database: Database,
    session: Session,
    update: UpdateSet,
    ask: Callable[[], str],
    observe: Callable[[Event], None],
) -> tuple[str, tuple[float, float] | None]:
    """The queries between RF1 and RF2; why the run ended early, both timings."""
    with refreshing.leaving_nothing(database, session, [update]):
        try:
            first_s = time_action(partial(refreshing.insert, session, update))
        except DatabaseError as error:
            leave_out = Remedy("leave the refresh functions out", parameters={"refresh": False})
            raise RunFailed(f"RF1 failed: {error}", leave_out) from error
        observe(Refreshed(0, "RF1", first_s))
        cause = ask()
        if cause:
            return f"{cause} (RF1's rows stay until the next run with refresh)", None
        try:
            second_s = time_action(partial(refreshing.delete, database, session, update))
        except DatabaseError as error:
            return f"RF2 failed: {error}", None
        observe(Refreshed(0, "RF2", second_s))
    return "", (first_s, second_s)


def time_action(action: Callable[[], None]) -> float:
    """Seconds an action takes."""
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
