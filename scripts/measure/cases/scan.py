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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.block import extents
from hotset.block.extents import Run
from hotset.core.units import Blocks, Bytes
from hotset.disk import sizing
from hotset.lab import lab as labs
from hotset.lab.lab import Lab, LabSpec, MachineChoice
from hotset.tier.base import Tier, TierKind
from hotset.tier.choice import DatabaseKind
from hotset.tier.policies import POLICIES
from hotset.warmup.fill import fill

from ..page import Page, table
from ..paired import say
from ..programs import fio

MIB = 1024**2
DISK, CACHE, VOLUME = Bytes(1024 * MIB), Bytes(192 * MIB), Bytes(16 * MIB)
FLASH = Bytes(320 * MIB)
HOT, COLDER = Bytes(112 * MIB), Bytes(160 * MIB)
HOT_RATE, COLDER_RATE = 9000, 1000
"""Reads a second, at most."""
OLTP_S = 40
QUIET_SCANS = (1, 2, 3)
"""How many times the colder table is read before each count: 1, 3 and 6 times in all."""


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


def add_options(parser: argparse.ArgumentParser) -> None:
    where = "the machine of dm-cache and bcache; uml cannot tell what bcache holds"
    parser.add_argument("--kernel", default="uml", choices=("uml", "vm", "local"), help=where)
    parser.add_argument("--only", default="", help="sets whose name has this in it")


def measure(options: argparse.Namespace) -> Page:
    """A set after the other."""
    shares: dict[str, list[float]] = {}
    for one_set in SETS:
        if options.only in one_set.name:
            machine: MachineChoice = "image" if one_set.kind == "userspace" else options.kernel
            shares[one_set.name] = measure_steps(one_set, machine)
            say(f"{one_set.name}: {', '.join(f'{share:.1%}' for share in shares[one_set.name])}")
    rows = [(name, *(f"{share:.1%}" for share in each)) for name, each in shares.items()]
    return Page(
        "scan",
        "Do scans wash out a hot set?",
        "The share of the hot set that is cached: before, after so many scans, and after one beside"
        " the reads of the hot set.",
        f"A hot set of {HOT}, a colder table of {COLDER}, a cache of {CACHE}.",
        table(("", *STEPS), rows),
        {"shares": shares},
    )


def measure_steps(wanted: Set, machine: MachineChoice) -> list[float]:
    """The cached share of the hot set at each of the steps."""
    with running(wanted, machine) as (lab, tier):
        tier.prepare()
        block = tier.spec.block
        hot = [Run(Blocks(0), HOT.blocks(block))]
        warm = [Run(Blocks(0), Bytes(CACHE - 8 * MIB).blocks(block))]
        fill(tier, warm, 20, lambda _: None)
        path = tier.create()
        read(lab, path, job("hot", 0, HOT, HOT_RATE), job("colder", HOT, COLDER, COLDER_RATE))
        shares = [cached_share(tier, hot)]
        for scans in QUIET_SCANS:
            read(lab, path, scan(HOT, COLDER, scans))
            shares.append(cached_share(tier, hot))
        rest = Bytes(HOT + COLDER)
        read(lab, path, job("hot", 0, HOT, HOT_RATE), scan(rest, Bytes(DISK - rest), 1))
        return [*shares, cached_share(tier, hot)]


@contextmanager
def running(wanted: Set, machine: MachineChoice) -> Iterator[tuple[Lab, Tier]]:
    """A lab with the tier over a modelled slow disk."""
    spec = LabSpec(machine, 2, Bytes(1024 * MIB), FLASH, tier=wanted.kind)
    with labs.running(spec, "bench scan", say) as lab:
        disk = lab.backend.slow_disk("nas-2014", DISK)
        chosen = sizing.choose(
            wanted.kind, wanted.database, CACHE, VOLUME, FLASH, "writethrough", None, wanted.policy
        )
        yield lab, lab.backend.tier(chosen.spec, disk, lab.cleanup)


def job(name: str, start: int, size: Bytes, rate: int) -> str:
    """Random 8 KiB reads of a part of the disk."""
    return (
        f"--name={name} --rw=randread --bs=8k --iodepth=8 --offset={int(start)} --size={int(size)}"
        f" --time_based --runtime={OLTP_S} --rate_iops={rate}"
    )


def scan(start: Bytes, size: Bytes, times: int) -> str:
    words = f"--name=scan --rw=read --bs=128k --iodepth=2 --offset={int(start)}"
    return f"{words} --size={int(size)} --loops={times}"


def read(lab: Lab, device: PurePosixPath, *jobs: str) -> None:
    words = " ".join(jobs).split()
    for name, done in fio(lab.machine, f"--filename={device}", *words, limit_s=1800).items():
        assert done["error"] == 0, f"fio's job {name} failed"


def cached_share(tier: Tier, hot: Sequence[Run]) -> float:
    """Which part of the hot set is cached."""
    resident = extents.intersection(tier.resident(), hot)
    return extents.count(resident) / extents.count(hot)
