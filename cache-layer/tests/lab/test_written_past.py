"""An origin that somebody wrote to while its tier was down, and of which the kernel's count of
writes does not say so: on real iSCSI."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from hotset.core.machines.base import Machine
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.disk import create as creation
from hotset.disk import flash_devices, lifecycle
from hotset.disk.boot import program
from hotset.disk.create import CreateRequest
from hotset.disk.flash_devices import AttachedDisk
from hotset.disk.lifecycle import OriginChangedError
from hotset.lab import lab as labs
from hotset.lab.lab import Lab, LabSpec
from tests.lab.test_multipath import TABLE
from tests.own_lab import quick_lab

pytestmark = pytest.mark.lab

MIB = 1024**2
WANTED = "/etc/systemd/system/sysinit.target.wants/hotset-boots.service"


@dataclass(frozen=True)
class Crashed:
    """A tier in write-back over a partition that ended by other hands, with writes on its flash."""

    machine: Machine
    origin: PurePosixPath

    def sh(self, script: str) -> str:
        return self.machine.run(["sh", "-ec", script]).stdout.strip()

    @property
    def found(self) -> AttachedDisk:
        return flash_devices.find(self.machine, "oltp")

    @property
    def whole(self) -> str:
        return self.sh(f"lsblk --noheadings --nodeps --paths --output PKNAME {self.origin}")

    def write_past(self) -> None:
        self.sh(f"dd if=/dev/urandom of={self.origin} bs=64k count=1 seek=99 oflag=direct 2>&1")

    def activate(self, *, flash_counts: bool = False) -> None:
        lifecycle.activate(self.found, lambda _: None, flash_counts=flash_counts)

    def end(self) -> None:
        self.sh("for part in '' -meta -cache; do dmsetup remove --retry hotset-oltp$part; done")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with quick_lab(tmp_path_factory, LabSpec("uml", 1, Bytes(768 * MIB), Bytes(192 * MIB))) as lab:
        yield lab


@pytest.fixture
def crashed(lab: Lab, tmp_path: Path) -> Iterator[Crashed]:
    image = tmp_path / "disk.img"
    Local().run(["truncate", "--size=63M", str(image)])
    Local().run(["sh", "-ec", f"{TABLE} | dd of={image} conv=notrunc status=none"])
    storage = lab.backend.slow_disk("nvme-2024", Bytes(64 * MIB))
    with lab.cleanup.part():
        storage.restore(image, lab.cleanup)
        path, machine = storage.attach(lab.cleanup), lab.machine
        find = f"udevadm settle; find -L /dev/disk/by-id -samefile $(readlink -f {path})1"
        origin = machine.run(["sh", "-ec", find]).stdout.split()[0]
        sizes = (Bytes(48 * MIB), Bytes(16 * MIB))
        wanted = CreateRequest(
            "oltp", labs.FLASH_DISK, PurePosixPath(origin), "dm-cache", "oltp", *sizes, "writeback"
        )
        creation.create(machine, wanted, True, lambda _: None)
        there = Crashed(machine, PurePosixPath(origin))
        there.sh("dd if=/dev/urandom of=/dev/mapper/hotset-oltp bs=64k count=9 oflag=direct 2>&1")
        there.end()
        yield there
        if not machine.run(["dmsetup", "info", "hotset-oltp"], check=False).rc:
            there.end()
        lifecycle.detach(there.found, True, True, lambda _: None, lambda _: None)
        lifecycle.destroy(
            machine,
            flash_devices.inventory(machine).flash_devices[0],
            True,
            lambda _: lambda _: None,
            print,
        )


def test_nobody_wrote(crashed: Crashed) -> None:
    crashed.activate()


def test_a_table_of_partitions_that_is_read_anew(crashed: Crashed) -> None:
    crashed.write_past()
    # As udev does by itself once whoever has the disk open for writing closes it.
    again = f"until blockdev --rereadpt {crashed.whole}; do sleep 1; done"
    crashed.sh(f"udevadm settle; timeout 30 sh -c '{again}'; udevadm settle")
    at = f"/sys/class/block/$(basename $(readlink -f {crashed.origin}))/stat"
    assert crashed.sh(f"awk '{{ print $7 }}' {at}") == "0"
    with pytest.raises(OriginChangedError):
        crashed.activate()


def test_a_write_by_the_whole_disks_name(crashed: Crashed) -> None:
    crashed.sh(f"dd if=/dev/urandom of={crashed.whole} bs=1M count=1 seek=9 oflag=direct 2>&1")
    with pytest.raises(OriginChangedError):
        crashed.activate()


def test_a_partition_that_udev_has_not_named_yet(crashed: Crashed) -> None:
    """As after any write to the whole disk, or a log-in."""
    late = "sleep 1; udevadm control --start-exec-queue"
    crashed.sh(
        f"disk={crashed.whole}; partx --delete $disk; udevadm settle;"
        " udevadm control --stop-exec-queue; partx --add $disk;"
        f" ({late}) </dev/null >/dev/null 2>&1 &"
    )
    crashed.activate()


def test_writes_that_the_kernel_does_not_count(crashed: Crashed) -> None:
    """As some guides to fast storage have it."""
    iostats = f"/sys/block/{PurePosixPath(crashed.whole).name}/queue/iostats"
    crashed.sh(f"echo 0 > {iostats}")
    crashed.write_past()
    with pytest.raises(OriginChangedError, match="iostats is 0"):
        crashed.activate()
    crashed.activate(flash_counts=True)
    crashed.end()


@contextmanager
def another_boot(crashed: Crashed) -> Iterator[None]:
    """What is done within was in the boot before, whose end was a crash."""
    shown = "/proc/sys/kernel/random/boot_id"
    folder = PurePosixPath(WANTED).parent
    crashed.sh(
        f"echo 11111111-2222-3333-4444-555555555555 > /run/boot-id; mkdir -p {folder};"
        f" ln -sf ../hotset-boots.service {WANTED}; mount --bind /run/boot-id {shown}"
    )
    try:
        yield
    finally:
        crashed.sh(f"umount {shown}")


def test_a_disk_that_went_away_and_came_back_in_this_boot(crashed: Crashed) -> None:
    """Its count begins again with it."""
    with another_boot(crashed):
        program.mark(crashed.found, "active")
    crashed.write_past()
    name = PurePosixPath(crashed.whole).name
    crashed.sh(
        f"echo 1 > /sys/block/{name}/device/delete; udevadm settle;"
        " iscsiadm -m session --rescan;"
        f" timeout 60 sh -c 'until udevadm settle && test -b {crashed.origin}; do sleep 0.1; done'"
    )
    assert crashed.sh(f"cat /sys/block/{PurePosixPath(crashed.whole).name}/stat").split()[6] == "0"
    with pytest.raises(OriginChangedError):
        crashed.activate()
    crashed.sh(f"rm {WANTED}")
