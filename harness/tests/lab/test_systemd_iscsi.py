"""A tier whose origin comes over iSCSI, on a server that systemd runs: its unit comes after the
log-in at boot, and goes before the log-out at shutdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

import pytest

from campaign import systemd
from hotset.block import devices
from hotset.core.machines.base import put_text
from hotset.core.units import Bytes
from hotset.disk import create as creation
from hotset.disk import flash_devices, lifecycle
from hotset.disk.create import CreateRequest
from hotset.disk.identity import reservation
from hotset.lab.backend import KernelBackend
from hotset.lab.lab import LabSpec
from hotset.lab.slow_disk import Iscsi, wait_for_device
from tests.own_lab import own_lab

# Beside the other machines with systemd, one at a time.
pytestmark = [pytest.mark.lab, pytest.mark.night, pytest.mark.xdist_group("systemd")]

MIB = 1024**2
SIZE, FLASH = Bytes(64 * MIB), Bytes(192 * MIB)
RECORD_AT = 512 * 1024
"""Where the first record of its first disk lies on a flash."""
NAME, FOLDER = "oltp", "/srv/oltp"
UUID = "5f3c9f4e-7a0e-4d8e-9d53-0a1f1c7f4b15"
UNIT, MOUNT = f"hotset-tier-{NAME}.service", "srv-oltp.mount"
FLASH_LINK = PurePosixPath("/dev/disk/by-id/lab-flash")
_RULES = 'KERNEL=="ubdb", SYMLINK+="disk/by-id/lab-flash"\n'
_OPTIONS = "_netdev,nofail,x-systemd.device-timeout=60s"


@dataclass(frozen=True)
class Shop:
    """A server, and the lasting name of its LUN."""

    server: systemd.Server
    origin: PurePosixPath

    def left(self) -> str:
        """How the tier was left, as the flash says while the machine is off."""
        with self.server.flashes.open("rb") as file:
            file.seek(RECORD_AT)
            return file.read(4096).decode().split()[2]

    def sums(self) -> str:
        """Of all that was written."""
        files = f"find {FOLDER} -type f | sort"
        return self.server.sh(f"echo 3 > /proc/sys/vm/drop_caches; md5sum $({files})")

    def write(self, name: str) -> None:
        self.server.sh(
            f"dd if=/dev/urandom of={FOLDER}/{name} bs=64k count=32 conv=fsync status=none"
        )

    def mounted(self) -> str:
        return self.server.sh(f"findmnt --noheadings --output SOURCE {FOLDER} || :")

    def said(self) -> str:
        """What the tier's unit has said since the start."""
        return self.server.sh(f"journalctl --boot --no-pager --unit {UNIT}")

    def asked(self, unit: str, name: str) -> str:
        return self.server.sh(f"systemctl show --value --property {name} {unit}")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Its LUN is logged in to by open-iscsi's own unit at boot; the disk is accelerated, with a
    unit, a file system in /etc/fstab and a file on it."""
    with own_lab(tmp_path_factory, LabSpec("uml", 1, Bytes(768 * MIB), FLASH)) as lab:
        found = systemd.Server(lab.machine, lab.folder)
        disk = tmp_path_factory.mktemp("disk") / "origin.img"
        with disk.open("wb") as file:
            file.truncate(int(SIZE))
        assert isinstance(lab.backend, KernelBackend)
        target = lab.backend.target
        seen = Iscsi(lab.machine, target).log_in(target.export(disk, lab.cleanup))
        wait_for_device(lab.machine, seen)
        origin = devices.lasting_name(devices.inspect(lab.machine, seen))
        found.sh("iscsiadm -m node -o update -n node.startup -v automatic")
        systemd.set_up(found.machine, _RULES, systemd.ROOT_LINE)
        put_text(found.machine, "iscsi_tcp\n", PurePosixPath("/etc/modules-load.d/lab.conf"))
        found.sh("sync")
        found.power_cut()
        found.boot()
        found.sh(
            f"mke2fs -q -F -t ext4 -U {UUID} {origin} 60M; mkdir -p {FOLDER}; udevadm settle;"
            f" echo 'UUID={UUID} {FOLDER} ext4 {_OPTIONS} 0 2' >> /etc/fstab;"
            " systemctl daemon-reload"
        )
        sizes = (Bytes(48 * MIB), Bytes(8 * MIB))
        wanted = CreateRequest(NAME, FLASH_LINK, origin, "dm-cache", "oltp", *sizes)
        creation.create(found.machine, wanted, True, print)
        found.sh(f"mount {FOLDER}")
        shop = Shop(found, origin)
        shop.write("before")
        yield shop
        found.power_cut()


def test_the_tier_is_between_the_log_in_and_the_mount(shop: Shop) -> None:
    """open-iscsi's unit has another name than the one that is written down, which is its alias."""
    after = shop.asked(UNIT, "After").split()
    assert {"open-iscsi.service", "network-online.target"} <= set(after)
    before = shop.asked(UNIT, "Before").split()
    assert "remote-fs-pre.target" in before
    assert UNIT in shop.asked(MOUNT, "After").split()


def test_it_goes_before_the_network_and_comes_back_with_it(shop: Shop) -> None:
    """Down in good order: the origin was still there when the tier wrote down how it was left, and
    gave its reservation back."""
    server = shop.server
    shop.write("shut_down")
    sums = shop.sums()
    server.shut_down()
    assert shop.left() == "dirty"
    server.boot()
    failed = server.sh("systemctl --failed --plain --no-legend")
    assert failed == "", shop.said()
    logged_in, up, mounted = (
        int(shop.asked(unit, "ActiveEnterTimestampMonotonic"))
        for unit in ("open-iscsi.service", UNIT, MOUNT)
    )
    assert 0 < logged_in <= up <= mounted
    assert shop.sums() == sums
    assert reservation.is_held(server.machine, shop.origin)


def test_after_a_power_cut_a_machine_that_may_be_a_clone_boots_without_the_disk(
    shop: Shop,
) -> None:
    """Its firmware tells nothing, and the target knows a path by its session: the reservation of
    before might be another host's. Nothing is mounted, and one command brings all of it back."""
    server = shop.server
    shop.write("power_cut")
    sums = shop.sums()
    server.power_cut()
    assert shop.left() == "active"
    server.boot()
    assert "another host holds a reservation" in shop.said()
    assert shop.asked(UNIT, "ActiveState") == "failed"
    assert shop.mounted() == ""
    server.sh(f"systemctl reset-failed {UNIT}")
    found = flash_devices.find(server.machine, NAME)
    lifecycle.activate(found, print, break_reservation=True)
    # Its unit, so that the next shutdown takes the tier down.
    server.sh(f"systemctl start {UNIT}; mount {FOLDER}")
    assert shop.sums() == sums
    assert reservation.is_held(server.machine, shop.origin)


def test_without_the_storage_nothing_is_mounted_and_the_machine_boots(shop: Shop) -> None:
    server = shop.server
    before = shop.sums()
    server.sh("iscsiadm -m node -o update -n node.startup -v manual; sync")
    server.shut_down()
    server.boot()
    assert shop.mounted() == ""
    assert shop.asked(UNIT, "ActiveState") in ("failed", "inactive")
    # It comes later: by one command, all of it.
    server.sh("iscsiadm -m node -o update -n node.startup -v automatic")
    server.sh("iscsiadm -m node --login; udevadm settle", 120)
    server.sh(f"systemctl start {UNIT} || :")
    assert shop.asked(UNIT, "ActiveState") == "active", shop.said()
    server.sh(f"mount {FOLDER}")
    assert shop.sums() == before
