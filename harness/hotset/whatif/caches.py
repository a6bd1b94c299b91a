"""Caches on a trace: ``flashdev``'s curves and simulations, many side by side."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, as_completed
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Protocol, Self

from hotset.block import flashdev
from hotset.block.programs import OnRead
from hotset.core.errors import RequestError
from hotset.core.machines.local import Local
from hotset.core.paths import read_json_lines, state_dir
from hotset.core.record import Versioned, derived, extend
from hotset.core.units import Bytes
from hotset.core.words import percent, text_table

from .choices import BOUNDS, Mode, Policy

_FOLDER = "whatif"
LOADS = ("tpcc", "tpch")
"""Built-in ones: a trace may be written as such a word, a colon and what load it is to be."""


@dataclass(frozen=True, slots=True)
class TraceFigures:
    """The totals of a pass over a trace.

    :ivar end: the byte behind the last that any request touches.
    :ivar timed: its requests have times.
    :ivar whole_seconds: which are whole seconds, with several requests in one.
    """

    requests: int
    writes: int
    read_bytes: int
    written_bytes: int
    end: int
    seconds: float
    timed: bool
    whole_seconds: bool


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Hit ratio of an LRU cache of a size that starts empty; of a sample, with the band that holds
    the exact ratio with a probability of 95 %.

    :ivar warm_low: with ``warm_high``, the bounds over the trace's later part of a cache that was
        in use before, whatever had been asked of it, and should what is gone come back.
    """

    cache_bytes: int
    hit_ratio: float
    hit_ratio_low: float
    hit_ratio_high: float
    warm_low: float
    warm_high: float


@dataclass(frozen=True, slots=True)
class Curve:
    """:ivar requests: cut at the blocks.
    :ivar blocks: different ones; an estimate where they were sampled.
    :ivar later_requests: of the later part, half to three quarters of the trace.
    :ivar later_new: those of them that were the first to their block.
    :ivar gone: blocks that it did not touch, and the earlier part did.
    :ivar growth: different blocks after 1, 2, 4, … requests.
    """

    requests: int
    blocks: int
    block_bytes: int
    sampled_share: float
    later_requests: int
    later_new: int
    gone: int
    growth: tuple[int, ...]
    points: tuple[CurvePoint, ...]

    @property
    def new_share(self) -> float:
        """Share of the later requests that were the first to their block."""
        return min(1.0, self.later_new / self.later_requests) if self.later_requests else 1.0

    @property
    def gone_share(self) -> float:
        """Blocks of the earlier part alone, by all requests: should they come back as seldom, so
        many miss."""
        return min(1.0, self.gone / self.requests) if self.requests else 0.0


@dataclass(frozen=True)
class Cache:
    """A cache that is asked about."""

    policy: Policy
    cache_bytes: int
    block_bytes: int
    mode: Mode


@dataclass(frozen=True, slots=True)
class Outcome:
    """Effect of a cache on a trace: requests cut at its blocks, and blocks that moved.

    :ivar write_hit_bytes: of the writes that hit.
    :ivar absorbed: writes that went to the flash alone.
    :ivar bypassed: requests sent past the cache.
    """

    requests: int
    hits: int
    misses: int
    miss_ratio: float
    promotions: int
    demotions: int
    writes: int
    write_hits: int
    write_hit_bytes: int
    absorbed: int
    write_backs: int
    bypassed: int

    @derived
    def flash_writes(self) -> int:
        """Blocks that came, and requests that wrote to what was there."""
        return self.promotions + self.write_hits

    @derived
    def hit_ratio(self) -> float:
        return self.hits / self.requests if self.requests else 0.0

    @derived
    def origin_writes(self) -> int:
        """Writes that the slow storage gets, at once or later."""
        return self.writes - self.absorbed + self.write_backs

    @classmethod
    def parse(cls, document: dict[str, Any]) -> Self:
        """:raises TypeError: a field is missing, or one is not known."""
        return cls(**document)


@dataclass(frozen=True)
class _OfTrace(Versioned):
    """:ivar trace: its file's name, or a load's words."""

    trace: str


@dataclass(frozen=True)
class Trace(TraceFigures, _OfTrace):
    """The contents of a trace."""

    def to_text(self) -> str:
        lasts = f"over {self.seconds:,.1f} s" if self.timed else "without times"
        lasts += " (times are whole seconds)" if self.whole_seconds else ""
        lines = (
            f"{self.trace}: {self.requests:,} requests {lasts}",
            f"reads   {self.requests - self.writes:>15,}  {Bytes(self.read_bytes)}",
            f"writes  {self.writes:>15,}  {Bytes(self.written_bytes)}",
            f"of the disk's first {Bytes(self.end)}",
        )
        return "\n".join(lines)


@dataclass(frozen=True)
class RecordedTrace(Trace):
    """A trace that was recorded just now; ``cpu_share`` of one core recording took."""

    device: str
    recorded_s: float
    cpu_share: float

    def to_text(self) -> str:
        return (
            f"{super().to_text()}\n\nrecorded of {self.device} for {self.recorded_s:,.1f} s;"
            f" it took {percent(self.cpu_share, 2)} of a core"
        )


