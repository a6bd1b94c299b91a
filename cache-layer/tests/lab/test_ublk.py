"""A disk of the cache in user space as a block device of the kernel's ublk, which the emulated
machine of the lab has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from hotset.core.clock import wait_until
from hotset.core.machines.base import Command, Machine, Result
from hotset.core.units import Bytes
from hotset.disk import create as creation
from hotset.disk import flash_devices, lifecycle
from hotset.disk.create import CreateRequest
from hotset.disk.lifecycle import DiskState
from hotset.lab import lab as labs
from hotset.lab.lab import Lab

pytestmark = pytest.mark.lab

MIB = 1024**2
ORIGIN = PurePosixPath("/var/tmp/ublk.origin")  # noqa: S108 - of a machine that is thrown away
DEVICE = "/dev/hotset/shop"
RUNTIME = "/run/hotset/engine/shop"
LIMIT_S = 120.0


class Site:
    """A machine with a disk called shop, mounted on /mnt now and then."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine

    def sh(self, script: str) -> str:
        return self.machine.run(["sh", "-ec", script], timeout_s=LIMIT_S).stdout.strip()

    def create(self) -> None:
        sizes = (Bytes(64 * MIB), Bytes(0))
        wanted = CreateRequest(
            "shop", labs.FLASH_DISK, ORIGIN, "userspace", "oltp", *sizes, reserve=False
        )
        creation.create(self.machine, wanted, True, print)

    def inspect(self) -> DiskState:
        return lifecycle.inspect(flash_devices.find(self.machine, "shop"))

    def served_by(self) -> str:
        return dict(self.inspect().report.tunables)["served by"]

    def activate(self, flash_counts: bool = False) -> None:
        disk = flash_devices.find(self.machine, "shop")
        lifecycle.activate(disk, print, flash_counts=flash_counts)

    def deactivate(self) -> None:
        lifecycle.deactivate(flash_devices.find(self.machine, "shop"), print)

    def devices(self) -> str:
        return self.sh("ls /dev | grep '^ublk[bc]' || :")

    def unmount(self) -> None:
        places = "/dev/ublk-control /run/closed /mnt"
        self.sh(f"for one in {places}; do umount $one 2> /dev/null || :; done")

    def kill(self, supervisor: bool = False) -> None:
        first = f"kill -9 $(cat {RUNTIME}/supervisor); " if supervisor else ""
        self.sh(f"{first}kill -9 $(cat {RUNTIME}/pid)")

    def flushes(self) -> int:
        """Those that the flash was sent."""
        return int(
            self.sh(
                f"awk '{{ print $16 }}' /sys/class/block/$(basename $(readlink -f"
                f" {labs.FLASH_DISK}))/stat"
            )
        )


class UnderSystemd(Machine):
    """The same, below a systemd of its own that has it started again."""

    kind = "vm"

    def __init__(self, machine: Machine, pid: str) -> None:
        """:param pid: systemd's, as the machine counts."""
        self.machine = machine
        self.enter = ("nsenter", f"--target={pid}", "--mount", "--pid", "--")

    def execute(self, command: Command) -> Result:
        inside = replace(command, argv=(*self.enter, *command.argv))
        return replace(self.machine.execute(inside), argv=command.argv)

    def stream(self, argv: Sequence[str]) -> AbstractContextManager[Iterator[str]]:
        return self.machine.stream((*self.enter, *argv))

    def put(self, source: Path, target: PurePosixPath, mode: int = 0o644) -> None:
        self.machine.put(source, target, mode)

    def get(self, source: PurePosixPath, target: Path) -> None:
        self.machine.get(source, target)


# The file system and udev are the machine's.
_SYSTEMD = """
mkdir -p /etc/systemd/system /run/kept
echo '[Unit]' > /etc/systemd/system/hotset-lab.target
cat > /run/boot <<'end'
mount -t proc proc /proc
mountpoint -q /sys/fs/cgroup || mount -t cgroup2 none /sys/fs/cgroup
mount --bind /run/udev /srv; mount -t tmpfs none /run; mkdir /run/udev; mount --move /srv /run/udev
exec env container=hotset /usr/lib/systemd/systemd --unit=hotset-lab.target
end
setsid unshare --mount --pid --fork --kill-child sh -e /run/boot < /dev/null > /dev/null 2>&1 9>&- &
n=0
until pid=$(cat /proc/$!/task/$!/children) && [ "$pid" ] && nsenter --target $pid --mount --pid \
    systemctl is-active --quiet hotset-lab.target; do
    n=$((n + 1)); [ $n -lt 300 ] || exit 1
    sleep 1
done
echo $pid
"""


