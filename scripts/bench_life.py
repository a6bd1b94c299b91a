"""A kernel tier's day: how fast it warms up, what a restart costs, how true a flush's estimate is.

On the kernel's own tiers in the lab's virtual machine (or on this computer's kernel), interleaved
and repeated: the origin is read end to end, then the same blocks are filled into the cache;
sampled blocks are read and must hit; the tier is taken down and made again, and must find the same
blocks; random writes make blocks dirty, and the flush's estimates are held against its end; a look
at the counters is timed, as `hotset tier watch` does it once a second.
"""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import dataclass, fields
from pathlib import PurePosixPath
from typing import Literal

from hotset.block import engine_program, extents, transfer
from hotset.block.extents import Run
from hotset.core.machines.base import Machine, put_lines
from hotset.core.progress import FlushWatch, Reporter
from hotset.core.units import Blocks, Bytes, mb_per_s
from hotset.lab import lab as labs
from hotset.lab.lab import Lab, LabSpec
from hotset.tier.base import Counters, hits_between, sample
from hotset.tier.bcache.tier import Bcache
from hotset.tier.dmcache.tier import DmCache
from hotset.warmup.fill import fill
from kernel_tiers import Set, Sizes, made

MIB = 1024**2
SIZES = Sizes(Bytes(4096 * MIB), Bytes(6144 * MIB), Bytes(16 * MIB), Bytes(6400 * MIB))
WARM = Bytes(3072 * MIB)
DIRTY_WRITES, WRITE = 4000, Bytes(8192)
ROUNDS, SAMPLES, LOOKS = 2, 200, 50
SETS = (Set("dm-cache", "dm-cache", "oltp"), Set("bcache", "bcache", "oltp"))
_FOLDER = PurePosixPath("/run/hotset")


@dataclass(frozen=True)
class Figures:
    """One tier's day. Rates in MB/s; ``eta_off``: how far the worst foretold end was from the end,
    in parts of the flush's length."""

    origin_rate: float
    warm_rate: float
    kept: float
    sampled_hits: float
    restart_s: float
    restart_lost: int
    flush_s: float
    eta_off: float
    look_cpu_ms: float

    @property
    def of_origin(self) -> float:
        return self.warm_rate / self.origin_rate


def main() -> None:
    report = Reporter()
    kind: labs.MachineChoice = "local" if labs.kernel_has_dm_cache() else "vm"
    spec = LabSpec(kind, 2, Bytes(1024 * MIB), SIZES.flash, tier="dm-cache")
    found: dict[str, list[Figures]] = {one.name: [] for one in SETS}
    with labs.running(spec, "bench life", report.say) as lab:
        for number in range(ROUNDS):
            for one in SETS:
                report.say(f"round {number + 1} of {ROUNDS}: {one.name}")
                found[one.name].append(measure(lab, one))
    for name, rounds in found.items():
        print(name)
        for field in (*(one.name for one in fields(Figures)), "of_origin"):
            values = [getattr(one, field) for one in rounds]
            listed = ", ".join(f"{value:.4g}" for value in values)
            print(f"  {field:14} median {statistics.median(values):8.4g}   ({listed})")


def measure(lab: Lab, wanted: Set) -> Figures:
    with lab.cleanup.part(), made(lab, wanted, SIZES, "writeback") as tier:
        machine, block = lab.machine, tier.spec.block
        runs = [Run(Blocks(0), WARM.blocks(block))]
        tier.prepare()
        read_s = transfer.read_runs(machine, runs, block, tier.origin, lambda _: None)
        warmed = fill(tier, runs, SAMPLES, lambda _: None)
        resident = tier.resident()
        kept = extents.count(extents.intersection(resident, runs)) / extents.count(runs)
        hit = sampled(tier, extents.intersection(resident, runs))
        begun = time.monotonic()
        tier.discard()
        tier.activate()
        restart_s = time.monotonic() - begun
        lost = extents.count(extents.difference(resident, tier.resident()))
        flush_s, off = flushed(tier)
        return Figures(
            mb_per_s(WARM, read_s),
            warmed.mb_per_s,
            kept,
            hit,
            restart_s,
            int(lost),
            flush_s,
            off,
            look_cpu_ms(machine, tier),
        )


def sampled(tier: DmCache | Bcache, runs: list[Run]) -> float:
    """The hit ratio of reads of sampled blocks."""
    start = settled(tier)
    _copy(
        tier,
        "read",
        [(begin * tier.spec.block, tier.spec.block) for begin, _ in sample(runs, SAMPLES)],
    )
    return hits_between(start, settled(tier), tier.counting).read_ratio or 0.0


def settled(tier: DmCache | Bcache) -> Counters:
    """The counters, once they have everything in them."""
    time.sleep(tier.counting.lag_s)
    return tier.counters()


def flushed(tier: DmCache | Bcache) -> tuple[float, float]:
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
        engine_program.copy(machine, ["--from", str(tier.path), "--runs", str(runs)])
        return
    total = sum(size for _, size in spots)
    machine.run(
        [
            "dd",
            "if=/dev/urandom",
            f"of={noise}",
            "bs=1M",
            f"count={-(-total // MIB)}",
            "status=none",
        ]
    )
    lines = (f"{number * size} {int(size)} {at}\n" for number, (at, size) in enumerate(spots))
    put_lines(machine, lines, runs)
    engine_program.copy(
        machine, ["--from", str(noise), "--to", str(tier.path), "--runs", str(runs)]
    )
    machine.run(["rm", str(noise)])


def look_cpu_ms(machine: Machine, tier: DmCache | Bcache) -> float:
    """CPU time of reading the counters once, on the machine itself."""
    argv = tier.status_argv()
    loop = f'i=0; while [ $i -lt {LOOKS} ]; do "$@" >/dev/null; i=$((i+1)); done; times'
    said = machine.run(["sh", "-c", loop, "looks", *argv]).stdout.split()
    return sum(_seconds(word) for word in said) / LOOKS * 1000


def _seconds(word: str) -> float:
    """``1m2.5s``, as the shell's `times` writes it."""
    minutes, _, seconds = word.removesuffix("s").partition("m")
    return 60 * float(minutes) + float(seconds)


if __name__ == "__main__":
    main()
