"""What counting per region costs: CPU a request with and without it, and what a reading takes.

4 KiB random reads that all hit dm-cache, in the lab's virtual machine with an emulated CPU whose
clock is its own count of instructions (QEMU's icount: 1 ns each), so that whatever else the
computer does changes nothing. A request that does nothing but I/O is the worst case: a database
spends its own CPU on each besides, 100 µs and more.
"""

from __future__ import annotations

import json
import statistics
import time
from dataclasses import dataclass

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

MIB = 1024**2
BLOCK = Bytes(64 * 1024)
CACHED = Bytes(256 * MIB)
DISK = Bytes(1024 * MIB)
ROUNDS = 3
REQUESTS = 20_000
ICOUNT = [
    "-accel",
    "tcg,thread=single,tb-size=512",
    "-cpu",
    "Nehalem,+rdrand",
    "-icount",
    "shift=0,sleep=on",
]


@dataclass(frozen=True)
class Load:
    """One round: instructions a request that the submitting process took, kernel included."""

    instructions: float


def load(machine: Machine, device: str) -> Load:
    # Not the disk's end: udev's probes of it miss, and a miss costs another kind of work.
    argv = [
        "fio",
        "--name=load",
        f"--filename={device}",
        "--rw=randread",
        "--bs=4k",
        "--direct=1",
        "--ioengine=libaio",
        "--iodepth=16",
        f"--size={int(CACHED) - 32 * MIB}",
        f"--number_ios={REQUESTS}",
        "--norandommap",
        "--output-format=json",
    ]
    text = machine.run(argv, timeout_s=300).stdout
    job = json.loads(text[text.index("{") :])["jobs"][0]
    busy_ns = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] * 1e6
    return Load(busy_ns / job["read"]["total_ios"])


def compare(machine: Machine, tier: DmCache, counters: Traced) -> None:
    device = str(tier.path)
    load(machine, device)
    plain, counted = [], []
    for _ in range(ROUNDS):
        counters.start()
        counted.append(load(machine, device).instructions)
        assert total(counters.read().tallies.values()).reads >= REQUESTS
        counters.stop()
        plain.append(load(machine, device).instructions)
    without, with_ = statistics.median(plain), statistics.median(counted)
    print(
        f"instructions a request: {without:,.0f} without, {with_:,.0f} with counting:"
        f" {with_ - without:+,.0f} ({with_ / without - 1:+.1%} of a request that is nothing but"
        f" I/O; {(with_ - without) / 100_000:.2%} of one that costs 100,000)"
    )


def reading(machine: Machine, tier: DmCache, counters: Traced) -> None:
    """Every region of the disk touched once, then read."""
    counters.start()
    argv = [
        "fio",
        "--name=touch",
        f"--filename={tier.path}",
        "--rw=read",
        "--bs=64k",
        "--direct=1",
        "--ioengine=libaio",
        "--iodepth=16",
    ]
    machine.run(argv, timeout_s=300)
    before, begun = busy_s(machine), time.monotonic()
    tallies = counters.read().tallies
    print(
        f"a reading of {len(tallies):,} regions: {time.monotonic() - begun:.1f} s here,"
        f" {(busy_s(machine) - before) * 1e3:,.0f} million instructions there"
    )
    held = free_kb(machine)
    counters.stop()
    time.sleep(2)
    print(
        f"memory of the kernel's tables for {counters.grid.count:,} regions:"
        f" {(free_kb(machine) - held) / 1024:.0f} MB"
    )


def busy_s(machine: Machine) -> float:
    """Seconds of CPU, all cores: billions of instructions."""
    words = machine.run(["cat", "/proc/stat"]).stdout.split()[1:9]
    idle, iowait = int(words[3]), int(words[4])
    return (sum(int(word) for word in words) - idle - iowait) / 100


def free_kb(machine: Machine) -> int:
    words = machine.run(["cat", "/proc/meminfo"]).stdout.split()
    return int(words[words.index("MemFree:") + 1])


def main() -> None:
    setattr(qemu, "accel_argv", lambda _: ICOUNT)  # noqa: B010 - the lab knows no such machine
    metadata = metadata_bytes(CACHED, BLOCK)
    spec = TierSpec("writeback", "smq", BLOCK, metadata, CACHED, Bytes(16 * MIB))
    flash = Bytes(CACHED + metadata + 32 * MIB)
    with labs.running(LabSpec("vm", 2, Bytes(1536 * MIB), flash), "bench", print) as lab:
        origin = lab.backend.slow_disk("nvme-2024", DISK)
        tier = lab.backend.tier(spec, origin, lab.cleanup)
        assert isinstance(tier, DmCache)
        tier.prepare()
        fill(tier, [Run(Blocks(0), CACHED.blocks(BLOCK))], 5, lambda _: None)
        counters = tracepoints.dm_cache(lab.machine, "bench", tier.path)
        compare(lab.machine, tier, counters)
        reading(lab.machine, tier, counters)


if __name__ == "__main__":
    main()
