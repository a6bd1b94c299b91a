"""Counters and CPU of a machine, sampled while something runs on it.

One small program on the machine prints a sample each second; each is stamped with this computer's
clock as it arrives, so the clocks of the two need not agree. Over a window the two samples nearest
to its edges are taken.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice, pairwise
from typing import Self

from hotset.block import io_counters
from hotset.block.io_counters import IoCounters, IoUse, Readings, Source
from hotset.core.clock import wait_until
from hotset.core.machines.base import Machine
from hotset.tier.base import Counters, Counting, Hits, Tier, counters_restarted, hits_between

# Arguments: commands that print one line each: a tier's counters, then devices'. 124 is what
# timeout(1) ends with.
_PROGRAM = """
while :; do
    read -r cpu < /proc/stat
    echo "$cpu"
    for command in "$@"; do
        line=$(eval "$command") || { [ $? = 124 ] && line=Late || line=Fail; }
        printf '%s\\n' "$line"
    done
    sleep 1
done
"""
_FAILED, _LATE = "Fail", "Late"
_NO_TIERS = Counting(64)
_NEXT_SAMPLE_LIMIT_S = 5.0
_FIRST_SAMPLE_LIMIT_S = 15.0


@dataclass(frozen=True, slots=True)
class Cpu:
    """Ticks of all cores together since boot (first line of /proc/stat)."""

    busy: int
    user: int
    system: int
    iowait: int
    steal: int
    total: int


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading; ``at`` is ``time.time()`` of this computer when it arrived. ``counters``: None
    where there is no tier, and where it did not answer in time."""

    at: float
    cpu: Cpu
    counters: Counters | None
    devices: Readings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Window:
    """Difference between two samples; shares of all cores' time.

    ``user`` and ``system`` are parts of ``cpu``; ``system`` includes interrupts.
    ``steal`` is what a hypervisor gave to others while this machine had work; ``cpu`` counts it as
    busy, since it was not to be had.
    ``hits``: None where no tier is counted or it did not answer, where it is a second of a kind
    that counts later than that, and where its counters restarted in between (``restarted``):
    what was counted before that is not known.
    """

    seconds: float
    cpu: float
    user: float
    system: float
    iowait: float
    steal: float
    hits: Hits | None
    first: Sample
    last: Sample
    devices: tuple[IoUse, ...] = ()
    restarted: bool = False


def parse_cpu(line: str) -> Cpu:
    """The ``cpu`` line of /proc/stat (proc(5)): user nice system idle iowait irq softirq steal …

    >>> parse_cpu("cpu 10 0 5 78 5 0 0 2 0 0")
    Cpu(busy=17, user=10, system=5, iowait=5, steal=2, total=100)
    """
    words = line.split()
    if len(words) < 9 or words[0] != "cpu":
        raise ValueError(f"not the cpu line of /proc/stat: {line!r}")
    # guest and guest_nice (the last two) are already part of user and nice.
    ticks = [int(word) for word in words[1:9]]
    user, nice, system, idle, iowait, irq, softirq, steal = ticks
    total = sum(ticks)
    return Cpu(total - idle - iowait, user + nice, system + irq + softirq, iowait, steal, total)


def busy(machine: Machine, seconds: float = 1.0) -> float:
    """The share of all cores' time that a machine spends on whatever runs there, over a while."""
    script = f"head -n 1 /proc/stat; sleep {seconds:g}; head -n 1 /proc/stat"
    first, last = map(parse_cpu, machine.run(["sh", "-c", script]).stdout.splitlines())
    return (last.busy - first.busy) / max(1, last.total - first.total)


def between(first: Sample, last: Sample, counting: Counting) -> Window:
    """Differences of two samples."""
    total = max(1, last.cpu.total - first.cpu.total)
    hits, restarted = None, False
    if first.counters is not None and last.counters is not None:
        restarted = counters_restarted(first.counters, last.counters, counting)
        hits = None if restarted else hits_between(first.counters, last.counters, counting)

    def share(ticks: Callable[[Cpu], int]) -> float:
        # iowait may run backwards by a tick or two (proc(5)); so may steal.
        return max(0, ticks(last.cpu) - ticks(first.cpu)) / total

    return Window(
        seconds=last.at - first.at,
        cpu=share(lambda cpu: cpu.busy),
        user=share(lambda cpu: cpu.user),
        system=share(lambda cpu: cpu.system),
        iowait=share(lambda cpu: cpu.iowait),
        steal=share(lambda cpu: cpu.steal),
        hits=hits,
        restarted=restarted,
        first=first,
        last=last,
        devices=io_counters.between(first.devices, last.devices, last.at - first.at),
    )


def _has_counted(before: Sample, after: Sample) -> bool:
    """True if a tier that counts late has counted between two samples, as its misses show. Of its
    hits some may show earlier."""
    was, now = before.counters, after.counters
    return (
        was is not None
        and now is not None
        and (was.read_misses, was.bypassed) != (now.read_misses, now.bypassed)
    )


