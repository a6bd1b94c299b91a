"""What a cache adds to its flash: warm hits against the bare flash, side by side.

Of hotset's own engine as files: a hit, and the volume's part of the flash by the same way; and a
hit while checkpoints are written. As root also as devices: the accelerated disk as databases use
it, and the flash by itself, each behind a loop device; and dm-cache in User-Mode Linux, beside its
own flash there, the only one that is modelled. Rounds are interleaved; medians are printed. Needs
fio and /dev/fuse; nothing else should run.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from hotset.block import devicemapper, engine_program, flashdev
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

MIB = 1024**2
CACHED = Bytes(512 * MIB)
BLOCK = Bytes(64 * 1024)
SMALL_BLOCK = Bytes(4096)
KERNELS = Bytes(256 * MIB)
"""Cached by dm-cache."""
METADATA = Bytes(32 * MIB)
"""Where the flash's cache begins."""
ROUNDS = 5
DEPTHS = (1, 4, 32, 128)
LONG_JOURNALS, SHORT_JOURNALS = Bytes(128 * MIB), Bytes(4 * MIB)
"""Of blocks of 4 KiB: room for two million changes before a checkpoint is due, and for 32,000."""
WRITES_PER_S = 4000
"""Beside the hits; each makes two blocks dirty and clean again, as they are written through."""


@dataclass(frozen=True)
class Reads:
    """What fio saw."""

    iops: float
    latency_us: float


@dataclass(frozen=True)
class Side:
    """What is read: a file or a device, from a byte on."""

    file: PurePath
    offset: int = 0


def compare(machine: Machine, what: str, hit: Side, bare: Side, size: Bytes = CACHED) -> None:
    """Random reads of both by turns, one to many at a time; a line a depth."""
    found: dict[tuple[Side, int], list[Reads]] = {}
    for number in range(ROUNDS):
        for side in (hit, bare) if number % 2 else (bare, hit):
            for depth in DEPTHS:
                found.setdefault((side, depth), []).append(fio(machine, side, depth, size))
        print(f"{what}: round {number + 1} of {ROUNDS}", file=sys.stderr)
    for depth in DEPTHS:
        hits, bares = found[hit, depth], found[bare, depth]
        iops, bare_iops = (statistics.median(one.iops for one in side) for side in (hits, bares))
        us, bare_us = (statistics.median(one.latency_us for one in side) for side in (hits, bares))
        print(
            f"{what:9} QD{depth:<4}{iops:9,.0f} IOPS of warm hits, {bare_iops:9,.0f} of the bare"
            f" flash: {iops / bare_iops:.2f}; {us:7.1f} µs, {bare_us:7.1f}",
            flush=True,
        )


def fio(machine: Machine, side: Side, depth: int, size: Bytes) -> Reads:
    argv = [
        "fio",
        "--name=hotset",
        f"--filename={side.file}",
        "--rw=randread",
        "--bs=8k",
        f"--iodepth={depth}",
        "--ioengine=libaio",
        "--direct=1",
        f"--offset={side.offset}",
        f"--size={int(size)}",
        "--time_based",
        "--runtime=4",
        "--ramp_time=1",
        "--norandommap",
        "--output-format=json",
    ]
    text = machine.run(argv, timeout_s=60).stdout
    read = json.loads(text[text.index("{") :])["jobs"][0]["read"]
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
        words = [
            "tier",
            "--origin-model",
            model,
            "--origin",
            str(folder / "origin"),
            "--flash",
            str(folder / "flash"),
            "--metadata",
            str(int(metadata)),
            "--cache",
            str(int(cached)),
            "--volume",
            str(int(cached)),
            "--block",
            str(int(block)),
            "--control",
            str(folder / "control"),
            "--discard",
            *(more or ("--volatile",)),
        ]
        with cleanup.part():
            log = folder / "tier.log"
            process = flashdev.serve(local, words, folder / "mount", log, cleanup, "tier")
            yield Tier(local, folder, cached // block, process.pid)


@dataclass(frozen=True)
class Tier:
    """A running tier."""

    local: Local
    folder: Path
    blocks: int
    pid: int

    def ask(self, question: dict[str, Any]) -> dict[str, Any]:
        program, control = engine_program.on(self.local), str(self.folder / "control")
        said = self.local.run([program, "ask", control, json.dumps(question)]).stdout
        answer: dict[str, Any] = json.loads(said.splitlines()[-1])
        return answer

    def warm(self) -> float:
        """Fill it; returns the rate in MB/s."""
        done = self.ask({"warm": {"runs": [[0, self.blocks]]}})
        assert done["skipped"] == 0, done
        return mb_per_s(Bytes(done["bytes"]), done["seconds"])

    def memory(self) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0]) * 1024