_BAR = 30


@dataclass(frozen=True)
class HitCurve(Curve, _OfTrace):
    """A curve of a trace."""

    csv_rows = "points"

    def to_text(self) -> str:
        touched = Bytes(self.blocks * self.block_bytes)
        sampled = self.sampled_share < 1
        columns = ["cache", "of what is touched", "hit ratio", *(["from", "to"] if sampled else [])]
        columns += ["in use: from", "to"]
        rows = []
        for point in self.points:
            share = point.cache_bytes / touched if touched else 0.0
            row = [str(Bytes(point.cache_bytes)), percent(share), percent(point.hit_ratio, 2)]
            if sampled:
                row += [percent(point.hit_ratio_low, 2), percent(point.hit_ratio_high, 2)]
            row += [percent(point.warm_low, 2), percent(point.warm_high, 2)]
            rows.append([*row, ("█" * round(point.hit_ratio * _BAR)).ljust(_BAR)])
        counted = f"{percent(self.sampled_share, 2)} of its" if sampled else "all"
        return (
            f"{text_table([*columns, ''], rows)}\n\n{self.trace}: {self.requests:,} requests to"
            f" {touched} in blocks of {Bytes(self.block_bytes)}, {counted} blocks counted. The"
            " ratios are those of LRU, for reads and writes alike. Hit ratio: starting empty, so"
            " that the first access to a block misses. In use: of a cache that was in use before,"
            f" over the last {self.later_requests:,} requests, {percent(self.new_share)} of them to"
            " blocks that the trace had not touched until then: whether those hit is not known, nor"
            f" whether blocks of the earlier part alone come back ({percent(self.gone_share)})."
            + (" From and to hold the exact ratio with a probability of 95 %." if sampled else "")
        )


@dataclass(frozen=True)
class SimulatedCache(Outcome, Cache):
    """The effect of a simulated cache on a trace."""


_BESIDE_THE_KERNELS = {
    "smq": "the kernel's, for which moving data takes time, hit up to 17 points more in replays"
    " (scans that come back), and 0 to 9 with TPC-C",
    "bcache": "the kernel's hit up to 2.4 points more or 2 fewer in replays",
}
"""How far off these figures are known to be (reports/published/20261127-agreement)."""
BY_TIME = ("smq", "bcache")
"""Policies that do something after a while."""


def beside_whole_seconds(policies: Collection[str], figures: TraceFigures | None) -> list[str]:
    """List what makes figures of these policies doubtful where a trace's times are too coarse."""
    named = [policy for policy in BY_TIME if policy in policies]
    if figures is None or not figures.whole_seconds or not named:
        return []
    return [
        f"{' and '.join(named)}: the trace's times are whole seconds, as if all requests of one"
        " came at once, and this goes by time: its hit ratio may be far too low (of such a trace"
        " smq had 13 % where LRU had 54 %). Take a trace with finer times."
    ]


@dataclass(frozen=True)
class Simulations(_OfTrace):
    """Caches on a trace."""

    csv_rows = "caches"

    caches: tuple[SimulatedCache, ...]
    warnings: tuple[str, ...]

    @classmethod
    def from_outcomes(
        cls,
        trace: str,
        outcomes: Sequence[tuple[Cache, Outcome]],
        figures: TraceFigures | None = None,
    ) -> Simulations:
        """:param figures: of the trace; None: none of these policies goes by time."""
        return cls(
            trace,
            tuple(extend(SimulatedCache, outcome, **asdict(cache)) for cache, outcome in outcomes),
            tuple(beside_whole_seconds({cache.policy for cache, _ in outcomes}, figures)),
        )

    def to_text(self) -> str:
        columns = ["policy", "cache", "block", "mode", "hit ratio", "bypassed"]
        columns += ["writes absorbed", "origin writes", "flash writes"]
        rows = [
            (
                cache.policy,
                str(Bytes(cache.cache_bytes)),
                str(Bytes(cache.block_bytes)),
                cache.mode,
                percent(cache.hit_ratio, 2),
                percent(cache.bypassed / max(cache.requests, 1), 2),
                percent(cache.absorbed / max(cache.writes, 1), 2),
                f"{cache.origin_writes:,}",
                f"{cache.flash_writes:,}",
            )
            for cache in self.caches
        ]
        policies = {cache.policy for cache in self.caches}
        lines = (
            text_table(columns, rows),
            "",
            f"{self.trace}, simulated, starting empty; requests are split at block boundaries, and"
            " moving data takes no time. Origin and flash writes: requests and blocks.",
            *(f"{name}: {far}" for name, far in _BESIDE_THE_KERNELS.items() if name in policies),
            *self.warnings,
        )
        return "\n".join(lines)


def trace_figures(local: Local, trace: str) -> TraceFigures:
    """Reads a trace to its end."""
    return TraceFigures(**flashdev.figures(local, ["trace", "info", trace]))


def write_trace(local: Local, words: Sequence[str], output: Path, on_read: OnRead) -> TraceFigures:
    """``flashdev trace`` with a command that writes a trace."""
    argv = ["trace", *words, f"--to={output}", "--progress"]
    return TraceFigures(**flashdev.figures(local, argv, on_read))


