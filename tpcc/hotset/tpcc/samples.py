"""From single transactions to figures: what users record, and what the parent makes of it.

Users record every transaction with the time it ended; the parent decides afterwards
what lies in the window. A transaction takes 13 bytes in the parent: an hour at 5,000
per second is 230 MB.
"""

import threading
from array import array
from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from hotset.tpcc.record import KindResult, Latency, PhaseName, RunOptions, RunResult, Second, Tick
from hotset.tpcc.transactions import Kind

Outcome = Literal["rolled back", "retry", "failed"]
Floats: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.float64]]"
Bools: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.bool_]]"


@dataclass(frozen=True, slots=True)
class Event:
    """Anything but a commit: rare enough for an object. `end` is monotonic, in seconds."""

    end: float
    kind: Kind
    outcome: Outcome
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """Samples on their way to the parent: columns of commits as raw bytes, and events."""

    ends: bytes
    kinds: bytes
    latencies: bytes
    events: list[Event]


class Recorder:
    """One user's samples since they were last collected, by another thread.

    The lock is free nearly always; it keeps a sample from being appended to columns that
    were just taken away.
    """

    __slots__ = ("_ends", "_events", "_kinds", "_latencies", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._ends = array("d")
        self._kinds = array("B")
        self._latencies = array("f")
        self._events: list[Event] = []

    def commit(self, kind: Kind, end: float, latency_s: float) -> None:
        """Record a committed transaction."""
        with self._lock:
            self._ends.append(end)
            self._kinds.append(kind)
            self._latencies.append(latency_s)

    def event(self, event: Event) -> None:
        """Record a rollback, a retry or a failure."""
        with self._lock:
            self._events.append(event)

    def collect(self) -> Batch:
        """Take away what there is."""
        with self._lock:
            ends, kinds, latencies, events = self._ends, self._kinds, self._latencies, self._events
            self._clear()
        return Batch(ends.tobytes(), kinds.tobytes(), latencies.tobytes(), events)


def joined(batches: list[Batch]) -> Batch:
    """Several users' samples as one."""
    return Batch(
        b"".join(b.ends for b in batches),
        b"".join(b.kinds for b in batches),
        b"".join(b.latencies for b in batches),
        [event for b in batches for event in b.events],
    )


class _Columns:
    """Commits as numpy columns: end (s, monotonic), kind, latency (ms)."""

    def __init__(self, batch: Batch) -> None:
        self.ends = np.frombuffer(batch.ends, dtype=np.float64)
        self.kinds = np.frombuffer(batch.kinds, dtype=np.uint8)
        self.latencies_ms = np.frombuffer(batch.latencies, dtype=np.float32) * np.float32(1e3)
        self.events = batch.events

    def between(self, start: float, end: float) -> "_Columns":
        """The commits and events of one stretch of time, its end excluded."""
        inside: Bools = (self.ends >= start) & (self.ends < end)
        part = object.__new__(_Columns)
        part.ends = self.ends[inside]
        part.kinds = self.kinds[inside]
        part.latencies_ms = self.latencies_ms[inside]
        part.events = [event for event in self.events if start <= event.end < end]
        return part

    def of(self, kind: Kind) -> Floats:
        """Latencies of one type."""
        return np.asarray(self.latencies_ms[self.kinds == kind], dtype=np.float64)

    def count(self, outcome: Outcome) -> int:
        return sum(event.outcome == outcome for event in self.events)

    def causes(self, kind: Kind, outcome: Outcome) -> dict[str, int]:
        return dict(
            Counter(e.cause for e in self.events if e.kind == kind and e.outcome == outcome)
        )


class RunLog:
    """All samples of a run, in the parent. Times are monotonic seconds."""

    def __init__(self, options: RunOptions, start: float, epoch: float) -> None:
        """`start` is when ramp-up begins; `epoch` is the wall clock's zero on that scale."""
        self._options = options
        self._start = start
        self._epoch = epoch
        self._batches: list[Batch] = []
        self._recent: list[tuple[float, Batch]] = []

    @property
    def window(self) -> tuple[float, float]:
        """When the window opens and closes."""
        opens = self._start + self._options.rampup_s
        return opens, opens + self._options.duration_s

    def add(self, batch: Batch, now: float) -> bool:
        """Keep a batch; True if anything in it got through (committed, or rolled back as meant)."""
        if not batch.kinds and not batch.events:
            return False
        self._batches.append(batch)
        # Ticks look at fresh samples only; a late one still counts in the series.
        self._recent = [(at, old) for at, old in self._recent if now - at < 4.0]
        self._recent.append((now, batch))
        return bool(batch.kinds) or any(e.outcome == "rolled back" for e in batch.events)

    def last_failure(self) -> str | None:
        """The cause of the latest failed transaction."""
        failures = (e for b in reversed(self._batches) for e in b.events if e.outcome == "failed")
        latest = next(failures, None)
        return latest.cause if latest else None

    def tick(self, second: int, phase: PhaseName) -> Tick:
        """The figures of one second since the start."""
        fresh = _Columns(joined([batch for _, batch in self._recent]))
        one = fresh.between(self._start + second, self._start + second + 1)
        return Tick(second, phase, *_figures(one))

    def result(self, nopm_by_district: float | None, until: float | None = None) -> RunResult:
        """Figures of the window, or of its part before `until`."""
        opens, closes = self.window
        if until is not None:
            closes = min(closes, until)
        window = _Columns(joined(self._batches)).between(opens, closes)
        minutes = (closes - opens) / 60
        kinds = {kind.label: _kind_result(window, kind) for kind in Kind}
        return RunResult(
            options=self._options,
            window_start=self._epoch + opens,
            window_end=self._epoch + closes,
            nopm=kinds[Kind.NEW_ORDER.label].committed / minutes,
            tpm=len(window.ends) / minutes,
            nopm_by_district=nopm_by_district,
            kinds=kinds,
            latency_ms=_latency(window.latencies_ms.astype(np.float64)),
            failed=window.count("failed"),
            series=_series(window, opens, closes),
        )


def _kind_result(window: _Columns, kind: Kind) -> KindResult:
    latencies_ms = window.of(kind)
    return KindResult(
        committed=len(latencies_ms),
        rolled_back=sum(window.causes(kind, "rolled back").values()),
        retries=window.causes(kind, "retry"),
        failed=window.causes(kind, "failed"),
        latency_ms=_latency(latencies_ms),
    )


def _latency(latencies_ms: Floats) -> Latency:
    if not len(latencies_ms):
        return Latency(None, None, None, None, None)
    p50, p95, p99 = np.percentile(latencies_ms, (50, 95, 99)).tolist()
    return Latency(float(latencies_ms.mean()), p50, p95, p99, float(latencies_ms.max()))


def _figures(part: _Columns) -> tuple[int, int, int, float | None, float | None]:
    """New-orders, transactions, failures, mean and 95th percentile of latency."""
    latency_ms = _latency(part.latencies_ms.astype(np.float64))
    new_orders = int((part.kinds == Kind.NEW_ORDER).sum())
    return new_orders, len(part.ends), part.count("failed"), latency_ms.mean, latency_ms.p95


def _series(window: _Columns, opens: float, closes: float) -> list[Second]:
    """One record per started second of the window."""
    seconds = max(0, int(np.ceil(closes - opens)))
    order = np.argsort(window.ends, kind="stable")
    ends = window.ends[order]
    edges = np.searchsorted(ends, opens + np.arange(seconds + 1), side="left")
    edges[-1:] = len(ends)
    failures = Counter(
        min(int(e.end - opens), seconds - 1) for e in window.events if e.outcome == "failed"
    )
    series = []
    for second in range(seconds):
        part = order[edges[second] : edges[second + 1]]
        latency_ms = _latency(window.latencies_ms[part].astype(np.float64))
        new_orders = int((window.kinds[part] == Kind.NEW_ORDER).sum())
        series.append(
            Second(second, new_orders, len(part), failures[second], latency_ms.mean, latency_ms.p95)
        )
    return series
