"""What counting per region costs: CPU a request with and without it, and what a reading takes.

4 KiB random reads that all hit dm-cache, as fast as they go, in the lab's virtual machine; rounds
are interleaved. A request that does nothing but I/O is the worst case: a database spends its own
CPU on each besides. Nothing else should run; under an emulated CPU read the ratio, not the µs.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from hotset.cachelayer import lab as labs
from hotset.cachelayer import traced
from hotset.cachelayer.dmcache import DmCache, metadata_bytes
from hotset.cachelayer.extents import Run
from hotset.cachelayer.heat import total
from hotset.cachelayer.lab import LabSpec
from hotset.cachelayer.tier import TierSpec
from hotset.cachelayer.traced import Traced
from hotset.cachelayer.units import Blocks, Bytes
from hotset.cachelayer.vm import Vm

MIB = 1024**2
BLOCK = Bytes(64 * 1024)
CACHED = Bytes(256 * MIB)
DISK = Bytes(1024 * MIB)
ROUNDS = 5
SECONDS = 6


@dataclass(frozen=True)
class Load:
    """One round: requests a second, and CPU a request."""

    iops: float
    cpu_us: float


def load(machine: Vm, device: str) -> Load:
    argv = ["fio", "--name=load", f"--filename={device}", "--rw=randread", "--bs=4k", "--direct=1",
            "--ioengine=libaio", "--iodepth=16", f"--size={int(CACHED)}", "--time_based",
            f"--runtime={SECONDS}", "--norandommap", "--output-format=json"]  # fmt: skip
    before = cpu_s(machine)
    text = machine.run(argv, timeout_s=60).stdout
    spent = cpu_s(machine) - before
    read = json.loads(text[text.index("{") :])["jobs"][0]["read"]
    return Load(read["iops"], 1e6 * spent / read["total_ios"])


def cpu_s(machine: Vm) -> float:
    """CPU that the whole virtual machine has taken of this computer, which others' load and
    stolen time do not change (proc_pid_stat(5): utime and stime)."""
    fields = Path(f"/proc/{machine.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def compare(machine: Vm, tier: DmCache, counters: Traced) -> None:
    rounds: dict[bool, list[Load]] = {True: [], False: []}
    load(machine, str(tier.path))
    for number in range(ROUNDS):
        # The first of a pair changes place, so that a drift of the machine is no difference.
        for counted in (True, False) if number % 2 else (False, True):
            (counters.start if counted else counters.stop)()
            rounds[counted].append(load(machine, str(tier.path)))
            print(f"counted={counted}: {rounds[counted][-1]}", file=sys.stderr, flush=True)
            if counted:
                seen = total(counters.read().tallies.values())
                assert (seen.read_ratio or 0) > 0.999, "every read must hit"
    plain, watched = rounds[False], rounds[True]
    ratios = [b.cpu_us / a.cpu_us - 1 for a, b in zip(plain, watched, strict=True)]
    cost = statistics.median(one.cpu_us for one in watched) - statistics.median(
        one.cpu_us for one in plain
    )
    print(f"requests a second: {statistics.median(o.iops for o in plain):,.0f} without,"
          f" {statistics.median(o.iops for o in watched):,.0f} with counting")  # fmt: skip
    print(f"CPU a request: {cost:+.2f} µs, {100 * statistics.median(ratios):+.2f} % (median of"
          f" {ROUNDS} pairs: {', '.join(f'{100 * one:+.1f}' for one in ratios)})")  # fmt: skip


def reading(machine: Vm, tier: DmCache, counters: Traced) -> None:
    """Every region of the disk touched once, then read."""
    counters.start()
    argv = ["fio", "--name=touch", f"--filename={tier.path}", "--rw=read", "--bs=64k", "--direct=1",
            "--ioengine=libaio", "--iodepth=16"]  # fmt: skip
    machine.run(argv, timeout_s=300)
    before = cpu_s(machine)
    begun = time.monotonic()
    tallies = counters.read().tallies
    seconds = time.monotonic() - begun
    busy = cpu_s(machine) - before
    print(f"a reading of {len(tallies):,} regions: {seconds:.2f} s, {busy:.2f} s of CPU on the"
          " machine")  # fmt: skip
    memory = machine.run(["cat", "/proc/meminfo"]).stdout.split()
    counters.stop()
    freed = machine.run(["cat", "/proc/meminfo"]).stdout.split()
    kept = int(freed[freed.index("MemFree:") + 1]) - int(memory[memory.index("MemFree:") + 1])
    print(
        f"memory of the kernel's tables for {counters.grid.count:,} regions: {kept / 1024:.0f} MB"
    )


def main() -> None:
    metadata = metadata_bytes(CACHED, BLOCK)
    spec = TierSpec("writeback", "smq", BLOCK, metadata, CACHED, Bytes(16 * MIB))
    flash = Bytes(CACHED + metadata + 32 * MIB)
    with labs.standing(LabSpec("vm", 2, Bytes(1536 * MIB), flash), "bench", print) as lab:
        origin = lab.ground.slow_disk("nas-2014", DISK, 0.1)
        tier = lab.ground.tier(spec, origin, lab.takedown)
        assert isinstance(tier, DmCache)
        assert isinstance(lab.machine, Vm)
        tier.prepare()
        tier.warm([Run(Blocks(0), CACHED.blocks(BLOCK))], 5, lambda _: None)
        counters = traced.dm_cache(lab.machine, "bench", tier.path)
        compare(lab.machine, tier, counters)
        reading(lab.machine, tier, counters)


if __name__ == "__main__":
    main()
