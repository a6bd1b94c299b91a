"""A kernel tier's day: how fast it warms up, what a restart costs, how true a flush's estimate is.

On the kernel's own tiers in the lab's virtual machine (or on this computer's kernel), by turns:
the origin is read end to end, then the same blocks are filled into the cache; sampled blocks are
read and must hit; the tier is taken down and made again, and must find the same blocks; random
writes make blocks dirty, and the flush's estimates are held against its end; a reading of the
counters is timed, as `hotset tier watch` does it once a second.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Literal
from uuid import uuid4

from hotset.block import extents, programs, transfer
from hotset.block.devicemapper import remove
from hotset.block.extents import Run
from hotset.core.machines.base import Machine, put_lines
from hotset.core.progress import Reporter
from hotset.core.units import Blocks, Bytes, mb_per_s
from hotset.disk import sizing
from hotset.disk.sizing import KernelKind
from hotset.lab import lab as labs
from hotset.lab.backend import KernelBackend, alone
from hotset.lab.lab import Lab, LabSpec
from hotset.tier.base import Counters, hits_between, sample
from hotset.tier.bcache.tier import Bcache
from hotset.tier.dmcache.tier import DmCache
from hotset.tier.stalled import FlushWatch
from hotset.warmup.fill import fill

from ..page import Page, table
from ..paired import say, turns

MIB = 1024**2
DISK, CACHE, VOLUME, FLASH = (Bytes(mib * MIB) for mib in (4096, 6144, 16, 6400))
WARM = Bytes(3072 * MIB)
DIRTY_WRITES, WRITE = 4000, Bytes(8192)
SAMPLES, READINGS = 200, 50
KINDS: tuple[KernelKind, ...] = ("dm-cache", "bcache")
_FOLDER = PurePosixPath("/run/hotset")


@dataclass(frozen=True)
class Day:
    """One tier's. Rates in MB/s; ``eta_off``: how far the worst foretold end was from the end, in
    parts of the flush's length."""

    origin_rate: float
    warm_rate: float
    by_origin: float
    kept: float
    sampled_hits: float
    restart_s: float
    restart_lost: int
    flush_s: float
    eta_off: float
    reading_cpu_ms: float


def measure(options: argparse.Namespace) -> Page:
    """Days of both kinds by turns, in one machine."""
    kind: labs.MachineChoice = "local" if labs.kernel_has_dm_cache() else "vm"
    spec = LabSpec(kind, 2, Bytes(1024 * MIB), FLASH, tier="dm-cache")
    with labs.running(spec, "bench life", say) as lab:
        days = turns({name: partial(day, lab, name) for name in KINDS}, options.rounds)
    values: dict[str, dict[str, list[float]]] = {
        name: {key: [asdict(each)[key] for each in days[name]] for key in asdict(days[name][0])}
        for name in KINDS
    }
    rows = [
        (key, *(f"{statistics.median(values[name][key]):.4g}" for name in KINDS))
        for key in values[KINDS[0]]
    ]
    return Page(
        "life",
        "A kernel tier's day",
        f"Medians of {options.rounds} rounds; rates in MB/s.",
        f"{WARM} of a modelled disk of {DISK}.",
        table(("", *KINDS), rows),
        values,
    )


def day(lab: Lab, kind: KernelKind, _round: int) -> Day:
    with lab.cleanup.part(), temporary(lab, kind) as tier:
        machine, block = lab.machine, tier.spec.block
        runs = [Run(Blocks(0), WARM.blocks(block))]
        tier.prepare()
        read_s = transfer.read_runs(machine, runs, block, tier.origin, lambda _: None)
        warmed = fill(tier, runs, SAMPLES, lambda _: None)
        resident = tier.resident()
        kept = extents.count(extents.intersection(resident, runs)) / extents.count(runs)
        hit_ratio = take_sample(tier, extents.intersection(resident, runs))
        begun = time.monotonic()
        tier.discard()
        tier.activate()
        restart_s = time.monotonic() - begun
        lost = extents.count(extents.difference(resident, tier.resident()))
        origin_rate = mb_per_s(WARM, read_s)
        return Day(
            origin_rate,
            warmed.mb_per_s,
            warmed.mb_per_s / origin_rate,
            kept,
            hit_ratio,
            restart_s,
            int(lost),
            *flush(tier),
            reading_cpu_ms(machine, tier),
        )


