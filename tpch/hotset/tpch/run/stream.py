"""One stream: its queries, one after the other, on one session."""

import time
from collections.abc import Callable, Sequence
from threading import Event as Flag

from hotset.core.sql import Refused, ServerGone, TimedOut
from hotset.reports.model.windows import Query

from .. import answers, queries
from ..database import Session
from ..record import Begun, Ended, Event


class Clock:
    """Begins with the computer's time and goes on by itself: a rate over a window must not depend
    on when its time server corrects the computer."""

    def __init__(self) -> None:
        self._epoch = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since 1970."""
        return self._epoch + time.monotonic()


def run(
    session: Session,
    engine: str,
    scale: float,
    numbers: Sequence[int],
    *,
    seed: int | None,
    stream: int,
    timeout_s: float | None,
    observe: Callable[[Event], None],
    results: list[Query],
    stop: Flag | None = None,
) -> str:
    """Run queries in the order given. One that fails or times out is recorded, and the next one
    runs; when the server is gone, or `stop` is set, the stream ends with what it has.

    :param results: gets the record of each, so that they are there whatever ends the stream.

    Returns why the connection broke if it did.
    """
    for place, number in enumerate(numbers, 1):
        if stop is not None and stop.is_set():
            break
        observe(Begun(stream, number, place, len(numbers)))
        text = queries.text(engine, number, scale, seed, stream)
        result, gone = _run_query(session, number, text, timeout_s)
        results.append(result)
        observe(Ended(stream, result))
        if gone:
            return result.cause
    return ""


def _run_query(
    session: Session, number: int, text: str, timeout_s: float | None
) -> tuple[Query, bool]:
    """One query's record, and whether the server went away in it."""
    started = time.perf_counter()
    try:
        rows = session.query(text, timeout_s)
    except TimedOut:
        return Query(number=number, seconds=timeout_s or 0.0, outcome="timed out"), False
    except (Refused, ServerGone) as error:
        seconds = time.perf_counter() - started
        gone = isinstance(error, ServerGone)
        return Query(number=number, seconds=seconds, outcome="failed", cause=str(error)), gone
    seconds = time.perf_counter() - started
    checksum = answers.checksum(rows)
    return Query(number=number, seconds=seconds, rows=len(rows), checksum=checksum), False
