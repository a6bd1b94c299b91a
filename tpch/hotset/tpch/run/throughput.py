"""The throughput run (clause 5.3.4): query streams side by side, and one refresh stream."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import partial
from threading import Event as Flag
from threading import Lock, Thread

from hotset.core.sql import DatabaseError
from hotset.reports.model.windows import Query, QueryStream, ThroughputRun

from .. import schema
from ..database import Database, Session
from ..record import Event, Refreshed, throughput_run
from . import refresh as refreshing
from . import stream
from .power import time_action
from .refresh import UpdateSet
from .streams import MAX_STREAMS, ORDERS, minimum_streams

_POLL_S = 0.1


def run(
    database: Database,
    scale: float | None = None,
    *,
    streams: int | None = None,
    seed: int | None = None,
    timeout_s: float | None = None,
    refresh: bool = True,
    observe: Callable[[Event], None] = lambda _: None,
) -> ThroughputRun:
    """Run `streams` query streams at once, each on a connection of its own.

    :param streams: 1 to 40; None: the fewest clause 5.3.4 allows at this scale.
    :param seed: draws each stream's own parameters; None: validation parameters for all.
    :param refresh: beside them, one stream of as many pairs of RF1 and RF2.

    The other arguments, and what it raises, as `power.run`; a refresh stream that fails ends
    early, and the result says why.
    """
    if streams is not None and not 1 <= streams <= MAX_STREAMS:
        raise ValueError(f"{streams} streams: appendix A gives orders for 1 to {MAX_STREAMS}")
    with ExitStack() as stack:
        opened = [stack.enter_context(closing(database.session()))]
        size = schema.require_scale(opened[0], scale)
        count = streams or minimum_streams(size)
        opened += [stack.enter_context(closing(database.session())) for _ in range(count)]
        updates = [refreshing.update_set(size, number) for number in range(1, count + 1)]
        if refresh:
            stack.enter_context(refreshing.leaving_nothing(database, opened[0], updates))
        crew = _Crew(database, size, seed, timeout_s, observe)
        started = crew.clock.now()
        crew.work(opened, updates if refresh else None)
        ended = crew.clock.now()
    return throughput_run(
        size,
        started,
        ended,
        [crew.streams[number] for number in sorted(crew.streams)],
        tuple(crew.pairs) if refresh else None,
        crew.cause,
    )


class _Crew:
    """The threads of a run and what they have found so far."""

    def __init__(
        self,
        database: Database,
        scale: float,
        seed: int | None,
        timeout_s: float | None,
        observe: Callable[[Event], None],
    ) -> None:
        self.streams: dict[int, QueryStream] = {}
        self.pairs: list[tuple[float, float]] = []
        self.cause = ""
        self.clock = stream.Clock()
        self._database, self._scale, self._seed = database, scale, seed
        self._timeout_s = timeout_s
        self._tell = observe
        self._lock = Lock()
        self._stop = Flag()

    def work(self, sessions: Sequence[Session], updates: Sequence[UpdateSet] | None) -> None:
        """Start a thread per session and wait for all; Ctrl-C cancels what they run first."""
        threads = [
            Thread(target=self._queries, args=(session, number), name=f"stream {number}")
            for number, session in enumerate(sessions[1:], 1)
        ]
        if updates is not None:
            threads.append(Thread(target=self._refresh, args=(sessions[0], updates)))
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                # Waiting in pieces: on some platforms a signal does not end a plain join.
                while thread.is_alive():
                    thread.join(_POLL_S)
        except BaseException:
            self._stop.set()
            while any(thread.is_alive() for thread in threads):
                for session in sessions:
                    session.cancel()
                threads[0].join(_POLL_S)
            raise

    def _observe(self, event: Event) -> None:
        with self._lock:
            self._tell(event)

    def _queries(self, session: Session, number: int) -> None:
        started = self.clock.now()
        results: list[Query] = []
        cause = stream.run(
            session,
            self._database.engine,
            self._scale,
            ORDERS[number],
            seed=self._seed,
            stream=number,
            timeout_s=self._timeout_s,
            observe=self._observe,
            results=results,
            stop=self._stop,
        )
        self.cause = self.cause or (f"stream {number}: {cause}" if cause else "")
        self.streams[number] = QueryStream(
            number=number,
            opened_at=datetime.fromtimestamp(started, UTC),
            duration_s=self.clock.now() - started,
            queries=tuple(results),
        )

    def _refresh(self, session: Session, updates: Sequence[UpdateSet]) -> None:
        try:
            for number, update in enumerate(updates, 1):
                if self._stop.is_set():
                    return
                first_s = time_action(partial(refreshing.insert, session, update))
                self._observe(Refreshed(number, "RF1", first_s))
                second_s = time_action(partial(refreshing.delete, self._database, session, update))
                self._observe(Refreshed(number, "RF2", second_s))
                self.pairs.append((first_s, second_s))
        except DatabaseError as error:
            self.cause = f"the refresh stream ended early: {error}"
