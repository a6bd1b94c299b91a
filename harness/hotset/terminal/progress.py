"""What a long job says while it works: on a terminal one live line, elsewhere plain lines, and for
a program what :mod:`~hotset.terminal.structured` describes.

Everything goes to standard error; standard output is for data.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console
from rich.status import Status

from hotset.core.units import Blocks, Bytes, mb_per_s

from . import structured

if TYPE_CHECKING:
    # What a command has no run of, it does not wait for.
    from hotset.block.transfer import Progress as WarmupProgress
    from hotset.load.record import Phase, Tick
    from hotset.tpcc.data.record import LoadProgress
    from hotset.tpch import record as tpch

_PLAIN_INTERVAL_S = 5.0
_JSON_INTERVAL_S = 0.5


@dataclass(frozen=True, slots=True)
class Measured:
    """How far a step is.

    :ivar total: in the same ``unit`` as ``done``.
    :ivar eta_s: seconds that it will still take.
    """

    done: float | None = None
    total: float | None = None
    unit: str | None = None
    eta_s: float | None = None

    @classmethod
    def by_rate(cls, done: float, total: float, unit: str, seconds: float) -> Self:
        """By the rate until now.

        >>> Measured.by_rate(25, 100, "bytes", 10.0)
        Measured(done=25, total=100, unit='bytes', eta_s=30.0)
        """
        left = seconds * (total - done) / done if done > 0 else None
        return cls(done, total, unit, None if left is None else round(max(0.0, left), 1))

    def as_dict(self) -> dict[str, Any]:
        """Without what is not known."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Reporter:
    """Says what happens; chosen once as quiet, live, plain or for a program."""

    def __init__(self, quiet: bool = False) -> None:
        self.json = structured.is_wanted() and not quiet
        self.console = Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)
        self.live = self.console.is_terminal and not quiet and not self.json
        self._begun = time.monotonic()
        self._status: Status | None = None
        self._last_plain = 0.0

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._begun

    def say(self, text: str) -> None:
        """One line that stays, with the seconds since the start."""
        if self.json:
            structured.emit(say=text)
            return
        self.console.print(f"[dim]{self.seconds:6.1f} s[/dim]  ", end="")
        self.console.print(text, markup=False)

    def warn(self, text: str) -> None:
        """What has to be known of whoever wants to hear of nothing else, too."""
        if structured.is_wanted():
            structured.emit(say=text)
        else:
            Console(stderr=True, highlight=False, soft_wrap=True).print(
                f"warning: {text}", markup=False
            )

    @contextmanager
    def task(self, text: str) -> Iterator[None]:
        """A step that takes a while: live figures on a terminal until it ends."""
        if self.json:
            structured.emit(task=text)
            yield
            return
        self.say(text)
        if not self.live:
            yield
            return
        with self.console.status(text) as status:
            self._status = status
            try:
                yield
            finally:
                self._status = None

    def figure(self, text: str, measured: Measured | None = None) -> None:
        """The running figure of the task at hand, and how far it is, where that is known."""
        if self._status is not None:
            self._status.update(text)
            return
        interval_s = _JSON_INTERVAL_S if self.json else _PLAIN_INTERVAL_S
        if self.live or time.monotonic() - self._last_plain < interval_s:
            return
        self._last_plain = time.monotonic()
        if self.json:
            structured.emit(figure=text, **(measured or Measured()).as_dict())
        else:
            self.console.print(f"progress: {text}", markup=False)

    def on_load(self, progress: LoadProgress) -> None:
        if progress.step != "rows":
            self.figure(f"{progress.seconds:.1f} s, {progress.step}")
            return
        share = progress.warehouses_done / progress.warehouses
        left = f", ETA {progress.seconds / share - progress.seconds:.0f} s" if share else ""
        self.figure(
            f"{progress.seconds:.1f} s, {progress.warehouses_done} of {progress.warehouses}"
            f" warehouses, {progress.rows:,} rows{left}",
            Measured.by_rate(
                progress.warehouses_done, progress.warehouses, "warehouses", progress.seconds
            ),
        )

    def on_warmup(self, progress: WarmupProgress) -> None:
        rate = mb_per_s(progress.done, progress.seconds)
        left = (progress.total - progress.done) / 1e6 / rate if rate else 0
        self.figure(
            f"{progress.seconds:.1f} s, {progress.done} of {Bytes(progress.total)},"
            f" {rate:.1f} MB/s, ETA {left:.0f} s",
            Measured.by_rate(int(progress.done), int(progress.total), "bytes", progress.seconds),
        )

    def on_run_of(self, total_s: float) -> Callable[[Tick | Phase], None]:
        """An observer of a run that takes so many seconds, ramp-up included."""
        return lambda event: self.on_run(event, total_s)

    def on_run(self, event: Tick | Phase, total_s: float) -> None:
        from hotset.load.record import Phase

        if isinstance(event, Phase):
            return
        if self.json:
            done = min(event.second + 1, total_s)
            structured.emit(
                **Measured(done, total_s, "s", round(total_s - done, 1)).as_dict(),
                tick={
                    "second": event.second,
                    "phase": event.phase,
                    "tpm": event.transactions * 60,
                    "nopm": None if event.new_orders is None else event.new_orders * 60,
                    "latency_ms_p50": event.latency_ms_p50,
                    "latency_ms_p95": event.latency_ms_p95,
                    "latency_ms_p99": event.latency_ms_p99,
                    "failed": event.failed,
                },
            )
            return
        mean = event.latency_ms_mean
        latency = f"lat {mean:.1f} ms" if mean is not None else "lat -"
        self.figure(
            f"{event.second + 1:.1f} s ({event.phase}), {event.transactions} tps,"
            f" {latency}, {event.failed} failed"
        )

    def on_tpch_load(self, progress: tpch.LoadProgress) -> None:
        step = progress.step.replace("_", " ")
        if step not in ("data", "rows"):
            self.figure(f"{progress.seconds:.1f} s, {step}")
            return
        share = progress.bytes_done / progress.bytes_total
        left = f", ETA {progress.seconds / share - progress.seconds:.0f} s" if share else ""
        self.figure(
            f"{progress.seconds:.1f} s, {step}: {Bytes(progress.bytes_done)} of"
            f" {Bytes(progress.bytes_total)}{left}",
            Measured.by_rate(progress.bytes_done, progress.bytes_total, "bytes", progress.seconds),
        )

    def on_tpch_run(self, event: tpch.Event) -> None:
        from hotset.tpch import record as tpch

        stream = f"stream {event.stream}: " if event.stream else ""
        match event:
            case tpch.Begun(number=number, place=place, total=total):
                measured = Measured(place - 1, total, "queries") if not stream else None
                self.figure(f"{stream}query {number} ({place} of {total})", measured)
            case tpch.Ended(result=result):
                found = "1 row" if result.rows == 1 else f"{result.rows or 0:,} rows"
                ending = found if result.outcome == "ok" else result.outcome
                cause = f": {result.cause}" if result.cause else ""
                self.say(f"{stream}query {result.number}: {result.seconds:.3f} s, {ending}{cause}")
            case tpch.Refreshed(function=function, seconds=seconds):
                self.say(f"{stream}{function}: {seconds:.3f} s")


