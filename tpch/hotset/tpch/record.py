"""Progress and results of loads and runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from hotset.core.errors import HotsetError, PrerequisiteError
from hotset.core.record import derived
from hotset.reports.model.windows import Query, geometric_mean

if TYPE_CHECKING:
    from hotset.core.progress import Measured, Reporter

Function = Literal["RF1", "RF2"]


class Lacks(PrerequisiteError):
    """This computer lacks what the work needs (a program, room); says the remedy."""


class DataFailed(HotsetError):
    """The generator failed, or made what the specification does not ask for."""


class RunInterrupted(KeyboardInterrupt):
    """Ctrl-C; `partial` is what the run had measured."""

    def __init__(self, partial: PowerResult) -> None:
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
        share = self.bytes_done / self.bytes_total
        left = f", ETA {self.seconds / share - self.seconds:.0f} s" if share else ""
        report.figure(
            f"{self.seconds:.1f} s, {step}: {Bytes(self.bytes_done)} of"
            f" {Bytes(self.bytes_total)}{left}",
            _measured_type().by_rate(self.bytes_done, self.bytes_total, "bytes", self.seconds),
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


@dataclass(frozen=True, slots=True)
class PowerResult:
    """One power run (clause 5.3.3): the queries in the order they ran.

    started, ended  seconds since 1970
    refresh_s       RF1 before the queries and RF2 after them (clause 2.5); None: not run
    cause           what ended the run early, in the server's words
    """

    scale: float
    seed: int | None
    started: float
    ended: float
    queries: tuple[Query, ...]
    refresh_s: tuple[float, float] | None = None
    cause: str = ""

    @derived
    def complete(self) -> bool:
        """All 22 queries finished."""
        return _complete(self.queries)

    @derived
    def total_s(self) -> float:
        """Seconds of all queries, a floor when one timed out."""
        return sum(query.seconds for query in self.queries)

    @derived
    def geometric_mean_s(self) -> float | None:
        """Geometric mean of the 22 queries' seconds; None unless all finished."""
        return geometric_mean(query.seconds for query in self.queries) if self.complete else None

    @property
    def power(self) -> float | None:
        """TPROC-H power, as clause 5.4.1: 3600 · SF / geometric mean of the 22 queries and both
        refresh functions, none counted as less than a thousandth of the longest query. None
        when one of the 24 is missing.
        """
        if not self.complete or self.refresh_s is None:
            return None
        floor = max(query.seconds for query in self.queries) / 1000
        timings = [max(query.seconds, floor) for query in self.queries] + list(self.refresh_s)
        return 3600 * self.scale / geometric_mean(timings)

    @derived
    def tproc_h_power(self) -> float | None:
        """:attr:`power`, by the name that says whose it is."""
        return self.power


@dataclass(frozen=True, slots=True)
class StreamResult:
    """One query stream of a throughput run; `started` and `ended` as seconds since 1970."""

    number: int
    started: float
    ended: float
    queries: tuple[Query, ...]

    @property
    def complete(self) -> bool:
        """All 22 queries finished."""
        return _complete(self.queries)


@dataclass(frozen=True, slots=True)
class ThroughputResult:
    """One throughput run (clause 5.3.4): query streams side by side, one refresh stream.

    started, ended  seconds since 1970: the first query sent, the last stream's end
    refresh_s       one pair of RF1 and RF2 for each query stream; None: not run
    cause           what ended a stream early, in the server's words
    """

    scale: float
    seed: int | None
    started: float
    ended: float
    streams: tuple[StreamResult, ...]
    refresh_s: tuple[tuple[float, float], ...] | None = None
    cause: str = ""

    @derived
    def complete(self) -> bool:
        """Every stream has its 22 answers, and its pair of refresh functions unless left out."""
        refreshed = self.refresh_s is None or len(self.refresh_s) == len(self.streams)
        return bool(self.streams) and refreshed and all(stream.complete for stream in self.streams)

    @derived
    def seconds(self) -> float:
        """The measurement interval (clause 5.3.6)."""
        return self.ended - self.started

    @property
    def throughput(self) -> float | None:
        """TPROC-H throughput, as clause 5.4.2: S · 22 · 3600 / seconds · SF, with refresh."""
        if not self.complete or self.refresh_s is None:
            return None
        return len(self.streams) * 22 * 3600 / self.seconds * self.scale

    @derived
    def tproc_h_throughput(self) -> float | None:
        """:attr:`throughput`, by the name that says whose it is."""
        return self.throughput


def composite(power: PowerResult, throughput: ThroughputResult) -> float | None:
    """TPROC-H composite, as clause 5.4.3: the geometric mean of power and throughput; None
    when either is missing. Raises ValueError for runs of different scales."""
    if power.scale != throughput.scale:
        raise ValueError(
            f"a power run at scale {power.scale:g} and throughput at"
            f" {throughput.scale:g} have no composite"
        )
    if power.power is None or throughput.throughput is None:
        return None
    return math.sqrt(power.power * throughput.throughput)


def _complete(queries: Sequence[Query]) -> bool:
    return {query.number for query in queries if query.outcome == "ok"} == set(range(1, 23))
