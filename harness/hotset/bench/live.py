"""A run as it happens: on a terminal the last minute as bars, elsewhere the plain lines."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Group
from rich.live import Live
from rich.text import Text

from hotset.core import progress
from hotset.core.progress import Measured, Reporter
from hotset.core.words import sparkline
from hotset.load.record import Phase, Tick, WindowOptions

_MINUTE = 60


@contextmanager
def following(
    report: Reporter, options: WindowOptions, title: str
) -> Iterator[Callable[[Tick | Phase], None]]:
    """The observer of a run, while it lasts."""
    if not report.live:
        with report.task(title):
            yield line_printer(report, options.rampup_s + options.duration_s)
        return
    view = View(options)
    with Live(view.render(), console=report.console, auto_refresh=False, transient=True) as screen:

        def show(event: Tick | Phase) -> None:
            view.take(event)
            screen.update(view.render(), refresh=True)

        yield show


class View:
    """The live view of the terminal: values of the last second, and a minute of them as bars."""

    def __init__(self, options: WindowOptions) -> None:
        self._total_s = options.rampup_s + options.duration_s
        self._ticks: deque[Tick] = deque(maxlen=_MINUTE)
        self._failed = 0
        self._phase = "connecting"

    def take(self, event: Tick | Phase) -> None:
        """A second or a boundary of the run."""
        if isinstance(event, Phase):
            self._phase = event.name
            return
        self._ticks.append(event)
        self._failed += event.failed

    def render(self) -> Group:
        """The lines as they stand."""
        if not self._ticks:
            return Group(Text(f"{self._phase} …"))
        last = self._ticks[-1]
        rates = [tick.transactions * 60 for tick in self._ticks]
        latencies = [tick.latency_ms_p95 or 0.0 for tick in self._ticks]
        mean, p95 = last.latency_ms_mean, last.latency_ms_p95
        latency = "no commit" if mean is None else f"mean {mean:.1f}"
        if p95 is not None:
            latency += f", p95 {p95:.1f}"
        orders = last.new_orders
        new_orders = [] if orders is None else [Text(f"NOPM {orders * 60:>9,}")]
        left_s = max(0.0, self._total_s - last.second - 1)
        return Group(
            Text(f"{self._phase}  {last.second + 1} of {self._total_s:g} s, {left_s:.0f} s left"),
            *new_orders,
            Text(f"TPM  {rates[-1]:>9,}  {sparkline(rates)}"),
            Text(f"ms   {latency}  p95 {sparkline(latencies)}"),
            Text(f"failed {self._failed:,}", style="bold red" if self._failed else ""),
        )


def line_printer(report: Reporter, total_s: float) -> Callable[[Tick | Phase], None]:
    """Plain lines of a run that takes so many seconds, ramp-up included."""

    def observe(event: Tick | Phase) -> None:
        if isinstance(event, Tick):
            _show(report, event, total_s)

    return observe


def _show(report: Reporter, tick: Tick, total_s: float) -> None:
    if report.json:
        done = min(tick.second + 1, total_s)
        progress.emit(
            **Measured(done, total_s, "s", round(total_s - done, 1)).as_dict(),
            tick={
                "second": tick.second,
                "phase": tick.phase,
                "tpm": tick.transactions * 60,
                "nopm": None if tick.new_orders is None else tick.new_orders * 60,
                "latency_ms_p50": tick.latency_ms_p50,
                "latency_ms_p95": tick.latency_ms_p95,
                "latency_ms_p99": tick.latency_ms_p99,
                "failed": tick.failed,
            },
        )
        return
    mean = tick.latency_ms_mean
    latency = f"lat {mean:.1f} ms" if mean is not None else "lat -"
    report.figure(
        f"{tick.second + 1:.1f} s ({tick.phase}), {tick.transactions} tps,"
        f" {latency}, {tick.failed} failed"
    )