class FlushWatch:
    """Progress of a flush, with the time it will still take by the rate measured so far.

    The kernel writes back, and counts, in batches, and takes its time to begin: a rate is taken
    from the first drop of the count to its latest, and between drops the estimate only counts down.
    """

    def __init__(self, reporter: Reporter, block: Bytes) -> None:
        self._reporter = reporter
        self._block = block
        self._drops: list[tuple[float, int]] = []
        self.estimates: list[tuple[float, float]] = []
        """(when by ``time.monotonic()``, seconds it will still take)."""

    def __call__(self, left: Blocks) -> None:
        """:param left: dirty blocks; the first call says how many there were."""
        now = time.monotonic()
        if not self._drops or left < self._drops[-1][1]:
            self._drops.append((now, int(left)))
        text = f"{left.bytes(self._block)} dirty"
        if len(self._drops) > 2:
            (begun, first), (last, known) = self._drops[1], self._drops[-1]
            rate = (first - known) / (last - begun)
            rest = max(0.0, known / rate - (now - last))
            self.estimates.append((now, rest))
            speed = mb_per_s(Blocks(first - known).bytes(self._block), last - begun)
            text += f", {speed:.1f} MB/s, ETA {rest:.0f} s"
        first, eta = self._drops[0][1], self.estimates[-1][1] if len(self._drops) > 2 else None
        done, total = (
            int(Blocks(one).bytes(self._block)) for one in (max(0, first - int(left)), first)
        )
        self._reporter.figure(text, Measured(done, total, "bytes", eta))


def to_stdout(text: str) -> None:
    """Data, as it is."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
