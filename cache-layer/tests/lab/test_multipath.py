"""An origin that several paths lead to: real iSCSI, two sessions, and the kernel's multipath."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from hotset.core.clock import wait_until
from hotset.core.machines.base import Machine
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.disk import adopt, flash_devices, lifecycle
from hotset.disk import create as creation
from hotset.disk.boot import fstab, mounts, program, startup, systemd_unit, udev
from hotset.disk.create import CreateRequest
from hotset.disk.flash_devices import FlashError
from hotset.disk.identity import reservation
from hotset.disk.identity.reservation import OriginReservedError
from hotset.lab import lab as labs
from hotset.lab.lab import Lab, LabSpec
from tests.lab_sessions import keys, persist, second_session, writes
from tests.own_lab import quick_lab

pytestmark = [pytest.mark.lab, pytest.mark.night]

MIB = 1024**2
SIZE = Bytes(64 * MIB)
UUID = "5f3c9f4e-7a0e-4d8e-9d53-0a1f1c7f4b11"
MAP = "mpatha"
TABLE = (
    r"{ head -c 440 /dev/zero; printf 'HOTS\0\0\0\0\0\0\203\0\0\0\0\010\0\0\0\360\001\0';"
    r" head -c 48 /dev/zero; printf '\125\252'; }"
)
"""Of MS-DOS, with one partition of 62 MiB at 1 MiB."""


@dataclass(frozen=True)
class Lun:
    """A LUN as the machine sees it by two paths, of which a map has the first; or a partition of
    it."""

    machine: Machine
    partition: bool
    paths: tuple[str, str]

    @property
    def origin(self) -> PurePosixPath:
        return PurePosixPath(f"/dev/disk/by-id/dm-name-{MAP}{'-part1' * self.partition}")

    def path(self, number: int) -> str:
        """The kernel's name of what shows the same bytes as the origin."""
        return self.paths[number] + "1" * self.partition

    def sh(self, script: str) -> str:
        return self.machine.run(["sh", "-ec", script]).stdout.strip()

    def leads_to(self) -> str:
        """Where a mount by the file system's UUID ends."""
        return self.sh(f"udevadm settle; readlink -e /dev/disk/by-uuid/{UUID} || :")

    def wanted(self, name: str, origin: PurePosixPath) -> CreateRequest:
        sizes = (Bytes(48 * MIB), Bytes(16 * MIB))
        return CreateRequest(name, labs.FLASH_DISK, origin, "dm-cache", "oltp", *sizes)

    def create(self, name: str, origin: PurePosixPath) -> None:
        creation.create(self.machine, self.wanted(name, origin), True, lambda _: None)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with quick_lab(tmp_path_factory, LabSpec("uml", 1, Bytes(768 * MIB), Bytes(192 * MIB))) as lab:
        yield lab


@pytest.fixture(params=[False, True], ids=["disk", "partition"])
def lun(lab: Lab, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lun]:
    image, partition = tmp_path / "disk.img", bool(request.param)
    Local().run(["truncate", "--size=63M", str(image)])
    offset = MIB * partition
    made = ["mke2fs", "-q", "-F", "-t", "ext4", "-U", UUID, "-E", f"offset={offset}"]
    Local().run([*made, str(image), "60m"])
    if partition:
        into = f"{TABLE} | dd of={image} conv=notrunc status=none"
        Local().run(["sh", "-ec", into])
    storage = lab.backend.slow_disk("nvme-2024", SIZE)
    with lab.cleanup.part():
        storage.restore(image, lab.cleanup)
        path = storage.attach(lab.cleanup)
        first = lab.machine.run(["readlink", "-f", str(path)]).stdout.strip()
        with second_session(lab.machine) as second, mapped(lab.machine, first, partition):
            yield Lun(lab.machine, partition, (first, str(second)))


@contextmanager
def mapped(machine: Machine, path: str, partition: bool) -> Iterator[None]:
    """What multipathd and kpartx make of one path."""
    sectors = int(machine.run(["blockdev", "--getsz", path]).stdout)
    table = f"0 {sectors} multipath 0 0 1 1 round-robin 0 1 1 {path} 1"
    machine.run(["modprobe", "-a", "dm-multipath", "dm-round-robin"])
    machine.run(["dmsetup", "create", MAP, "--uuid", "mpath-360"], stdin=table)
    part, of_part = f"{MAP}-part1", f"0 {62 * 2048} linear /dev/mapper/{MAP} 2048"
    try:
        if partition:
            machine.run(["dmsetup", "create", part, "--uuid", "part1-mpath-360"], stdin=of_part)
        machine.run(["udevadm", "settle"])
        yield
    finally:
        for name in [part] * partition + [MAP]:
            machine.run(["dmsetup", "remove", "--retry", name])


