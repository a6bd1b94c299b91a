"""Overhead of a cache over its flash: warm hits against the bare flash, side by side.

Of hotset's own engine as files: a hit, and the volume's part of the flash by the same way; and a
hit while checkpoints are written. As root also as devices: the accelerated disk as databases use
it, and the flash by itself, each behind a loop device; and dm-cache in User-Mode Linux, beside its
own flash there, the only one that is modelled. Needs fio and /dev/fuse.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from hotset.block import devicemapper, flashdev, programs
from hotset.block.extents import Run
from hotset.core.machines.base import Machine
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.core.units import Blocks, Bytes, mb_per_s
from hotset.lab import lab as labs
from hotset.lab.backend import alone
from hotset.tier.base import TierSpec
from hotset.tier.disk_tier import metadata_bytes
from hotset.tier.dmcache.tier import DmCache
from hotset.warmup.fill import fill

from ..page import Page, table
from ..paired import ratio, say, turns
from ..programs import fio

MIB = 1024**2
CACHED = Bytes(512 * MIB)
BLOCK = Bytes(64 * 1024)
SMALL_BLOCK = Bytes(4096)
KERNELS = Bytes(256 * MIB)
"""Cached by dm-cache."""
METADATA = Bytes(32 * MIB)
"""Where the flash's cache begins."""
DEPTHS = (1, 4, 32, 128)
LONG_JOURNALS, SHORT_JOURNALS = Bytes(128 * MIB), Bytes(4 * MIB)
"""Journals for 4 KiB blocks: they hold two million changes before a checkpoint, and 32,000."""
WRITES_PER_S = 4000
"""Beside the hits; each makes two blocks dirty and clean again, as they are written through."""
Row = tuple[str, ...]


@dataclass(frozen=True)
class Reads:
    """Reads as fio measures them."""

    iops: float
    latency_us: float


@dataclass(frozen=True)
class Side:
    """Source of the reads: a file or a device, from a byte on."""

    file: PurePath
    offset: int = 0


def measure(options: argparse.Namespace) -> Page:
    """Hits as file, device and dm-cache, a hit beside checkpoints, a warm-up and memory."""
    rounds, rows = options.rounds, list[Row]()
    with running(CACHED, BLOCK, "nas-2014") as tier:
        read = tier.ask({"read_origin": {"bytes": 128 * MIB}})
        origin_rate = mb_per_s(Bytes(read["bytes"]), read["seconds"])
        warm_rate = tier.warm()
        rows += hits(tier.local, tier.folder / "mount", rounds)
        if os.geteuid() == 0:
            rows += devices(tier.local, tier.folder, rounds)
    late = [beside_writes(rounds, what) for what in ("long journals", "checkpoints")]
    if os.geteuid() == 0:
        rows += dm_cache(rounds)
    memory = memory_per_block()
    head = "read as|at once|IOPS of warm hits|of the bare flash|ratio (95 %)|µs|µs of the flash"
    late_head = ("hits beside writes", "median µs", "99.9 % within µs", "times the median")
    return Page(
        "hits",
        "What a cache adds to its flash",
        f"A warm-up has {warm_rate:.1f} MB/s, {warm_rate / origin_rate:.0%} of the origin's. A"
        f" cached block takes {memory:.0f} bytes of memory, beside the buffers.",
        f"Medians of {rounds} rounds.",
        f"{table(head.split('|'), rows)}\n\n{table(late_head, late)}",
        {"hits": rows, "beside_writes": late, "warm_mb_per_s": warm_rate, "block_bytes": memory},
    )


def compare(
    machine: Machine, what: str, hit: Side, bare: Side, rounds: int, size: Bytes = CACHED
) -> list[Row]:
    """Random reads of both by turns, one to many at a time; a row a depth."""

    def reads(side: Side, _round: int) -> dict[int, Reads]:
        return {depth: random_reads(machine, side, depth, size) for depth in DEPTHS}

    sides = {f"{what}, hits": partial(reads, hit), f"{what}, bare": partial(reads, bare)}
    results = turns(sides, rounds, lambda reads: f"{reads[1].latency_us:.1f} µs")
    rows = []
    for depth in DEPTHS:
        both = [[each[depth] for each in results[side]] for side in sides]
        iops = [[each.iops for each in side] for side in both]
        us = [statistics.median(each.latency_us for each in side) for side in both]
        medians = [f"{statistics.median(side):,.0f}" for side in iops]
        rows.append((what, str(depth), *medians, f"{ratio(*iops):.2f}", *(f"{t:.1f}" for t in us)))
    return rows


def random_reads(machine: Machine, side: Side, depth: int, size: Bytes) -> Reads:
    words = f"--name=hits --filename={side.file} --rw=randread --bs=8k --iodepth={depth}"
    words += f" --offset={side.offset} --size={int(size)} --time_based --runtime=4 --ramp_time=1"
    read = fio(machine, *words.split())["hits"]["read"]
    return Reads(read["iops"], read["lat_ns"]["mean"] / 1000)