@pytest.fixture
def under_systemd(emulated_lab: Lab) -> Iterator[Site]:
    """A site whose engine systemd starts, and starts again."""
    machine = emulated_lab.machine
    pid = machine.run(["sh", "-ec", _SYSTEMD], timeout_s=400).stdout.strip()
    try:
        with site_on(UnderSystemd(machine, pid)) as site:
            yield site
    finally:
        script = f"kill -9 {pid}; rm -f /etc/systemd/system/hotset-lab.target"
        machine.run(["sh", "-ec", script])


@pytest.fixture
def site(emulated_lab: Lab) -> Iterator[Site]:
    with site_on(emulated_lab.machine) as site:
        yield site


@contextmanager
def site_on(machine: Machine) -> Iterator[Site]:
    site = Site(machine)
    site.sh(f"rm -f {ORIGIN}; truncate -s 3G {ORIGIN}; mke2fs -q -F -t ext4 {ORIGIN}")
    site.create()
    try:
        yield site
        site.unmount()
        flash = flash_devices.inventory(site.machine).flash_devices[0]
        lifecycle.destroy(site.machine, flash, True, lambda _: lambda _: None, print)
    finally:
        # Of one that failed: the machine is the next test's.
        script = "/etc/hotset/engine/shop.sh"
        site.unmount()
        site.sh(f"[ ! -e {script} ] || sh {script} stop; rm -rf /etc/hotset {ORIGIN}")


def test_what_was_written_by_ublk_is_the_same_by_fuse_where_ublk_is_not_permitted(
    site: Site,
) -> None:
    device = site.sh(f"readlink {DEVICE}")
    assert device.startswith("/dev/ublkb")
    assert site.served_by() == f"ublk ({device})"
    # As systemd has it done: a mount in /etc/fstab waits for what udev says of the device.
    site.sh(f"udevadm trigger --action=change --settle {device}")
    assert f"SYSTEMD_ALIAS={DEVICE}" in site.sh(f"udevadm info --query=property {device}")
    uuid = site.sh(f"blkid -o value -s UUID {device}")
    assert site.sh(f"readlink -f /dev/disk/by-uuid/{uuid}") == device
    assert site.sh("losetup --noheadings --list --output BACK-FILE | grep mount || :") == ""
    site.sh(f"mount {DEVICE} /mnt; dd if=/dev/urandom of=/mnt/data bs=1M count=24 conv=fsync")
    before = site.flushes()
    site.sh("echo 1 | dd of=/mnt/synced conv=fsync")
    assert site.flushes() > before
    sums = site.sh("cd /mnt; md5sum data synced; cd /; fstrim /mnt; umount /mnt")
    site.deactivate()
    assert site.devices() == ""
    # A device that root may not open, as in a container that was not given it.
    site.sh(
        "mkdir -p /run/closed; mount -t tmpfs -o nodev none /run/closed;"
        " mknod /run/closed/control c 10 $(cut -d : -f 2 /sys/class/misc/ublk-control/dev);"
        " mount --bind /run/closed/control /dev/ublk-control"
    )
    site.activate()
    assert site.sh(f"readlink {DEVICE}").startswith("/dev/loop")
    assert site.served_by() == "FUSE and a loop device (/dev/ublk-control is not permitted)"
    site.sh(f"e2fsck -fn {DEVICE}; mount {DEVICE} /mnt")
    assert site.sh("cd /mnt; md5sum data synced; cd /; umount /mnt") == sums
    # It stays what it is until it is started again.
    site.sh("umount /dev/ublk-control")
    assert site.served_by().startswith("FUSE")
    site.deactivate()
    site.activate()
    assert site.served_by().startswith("ublk")
    site.sh(f"e2fsck -fn {DEVICE}; mount {DEVICE} /mnt")
    assert site.sh("cd /mnt; md5sum data synced; cd /; umount /mnt") == sums
    # In requests of up to 4 GiB.
    site.sh(f"blkdiscard --force {DEVICE}; cmp -n {MIB} {DEVICE} /dev/zero")


