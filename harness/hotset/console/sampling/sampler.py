"""One reader of the tiers' counters for the record and for all who watch.

It reads for as long as the console runs, more often while somebody watches. What it found is
encoded once and sent to everyone: a further watcher costs a write to a socket.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from .reader import Sample

WATCHED_S, UNWATCHED_S = 2.0, 10.0
"""From one reading to the next."""
OUT_OF_REACH_S = 60.0
"""The same of a machine that does not answer, while nobody watches: one that refuses the log-in
takes too many of them for an attack."""
_LEAST_S = 0.1
_log = logging.getLogger("hotset.console")


class Sampler:
    """Reads from :meth:`start` to :meth:`stop`.

    :param read: takes a sample, and records it; as long as the machine takes to answer.
    :param encode: a sample as what is sent; called once for all watchers.
    :param close: gives up what reading holds; called once.
    """

    def __init__(
        self,
        read: Callable[[], Sample],
        close: Callable[[], None],
        encode: Callable[[Sample], bytes],
        watched_s: float = WATCHED_S,
        unwatched_s: float = UNWATCHED_S,
    ) -> None:
        self._read = read
        self._close = close
        self._encode = encode
        self._intervals = watched_s, unwatched_s
        self._watchers = 0
        self._failures = 0
        self._task: asyncio.Task[None] | None = None
        self._reading: asyncio.Future[Sample] | None = None
        self._next: asyncio.Future[bytes] | None = None
        self._came: asyncio.Event | None = None

    @property
    def working(self) -> bool:
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Begin to read, in the loop that runs."""
        self._next = asyncio.get_running_loop().create_future()
        self._came = asyncio.Event()
        self._task = asyncio.create_task(self._work())

    async def stop(self, patience_s: float = 2.0) -> None:
        """End it; a reading that is under way has so long to finish."""
        if self._task is None:
            return
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        if self._reading is not None:
            await asyncio.wait({self._reading}, timeout=patience_s)
        await asyncio.to_thread(self._close)

    async def frames(self, patience_s: float) -> AsyncIterator[bytes | None]:
        """Yield what is read, as it is read; None if nothing comes for ``patience_s``. A slow
        reader misses some."""
        assert self._came is not None
        self._watchers += 1
        self._came.set()
        try:
            while True:
                assert self._next is not None
                try:
                    yield await asyncio.wait_for(asyncio.shield(self._next), patience_s)
                except TimeoutError:
                    yield None
        finally:
            self._watchers -= 1

    async def _work(self) -> None:
        while True:
            begun = time.monotonic()
            self._reading = asyncio.ensure_future(asyncio.to_thread(self._read))
            try:
                sample = await asyncio.shield(self._reading)
                self._failures = self._failures + 1 if sample.error else 0
                self._tell(sample)
            except Exception:
                # The administrator has to learn of it; the next reading may be whole.
                _log.exception("the machine was not read")
            await self._rest(begun)

    def _tell(self, sample: Sample) -> None:
        if not self._watchers:
            return
        frame, waiter = self._encode(sample), self._next
        self._next = asyncio.get_running_loop().create_future()
        if waiter is not None:
            waiter.set_result(frame)

    async def _rest(self, begun: float) -> None:
        """Until the next reading; a new viewer ends a long rest."""
        watched_s, unwatched_s = self._intervals
        if self._failures > 1:  # one alone may be a hiccup
            unwatched_s = max(unwatched_s, OUT_OF_REACH_S)
        due = watched_s if self._watchers else unwatched_s
        left = max(_LEAST_S, due - (time.monotonic() - begun))
        if self._watchers or self._came is None:
            await asyncio.sleep(left)
            return
        self._came.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._came.wait(), left)
