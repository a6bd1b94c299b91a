"""Progress and results of loads and runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TypeAlias

from hotset.core.errors import HotsetError, PrerequisiteError
from hotset.reports.model.windows import (
    PowerRun,
    Query,
    QueryStream,
    ThroughputRun,
    geometric_mean,
)

if TYPE_CHECKING:
    from hotset.core.progress import Measured, Reporter

Function = Literal["RF1", "RF2"]


class Lacks(PrerequisiteError):
    """This computer lacks what the work needs (a program, room); says the remedy."""


class DataFailed(HotsetError):
    """The generator failed, or made what the specification does not ask for."""


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C; `partial` is what the run had measured."""

    def __init__(self, partial: PowerRun) -> None:
        super().__init__(partial)
        self.partial = partial


class LoadFailed(HotsetError):
    """A load ended early: the server refused or went away, or a worker process died."""


class RunFailed(HotsetError):
    """A run ended without its figures."""


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is; `step` is "data", "rows", "indexes", "foreign_keys", "statistics",
    "counts" or "done", and bytes of text are counted in the first two."""

    step: str
    bytes_done: int
    bytes_total: int
    seconds: float

    def show(self, report: Reporter) -> None:
        """Implement :class:`~hotset.core.progress.Step`."""
        from hotset.core.units import Bytes

        step = self.step.replace("_", " ")
        if step not in ("data", "rows"):
            report.figure(f"{self.seconds:.1f} s, {step}")
            return
        done = self.bytes_done, self.bytes_total
        measured = _measured_type().by_rate(*done, "bytes", self.seconds)
        report.figure(
            f"{self.seconds:.1f} s, {step}: {Bytes(self.bytes_done)} of"
            f" {Bytes(self.bytes_total)}{measured.left}",
            measured,
        )


@dataclass(frozen=True, slots=True)
class Begun:
    """A query of a stream starts: the `place`-th of `total`."""

    stream: int
    number: int
    place: int
    total: int

    def show(self, report: Reporter) -> None:
        """Implement :class:`~hotset.core.progress.Step`."""
        known = None if self.stream else _measured_type()(self.place - 1, self.total, "queries")
        where = f"{_stream(self.stream)}query {self.number}"
        report.figure(f"{where} ({self.place} of {self.total})", known)


@dataclass(frozen=True, slots=True)
class Ended:
    """A query of a stream ended, one way or another."""

    stream: int
    result: Query

    def show(self, report: Reporter) -> None:
        """Implement :class:`~hotset.core.progress.Step`."""
        done = self.result
        rows = "1 row" if done.rows == 1 else f"{done.rows or 0:,} rows"
        ending = rows if done.outcome == "ok" else done.outcome
        cause = f": {done.cause}" if done.cause else ""
        where = f"{_stream(self.stream)}query {done.number}"
        report.say(f"{where}: {done.seconds:.3f} s, {ending}{cause}")


@dataclass(frozen=True, slots=True)
class Refreshed:
    """A refresh function is through; `stream` is the query stream it belongs to (0: power)."""

    stream: int
    function: Function
    seconds: float

    def show(self, report: Reporter) -> None:
        """Implement :class:`~hotset.core.progress.Step`."""
        report.say(f"{_stream(self.stream)}{self.function}: {self.seconds:.3f} s")


Event: TypeAlias = Begun | Ended | Refreshed


def _stream(number: int) -> str:
    return f"stream {number}: " if number else ""


def _measured_type() -> type[Measured]:
    # Only what shows progress loads what a terminal needs.
    from hotset.core.progress import Measured

    return Measured


def power_run(
    scale: float,
    seed: int | None,
    started: float,
    ended: float,
    queries: Sequence[Query],
    refresh_s: tuple[float, float] | None = None,
    cause: str = "",
) -> PowerRun:
    """The record of a power run, whose times are in seconds since 1970.

    TPROC-H power, as clause 5.4.1: 3600 · SF / geometric mean of the 22 queries and both refresh
    functions, none counted as less than a thousandth of the longest query.
    """
    power = None
    if refresh_s is not None and _complete(queries):
        floor = max(query.seconds for query in queries) / 1000
        times = [*(max(query.seconds, floor) for query in queries), *refresh_s]
        power = 3600 * scale / geometric_mean(times)
    return PowerRun(
        opened_at=datetime.fromtimestamp(started, UTC),
        duration_s=ended - started,
        queries=tuple(queries),
        scale=scale,
        seed=seed,
        refresh_s=refresh_s,
        cause=cause,
        tproc_h_power=power,
    )


def throughput_run(
    scale: float,
    started: float,
    ended: float,
    streams: Sequence[QueryStream],
    refresh_s: tuple[tuple[float, float], ...] | None,
    cause: str = "",
) -> ThroughputRun:
    """The record of a throughput run: from the first query sent to the last stream's end, in
    seconds since 1970.

    TPROC-H throughput, as clause 5.4.2: S · 22 · 3600 / seconds · SF, with refresh.
    """
    count = len(streams)
    is_whole = count and refresh_s is not None and len(refresh_s) == count
    has_all = is_whole and all(_complete(stream.queries) for stream in streams)
    return ThroughputRun(
        opened_at=datetime.fromtimestamp(started, UTC),
        duration_s=ended - started,
        streams=tuple(streams),
        refresh_s=refresh_s,
        cause=cause,
        tproc_h_throughput=count * 22 * 3600 / (ended - started) * scale if has_all else None,
    )


def with_composite(power: PowerRun, throughput: ThroughputRun) -> ThroughputRun:
    """The throughput run with TPROC-H's composite, as clause 5.4.3: the geometric mean of power
    and throughput; None when either is missing."""
    both = power.tproc_h_power, throughput.tproc_h_throughput
    composite = None if both[0] is None or both[1] is None else math.sqrt(both[0] * both[1])
    return throughput.model_copy(update={"tproc_h_composite": composite})


def _complete(queries: Sequence[Query]) -> bool:
    return {query.number for query in queries if query.outcome == "ok"} == set(range(1, 23))
