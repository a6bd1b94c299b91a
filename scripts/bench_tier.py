"""What the emulated tier adds to its flash: warm hits against the bare volume, side by side.

Rounds are interleaved; medians are printed. Needs fio and /dev/fuse; nothing else should run.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotset.cachelayer import flashdev
from hotset.cachelayer.local import Local
from hotset.cachelayer.takedown import Takedown
from hotset.cachelayer.units import Bytes, mb_per_s

MIB = 1024**2
CACHED = Bytes(512 * MIB)
BLOCK = Bytes(64 * 1024)
ROUNDS = 5


@dataclass(frozen=True)
class Reads:
    """What fio saw."""

    iops: float
    latency_us: float


def fio(local: Local, file: Path, depth: int) -> Reads:
    argv = ["fio", "--name=hotset", f"--filename={file}", "--rw=randread", "--bs=8k",
            f"--iodepth={depth}", "--ioengine=libaio", "--direct=1", f"--size={int(CACHED)}",
            "--time_based", "--runtime=4", "--ramp_time=1", "--norandommap",
            "--output-format=json"]  # fmt: skip
    text = local.run(argv, timeout_s=60).stdout
    read = json.loads(text[text.index("{") :])["jobs"][0]["read"]
    return Reads(read["iops"], read["lat_ns"]["mean"] / 1000)


def resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) * 1024


def main() -> None:
    local = Local()
    with tempfile.TemporaryDirectory(prefix="hotset-bench-", dir="/var/tmp") as name:
        folder = Path(name)
        takedown = Takedown(folder, local)
        for file, size in (("origin", 2 * CACHED), ("flash", 3 * CACHED)):
            local.run(["truncate", "-s", str(int(size)), str(folder / file)])
        words = ["tier", "--origin-model", "nas-2014", "--origin", str(folder / "origin"),
                 "--flash", str(folder / "flash"), "--metadata", str(8 * MIB),
                 "--cache", str(int(CACHED)), "--volume", str(int(CACHED)),
                 "--control", str(folder / "control"), "--volatile"]  # fmt: skip
        with takedown.part():
            log = folder / "tier.log"
            tier = flashdev.serve(local, words, folder / "mount", log, takedown, "tier")
            before = resident_bytes(tier.pid)
            origin_rate, warm_rate = warm(local, folder / "control")
            grown = resident_bytes(tier.pid) - before
            hits(local, folder / "mount")
        blocks = CACHED // BLOCK
        print(f"warm-up       {warm_rate:8.1f} MB/s, {warm_rate / origin_rate:.0%} of the origin's")
        print(f"memory        {grown / blocks:8.0f} bytes per cached block more than empty")


def warm(local: Local, control: Path) -> tuple[float, float]:
    """Rates in MB/s: the origin's own, and the warm-up's."""

    def ask(question: dict[str, Any]) -> dict[str, Any]:
        argv = [str(flashdev.program(local)), "ask", str(control), json.dumps(question)]
        answer: dict[str, Any] = json.loads(local.run(argv).stdout.splitlines()[-1])
        return answer

    read = ask({"read_origin": {"bytes": 128 * MIB}})
    done = ask({"warm": {"runs": [[0, CACHED // BLOCK]]}})
    assert done["skipped"] == 0, done
    return (mb_per_s(Bytes(read["bytes"]), read["seconds"]),
            mb_per_s(Bytes(done["bytes"]), done["seconds"]))  # fmt: skip


def hits(local: Local, mount: Path) -> None:
    # The volume's file has holes until it is written: they would be read faster than data.
    local.run(["dd", "if=/dev/zero", f"of={mount / 'volume'}", "bs=1M", f"count={CACHED // MIB}",
               "conv=notrunc", "oflag=direct", "status=none"])  # fmt: skip
    rounds = []
    for number in range(ROUNDS):
        names = ("data", "volume") if number % 2 else ("volume", "data")
        rounds.append({(name, depth): fio(local, mount / name, depth)
                       for name in names for depth in (1, 32)})  # fmt: skip
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)

    def median(name: str, depth: int) -> Reads:
        figures = [one[name, depth] for one in rounds]
        return Reads(statistics.median(read.iops for read in figures),
                     statistics.median(read.latency_us for read in figures))  # fmt: skip

    bare, hit = median("volume", 1).latency_us, median("data", 1).latency_us
    print(f"QD1 latency   {hit:8.1f} µs a warm hit, {bare:.1f} the bare flash: {hit - bare:+.1f}")
    bare, hit = median("volume", 32).iops, median("data", 32).iops
    print(f"QD32          {hit:8,.0f} IOPS warm hits, {bare:,.0f} the bare flash: {hit / bare:.0%}")


if __name__ == "__main__":
    main()
