"""Worker processes that share out jobs and never outlive their parent.

`spawn`, not `fork`: the parent may hold threads and connections. A worker ignores Ctrl-C, which a
terminal sends to the whole group: its parent ends it, and a server rolls back what it was at.
"""

import os
import pickle
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from multiprocessing import connection, get_context, resource_tracker
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, Generic, TypeVar

from hotset.core.sql import DatabaseError

from .database import Database, Session
from .record import LoadFailed

Job = TypeVar("Job")
Answer = TypeVar("Answer")
Work = Callable[[Session, Database, Job], Answer]

_TERMINATE_S = 2.0


class Workers(Generic[Job, Answer]):
    """A context of processes, each with a session of its own; on the way out all have ended.

    One alone is no process: its work is done here, without the second or two that a start takes.
    """

    def __init__(self, database: Database, work: Work[Job, Answer], count: int) -> None:
        self._arguments = (database, work)
        self._count = count
        self._processes: list[tuple[BaseProcess, connection.Connection[Any, Any]]] = []

    def __enter__(self) -> "Workers[Job, Answer]":
        context = get_context("spawn")
        try:
            for _ in range(self._count if self._count > 1 else 0):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=_serve, args=(theirs, *self._arguments), daemon=True
                )
                with _deaf_to_ctrl_c():
                    process.start()
                theirs.close()
                self._processes.append((process, ours))
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def share_out(self, jobs: Iterable[Job]) -> Iterator[Answer]:
        """Keep every worker busy until all jobs are done; yields their answers as they come.

        Raises LoadFailed when a job fails or a worker dies.
        """
        if self._count == 1:
            database, work = self._arguments
            with closing(database.session()) as session:
                for job in jobs:
                    yield work(session, database, job)
            return
        waiting = deque(jobs)
        idle = [pipe for _, pipe in self._processes]
        busy: list[connection.Connection[Any, Any]] = []
        while waiting or busy:
            while waiting and idle:
                pipe = idle.pop()
                busy.append(pipe)
                _send(pipe, waiting.popleft())
            for ready in connection.wait(busy, 60.0):
                (pipe,) = (pipe for pipe in busy if pipe is ready)
                answer = _receive(pipe)
                busy.remove(pipe)
                idle.append(pipe)
                yield answer

    def _end(self) -> None:
        """Closing a pipe ends a worker at once; one that goes on is terminated, then killed."""
        for _, pipe in self._processes:
            pipe.close()
        for process, _ in self._processes:
            process.join(_TERMINATE_S)
            for insist in (process.terminate, process.kill):
                if process.is_alive():
                    insist()
                    process.join(_TERMINATE_S)
            process.close()
        self._processes.clear()


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Processes started inside never see a SIGINT, not even while Python starts up in them."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # its own start would lift the mask
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _send(pipe: "connection.Connection[Any, Any]", job: object) -> None:
    try:
        pipe.send(job)
    except OSError:
        raise LoadFailed("a worker process ended before its work") from None


def _receive(pipe: "connection.Connection[Any, Any]") -> Any:  # noqa: ANN401 - what work returned
    try:
        failure, answer = pipe.recv()
    except (EOFError, OSError):
        raise LoadFailed("a worker process died (killed, out of memory?)") from None
    if failure is not None:
        raise LoadFailed(failure)
    return answer


def _serve(
    pipe: "connection.Connection[Any, Any]", database: Database, work: Work[Any, Any]
) -> None:
    """A worker: one job after the other, until the parent lets go."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    jobs, ours = get_context("spawn").Pipe(duplex=False)
    Thread(target=_pass_on, args=(pipe, ours), daemon=True).start()
    try:
        with closing(database.session()) as session:
            while True:
                pipe.send((None, work(session, database, jobs.recv())))
    except DatabaseError as error:
        pipe.send((str(error), None))
    except Exception:
        pipe.send((traceback.format_exc(), None))
    jobs.recv()  # stay until the parent has read the reason


def _pass_on(
    pipe: "connection.Connection[Any, Any]", jobs: "connection.Connection[Any, Any]"
) -> None:
    """End this process as soon as the parent is gone, whatever its other thread waits for."""
    try:
        while True:
            jobs.send(pipe.recv())
    except (EOFError, OSError, pickle.UnpicklingError):
        os._exit(1)
