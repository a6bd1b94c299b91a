"""A crew of worker processes that never outlives its parent.

`spawn`, not `fork`: the parent may hold threads and connections, and the result
is the same on every platform. The library's callers need the usual
`if __name__ == "__main__":` guard in a script of their own.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import connection, get_context, resource_tracker
from queue import Empty, SimpleQueue
from typing import Any

_TERMINATE_S = 1.0


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Processes started meanwhile never notice Ctrl-C: a terminal sends it to all of them, and it
    is for the parent to end them once it has what they measured. Ctrl-C itself waits so long."""
    resource_tracker.ensure_running()  # starting it would let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class WorkerDied(Exception):
    """A worker process ended without saying goodbye (killed, out of memory)."""


class Channel:
    """A worker's end of the pipe to its parent.

    A thread of its own reads it. When the parent disappears, even by SIGKILL, the
    operating system closes the pipe and this process ends at once, whatever its
    other threads are waiting for.
    """

    def __init__(self, pipe: "connection.Connection[Any, Any]") -> None:
        self._pipe = pipe
        self._lock = threading.Lock()
        self._inbox: SimpleQueue[object] = SimpleQueue()
        threading.Thread(target=self._read, name="parent-watch", daemon=True).start()

    def _read(self) -> None:
        try:
            while True:
                self._inbox.put(self._pipe.recv())
        except (EOFError, OSError):
            os._exit(1)

    def send(self, message: object) -> None:
        """Send to the parent; any thread may. The process ends if there is no parent."""
        try:
            with self._lock:
                self._pipe.send(message)
        except OSError:
            os._exit(1)

    def receive(self, timeout_s: float | None = None) -> object | None:
        """The parent's next message, or None when none came in time."""
        try:
            return self._inbox.get(timeout=None if timeout_s is None else max(timeout_s, 0.0))
        except Empty:
            return None


class PythonCrew:
    """Worker processes as a context: on the way out, all of them have ended."""

    def __init__(
        self, target: Callable[..., None], arguments: Sequence[tuple[object, ...]]
    ) -> None:
        """Start one process per entry of `arguments`: `target(pipe, *entry)`, both importable."""
        context = get_context("spawn")
        self._pipes: list[connection.Connection[Any, Any]] = []
        self._processes = []
        try:
            for entry in arguments:
                ours, theirs = context.Pipe()
                self._pipes.append(ours)
                process = context.Process(target=target, args=(theirs, *entry), daemon=True)
                with deaf_to_interrupts():
                    process.start()
                # The parent must not hold the worker's end, or it would never see it close.
                theirs.close()
                self._processes.append(process)
        except BaseException:
            self._end()
            raise
        self._open = list(self._pipes)

    def __enter__(self) -> "PythonCrew":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def __len__(self) -> int:
        return len(self._processes)

    def tell(self, message: object, worker: int | None = None) -> None:
        """Send a message to one worker, or to every one still there."""
        for pipe in self._open if worker is None else [self._pipes[worker]]:
            try:
                pipe.send(message)
            except OSError:
                continue  # listen() reports the death

    def dismiss(self, index: int) -> None:
        """Expect nothing more of a worker that said it is done."""
        self._open = [pipe for pipe in self._open if pipe is not self._pipes[index]]

    def listen(self, timeout_s: float) -> Iterator[tuple[int, object]]:
        """Messages there are, as (worker, message), after waiting at most `timeout_s` for one.

        Raises WorkerDied when a worker not dismissed has closed its pipe.
        """
        for ready in connection.wait(self._open, max(timeout_s, 0.0)):
            index = self._pipes.index(ready)  # type: ignore[arg-type]
            try:
                message = self._pipes[index].recv()
            except (EOFError, OSError):
                self._processes[index].join(_TERMINATE_S)
                code = self._processes[index].exitcode
                raise WorkerDied(f"worker process {index} ended with exit code {code}") from None
            yield index, message

    def _end(self) -> None:
        """End every process: closing the pipe asks, SIGTERM insists, SIGKILL makes sure."""
        for pipe in self._pipes:
            pipe.close()
        for ask in ("join", "terminate", "kill"):
            deadline = time.monotonic() + _TERMINATE_S
            for process in self._processes:
                if ask != "join" and process.is_alive():
                    getattr(process, ask)()
            for process in self._processes:
                process.join(max(deadline - time.monotonic(), 0.0))
            if not any(process.is_alive() for process in self._processes):
                break
        for process in self._processes:
            process.close()