@contextmanager
def temporary(lab: Lab, kind: KernelKind) -> Iterator[DmCache | Bcache]:
    """A tier over a new slow disk; gone again afterwards."""
    backend = lab.backend
    assert isinstance(backend, KernelBackend)
    origin = backend.slow_disk("nas-2014", DISK).attach(lab.cleanup)
    chosen = sizing.choose(kind, "oltp", CACHE, VOLUME, FLASH, "writeback", None)
    spec = replace(chosen.spec, volume=VOLUME)
    place = alone(lab.machine, spec, backend.flash, origin)
    tier: DmCache | Bcache
    if kind == "bcache":
        tier = Bcache(lab.machine, spec, place, str(uuid4()))
    else:
        tier = DmCache(lab.machine, spec, place)
    try:
        yield tier
    finally:
        tier.discard()
        remove(lab.machine, [place.volume.name])


def take_sample(tier: DmCache | Bcache, runs: list[Run]) -> float:
    """The hit ratio of reads of sampled blocks."""
    start, block = settle(tier), tier.spec.block
    _copy(tier, "read", [(begin * block, block) for begin, _ in sample(runs, SAMPLES)])
    return hits_between(start, settle(tier), tier.counting).read_ratio or 0.0


def settle(tier: DmCache | Bcache) -> Counters:
    """The counters, once they have everything in them."""
    time.sleep(tier.counting.lag_s)
    return tier.counters()


def flush(tier: DmCache | Bcache) -> tuple[float, float]:
    """Make blocks dirty here and there, write them back; seconds and the estimates' worst error."""
    spots = random.Random(1).sample(range(int(WARM // WRITE)), DIRTY_WRITES)
    _copy(tier, "write", [(spot * WRITE, WRITE) for spot in spots])
    watch, ends = FlushWatch(Reporter(quiet=True), tier.spec.block), [0.0]

    def on_left(left: Blocks) -> None:
        watch(left)
        ends[0] = time.monotonic()

    begun = time.monotonic()
    tier.flush(on_left)
    took = ends[0] - begun
    errors = [abs(at + rest - ends[0]) / took for at, rest in watch.estimates]
    return took, max(errors, default=float("nan"))


def _copy(
    tier: DmCache | Bcache, what: Literal["read", "write"], spots: list[tuple[int, int]]
) -> None:
    """Reads of the accelerated device, or writes to it, at these places."""
    machine, runs, noise = tier.machine, _FOLDER / "spots", _FOLDER / "noise"
    if what == "read":
        put_lines(machine, (f"{at} {int(size)}\n" for at, size in spots), runs)
        programs.copy(machine, ["--from", str(tier.path), "--runs", str(runs)])
        return
    mib = -(-sum(size for _, size in spots) // MIB)
    machine.run(f"dd if=/dev/urandom of={noise} bs=1M count={mib} status=none".split())
    lines = (f"{number * size} {int(size)} {at}\n" for number, (at, size) in enumerate(spots))
    put_lines(machine, lines, runs)
    words = f"--from {noise} --to {tier.path} --runs {runs}"
    programs.copy(machine, words.split())
    machine.run(["rm", str(noise)])


def reading_cpu_ms(machine: Machine, tier: DmCache | Bcache) -> float:
    """CPU time of reading the counters once, on the machine itself."""
    argv = tier.status_argv()
    loop = f'i=0; while [ $i -lt {READINGS} ]; do "$@" >/dev/null; i=$((i+1)); done; times'
    times = machine.run(["sh", "-c", loop, "readings", *argv]).stdout.split()
    return sum(_seconds(word) for word in times) / READINGS * 1000


def _seconds(word: str) -> float:
    """``1m2.5s``, as the shell's `times` writes it."""
    minutes, _, seconds = word.removesuffix("s").partition("m")
    return 60 * float(minutes) + float(seconds)