def curve(
    local: Local, trace: str, block: Bytes, share: float, sizes: Sequence[Bytes], on_read: OnRead
) -> Curve:
    """LRU's hit ratios by size.

    :param share: of the blocks that are counted; below 1 the curve is an estimate.
    :param sizes: in ascending order; none: sizes that show the curve.
    """
    words = ["mrc", f"--trace={trace}", f"--block={int(block)}", f"--sample={share}", "--progress"]
    figures = flashdev.figures(
        local, [*words, *(f"--cache={int(size)}" for size in sizes)], on_read
    )
    points = tuple(CurvePoint(**point) for point in figures.pop("points"))
    return Curve(**{**figures, "growth": tuple(figures["growth"])}, points=points)


def simulate(
    local: Local,
    trace: str,
    cache: Cache,
    more: Sequence[str] = (),
    on_read: OnRead = lambda _, __: None,
) -> Outcome:
    """Simulate one cache on a trace.

    :param more: other options of ``flashdev simulate``, such as ``--sequential-cutoff=0``.
    """
    slots = cache.cache_bytes // cache.block_bytes
    words = ["simulate", f"--trace={trace}", f"--cache-blocks={slots}"]
    words += [f"--block={cache.block_bytes}", f"--mode={cache.mode}", "--json", "--progress", *more]
    known = BOUNDS.get(cache.policy)
    words.append(f"--bound={known}" if known else f"--policy={cache.policy}")
    return Outcome.parse(flashdev.figures(local, words, on_read))


def require_whole_blocks(caches: Sequence[Cache]) -> None:
    """:raises RequestError: a block is larger than its cache, or does not divide it."""
    for cache in caches:
        if cache.block_bytes < 1 or cache.cache_bytes % cache.block_bytes or not cache.cache_bytes:
            raise RequestError(
                f"a cache of {Bytes(cache.cache_bytes)} is not a number of whole blocks of"
                f" {Bytes(cache.block_bytes)}: give sizes that the block divides",
                field="cache",
            )


class Workers(Protocol):
    """Who runs simulations, as long as it is entered; see ``workers``."""

    def submit(self, trace: str, cache: Cache, more: Sequence[str]) -> Future[Outcome]: ...


def sweep(
    workers: Workers,
    trace: str,
    caches: Sequence[Cache],
    more: Sequence[str],
    on_done: Callable[[Cache, Outcome, int], None],
) -> list[tuple[Cache, Outcome]]:
    """Simulate each cache on a trace, several at a time; results are in the order of ``caches``.

    Each outcome is saved as it is found. A sweep that was killed continues where it was when
    it is started again, as long as the trace is the same.

    :param on_done: told of each: the cache, its outcome, how many are left.
    """
    kept = _Kept(trace, caches, more)
    outcomes = kept.read()
    waiting = {
        workers.submit(trace, cache, more): cache for cache in caches if cache not in outcomes
    }
    for done in as_completed(waiting):
        cache, outcome = waiting[done], done.result()
        kept.add(cache, outcome)
        outcomes[cache] = outcome
        on_done(cache, outcome, len(set(caches)) - len(outcomes))
    kept.remove()
    return [(cache, outcomes[cache]) for cache in caches]


def is_made(trace: str) -> bool:
    """True if its requests are generated as it is read: it describes a load, and is no file."""
    return trace.partition(":")[0] in LOADS


def _identity(trace: str) -> list[str | int]:
    if is_made(trace):
        return [trace]
    seen = Path(trace).stat()
    return [str(Path(trace).resolve()), seen.st_size, seen.st_mtime_ns]


class _Kept:
    """The outcomes so far of a sweep, a line each."""

    def __init__(self, trace: str, caches: Sequence[Cache], more: Sequence[str]) -> None:
        program = flashdev.program(Local()).stat()
        what = [
            *_identity(trace),
            program.st_mtime_ns,
            [asdict(cache) for cache in caches],
            list(more),
        ]
        name = hashlib.sha256(json.dumps(what).encode()).hexdigest()[:16]
        folder = state_dir() / _FOLDER
        folder.mkdir(exist_ok=True)
        self.file = folder / f"{name}.jsonl"

    def read(self) -> dict[Cache, Outcome]:
        return dict(self._lines())

    def _lines(self) -> Iterator[tuple[Cache, Outcome]]:
        for known in read_json_lines(self.file):
            # What nobody understands is simulated again, as is what was cut short.
            with suppress(ValueError, TypeError, KeyError):
                yield Cache(**known["cache"]), Outcome.parse(known["outcome"])

    def add(self, cache: Cache, outcome: Outcome) -> None:
        line = json.dumps({"cache": asdict(cache), "outcome": asdict(outcome)})
        descriptor = os.open(self.file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "w") as file:
            # On a line of its own, also behind one that was cut short.
            file.write(f"\n{line}\n" if file.tell() else f"{line}\n")

    def remove(self) -> None:
        self.file.unlink(missing_ok=True)


def names(of: type) -> list[str]:
    """The fields of a record."""
    return [field.name for field in fields(of)]
