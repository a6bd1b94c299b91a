"""Tiers of the kernel for tests of the lab, made by plain commands: nothing of hotset's own tiers
is in the way of what is measured on them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath

from hotset.core.machines.base import Machine

MIB = 1024**2
SECTORS_PER_MIB = 2048
BLOCK_SECTORS = 128
META, CACHE, DATA = "heat-meta", "heat-cache", "heat-data"
DEVICE = PurePosixPath("/dev/mapper") / DATA
_SYS = PurePosixPath("/sys/fs/bcache")


@dataclass(frozen=True)
class Bcache:
    """Where its settings and statistics are."""

    device: PurePosixPath
    sysfs: PurePosixPath


def write(machine: Machine, file: PurePosixPath, text: str) -> None:
    machine.run(["tee", str(file)], stdin=text)


def read(machine: Machine, file: PurePosixPath) -> str:
    return machine.run(["cat", str(file)]).stdout.strip()


def sectors(machine: Machine, device: PurePosixPath) -> int:
    return int(machine.run(["blockdev", "--getsz", str(device)]).stdout)


def number(machine: Machine, name: str) -> tuple[int, int]:
    """Major and minor number of a device of device-mapper."""
    argv = ["dmsetup", "info", "-c", "--noheadings", "--separator", " ", "-o", "major,minor", name]
    major, minor = machine.run(argv).stdout.split()
    return int(major), int(minor)


def statistics(machine: Machine, tier: Bcache) -> Counter[str]:
    """bcache's own, which lag behind."""
    names = ("cache_hits", "cache_misses", "cache_bypass_hits", "cache_bypass_misses")
    return Counter({name: int(read(machine, tier.sysfs / "stats_total" / name)) for name in names})


@contextmanager
def dm_cache(
    machine: Machine,
    flash: PurePosixPath,
    origin: PurePosixPath,
    cached: Iterable[int] = (),
    policy: str = "smq",
    mib: int = 64,
) -> Iterator[PurePosixPath]:
    """A dm-cache; ``cached`` are blocks of the origin that it takes for its own, with whatever
    stands on the flash."""
    machine.run(["modprobe", "-a", "dm-cache", "dm-cache-smq"])
    meta, size = 8 * SECTORS_PER_MIB, mib * SECTORS_PER_MIB
    machine.run(["dmsetup", "create", META], stdin=f"0 {meta} linear {flash} 0")
    try:
        machine.run(["dmsetup", "create", CACHE], stdin=f"0 {size} linear {flash} {meta}")
        _metadata(machine, list(cached), size // BLOCK_SECTORS)
        length = sectors(machine, origin)
        table = (
            f"0 {length} cache /dev/mapper/{META} /dev/mapper/{CACHE} {origin} {BLOCK_SECTORS}"
            f" 2 metadata2 writeback {policy} 0"
        )
        machine.run(["dmsetup", "create", DATA], stdin=table)
        # udev looks what is on it, which would be counted.
        machine.run(["udevadm", "settle"])
        yield DEVICE
    finally:
        for name in (DATA, CACHE, META):
            machine.run(["dmsetup", "remove", "--retry", name], check=False)


def _metadata(machine: Machine, cached: list[int], blocks: int) -> None:
    device = f"/dev/mapper/{META}"
    machine.run(["dd", "if=/dev/zero", f"of={device}", "bs=1M", "oflag=direct"], check=False)
    if not cached:
        return
    mappings = "".join(
        f'<mapping cache_block="{at}" origin_block="{block}" dirty="false"/>'
        for at, block in enumerate(cached)
    )
    xml = (
        f'<superblock uuid="" block_size="{BLOCK_SECTORS}" nr_cache_blocks="{blocks}"'
        f' policy="smq" hint_width="4"><mappings>{mappings}</mappings></superblock>'
    )
    file = PurePosixPath("/run/heat.xml")
    write(machine, file, xml)
    machine.run(["cache_restore", "-i", str(file), "-o", device])


@contextmanager
def bcache(
    machine: Machine, flash: PurePosixPath, origin: PurePosixPath, mib: int = 192
) -> Iterator[Bcache]:
    """A bcache with a linear target on top, everything cached, nothing bypassed."""
    machine.run(["modprobe", "bcache"])
    size = mib * SECTORS_PER_MIB
    machine.run(["dmsetup", "create", CACHE], stdin=f"0 {size} linear {flash} 0")
    cache = PurePosixPath(f"/dev/mapper/{CACHE}")
    found: PurePosixPath | None = None
    before = _sets(machine)
    try:
        for part, option in ((cache, "-C"), (origin, "-B")):
            machine.run(["env", "wipefs", "-aq", str(part)])
            machine.run(["env", "make-bcache", "--bucket", "256k", option, str(part)])
            real = machine.run(["readlink", "-f", str(part)]).stdout.strip()
            # udev may have registered it by now, which is refused as "already registered".
            machine.run(["tee", str(_SYS / "register")], stdin=real, check=False)
        found = _wait_for_set(machine, before)
        device = PurePosixPath("/dev/bcache0")
        sysfs = PurePosixPath("/sys/block/bcache0/bcache")
        write(machine, sysfs / "attach", found.name)
        write(machine, sysfs / "sequential_cutoff", "0")
        write(machine, sysfs / "cache_mode", "writeback")
        for name in ("congested_read_threshold_us", "congested_write_threshold_us"):
            write(machine, found / name, "0")
        linear = f"0 {sectors(machine, device)} linear {device} 0"
        machine.run(["dmsetup", "create", DATA], stdin=linear)
        yield Bcache(DEVICE, sysfs)
    finally:
        machine.run(["dmsetup", "remove", "--retry", DATA], check=False)
        stop = ["tee", "/sys/block/bcache0/bcache/stop"]
        machine.run(stop, stdin="1", check=False)
        if found is not None:
            machine.run(["tee", str(found / "stop")], stdin="1", check=False)
            time.sleep(1)
        machine.run(["dmsetup", "remove", "--retry", CACHE], check=False)
        machine.run(["env", "wipefs", "-aq", str(origin)], check=False)


def _sets(machine: Machine) -> set[str]:
    argv = ["find", str(_SYS), "-maxdepth", "1", "-name", "*-*-*"]
    return set(machine.run(argv).stdout.split())


def _wait_for_set(machine: Machine, before: set[str]) -> PurePosixPath:
    for _ in range(50):
        new = _sets(machine) - before
        if new and machine.run(["test", "-b", "/dev/bcache0"], check=False).rc == 0:
            return PurePosixPath(new.pop())
        time.sleep(0.2)
    raise AssertionError("bcache did not come up")
