"""Two hosts on one LUN: real iSCSI, where the second host is a second session of another name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from hotset.core.machines.base import Machine
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.disk import create as creation
from hotset.disk import flash_devices, lifecycle
from hotset.disk.boot import program
from hotset.disk.create import CreateRequest
from hotset.disk.identity import owner, reservation
from hotset.disk.identity.reservation import OriginReservedError
from hotset.lab import lab as labs
from hotset.lab.lab import Lab, LabSpec
from tests.lab_sessions import keys, persist, second_session, writes
from tests.own_lab import quick_lab

pytestmark = [pytest.mark.lab, pytest.mark.night]

MIB = 1024**2
SIZE = Bytes(64 * MIB)
THEIR_KEY = "0x99"
HARDWARE = "80000000000000010000000000000000"
RESERVE_SH = Path(__file__).parents[2] / "crates/boot/src/reserve.sh"
"""As hotset-boot runs it."""


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with quick_lab(tmp_path_factory, LabSpec("uml", 1, Bytes(768 * MIB), Bytes(192 * MIB))) as lab:
        yield lab


@pytest.fixture(scope="module")
def disks(
    lab: Lab, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[PurePosixPath, PurePosixPath]]:
    """One LUN as this host sees it, and as another one does."""
    image = tmp_path_factory.mktemp("disk") / "disk.img"
    Local().run(["mke2fs", "-q", "-t", "ext4", str(image), "60m"])
    storage = lab.backend.slow_disk("nvme-2024", SIZE)
    with lab.cleanup.part():
        storage.restore(image, lab.cleanup)
        path = storage.attach(lab.cleanup)
        ours = PurePosixPath("/dev/disk/by-id/lab-slow")
        # udev's own links lead to the second session's disk once that is there.
        node = lab.machine.run(["readlink", "-f", str(path)]).stdout.strip()
        lab.machine.run(["ln", "-s", node, str(ours)])
        with second_session(lab.machine, "iqn.2026-11.hotset:other-host") as theirs:
            yield ours, theirs


def reads(machine: Machine, disk: PurePosixPath) -> bool:
    argv = ["dd", f"if={disk}", "of=/dev/null", "bs=4k", "count=1", "iflag=direct"]
    return machine.run(argv, check=False).rc == 0


def wanted(origin: PurePosixPath, **more: bool) -> CreateRequest:
    sizes = (Bytes(48 * MIB), Bytes(16 * MIB))
    return CreateRequest("oltp", labs.FLASH_DISK, origin, "dm-cache", "oltp", *sizes, **more)


def reserve(machine: Machine, disk: PurePosixPath, key: str = THEIR_KEY) -> None:
    """As another host does it."""
    persist(machine, disk, "--register-ignore", f"--param-sark={key}")
    persist(machine, disk, "--reserve", f"--param-rk={key}", "--prout-type=5")


def at_boot(machine: Machine, verb: str, origin: PurePosixPath, key: str, former: str) -> int:
    argv = ["sh", "-s", verb, key, str(origin), former]
    return machine.run(argv, check=False, stdin=RESERVE_SH.read_text()).rc


def test_no_other_host_writes_to_the_origin_of_an_active_tier(
    lab: Lab, disks: tuple[PurePosixPath, PurePosixPath]
) -> None:
    machine, (ours, theirs) = lab.machine, disks
    said = list[str]()
    creation.create(machine, wanted(ours), True, said.append)
    assert f"reserved: while the tier is active, no other host can write to {ours}" in said
    assert not writes(machine, theirs)
    assert reads(machine, theirs)
    found = flash_devices.find(machine, "oltp")
    flash, disk = found.flash, found.disk
    assert writes(machine, disk.device)
    lifecycle.deactivate(found, said.append)
    assert writes(machine, theirs)

    start, stop = (program.command(found, one) for one in ("start", "stop"))
    reservation.take(machine, ours)  # and the machine crashes: the storage keeps it
    assert not writes(machine, theirs)
    machine.run(start)
    assert writes(machine, disk.device)
    assert not writes(machine, theirs)
    machine.run(stop)
    assert writes(machine, theirs)

    assert disk.origin_id is not None
    assert disk.origin_id.wwn
    other = replace(disk, origin_id=replace(disk.origin_id, wwn=f"{disk.origin_id.wwn[:-1]}f0"))
    flash_devices.save(machine, flash.with_disk(other))
    boot = machine.run(start, check=False)
    assert (boot.rc, "is another disk than the one that was" in boot.stderr) == (4, True)
    assert writes(machine, theirs), "and was not reserved"
    flash = flash_devices.save(machine, flash)
    lifecycle.destroy(machine, flash, True, lambda _: lambda _: None, said.append)


def test_an_origin_that_another_host_has_reserved_is_left_alone(
    lab: Lab, disks: tuple[PurePosixPath, PurePosixPath]
) -> None:
    machine, (ours, theirs) = lab.machine, disks
    # What this very host has registered for another purpose, such as a cluster's fencing.
    persist(machine, ours, "--register-ignore", "--param-sark=0x42")
    reserve(machine, theirs)
    assert writes(machine, ours)
    with pytest.raises(OriginReservedError, match=f"key {THEIR_KEY}"):
        creation.create(machine, wanted(ours), True, lambda _: None)
    assert "0x42" in keys(machine, theirs), "it is as it was"
    persist(machine, ours, "--register", "--param-rk=0x42", "--param-sark=0")
    assert writes(machine, theirs)
    assert not writes(machine, ours)

    creation.create(machine, wanted(ours, break_reservation=True), True, lambda _: None)
    found = flash_devices.find(machine, "oltp")
    flash, disk = found.flash, found.disk
    assert writes(machine, disk.device)
    assert not writes(machine, theirs)

    lifecycle.deactivate(found, lambda _: None)
    reserve(machine, theirs)
    with pytest.raises(OriginReservedError):
        lifecycle.activate(found, lambda _: None)
    boot = machine.run(program.command(found, "start"), check=False)
    assert (boot.rc, "another host holds a reservation" in boot.stderr) == (4, True)
    lifecycle.activate(found, lambda _: None, break_reservation=True)
    assert not writes(machine, theirs)
    lifecycle.destroy(machine, flash, True, lambda _: lambda _: None, lambda _: None)
    assert writes(machine, theirs)


def test_a_clone_that_has_the_same_key_is_another_host(
    lab: Lab, disks: tuple[PurePosixPath, PurePosixPath]
) -> None:
    """This machine's firmware tells nothing, so that a clone of it has its key."""
    machine, (ours, theirs) = lab.machine, disks
    key = reservation.key(machine)
    reserve(machine, theirs, key)
    with pytest.raises(OriginReservedError, match=key):
        creation.create(machine, wanted(ours), True, lambda _: None)
    assert at_boot(machine, "take", ours, key, key) == 1
    assert not reservation.give_back(machine, ours)
    assert at_boot(machine, "give-back", ours, key, key) == 0
    assert writes(machine, theirs)
    assert not writes(machine, ours), "it is still the clone's"

    assert reservation.take(machine, ours, by_force=True) is None
    assert not writes(machine, theirs)
    assert at_boot(machine, "take", ours, key, key) == 0, "after a crash"
    assert writes(machine, ours)
    assert not writes(machine, theirs)
    assert at_boot(machine, "give-back", ours, key, key) == 0
    assert writes(machine, theirs)