class Sampler(AbstractContextManager["Sampler"]):
    """Samples a machine each second for the length of a ``with`` block."""

    def __init__(self, machine: Machine, tier: Tier | None, devices: Sequence[Source] = ()) -> None:
        """:param tier: whose counters to read, and its devices' where it counts them; None: no
            tier's.
        :param devices: others to read the counters of.
        """
        self._machine = machine
        self._tier = tier
        self._devices = devices
        self._counting = tier.counting if tier else _NO_TIERS
        self._stack = ExitStack()
        # A clock that is set meanwhile moves no sample.
        self._epoch = time.time() - time.monotonic()
        self._error: Exception | None = None
        self._first = threading.Event()
        self.samples: list[Sample] = []

    def __enter__(self) -> Self:
        commands = [shlex.join(self._tier.status_argv())] if self._tier else []
        commands += [device.command for device in self._devices]
        argv = ["sh", "-c", _PROGRAM, "hotset-sampler", *commands]
        lines = self._stack.enter_context(self._machine.stream(argv))
        self._thread = threading.Thread(target=self._read, args=(lines,), daemon=True)
        self._thread.start()
        self._first.wait(_FIRST_SAMPLE_LIMIT_S)
        if self.lag_s and self.samples:
            # What was asked before is counted before.
            self._await(self.samples[0].at)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        self._thread.join(timeout=5)

    @property
    def lag_s(self) -> float:
        """By how long the tier's counters come late."""
        return self._counting.lag_s

    def window(self, start: float, end: float) -> Window:
        """Measure from ``start`` to ``end`` (``time.time()``), by the nearest samples; waits
        for a kind of tier that counts late. Its hits are of that time and of up to ``lag_s`` before
        and after it.

        :raises TierFailedError: the tier said ``Fail`` meanwhile.
        :raises RuntimeError: there are no two samples.
        """
        if self.lag_s:
            self._await(end)
        samples = self._enough()
        first = min(samples, key=lambda sample: abs(sample.at - start))
        last = min(samples, key=lambda sample: abs(sample.at - end))
        return self._between(first, last)

    def around(self, start: float, end: float) -> Window:
        """All that happened from ``start`` to ``end``, by the samples around them.

        For work with rest before and after it: waits for the sample that follows. Raises as
        :meth:`window` does.
        """
        self._await(end)
        samples = self._enough()
        first = max(
            (sample for sample in samples[:-1] if sample.at <= start),
            default=samples[0],
            key=lambda sample: sample.at,
        )
        last = next((sample for sample in samples[1:] if sample.at >= end), samples[-1])
        return self._between(first, last)

    def _await(self, end: float) -> None:
        """Wait for a sample in which everything until then is counted."""
        wait_until(
            lambda: self.samples and self.samples[-1].at >= end + self.lag_s,
            self.lag_s + _NEXT_SAMPLE_LIMIT_S,
            ended=lambda: not self._thread.is_alive(),
        )

    def _between(self, first: Sample, last: Sample) -> Window:
        """Hits by the samples around it at which a tier that counts late had just counted."""
        window = between(first, last, self._counting)
        if not self.lag_s:
            return window
        lag_s, samples = self.lag_s, self.samples
        counted = [now for was, now in pairwise(samples) if _has_counted(was, now)]
        early = (
            sample for sample in reversed(counted) if first.at - lag_s <= sample.at <= first.at
        )
        late = (sample for sample in counted if last.at <= sample.at <= last.at + lag_s)
        all_in = (sample for sample in samples if sample.at >= last.at + lag_s)
        edges = next(early, first), next(late, next(all_in, samples[-1]))
        whole = between(*edges, self._counting)
        return replace(window, hits=whole.hits, restarted=whole.restarted)

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
            pair = next((pair for pair in pairs if pair[0].at <= middle < pair[1].at), None)
            window = between(*pair, self._counting) if pair else None
            windows.append(replace(window, hits=None) if window and self.lag_s else window)
        return windows

    def _read(self, lines: Iterator[str]) -> None:
        try:
            self._collect(lines)
        except Exception as error:
            self._error = error
        finally:
            self._first.set()

    def _collect(self, lines: Iterator[str]) -> None:
        expected = (1 if self._tier else 0) + len(self._devices)
        for cpu_line in lines:
            printed = list(islice(lines, expected))
            if len(printed) < expected:
                return
            at, counters = self._epoch + time.monotonic(), None
            devices: dict[str, IoCounters] = {}
            if self._tier and (status := printed.pop(0)) != _LATE:
                counters = self._tier.parse(status)
                devices |= self._tier.parse_devices(status)
            for device, line in zip(self._devices, printed, strict=True):
                # A device that is gone has no counters; its user reports that.
                if line not in (_FAILED, _LATE):
                    devices |= device.parse(line)
            self.samples.append(Sample(at, parse_cpu(cpu_line), counters, devices))
            self._first.set()
