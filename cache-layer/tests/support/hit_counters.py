"""A disk and its flash, and counters of hits."""

from __future__ import annotations

from pathlib import PurePosixPath

from hotset.block.devicemapper import Part
from hotset.core.units import Blocks, Bytes
from hotset.disk.flash_devices import Disk, FlashDevice
from hotset.tier.base import Counters, TierSpec

MIB = 1024**2
SPEC = TierSpec("writeback", "smq", Bytes(65536), Bytes(MIB), Bytes(64 * MIB), Bytes(MIB))
DISK = Disk("erp", "dm-cache", "oltp", PurePosixPath("/dev/slow"), SPEC, (), ())
FLASH = FlashDevice(
    "main",
    PurePosixPath("/dev/flash"),
    Bytes(128 * MIB),
    (Part(Bytes(MIB), Bytes(2 * MIB)),),
    (DISK,),
)
NOW = 1_800_000_000.0


def counters(
    read_hits: int,
    read_misses: int = 0,
    write_hits: int | None = 0,
    write_misses: int | None = 0,
    moved: int | None = 0,
    bypassed: int | None = None,
) -> Counters:
    return Counters(
        read_hits,
        read_misses,
        write_hits,
        write_misses,
        moved,
        moved,
        Blocks(2),
        Blocks(5),
        Blocks(1024),
        bypassed,
    )
