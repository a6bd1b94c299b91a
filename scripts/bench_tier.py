"""What hotset's own engine adds to its flash: warm hits against the bare volume, side by side.

As files: a hit, and the volume's part of the flash by the same way; and a hit while checkpoints are
written. As root also as devices: the accelerated disk as databases use it, and the flash by itself,
each behind a loop device. Rounds are interleaved; medians are printed. Needs fio and /dev/fuse;
nothing else should run.
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
from pathlib import Path
from typing import Any

from hotset.block import engine_program, flashdev
from hotset.core.machines.cleanup import Cleanup
from hotset.core.machines.local import Local
from hotset.core.units import Bytes, mb_per_s

MIB = 1024**2
CACHED = Bytes(512 * MIB)
BLOCK = Bytes(64 * 1024)
SMALL_BLOCK = Bytes(4096)
METADATA = Bytes(32 * MIB)
"""Where the flash's cache begins."""
ROUNDS = 5
LONG_JOURNALS, SHORT_JOURNALS = Bytes(128 * MIB), Bytes(4 * MIB)
"""Of blocks of 4 KiB: room for two million changes before a checkpoint is due, and for 32,000."""
WRITES_PER_S = 4000
"""Beside the hits; each makes two blocks dirty and clean again, as they are written through."""


@dataclass(frozen=True)
class Reads:
    """What fio saw."""

    iops: float
    latency_us: float


def fio(local: Local, file: Path, depth: int, offset: int = 0) -> Reads:
    argv = [
        "fio",
        "--name=hotset",
        f"--filename={file}",
        "--rw=randread",
        "--bs=8k",
        f"--iodepth={depth}",
        "--ioengine=libaio",
        "--direct=1",
        f"--offset={offset}",
        f"--size={int(CACHED)}",
        "--time_based",
        "--runtime=4",
        "--ramp_time=1",
        "--norandommap",
        "--output-format=json",
    ]
    text = local.run(argv, timeout_s=60).stdout
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
    rounds = []
    for number in range(ROUNDS):
        names = ("data", "volume") if number % 2 else ("volume", "data")
        rounds.append(
            {(name, depth): fio(local, mount / name, depth) for name in names for depth in (1, 32)}
        )
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)

    def median(name: str, depth: int) -> Reads:
        figures = [one[name, depth] for one in rounds]
        return Reads(
            statistics.median(read.iops for read in figures),
            statistics.median(read.latency_us for read in figures),
        )

    bare, hit = median("volume", 1).latency_us, median("data", 1).latency_us
    print(f"QD1 latency   {hit:8.1f} µs a warm hit, {bare:.1f} the bare flash: {hit - bare:+.1f}")
    bare, hit = median("volume", 32).iops, median("data", 32).iops
    print(f"QD32          {hit:8,.0f} IOPS warm hits, {bare:,.0f} the bare flash: {hit / bare:.0%}")


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
        "--output-format=json",
        *("--name=hits", "--rw=randread", "--iodepth=1", *common),
        *("--name=writes", "--rw=randwrite", "--iodepth=4", f"--offset={half}", *common),
        f"--rate_iops={WRITES_PER_S}",
    ]
    text = local.run(argv, timeout_s=60).stdout
    jobs = json.loads(text[text.index("{") :])["jobs"]
    hits = next(job for job in jobs if job["jobname"] == "hits")
    percentile = hits["read"]["clat_ns"]["percentile"]
    return percentile["50.000000"] / 1000, percentile["99.900000"] / 1000


def devices(local: Local, folder: Path) -> None:
    """A warm hit on the accelerated disk against the same part of the flash, one at a time."""
    found: dict[str, list[float]] = {"mount/data": [], "flash": []}
    with ExitStack() as stack:
        loops = {name: stack.enter_context(loop(local, folder / name)) for name in found}
        for number in range(ROUNDS):
            for name in sorted(found, reverse=number % 2 == 1):
                offset = int(METADATA) if name == "flash" else 0
                found[name].append(fio(local, loops[name], 1, offset).latency_us)
    hit, bare = (statistics.median(found[name]) for name in ("mount/data", "flash"))
    print(f"QD1 on device {hit:8.1f} µs a warm hit, {bare:.1f} the bare flash: {hit - bare:+.1f}")


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