def test_an_origin_below_multipath_is_found_by_each_of_its_paths(lun: Lun) -> None:
    machine = lun.machine
    names = [f"/dev/mapper/{lun.origin.name.removeprefix('dm-name-')}", lun.path(0), lun.path(1)]
    specs = [*names, f"UUID={UUID}", f"/dev/disk/by-uuid/{UUID}"]
    lines = [f"{one} /srv/{number} ext4 noauto 0 2" for number, one in enumerate(specs)]
    lun.sh("cp /etc/fstab /run/fstab")
    try:
        machine.replace("".join(f"{one}\n" for one in lines), fstab.PATH)
        assert [one.spec for one in mounts.find_mounts(machine, lun.origin).entries] == specs
    finally:
        lun.sh("mv /run/fstab /etc/fstab")
    assert lun.leads_to() == lun.sh(f"readlink -e {lun.origin}")
    lun.create("oltp", lun.origin)
    found = flash_devices.find(machine, "oltp")
    flash, disk = found.flash, found.disk
    text = machine.run(["cat", str(systemd_unit.install(found))]).stdout
    assert "Before=remote-fs-pre.target" in text
    assert "network-online.target" in text
    assert lun.leads_to() == lun.sh(f"readlink -e {disk.device}")
    lifecycle.deactivate(found, print)
    assert lun.leads_to() == "", "by no path"
    # The flash comes to a server that knows nothing of it, and so of the origin.
    lun.sh("rm /etc/udev/rules.d/65-hotset-oltp.rules /etc/hotset/flash/*.json; udevadm control -R")
    lun.sh("udevadm trigger --subsystem-match=block --action=change")
    assert lun.leads_to() != ""
    said = list[str]()
    lun.sh("cp /etc/fstab /run/fstab")
    try:
        machine.replace(f"UUID={UUID} /srv/db ext4 noauto 0 2\n", fstab.PATH)
        adopt.adopt(machine, labs.FLASH_DISK, True, said.append)
        assert lun.leads_to() == "", "by no path"
        assert "/etc/fstab mounts the origin" in said[-1]
        assert "to activate the disk with a unit changes that" in said[-1]
        found = flash_devices.find(machine, "oltp")
        flash, disk = found.flash, found.disk
        lun.sh("rm /etc/udev/rules.d/65-hotset-oltp.rules")
        lifecycle.activate(found, said.append)
        assert lun.leads_to() == lun.sh(f"readlink -e {disk.device}")
        assert "/etc/fstab mounts the origin" in said[-2]
        startup.set_up(found, said.append)
        assert not mounts.find_mounts(machine, lun.origin).entries
        lifecycle.deactivate(found, print)
    finally:
        lun.sh("mv /run/fstab /etc/fstab")
    for number in (0, 1):
        link = lun.sh(f"find -L /dev/disk/by-id /dev/disk/by-path -samefile {lun.path(number)}")
        for name in [*link.split(), lun.path(number)]:
            with pytest.raises(FlashError, match="is accelerated already, as disk oltp"):
                lun.create("second", PurePosixPath(name))
    lifecycle.destroy(machine, flash, True, lambda _: lambda _: None, lambda _: None)
    # Without multipathd's own rules, to whichever of the three udev looked at last.
    shown = [lun.sh(f"readlink -e {lun.origin}"), *map(lun.path, (0, 1))]
    assert wait_until(lambda: lun.leads_to() in shown, 30)


@pytest.mark.parametrize("lun", [True], ids=["partition"], indirect=True)
def test_a_path_that_udev_is_just_looking_at_is_hidden_as_well(lun: Lun) -> None:
    """Whoever writes to the whole disk has udev look for its partitions again: an old path is a new
    one for a moment."""
    machine, slow = lun.machine, "/run/udev/rules.d/61-slow.rules"
    lun.create("oltp", lun.origin)
    found = flash_devices.find(machine, "oltp")
    flash = found.flash
    lifecycle.deactivate(found, print)
    udev.show_origin(found)
    assert lun.leads_to() != ""
    kernel = PurePosixPath(lun.path(1)).name
    rule = f'ACTION=="add", KERNEL=="{kernel}", PROGRAM="/bin/sleep 3"'
    lun.sh(f"mkdir -p {PurePosixPath(slow).parent}; echo '{rule}' > {slow}; udevadm control -R")
    lun.sh(f"blockdev --rereadpt {lun.paths[1]}")
    udev.hide_origin(found)
    lun.sh(f"rm {slow}; udevadm control -R")
    assert lun.leads_to() == "", "by no path"
    lifecycle.destroy(machine, flash, True, lambda _: lambda _: None, lambda _: None)


@pytest.mark.parametrize("lun", [False], ids=["disk"], indirect=True)
def test_every_path_to_an_origin_may_write_and_no_other_host(lun: Lun) -> None:
    machine, said = lun.machine, list[str]()
    creation.create(machine, lun.wanted("oltp", lun.origin), True, said.append)
    assert f"reserved: while the tier is active, no other host can write to {lun.origin}" in said
    assert [writes(machine, path) for path in lun.paths] == [True, True]
    with other_host(machine) as theirs:
        assert not writes(machine, theirs)
    with second_session(machine, name="third") as third:
        joined = wait_until(lambda: writes(machine, str(third)), 30)
        assert joined, lun.sh(f"udevadm info {third}; sg_persist --in --read-keys {third}")
    found = flash_devices.find(machine, "oltp")
    flash = found.flash
    lifecycle.deactivate(found, print)
    with other_host(machine) as theirs:
        assert writes(machine, theirs)
        assert keys(machine, theirs) == "", "nor of the path that went away with a registration"

    start, stop = (program.command(found, one) for one in ("start", "stop"))
    for _ in range(2):
        machine.run(start)
        machine.run(["dmsetup", "info", "hotset-oltp"])
        assert [writes(machine, path) for path in lun.paths] == [True, True]
        with other_host(machine) as theirs:
            assert not writes(machine, theirs)
    machine.run(stop)
    with other_host(machine) as theirs:
        assert writes(machine, theirs)
        assert keys(machine, theirs) == ""
    lifecycle.destroy(machine, flash, True, lambda _: lambda _: None, lambda _: None)


