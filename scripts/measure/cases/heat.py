"""Cost of counting per region: CPU a request with and without it, and that of a reading.

4 KiB random reads that all hit dm-cache, in the lab's virtual machine with an emulated CPU whose
clock is its own count of instructions (QEMU's icount: 1 ns each), so that whatever else the
computer does changes nothing. A request that does nothing but I/O is the worst case: a database
spends its own CPU on each besides, 100 µs and more.
"""

from __future__ import annotations

import argparse
import statistics
import time

from hotset.block.extents import Run
from hotset.core.machines.base import Machine
from hotset.core.units import Blocks, Bytes
from hotset.hitratio import tracepoints
from hotset.hitratio.heat import total
from hotset.hitratio.tracepoints import Traced
from hotset.lab import lab as labs
from hotset.lab.lab import LabSpec
from hotset.lab.machines import qemu
from hotset.tier.base import TierSpec
from hotset.tier.disk_tier import metadata_bytes
from hotset.tier.dmcache.tier import DmCache
from hotset.warmup.fill import fill

from ..page import Page, table
from ..paired import say, turns
from ..programs import fio

MIB = 1024**2
BLOCK = Bytes(64 * 1024)
CACHED = Bytes(256 * MIB)
DISK = Bytes(1024 * MIB)
REQUESTS = 20_000
ICOUNT = "-accel tcg,thread=single,tb-size=512 -cpu Nehalem,+rdrand -icount shift=0,sleep=on"


def measure(options: argparse.Namespace) -> Page:
    """Requests with counting and without, by turns; then a reading of every region."""
    setattr(qemu, "accel_argv", lambda _: ICOUNT.split())  # noqa: B010 - the lab knows no such machine
    metadata = metadata_bytes(CACHED, BLOCK)
    spec = TierSpec("writeback", "smq", BLOCK, metadata, CACHED, Bytes(16 * MIB))
    flash = Bytes(CACHED + metadata + 32 * MIB)
    with labs.running(LabSpec("vm", 2, Bytes(1536 * MIB), flash), "bench", say) as lab:
        origin = lab.backend.slow_disk("nvme-2024", DISK)
        tier = lab.backend.tier(spec, origin, lab.cleanup)
        assert isinstance(tier, DmCache)
        tier.prepare()
        fill(tier, [Run(Blocks(0), CACHED.blocks(BLOCK))], 5, lambda _: None)
        counters = tracepoints.dm_cache(lab.machine, "bench", tier.path)
        instructions(lab.machine, tier)
        sides = {
            "without": lambda _: instructions(lab.machine, tier),
            "with": lambda _: count(lab.machine, tier, counters),
        }
        results = turns(sides, options.rounds, "{:,.0f}".format)
        costs = reading(lab.machine, tier, counters)
    without, with_ = (statistics.median(results[side]) for side in ("without", "with"))
    return Page(
        "heat",
        "What counting per region costs",
        f"{with_ - without:+,.0f} instructions a request: {with_ / without - 1:+.1%} of one that is"
        f" nothing but I/O, {(with_ - without) / 100_000:.2%} of one that costs 100,000.",
        "Instructions counted by the emulator; dm-cache, all hits.",
        table(
            ("", "value"),
            [
                ("instructions a request without counting", f"{without:,.0f}"),
                ("instructions a request with counting", f"{with_:,.0f}"),
                *((name, f"{value:,.1f}") for name, value in costs.items()),
            ],
        ),
        results | costs,
    )


def instructions(machine: Machine, tier: DmCache) -> float:
    """A request's, that the submitting process took, kernel included."""
    # Not the disk's end: udev's probes of it miss, and a miss costs another kind of work.
    words = f"--name=load --filename={tier.path} --rw=randread --bs=4k --iodepth=16"
    size = int(CACHED) - 32 * MIB
    job = fio(machine, *words.split(), f"--size={size}", f"--number_ios={REQUESTS}")["load"]
    busy_ns = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] * 1e6
    return float(busy_ns / job["read"]["total_ios"])


def count(machine: Machine, tier: DmCache, counters: Traced) -> float:
    """The same, while each is counted."""
    counters.start()
    result = instructions(machine, tier)
    assert total(counters.read().tallies.values()).reads >= REQUESTS
    counters.stop()
    return result


def reading(machine: Machine, tier: DmCache, counters: Traced) -> dict[str, float]:
    """Every region of the disk touched once, then read: what that takes, each by its name."""
    counters.start()
    words = f"--name=touch --filename={tier.path} --rw=read --bs=64k --iodepth=16"
    fio(machine, *words.split())
    before, begun = busy_s(machine), time.monotonic()
    tallies = counters.read().tallies
    costs = {
        "regions that were read at once": float(len(tallies)),
        "seconds of such a reading here": time.monotonic() - begun,
        "million instructions of it there": (busy_s(machine) - before) * 1e3,
    }
    held = free_kb(machine)
    counters.stop()
    time.sleep(2)
    return costs | {
        f"MB of the kernel's tables for {counters.grid.count:,} regions": (free_kb(machine) - held)
        / 1024
    }


def busy_s(machine: Machine) -> float:
    """Seconds of CPU, all cores: billions of instructions."""
    words = machine.run(["cat", "/proc/stat"]).stdout.split()[1:9]
    idle, iowait = int(words[3]), int(words[4])
    return (sum(int(word) for word in words) - idle - iowait) / 100


def free_kb(machine: Machine) -> int:
    words = machine.run(["cat", "/proc/meminfo"]).stdout.split()
    return int(words[words.index("MemFree:") + 1])
