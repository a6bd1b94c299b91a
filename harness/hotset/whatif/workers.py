"""Who runs simulations: this computer's cores, or the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Self

from hotset.block import flashdev
from hotset.core import extras
from hotset.core.errors import HotsetError, PrerequisiteError, RequestError
from hotset.core.machines.local import Local

from .caches import Cache, Outcome, is_made, simulate

if TYPE_CHECKING:
    from types import TracebackType

    from distributed import Client

_CONNECT_S = 15.0


class Cores:
    """This computer, so many simulations at a time."""

    def __init__(self, local: Local, at_a_time: int) -> None:
        self.at_a_time = at_a_time
        self._local = local
        self._stop = Event()
        self._pool = ThreadPoolExecutor(at_a_time)

    def submit(self, trace: str, cache: Cache, more: Sequence[str]) -> Future[Outcome]:
        return self._pool.submit(self._run, trace, cache, more)

    def _run(self, trace: str, cache: Cache, more: Sequence[str]) -> Outcome:
        self._unless_stopped(0, None)
        return simulate(self._local, trace, cache, more, self._unless_stopped)

    def _unless_stopped(self, _: int, __: float | None) -> None:
        if self._stop.is_set():
            raise CancelledError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        """After an error: what runs is ended, what waits is not begun."""
        if kind is not None:
            self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=kind is not None)


class Cluster:
    """A Dask cluster: one simulation at a time for each thread of its workers.

    Each worker has hotset, built, and the trace under the same path. What runs there when a sweep
    is interrupted runs to its end; what waits is not begun.

    :raises PrerequisiteError: Dask is missing here, nobody answers at the address, a worker lacks
        hotset or the trace.
    """

    def __init__(self, address: str, trace: str) -> None:
        self._client = _connect(address)
        try:
            _require_ready(self._client, address, trace)
            self.at_a_time = sum(self._client.nthreads().values())
        except BaseException:
            self._client.close()
            raise
        self._pool = self._client.get_executor(pure=False)

    def submit(self, trace: str, cache: Cache, more: Sequence[str]) -> Future[Outcome]:
        future: Future[Outcome] = self._pool.submit(_simulate_on_worker, trace, cache, more)
        return future

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        with closing(self._client):
            self._pool.shutdown(wait=kind is None)
        if kind is CancelledError:
            raise PrerequisiteError(
                "the cluster has given the simulations up: see to its scheduler and workers; what"
                " was simulated is kept, and the same words go on from there",
                field="scheduler",
            )


def _connect(address: str) -> Client:
    with extras.explained():
        from distributed import Client
    try:
        return Client(address, timeout=_CONNECT_S, set_as_default=False)
    except ValueError as error:
        raise RequestError(
            f"{address!r} is no address of a Dask scheduler, such as tcp://host:8786: {error}",
            field="scheduler",
        ) from None
    except OSError as error:
        raise PrerequisiteError(
            f"no Dask scheduler answers at {address} ({error}): start one there with"
            " `dask scheduler`",
            field="scheduler",
        ) from None


def _require_ready(client: Client, address: str, trace: str) -> None:
    sizes: dict[str, object] = client.run(_size, trace, on_error="return")
    if not sizes:
        raise PrerequisiteError(
            f"the scheduler at {address} has no workers: start some with `dask worker {address}`",
            field="scheduler",
        )
    here = _size(trace)
    for worker, size in sizes.items():
        if size != here:
            seen = size if isinstance(size, Exception) else f"has {size} bytes there, {here} here"
            raise PrerequisiteError(
                f"{trace} on {worker}: {seen}; every worker needs hotset, built, and the trace"
                " under the same path",
                field="scheduler",
            )


def _size(trace: str) -> int:
    """Return the trace's size; 0 if generated when read. Fails where ``flashdev`` is missing."""
    flashdev.program(Local())
    return 0 if is_made(trace) else Path(trace).stat().st_size


def _simulate_on_worker(trace: str, cache: Cache, more: Sequence[str]) -> Outcome:
    try:
        return simulate(Local(), trace, cache, more)
    except HotsetError as error:
        # Not every class of error can be sent; its words can.
        raise RequestError(str(error)) from None
