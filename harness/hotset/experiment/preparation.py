"""The preparation of an arm: the load of its windows on its server before the first of them.

It is the full load, or comes at the rate of the windows: with more of it, a cache would begin with
blocks to write back that its windows never dirty. Every arm gets the same, so that all are measured
in the same state: the load runs for `warmup.probe_s` seconds, and on until reads are level. A
server that has just started reads steadily, too, while its buffers fill; so only what comes after
it has read as much as they hold is judged.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace

from hotset.bench.server.time_use import TimeSampler, sample
from hotset.core.clock import wait_until
from hotset.databases.base import number, sql
from hotset.databases.postgres.product import PostgresDatabase
from hotset.hitratio.sampler import Sampler, Window
from hotset.load.record import NotServed, Phase, Tick
from hotset.load.steady import LEVEL_LEAST, LEVEL_MOST, READS_COUNT, level
from hotset.reports.model import windows

from .measure import start_sampler
from .site.arms import Placed
from .site.context import Site
from .timed import Timed

_SEED = 10_000
_LEAVING_S = 60.0
"""How long the sessions of users who were sent home may take to end."""

OnProbe = Callable[[float | None, float], None]
"""Gets the hit ratio of the probe, and its seconds. May raise, which ends the load."""


@dataclass(frozen=True, slots=True)
class Second:
    """One second of the load, from ``at`` (``time.time()``) on: reads of all devices (None: not
    seen) and transactions."""

    at: float
    reads: float | None
    transactions: float


def is_level(
    seconds: Sequence[Second], read: Sequence[tuple[float, int]], buffers_bytes: int
) -> bool | None:
    """True if a server's reads are level, by the last seconds of a load.

    :param read: times, with the bytes that the server had read by then, since any time.
    :param buffers_bytes: how much it has to read until its buffers can be full.
    :return: False also while they cannot be; None: not known.
    """
    last = seconds[-LEVEL_MOST:]
    reads = [second.reads for second in last if second.reads is not None]
    done = sum(second.transactions for second in last)
    if len(reads) < len(last) or not done:
        return None
    if len(last) >= LEVEL_LEAST and sum(reads) <= READS_COUNT * done:
        return True  # Memory serves the workload, however little of it that takes.
    if not read:
        return None
    full = next((at for at, count in read if count - read[0][1] >= buffers_bytes), None)
    if full is None:
        return False
    since = [pair for pair in zip(reads, last, strict=True) if pair[1].at >= full]
    reads, each = [read for read, _ in since], [second.transactions for _, second in since]
    by_transaction = level(reads, each)
    # Slow storage serves as many reads a second as it can, which tells less, but by more of them.
    return level(reads) if by_transaction is None else by_transaction


class _Enough(Exception):
    """Ends the load."""


class _Load:
    """The load of a preparation, followed second by second."""

    def __init__(
        self,
        sampler: Sampler,
        times: TimeSampler,
        buffers_bytes: int,
        probe_s: float,
        on_probe: OnProbe,
    ) -> None:
        self._sampler = sampler
        self._times = times
        self._buffers_bytes = buffers_bytes
        self._probe_s = probe_s
        self._on_probe = on_probe
        self._transactions: list[float] = []
        self._probed = False
        self._was_too_short = False
        self._start = 0.0

    def observe(self, event: Tick | Phase) -> None:
        """:raises _Enough: the probe is over, and reads are level."""
        if isinstance(event, Phase):
            if event.name == "measure":
                self._start = time.time()
            return
        self._transactions.append(event.transactions)
        if len(self._transactions) > math.ceil(self._probe_s + self._sampler.lag_s):
            self._probe()
            if is_level(self._seconds(), self._read, self._buffers_bytes):
                raise _Enough

    def was_too_short(self, failure: NotServed) -> None:
        """Note that no transaction of some kind ended in it, which tells nothing of later reads.

        :raises NotServed: what was asked for failed; the server is not merely slow.
        """
        result = failure.partial
        if (
            result is None
            or result.failed
            or any(kind.failed for kind in result.transactions.values())
        ):
            raise failure
        self._was_too_short = True
        self.ended(result)

    def ended(self, result: windows.Repeat) -> None:
        """It ran for as long as it was to."""
        self._start, length = result.span[0], result.duration_s
        if not self._transactions:
            self._transactions = [result.tpm / 60] * int(length)
        self._probe()

    def record(self, users: int, limit_s: float) -> windows.Preparation:
        """Convert to the record of the result document."""
        seen, read = self._seconds(), self._read
        level = is_level(seen, read, self._buffers_bytes)
        return windows.Preparation(
            users=users,
            seconds=len(self._transactions),
            limit_s=limit_s,
            level=None if level and self._was_too_short else level,
            read_bytes=read[-1][1] - read[0][1] if read else None,
            reads_per_s=tuple(second.reads for second in seen),
            transactions_per_s=tuple(second.transactions for second in seen),
        )

    def _probe(self) -> None:
        """Hand out the hit ratio of the probe, once."""
        if not self._probed:
            self._probed = True
            hits = self._sampler.window(self._start, self._start + self._probe_s).hits
            self._on_probe(hits.ratio if hits else None, self._probe_s)

    def _seconds(self) -> list[Second]:
        """List the seconds sampled so far: the sample that ends the last comes a little later."""
        each = self._sampler.each_second(self._start, len(self._transactions))
        if each and each[-1] is None:
            each.pop()
        return [
            Second(self._start + number, _reads(window), self._transactions[number])
            for number, window in enumerate(each)
        ]

    @property
    def _read(self) -> list[tuple[float, int]]:
        """Bytes that the server had read, by time; empty where it does not count that."""
        each = [(reading.at, reading.counts["read_bytes"]) for reading in self._times.io_readings]
        return [(at, count) for at, count in each if count is not None]


def _reads(window: Window | None) -> float | None:
    """Sum the reads of all devices, per second; None where none was seen."""
    return sum(each.read.iops for each in window.devices) if window and window.devices else None


@contextmanager
def end_sessions(database: PostgresDatabase) -> Iterator[None]:
    """Afterwards no more sessions are there than before. On slow storage a server ends those of
    users who left with their last statement alone: the next users would find no connection free,
    and the window would count what these read."""
    text = sql(database.engine, "other_sessions")
    with closing(database.session()) as session:
        before = number(session.query(text)[0][0])
    yield
    with closing(database.session()) as session:
        wait_until(lambda: number(session.query(text)[0][0]) <= before, _LEAVING_S, 0.1)


def prepare(
    site: Site, placed: Placed, run: Timed, buffers_bytes: int, repeat: int, on_probe: OnProbe
) -> windows.Preparation:
    """Run the load of the windows until reads are level, or for as long as the experiment allows.
    What tells nothing of single seconds (HammerDB) runs for the time of the probe. Transactions
    that take longer than that leave it unknown whether reads are level.

    :param buffers_bytes: the part of its databases that the server's buffers hold.
    :param repeat: by which its random choices differ; they are the same in all arms.
    :raises RunFailed: the server died or stalled, or transactions failed.
    """
    want, users = site.spec.warmup, run.want.most_users
    length = want.prepare_max_s if run.by_seconds else want.probe_s
    options = run.options(users, 0, length, _SEED + repeat)
    options = replace(options, rate_per_s=run.want.rate_per_s)
    limit_s = options.duration_s
    probe_s = min(want.probe_s, limit_s) if run.by_seconds else limit_s
    database = placed.server.database(run.name)
    with (
        end_sessions(database),
        start_sampler(site, placed) as sampler,
        sample(database) as times,
    ):
        load = _Load(sampler, times, buffers_bytes, probe_s, on_probe)
        with suppress(_Enough):
            try:
                load.ended(run.drive(database, options, site.report, load.observe))
            except NotServed as failure:
                load.was_too_short(failure)
        return load.record(users, limit_s)