def test_a_reservation_of_an_earlier_version_becomes_one_of_this_computer(
    lab: Lab, disks: tuple[PurePosixPath, PurePosixPath], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine, (ours, theirs) = lab.machine, disks
    former = reservation.key(machine)
    monkeypatch.setattr(owner, "hardware_id", lambda _: HARDWARE)
    key = reservation.key(machine)
    assert key != former
    for take in (
        lambda: reservation.take(machine, ours),
        lambda: at_boot(machine, "take", ours, key, former) or None,
    ):
        reserve(machine, ours, former)
        assert take() is None
        assert keys(machine, theirs).split() == [key]
        assert writes(machine, ours)
        assert not writes(machine, theirs)
        assert reservation.give_back(machine, ours)
        reserve(machine, theirs, former)
        with pytest.raises(OriginReservedError, match=former):
            reservation.take(machine, ours)
        assert at_boot(machine, "take", ours, key, former) == 1
        persist(machine, theirs, "--release", f"--param-rk={former}", "--prout-type=5")
        persist(machine, theirs, "--register", f"--param-rk={former}", "--param-sark=0")
    reserve(machine, ours, former)
    assert reservation.is_held(machine, ours)
    assert at_boot(machine, "give-back", ours, key, former) == 0
    assert writes(machine, theirs)
    assert not reservation.is_held(machine, ours)


def test_whoever_lost_the_reservation_stays_no_registrant(
    lab: Lab, disks: tuple[PurePosixPath, PurePosixPath]
) -> None:
    """Released by other hands: the next host to reserve would let this one write."""
    machine, (ours, theirs) = lab.machine, disks
    key = reservation.key(machine)
    for give_back in (
        lambda: reservation.give_back(machine, ours),
        lambda: at_boot(machine, "give-back", ours, key, key) != 0,
    ):
        assert reservation.take(machine, ours) is None
        persist(machine, ours, "--release", f"--param-rk={key}", "--prout-type=5")
        assert not give_back()
        reserve(machine, theirs)
        assert not writes(machine, ours)
        persist(machine, theirs, "--release", f"--param-rk={THEIR_KEY}", "--prout-type=5")
        persist(machine, theirs, "--register", f"--param-rk={THEIR_KEY}", "--param-sark=0")
