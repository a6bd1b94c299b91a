"""Do scans wash out a hot set? The six policies of hotset's engine, dm-cache's smq and bcache.

A hot set is read at random, and with a ninth as many requests a colder table that does not fit
beside it. Then the colder table is read from end to end several times while nothing else goes on,
as by ``count(*)`` or a benchmark's closing check. After that, the rest of a disk several times the
cache is read from end to end beside the reads of the hot set. Counted is what of the hot set is
cached, which does not depend on the speed of the computer. The engine runs between models of both
devices, dm-cache and bcache in a machine with a kernel of their own.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.block import extents
from hotset.block.extents import Run
from hotset.core.progress import Reporter
from hotset.core.units import Blocks, Bytes
from hotset.disk import sizing
from hotset.lab import lab as labs
from hotset.lab.lab import Lab, LabSpec, MachineChoice
from hotset.tier.base import Tier, TierKind
from hotset.tier.choice import DatabaseKind
from hotset.tier.policies import POLICIES
from hotset.warmup.fill import fill

MIB = 1024**2
DISK, CACHE, VOLUME = Bytes(1024 * MIB), Bytes(192 * MIB), Bytes(16 * MIB)
FLASH = Bytes(320 * MIB)
HOT, COLDER = Bytes(112 * MIB), Bytes(160 * MIB)
HOT_RATE, COLDER_RATE = 9000, 1000
"""Reads a second, at most."""
OLTP_S = 40
QUIET_SCANS = (1, 2, 3)
"""How many times the colder table is read before each look: 1, 3 and 6 times in all."""


@dataclass(frozen=True)
class Set:
    """A tier: what it is called, and how it is made."""

    name: str
    kind: TierKind
    database: DatabaseKind = "oltp"
    policy: str | None = None


SETS = (
    *(Set(f"hotset's engine, {policy}", "userspace", policy=policy) for policy in POLICIES),
    Set("dm-cache, smq", "dm-cache"),
    Set("bcache, nothing bypassed", "bcache"),
    Set("bcache, bypass from 4 MiB on", "bcache", "warehouse"),
)
STEPS = (
    "before",
    *(f"scan {sum(QUIET_SCANS[: at + 1])}" for at in range(len(QUIET_SCANS))),
    "beside",
)


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    where = "the machine of dm-cache and bcache; uml cannot tell what bcache holds"
    words.add_argument("--kernel", default="uml", choices=("uml", "vm", "local"), help=where)
    words.add_argument("--only", help="sets whose name has this in it")
    given, report = words.parse_args(), Reporter()
    print(f"{'hot set cached':32}" + "".join(f"{step:>10}" for step in STEPS))
    for one in SETS:
        if given.only is None or given.only in one.name:
            report.say(one.name)
            machine: MachineChoice = "image" if one.kind == "userspace" else given.kernel
            shares = measure(one, machine, report.say)
            print(f"{one.name:32}" + "".join(f"{share:>10.1%}" for share in shares), flush=True)


def measure(wanted: Set, machine: MachineChoice, say: Callable[[str], None]) -> list[float]:
    """The cached share of the hot set at each of the steps."""
    with standing(wanted, machine, say) as (lab, tier):
        tier.prepare()
        block = tier.spec.block
        hot = [Run(Blocks(0), HOT.blocks(block))]
        warm = [Run(Blocks(0), Bytes(CACHE - 8 * MIB).blocks(block))]
        fill(tier, warm, 20, lambda _: None)
        path = tier.create()
        read(
            lab,
            path,
            [*job("hot", 0, HOT, HOT_RATE), *job("colder", HOT, COLDER, COLDER_RATE)],
        )
        shares = [cached(tier, hot)]
        for scans in QUIET_SCANS:
            read(lab, path, scan(HOT, COLDER, scans))
            shares.append(cached(tier, hot))
        rest = Bytes(HOT + COLDER)
        last = scan(rest, Bytes(DISK - rest), 1)
        read(lab, path, [*job("hot", 0, HOT, HOT_RATE), *last])
        return [*shares, cached(tier, hot)]


@contextmanager
def standing(
    wanted: Set, machine: MachineChoice, say: Callable[[str], None]
) -> Iterator[tuple[Lab, Tier]]:
    """A lab with the tier over a modelled slow disk."""
    spec = LabSpec(machine, 2, Bytes(1024 * MIB), FLASH, tier=wanted.kind)
    with labs.running(spec, "bench scan", say) as lab:
        disk = lab.backend.slow_disk("nas-2014", DISK)
        chosen = sizing.choose(
            wanted.kind, wanted.database, CACHE, VOLUME, FLASH, "writethrough", None, wanted.policy
        )
        yield lab, lab.backend.tier(chosen.spec, disk, lab.cleanup)


def job(name: str, start: int, size: Bytes, rate: int) -> list[str]:
    """Random 8 KiB reads of a part of the disk."""
    return [
        f"--name={name}",
        "--rw=randread",
        "--bs=8k",
        "--iodepth=8",
        "--norandommap",
        f"--offset={int(start)}",
        f"--size={int(size)}",
        "--time_based",
        f"--runtime={OLTP_S}",
        f"--rate_iops={rate}",
    ]


def scan(start: Bytes, size: Bytes, times: int) -> list[str]:
    words = ["--name=scan", "--rw=read", "--bs=128k", "--iodepth=2"]
    return [*words, f"--offset={int(start)}", f"--size={int(size)}", f"--loops={times}"]


def read(lab: Lab, device: PurePosixPath, jobs: Sequence[str]) -> None:
    argv = [
        "fio",
        "--output-format=json",
        f"--filename={device}",
        "--direct=1",
        "--ioengine=libaio",
    ]
    text = lab.machine.run([*argv, *jobs], timeout_s=1800).stdout
    for done in json.loads(text[text.index("{") :])["jobs"]:
        assert done["error"] == 0, f"fio's job {done['jobname']} failed"


def cached(tier: Tier, hot: Sequence[Run]) -> float:
    """Which part of the hot set is cached."""
    there = extents.intersection(tier.resident(), hot)
    return extents.count(there) / extents.count(hot)


if __name__ == "__main__":
    main()
