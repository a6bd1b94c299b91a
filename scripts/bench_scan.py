"""Does a warehouse scan wash out an OLTP hot set? dm-cache's smq and bcache, and the remedies.

On the kernel's own tiers in the lab's virtual machine (or on this computer's kernel): a hot set is
warmed and read at random, then the rest of a disk several times the cache is read from end to end,
beside it. Counted is what of the hot set is still cached, and its reads a second, before, during
and after the scans. Remedies: a bypass for long sequential reads (bcache), and warming up again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.block import extents
from hotset.block.extents import Run
from hotset.core.machines.base import Machine
from hotset.core.units import Blocks, Bytes
from hotset.lab import lab as labs
from hotset.lab.lab import Lab, LabSpec
from hotset.terminal.progress import Reporter
from hotset.tier.bcache.tier import Bcache
from hotset.tier.dmcache.tier import DmCache
from hotset.warmup.fill import fill
from kernel_tiers import Set, Sizes, made

MIB = 1024**2
HOT = Bytes(128 * MIB)
QUIET_S, SCAN_S = 8, 30
SCANS = 3


SETS = (
    Set("dm-cache smq", "dm-cache", "oltp"),
    Set("bcache, no bypass", "bcache", "oltp"),
    Set("bcache, bypass over 4 MiB", "bcache", "warehouse"),
)


SIZES = Sizes(Bytes(768 * MIB), Bytes(192 * MIB), Bytes(16 * MIB), Bytes(320 * MIB))


@dataclass(frozen=True)
class Figures:
    """Reads a second of the hot set, and which share of it is cached, by the step."""

    iops: dict[str, float]
    cached: dict[str, float]


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--time-scale", type=float, default=1.0, help="slow the disk so many times")
    wanted, report = words.parse_args(), Reporter()
    kind: labs.MachineChoice = "local" if labs.kernel_has_dm_cache() else "vm"
    spec = LabSpec(kind, 2, Bytes(1024 * MIB), SIZES.flash, tier="dm-cache")
    print(f"{'':28}{'hot set cached':^34}{'reads/s of the hot set':^36}")
    steps = ("before", "after", "re-warmed")
    print(f"{'':28}" + "".join(f"{one:>11}" for one in (*steps, "before", "scan", "after")))
    with labs.running(spec, "bench scan", report.say) as lab:
        for one in SETS:
            report.say(one.name)
            figures = measure(lab, one, wanted.time_scale)
            shares = "".join(f"{figures.cached[step]:>11.0%}" for step in steps)
            rates = "".join(f"{figures.iops[at]:>11,.0f}" for at in ("before", "scan", "after"))
            print(f"{one.name:28}{shares}{rates}", flush=True)


def measure(lab: Lab, wanted: Set, time_scale: float) -> Figures:
    with lab.cleanup.part(), made(lab, wanted, time_scale, SIZES, "writethrough") as tier:
        block = tier.spec.block
        hot = [Run(Blocks(0), HOT.blocks(block))]
        tier.prepare()
        fill(tier, hot, 20, lambda _: None)
        iops, cached = {}, {"before": share(tier, hot)}
        iops["before"], _ = reads(lab.machine, tier.path, QUIET_S, 0)
        iops["scan"], scanned = reads(lab.machine, tier.path, SCAN_S, SCANS)
        assert scanned >= (SIZES.disk - HOT) * SCANS, "the scans did not come to their end"
        cached["after"] = share(tier, hot)
        iops["after"], _ = reads(lab.machine, tier.path, QUIET_S, 0)
        rewarm(tier, hot)
        cached["re-warmed"] = share(tier, hot)
        return Figures(iops, cached)


def reads(machine: Machine, device: PurePosixPath, seconds: int, scans: int) -> tuple[float, int]:
    """Random 8 KiB reads of the hot set, with scans of the rest beside them; reads a second, and
    the bytes that were scanned."""
    argv = [
        "fio",
        "--output-format=json",
        f"--filename={device}",
        "--direct=1",
        "--ioengine=libaio",
        "--name=oltp",
        "--rw=randread",
        "--bs=8k",
        "--iodepth=8",
        f"--size={int(HOT)}",
        "--time_based",
        f"--runtime={seconds}",
        "--norandommap",
    ]
    if scans:
        argv += [
            "--name=scan",
            "--rw=read",
            "--bs=256k",
            "--iodepth=2",
            f"--offset={int(HOT)}",
            f"--size={int(SIZES.disk - HOT)}",
            f"--loops={scans}",
        ]
    text = machine.run(argv, timeout_s=1800).stdout
    jobs = {job["jobname"]: job["read"] for job in json.loads(text[text.index("{") :])["jobs"]}
    return float(jobs["oltp"]["iops"]), int(jobs["scan"]["io_bytes"]) if scans else 0


def share(tier: DmCache | Bcache, hot: Sequence[Run]) -> float:
    """Which part of the hot set is cached."""
    there = extents.intersection(tier.resident(), hot)
    return extents.count(there) / extents.count(hot)


def rewarm(tier: DmCache | Bcache, hot: Sequence[Run]) -> None:
    """Fill it again, off line where the tier can only be filled so."""
    if isinstance(tier, DmCache):
        tier.discard()
        tier.prepare()
    fill(tier, hot, 20, lambda _: None)


if __name__ == "__main__":
    main()