@pytest.mark.parametrize("lun", [False], ids=["disk"], indirect=True)
def test_every_path_may_write_after_the_reservation_was_taken_from_a_clone(lun: Lun) -> None:
    """The machine's firmware tells nothing, so that a clone has its key."""
    machine = lun.machine
    key = reservation.key(machine)
    with second_session(machine, "iqn.2026-11.hotset:other-host", "clone") as clone:
        persist(machine, clone, "--register-ignore", f"--param-sark={key}")
        persist(machine, clone, "--reserve", f"--param-rk={key}", "--prout-type=5")
        with pytest.raises(OriginReservedError):
            reservation.take(machine, PurePosixPath(lun.path(0)))
        assert not writes(machine, lun.path(0))
    # Here the clone's path would be one of this machine's own, had it not gone.
    assert reservation.take(machine, lun.origin, by_force=True) is None
    assert [writes(machine, path) for path in lun.paths] == [True, True]
    reservation.give_back(machine, lun.origin)


@pytest.mark.parametrize("lun", [False], ids=["disk"], indirect=True)
def test_a_path_that_is_dead_hides_no_other_host(lun: Lun) -> None:
    machine, said = lun.machine, list[str]()
    creation.create(machine, lun.wanted("oltp", lun.origin), True, said.append)
    found = flash_devices.find(machine, "oltp")
    flash = found.flash
    lifecycle.deactivate(found, print)
    script = program.command(found, "start")
    with dead(lun, 1):
        with other_host(machine) as theirs:
            persist(machine, theirs, "--register-ignore", "--param-sark=0x99")
            persist(machine, theirs, "--reserve", "--param-rk=0x99", "--prout-type=5")
            with pytest.raises(OriginReservedError, match="key 0x99"):
                lifecycle.activate(found, print)
            boot = machine.run(script, check=False)
            assert (boot.rc, "another host holds a reservation" in boot.stderr) == (4, True)
            assert "0x99" in keys(machine, theirs)
            persist(machine, theirs, "--register", "--param-rk=0x99", "--param-sark=0")
        # Less than all paths is none, and it is said.
        lifecycle.activate(found, said.append)
        assert f"not reserved: {lun.paths[1]} takes no persistent reservations" in said[-2]
        with other_host(machine) as theirs:
            assert keys(machine, theirs) == ""
            assert writes(machine, theirs)
    lifecycle.deactivate(found, print)
    # Nor does that path keep by itself what it took for all of them.
    mine = reservation.key(machine)
    for path in lun.paths:
        persist(machine, path, "--register-ignore", f"--param-sark={mine}")
    persist(machine, lun.paths[1], "--reserve", f"--param-rk={mine}", "--prout-type=5")
    with dead(lun, 1):
        machine.run(script)
        assert writes(machine, lun.paths[0])
        with other_host(machine) as theirs:
            assert keys(machine, theirs) == ""
    # What stands is reserved as soon as all paths answer.
    lifecycle.activate(found, said.append)
    assert [writes(machine, path) for path in lun.paths] == [True, True]
    with other_host(machine) as theirs:
        assert not writes(machine, theirs)
    lifecycle.destroy(machine, flash, True, lambda _: lambda _: None, lambda _: None)


@contextmanager
def dead(lun: Lun, number: int) -> Iterator[None]:
    """One path to a LUN does not answer, and udev has looked at it since."""
    path = lun.paths[number]
    state = f"/sys/block/{PurePosixPath(path).name}/device/state"
    lun.sh(f"echo offline > {state}")
    lun.sh(f"udevadm trigger --settle --action=change {path}")
    assert lun.sh(f"lsblk --nodeps --noheadings --output WWN {path}") == ""
    yield
    lun.sh(f"echo running > {state}")


@contextmanager
def other_host(machine: Machine) -> Iterator[str]:
    """The LUN as another host sees it. It is this machine, so the rule that greets a new path of
    its own is put aside while it comes."""
    rules, aside = udev.origin_rules("oltp"), "/run/hotset.rules"
    machine.run(["sh", "-ec", f"mv {rules} {aside}; udevadm control --reload"])
    with second_session(machine, "iqn.2026-11.hotset:other-host", "theirs") as theirs:
        yield str(theirs)
    machine.run(["sh", "-ec", f"mv {aside} {rules}; udevadm control --reload"])