@contextmanager
def running(
    cached: Bytes, block: Bytes, model: str, metadata: Bytes = METADATA, *more: str
) -> Iterator[Tier]:
    """A tier over an origin of twice its size, in files that go away again."""
    local = Local()
    with tempfile.TemporaryDirectory(prefix="hotset-bench-", dir="/var/tmp") as name:
        folder = Path(name)
        cleanup = Cleanup(folder, local)
        for file, size in (("origin", 2 * cached), ("flash", 3 * cached)):
            local.run(["truncate", "-s", str(int(size)), str(folder / file)])
        words = f"tier --origin-model {model} --origin {folder}/origin --flash {folder}/flash"
        words += f" --metadata {int(metadata)} --cache {int(cached)} --volume {int(cached)}"
        words += f" --block {int(block)} --control {folder}/control --discard"
        argv = [*words.split(), *(more or ("--volatile",))]
        with cleanup.part():
            log = folder / "tier.log"
            process = flashdev.serve(local, argv, folder / "mount", log, cleanup, "tier")
            yield Tier(local, folder, cached // block, process.pid)


@dataclass(frozen=True)
class Tier:
    """A running tier."""

    local: Local
    folder: Path
    blocks: int
    pid: int

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        program, control = programs.engine(self.local), str(self.folder / "control")
        output = self.local.run([program, "ask", control, json.dumps(question)]).stdout
        answer: dict[str, Any] = json.loads(output.splitlines()[-1])
        return answer

    def warm(self) -> float:
        """Fill it; returns the rate in MB/s."""
        done = self.ask({"warm": {"runs": [[0, self.blocks]]}})
        assert done["skipped"] == 0, done
        return mb_per_s(Bytes(done["bytes"]), done["seconds"])

    def memory(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024


def memory_per_block() -> float:
    """Compute the memory that a fuller tier takes for each block it holds more."""
    sizes = []
    for cached in (CACHED, Bytes(4 * CACHED)):
        with running(cached, SMALL_BLOCK, "pcie-flash-2014") as tier:
            tier.warm()
            sizes.append((tier.blocks, tier.memory()))
    (few, less), (many, more) = sizes
    return (more - less) / (many - few)


def hits(local: Local, mount: Path, rounds: int) -> list[Row]:
    # The volume's file has holes until it is written: they would be read faster than data.
    words = f"dd if=/dev/zero of={mount}/volume bs=1M count={CACHED // MIB} conv=notrunc"
    local.run([*words.split(), "oflag=direct", "status=none"])
    return compare(local, "file", Side(mount / "data"), Side(mount / "volume"), rounds)


def beside_writes(rounds: int, what: str) -> Row:
    """A hit beside writes, with journals that are full every two seconds or with long ones."""
    metadata = SHORT_JOURNALS if what == "checkpoints" else LONG_JOURNALS
    mode = ("--mode", "writethrough")
    with running(CACHED, SMALL_BLOCK, "pcie-flash-2014", metadata, *mode) as tier:
        tier.warm()
        file = tier.folder / "mount/data"
        percentiles = [hits_beside_writes(tier.local, file) for _ in range(rounds)]
    half, last = (statistics.median(each) for each in zip(*percentiles, strict=True))
    return what, f"{half:.1f}", f"{last:.1f}", f"{last / half:.1f}"


def hits_beside_writes(local: Local, file: Path) -> tuple[float, float]:
    """Median and 99.9th percentile of hits in one half, µs, while the other half is written."""
    half = int(CACHED) // 2
    # The percentiles are of the whole latency: through FUSE most of it is spent in the submission.
    words = f"--filename={file} --time_based --runtime=8 --ramp_time=1 --lat_percentiles=1"
    words += f" --percentile_list=50:99.9 --bs=8k --size={half}"
    words += " --name=hits --rw=randread --iodepth=1 --name=writes --rw=randwrite --iodepth=4"
    words += f" --offset={half} --rate_iops={WRITES_PER_S}"
    percentile = fio(local, *words.split())["hits"]["read"]["lat_ns"]["percentile"]
    return percentile["50.000000"] / 1000, percentile["99.900000"] / 1000


def devices(local: Local, folder: Path, rounds: int) -> list[Row]:
    """The accelerated disk against the same part of the flash, each as a block device."""
    with ExitStack() as stack:
        data, flash = (
            stack.enter_context(loop(local, folder / name)) for name in ("mount/data", "flash")
        )
        return compare(local, "device", Side(data), Side(flash, int(METADATA)), rounds)


def dm_cache(rounds: int) -> list[Row]:
    """The kernel's, in a machine with a kernel of its own; origin and cache are slices of its
    flash."""
    flash = Bytes(3 * KERNELS + METADATA)
    spec = labs.LabSpec("uml", 2, Bytes(1024 * MIB), flash, tier="dm-cache")
    with labs.running(spec, "bench hits", say) as lab:
        machine, origin = lab.machine, "hotset-bench-origin"
        metadata = metadata_bytes(KERNELS, BLOCK)
        wanted = TierSpec("writeback", "smq", BLOCK, metadata, KERNELS, Bytes(KERNELS))
        place = alone(machine, wanted, labs.FLASH_DISK, devicemapper.mapper_path(origin))
        devicemapper.make(machine, origin, place.volume.table(place.flash))
        tier = DmCache(machine, wanted, place)
        lab.cleanup.call("remove the tier", tier.discard)
        tier.prepare()
        fill(tier, [Run(Blocks(0), KERNELS.blocks(BLOCK))], 100, lambda _: None)
        bare = Side(labs.FLASH_DISK, int(wanted.volume + metadata))
        return compare(machine, "dm-cache", Side(tier.create()), bare, rounds, KERNELS)


@contextmanager
def loop(local: Local, file: Path) -> Iterator[Path]:
    argv = ["losetup", "--find", "--show", "--direct-io=on", str(file)]
    device = local.run(argv).stdout.strip()
    try:
        yield Path(device)
    finally:
        local.run(["losetup", "--detach", device])
