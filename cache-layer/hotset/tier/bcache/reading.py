"""Warm-up of bcache: blocks are read through the tier until it has taken them in."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from typing import Protocol

from hotset.block import io_counters, transfer
from hotset.block.extents import Run, count, difference
from hotset.core.machines.base import Machine
from hotset.core.units import Blocks, Bytes

from ..base import TierSpec, Warmup
from ..filling import Filling
from .control import Kernel

_PASSES_MAX = 20
_VAIN_MAX = 4
_MISSING_MAX = 0.005
_PAUSE_S = 0.5
"""After a pass; twice as long after each that did not help: a busy computer frees slowly."""


class ReadTier(Protocol):
    """Tier as far as a warm-up by reading needs it."""

    machine: Machine
    spec: TierSpec
    kernel: Kernel

    @property
    def path(self) -> PurePosixPath:
        """The accelerated device."""

    @property
    def origin(self) -> PurePosixPath:
        """The origin."""

    @property
    def kept_read_max(self) -> Bytes:
        """The largest read whose misses can be kept."""

    def create(self) -> PurePosixPath:
        """Make (or find) the accelerated device."""

    def resident(self) -> list[Run]:
        """List the cached runs."""

    def caching_every_read(self) -> AbstractContextManager[None]:
        """Nothing is bypassed as sequential while this lasts."""


def fill(tier: ReadTier, wanted: Filling) -> Warmup:
    """Read what is missing with nothing bypassed: one pass, and further ones over what it left out.
    Where the kernel does not show what is cached, all counts as missing at first.

    A miss is only inserted into buckets that are free at that moment (``bch_data_insert`` of a
    read does not wait); one in 1,024 is held free.
    """
    tier.create()
    shown = tier.kernel.shows_keys()
    runs = difference(wanted.runs, tier.resident()) if shown else wanted.runs
    begun = time.monotonic()
    total = count(runs).bytes(tier.spec.block)
    origin_rate = transfer.sequential_rate(tier.machine, tier.origin)
    progress = transfer.progress_of(total, wanted.on_progress)
    with tier.caching_every_read():
        seconds = _read_until_cached(tier, runs, progress, wanted.rate, shown)
    return Warmup("read", total, seconds, time.monotonic() - begun, origin_rate, 0, 0)


def _read_until_cached(
    tier: ReadTier,
    runs: Sequence[Run],
    progress: Callable[[Bytes], None],
    rate: Bytes | None,
    shown: bool,
) -> float:
    """Pass after pass over what is missing, until nearly nothing is, or passes do not help;
    returns the seconds.

    :param shown: the kernel shows what is cached.
    """
    begun = time.monotonic()
    block, all_runs = tier.spec.block, count(runs)
    missing, left, vain = list(runs), all_runs, 0
    for _ in range(_PASSES_MAX):
        before = left

        def on_bytes(done: Bytes, offset: int = Blocks(all_runs - before).bytes(block)) -> None:
            progress(Bytes(min(offset + done, all_runs.bytes(block))))

        asked = io_counters.bytes_read(tier.machine, tier.origin)
        transfer.read_runs(
            tier.machine, missing, block, tier.path, on_bytes, rate, tier.kept_read_max
        )
        if shown:
            missing = difference(missing, tier.resident())
            left = count(missing)
        else:
            # Which ones were missing is not known, but how much the origin had to give is.
            gave = io_counters.bytes_read(tier.machine, tier.origin) - asked
            left = Blocks(-(-gave // block))
        vain = 0 if left < before else vain + 1
        if left <= all_runs * _MISSING_MAX or vain == _VAIN_MAX:
            break
        # So that buckets become free.
        time.sleep(_PAUSE_S * 2**vain)
    return time.monotonic() - begun
