"""A flash device with a disk, and a machine that keeps flash devices."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from hotset.block.devicemapper import Part
from hotset.core.units import Bytes
from hotset.disk import flash_devices
from hotset.disk.flash_devices import Disk, FlashDevice
from hotset.tier.base import TierSpec
from tests.fake_machine import FakeMachine

MIB = 2**20
SPEC = TierSpec("writeback", "smq", Bytes(65536), *(Bytes(n * MIB) for n in (5, 64, 16)))


def part(start: int, size: int) -> Part:
    return Part(Bytes(start * MIB), Bytes(size * MIB))


def disk(name: str = "data", at: int = 17) -> Disk:
    return Disk(
        name,
        "dm-cache",
        "oltp",
        PurePosixPath(f"/dev/disk/by-id/{name}"),
        SPEC,
        (part(at, 5),),
        (part(at + 5, 64),),
    )


FLASH = FlashDevice(
    "main", PurePosixPath("/dev/disk/by-id/flash"), Bytes(256 * MIB), (part(1, 16),), (disk(),)
)


SECOND = replace(
    FLASH, name="flash2", path=PurePosixPath("/dev/disk/by-id/second"), disks=(disk("dwh", 100),)
)


class Keeping(FakeMachine):
    """A machine that keeps its flash devices, by their labels and in /etc."""

    def __init__(self) -> None:
        super().__init__({"cat /etc/machine-id": "this\n"})

    def keep(self, flash: FlashDevice) -> None:
        flash_devices.save(self, flash)

    def file(self, name: str = "main") -> str:
        return self.files[f"/etc/hotset/flash/{name}.json"][0]