def main() -> None:
    with running(CACHED, BLOCK, "nas-2014") as tier:
        read = tier.ask({"read_origin": {"bytes": 128 * MIB}})
        origin_rate = mb_per_s(Bytes(read["bytes"]), read["seconds"])
        warm_rate = tier.warm()
        hits(tier.local, tier.folder / "mount")
        if os.geteuid() == 0:
            devices(tier.local, tier.folder)
    checkpoints()
    if os.geteuid() == 0:
        dm_cache()
    print(f"warm-up       {warm_rate:8.1f} MB/s, {warm_rate / origin_rate:.0%} of the origin's")
    print(f"memory        {memory_per_block():8.0f} bytes per cached block, beside the buffers")


def memory_per_block() -> float:
    """What a full tier has more than a smaller full one, per block that it holds more."""
    figures = []
    for cached in (CACHED, Bytes(4 * CACHED)):
        with running(cached, SMALL_BLOCK, "pcie-flash-2014") as tier:
            tier.warm()
            figures.append((tier.blocks, tier.memory()))
    (few, less), (many, more) = figures
    return (more - less) / (many - few)


def hits(local: Local, mount: Path) -> None:
    # The volume's file has holes until it is written: they would be read faster than data.
    local.run(
        [
            "dd",
            "if=/dev/zero",
            f"of={mount / 'volume'}",
            "bs=1M",
            f"count={CACHED // MIB}",
            "conv=notrunc",
            "oflag=direct",
            "status=none",
        ]
    )
    compare(local, "file", Side(mount / "data"), Side(mount / "volume"))


def checkpoints() -> None:
    """A hit beside writes, with journals that are full every two seconds and with long ones."""
    for metadata, what in ((LONG_JOURNALS, "no checkpoint"), (SHORT_JOURNALS, "checkpoints")):
        mode = ("--mode", "writethrough")
        with running(CACHED, SMALL_BLOCK, "pcie-flash-2014", metadata, *mode) as tier:
            tier.warm()
            found = [beside_writes(tier.local, tier.folder / "mount/data") for _ in range(ROUNDS)]
        half, last = (statistics.median(one) for one in zip(*found, strict=True))
        print(
            f"p99.9 beside writes, {what:13}  {last:8.1f} µs, "
            f"{last / half:.1f} times the median, {half:.1f}"
        )


def beside_writes(local: Local, file: Path) -> tuple[float, float]:
    """Median and 99.9th percentile of hits in one half, µs, while the other half is written."""
    half = int(CACHED) // 2
    common = ["--ioengine=libaio", "--direct=1", "--bs=8k", f"--size={half}", "--norandommap"]
    argv = [
        "fio",
        f"--filename={file}",
        "--time_based",
        "--runtime=8",
        "--ramp_time=1",
        "--percentile_list=50:99.9",
        # Of the whole latency: through FUSE most of it is spent in the submission.
        "--lat_percentiles=1",
        "--output-format=json",
        *("--name=hits", "--rw=randread", "--iodepth=1", *common),
        *("--name=writes", "--rw=randwrite", "--iodepth=4", f"--offset={half}", *common),
        f"--rate_iops={WRITES_PER_S}",
    ]
    text = local.run(argv, timeout_s=60).stdout
    jobs = json.loads(text[text.index("{") :])["jobs"]
    hits = next(job for job in jobs if job["jobname"] == "hits")
    percentile = hits["read"]["lat_ns"]["percentile"]
    return percentile["50.000000"] / 1000, percentile["99.900000"] / 1000


def devices(local: Local, folder: Path) -> None:
    """The accelerated disk against the same part of the flash, each as a block device."""
    with ExitStack() as stack:
        data, flash = (
            stack.enter_context(loop(local, folder / name)) for name in ("mount/data", "flash")
        )
        compare(local, "device", Side(data), Side(flash, int(METADATA)))


def dm_cache() -> None:
    """The kernel's, in a machine with a kernel of its own; origin and cache are slices of its
    flash."""
    flash = Bytes(3 * KERNELS + METADATA)
    spec = labs.LabSpec("uml", 2, Bytes(1024 * MIB), flash, tier="dm-cache")
    with labs.running(spec, "bench hits", lambda said: print(said, file=sys.stderr)) as lab:
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
        compare(machine, "dm-cache", Side(tier.create()), bare, KERNELS)


@contextmanager
def loop(local: Local, file: Path) -> Iterator[Path]:
    argv = ["losetup", "--find", "--show", "--direct-io=on", str(file)]
    device = local.run(argv).stdout.strip()
    try:
        yield Path(device)
    finally:
        local.run(["losetup", "--detach", device])


if __name__ == "__main__":
    main()
