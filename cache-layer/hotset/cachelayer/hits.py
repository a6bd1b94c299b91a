"""Counters and CPU of a machine, sampled while something runs on it.

One small program on the machine prints a sample each second; each is stamped with this computer's
clock as it arrives, so the clocks of the two need not agree. Over a window the two samples nearest
to its edges are taken.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from hotset.cachelayer.machine import Machine
from hotset.cachelayer.tier import Counters, Hits, Tier, hits_between

# Arguments: the command that prints the tier's counters as one line; none where there is no tier.
_PROGRAM = """
while :; do
    read -r cpu < /proc/stat
    echo "$cpu"
    if [ $# -gt 0 ]; then "$@" || echo Fail; else echo -; fi
    sleep 1
done
"""
_NEXT_SAMPLE_LIMIT_S = 5.0
_FIRST_SAMPLE_LIMIT_S = 15.0


@dataclass(frozen=True, slots=True)
class Cpu:
    """Ticks of all cores together since boot (first line of /proc/stat)."""

    busy: int
    iowait: int
    steal: int
    total: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading; ``at`` is ``time.time()`` of this computer when it arrived."""

    at: float
    cpu: Cpu
    counters: Counters | None


@dataclass(frozen=True, slots=True)
class Window:
    """What lies between two samples; shares of all cores' time.

    ``steal`` is what a hypervisor gave to others while this machine had work; ``cpu`` counts it as
    busy, since it was not to be had.
    """

    seconds: float
    cpu: float
    iowait: float
    steal: float
    hits: Hits | None
    first: Sample
    last: Sample


def parse_cpu(line: str) -> Cpu:
    """The ``cpu`` line of /proc/stat (proc(5)): user nice system idle iowait irq softirq steal …

    >>> parse_cpu("cpu 10 0 5 78 5 0 0 2 0 0")
    Cpu(busy=17, iowait=5, steal=2, total=100)
    """
    words = line.split()
    if len(words) < 9 or words[0] != "cpu":
        raise ValueError(f"not the cpu line of /proc/stat: {line!r}")
    # guest and guest_nice (the last two) are already part of user and nice.
    ticks = [int(word) for word in words[1:9]]
    idle, iowait = ticks[3], ticks[4]
    return Cpu(sum(ticks) - idle - iowait, iowait, ticks[7], sum(ticks))


def busy(machine: Machine, seconds: float = 1.0) -> float:
    """The share of all cores' time that a machine spends on whatever runs there, over a while."""
    script = f"head -n 1 /proc/stat; sleep {seconds:g}; head -n 1 /proc/stat"
    first, last = map(parse_cpu, machine.run(["sh", "-c", script]).stdout.splitlines())
    return (last.busy - first.busy) / max(1, last.total - first.total)


def between(first: Sample, last: Sample, counter_bits: int) -> Window:
    """Differences of two samples."""
    total = max(1, last.cpu.total - first.cpu.total)
    hits = None
    if first.counters is not None and last.counters is not None:
        hits = hits_between(first.counters, last.counters, counter_bits)
    busy, iowait = last.cpu.busy - first.cpu.busy, last.cpu.iowait - first.cpu.iowait
    # iowait may run backwards by a tick or two (proc(5)); so may steal.
    steal = max(0, last.cpu.steal - first.cpu.steal)
    return Window(last.at - first.at, busy / total, max(0, iowait) / total, steal / total,
                  hits, first, last)  # fmt: skip


class Sampler(AbstractContextManager["Sampler"]):
    """Samples a machine each second for the length of a ``with`` block."""

    def __init__(self, machine: Machine, tier: Tier | None) -> None:
        """:param tier: whose counters to read; None reads the CPU alone."""
        self._machine = machine
        self._tier = tier
        self._bits = tier.counter_bits if tier else 0
        self._stack = ExitStack()
        self._error: Exception | None = None
        self._first = threading.Event()
        self.samples: list[Sample] = []

    def __enter__(self) -> Self:
        counters = self._tier.status_argv() if self._tier else []
        argv = ["sh", "-c", _PROGRAM, "hotset-sampler", *counters]
        lines = self._stack.enter_context(self._machine.stream(argv))
        self._thread = threading.Thread(target=self._read, args=(lines,), daemon=True)
        self._thread.start()
        self._first.wait(_FIRST_SAMPLE_LIMIT_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
        self._thread.join(timeout=5)

    def window(self, start: float, end: float) -> Window:
        """What happened from ``start`` to ``end`` (``time.time()``), by the nearest samples.

        :raises TierFailedError: the tier said ``Fail`` meanwhile.
        :raises RuntimeError: there are no two samples.
        """
        samples = self._enough()
        first = min(samples, key=lambda sample: abs(sample.at - start))
        last = min(samples, key=lambda sample: abs(sample.at - end))
        return between(first, last, self._bits)

    def around(self, start: float, end: float) -> Window:
        """All that happened from ``start`` to ``end``, by the samples around them.

        For work with rest before and after it: waits for the sample that follows. Raises as
        :meth:`window` does.
        """
        deadline = time.monotonic() + _NEXT_SAMPLE_LIMIT_S
        while self._thread.is_alive() and time.monotonic() < deadline:
            if self.samples and self.samples[-1].at >= end:
                break
            time.sleep(0.05)
        samples = self._enough()
        first = max((one for one in samples[:-1] if one.at <= start), default=samples[0],
                    key=lambda sample: sample.at)  # fmt: skip
        last = next((one for one in samples[1:] if one.at >= end), samples[-1])
        return between(first, last, self._bits)

    def _enough(self) -> list[Sample]:
        if self._error is not None:
            raise self._error
        if len(self.samples) < 2:
            raise RuntimeError("the machine's counters could not be sampled during the run")
        return self.samples

    def each_second(self, start: float, seconds: int) -> list[Window | None]:
        """One window per second from ``start``; None where no sample arrived."""
        pairs = list(zip(self.samples, self.samples[1:], strict=False))
        windows: list[Window | None] = []
        for second in range(seconds):
            middle = start + second + 0.5
            found = next((pair for pair in pairs if pair[0].at <= middle < pair[1].at), None)
            windows.append(between(*found, self._bits) if found else None)
        return windows

    def _read(self, lines: Iterator[str]) -> None:
        try:
            self._collect(lines)
        except Exception as error:
            self._error = error
        finally:
            self._first.set()

    def _collect(self, lines: Iterator[str]) -> None:
        for cpu_line in lines:
            status = next(lines, None)
            if status is None:
                return
            counters = self._tier.parse(status) if self._tier else None
            self.samples.append(Sample(time.time(), parse_cpu(cpu_line), counters))
            self._first.set()