def test_an_engine_that_is_killed_under_load_goes_on_and_its_users_see_no_error(site: Site) -> None:
    """By FUSE they see errors, and have to mount it again."""
    site.sh(f"mount {DEVICE} /mnt")
    device = site.sh(f"readlink {DEVICE}")
    load = (
        "n=0; while [ $n -lt 60 ]; do n=$((n + 1));"
        " echo $n | dd of=/mnt/n conv=fsync status=none || exit 1; echo $n; done;"
        " echo written"
    )
    seen, said = list[DiskState](), list[str]()
    with site.machine.stream(["sh", "-c", load]) as lines:
        for line in lines:
            said.append(line)
            if line in ("20", "40"):
                site.kill()
                seen.append(site.inspect())
    assert said == [*map(str, range(1, 61)), "written"]
    assert [one.report.state for one in seen] == ["restarting"] * 2
    assert "wait for it, and then go on" in seen[0].report.notes[0]
    assert wait_until(lambda: site.inspect().report.state == "active", LIMIT_S)
    assert site.sh(f"readlink {DEVICE}") == device
    assert site.sh("cat /mnt/n; umount /mnt") == "60"
    site.sh(f"e2fsck -fn {DEVICE}")
    assert site.sh(f"grep -c 'started again' {RUNTIME}/log") == "2"


def test_whoever_waits_for_an_engine_that_nobody_starts_again_is_freed_by_activate(
    site: Site,
) -> None:
    device = site.sh(f"readlink {DEVICE}")
    # udev reads it when it was written to, and keeps others from opening it meanwhile.
    site.sh(f"mke2fs -q -F -t ext4 {DEVICE}; udevadm settle")
    site.kill(supervisor=True)
    read = f"timeout -s KILL {LIMIT_S} dd if={device} of=/run/read bs=4k count=1 iflag=direct"
    # Freed with an error, or, if it only gets to reading then, at the end of a device that is gone.
    script = (
        f": > /run/read; echo begun; {read} 2> /dev/null;"
        " [ $? != 137 ] && stat -c %s /run/read || echo waits"
    )
    with site.machine.stream(["sh", "-c", script]) as lines:
        assert next(lines) == "begun"
        # Nobody knows who wrote to the origin meanwhile, but in this test.
        site.activate(flash_counts=True)
        assert next(lines) == "0"
    assert site.served_by().startswith("ublk")
    site.sh(f"e2fsck -fn {DEVICE}")
    site.deactivate()
    assert site.devices() == ""


def test_systemd_starts_an_engine_again_and_the_mount_over_it_stays(under_systemd: Site) -> None:
    """By FUSE the device goes with its engine, and systemd unmounts what is on it."""
    site, unit = under_systemd, "hotset-engine-shop.service"
    device = site.sh(f"readlink {DEVICE}")
    assert site.served_by() == f"ublk ({device})"
    site.sh(f"mount {DEVICE} /mnt")
    load = (
        "n=0; while [ $n -lt 30 ]; do n=$((n + 1));"
        " echo $n | dd of=/mnt/n conv=fsync status=none || exit 1; echo $n; done; echo written"
    )
    said = list[str]()
    with site.machine.stream(["sh", "-c", load]) as lines:
        for line in lines:
            said.append(line)
            if line == "10":
                site.sh(f"systemctl kill --signal=KILL {unit}")
    assert said == [*map(str, range(1, 31)), "written"]
    assert wait_until(lambda: site.inspect().report.state == "active", LIMIT_S)
    assert site.sh(f"systemctl show --property=NRestarts --value {unit}") == "1"
    assert site.sh(f"readlink {DEVICE}; cat /mnt/n; umount /mnt") == f"{device}\n30"
    site.sh(f"e2fsck -fn {DEVICE}")
    site.deactivate()
    assert site.devices() == ""
    site.activate()
    assert site.served_by().startswith("ublk")
