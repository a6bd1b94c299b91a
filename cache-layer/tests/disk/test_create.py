"""Creation: what is chosen, what is refused, what is done in which order, and its rehearsal."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import pytest

from hotset.block import devices
from hotset.block.devices import Device, DeviceRefusedError
from hotset.core.machines.base import CommandError, PrerequisiteMissingError
from hotset.core.machines.dry_run import DryRun, only_reads
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.disk import adopt, flash_devices, room, sizing, state
from hotset.disk import create as creation
from hotset.disk.boot import fstab, mounts, startup
from hotset.disk.create import CreateRequest
from hotset.disk.flash_devices import FlashError
from hotset.disk.identity import origin, reservation
from hotset.disk.sizing import KernelKind
from hotset.tier.base import TierKind
from hotset.tier.choice import Choice, ChoiceError, DatabaseKind
from hotset.tier.dm_tier import DeviceMapperTier
from tests.fake_machine import FakeMachine
from tests.support.flash_devices import Keeping
from tests.support.new_disk import FLASH, GIB, MIB, ORIGIN, WANTED, server, with_flash


def made(there: FakeMachine) -> list[str]:
    """Commands that change what stays; what the kernel has loaded is not that."""
    lines = [line for line in there.commands if not only_reads(shlex.split(line))]
    return [line for line in lines if not line.startswith("modprobe")]


def chosen(
    kind: KernelKind, database: DatabaseKind, cache: int = 10 * GIB, block: int | None = None
) -> Choice:
    return sizing.choose(
        kind,
        database,
        Bytes(cache),
        Bytes(0),
        Bytes(1000 * GIB),
        None,
        Bytes(block) if block else None,
    )


def test_the_kind_of_database_picks_and_says_so() -> None:
    oltp, warehouse = chosen("dm-cache", "oltp"), chosen("dm-cache", "warehouse")
    assert (oltp.spec.mode, oltp.spec.block) == ("writeback", 64 * 1024)
    assert (warehouse.spec.mode, warehouse.spec.block) == ("writethrough", 256 * 1024)
    assert "no sequential bypass" in oltp.reasons[-1]
    assert "bcache sends long scans" in warehouse.reasons[-1]
    assert oltp.spec.bypass is None
    assert chosen("bcache", "oltp").spec.bypass == 0
    assert chosen("bcache", "warehouse").spec.bypass == 4 * MIB
    assert any("lost with the flash" in one for one in oltp.reasons)


@pytest.mark.parametrize(
    ("size", "database", "block", "picked"),
    [
        (None, "oltp", None, 64),
        (31, "oltp", None, 16),
        (30, "oltp", None, 64),
        (31, "oltp", 32, 32),
        (31, "warehouse", None, 256),
    ],
)
def test_a_small_cache_in_user_space_has_small_blocks(
    size: int | None, database: DatabaseKind, block: int | None, picked: int
) -> None:
    """The cache has 10 GiB, blocks are in KiB."""
    found = sizing.choose(
        "userspace",
        database,
        Bytes(10 * GIB),
        Bytes(0),
        Bytes(1000 * GIB),
        None,
        Bytes(block * 1024) if block else None,
        database_size=None if size is None else Bytes(size * GIB),
    )
    assert found.spec.block == picked * 1024
    assert ("31 GiB" in found.reasons[1]) == (picked == 16), found.reasons[1]


def test_only_user_space_asks_for_the_size_of_the_database() -> None:
    with pytest.raises(ChoiceError, match="the same blocks") as refused:
        sizing.choose(
            "dm-cache",
            "oltp",
            Bytes(GIB),
            Bytes(0),
            Bytes(GIB),
            None,
            None,
            database_size=Bytes(9 * GIB),
        )
    assert refused.value.field == "database_size"


def test_blocks_grow_with_the_cache() -> None:
    """The kernel warns above a million of them."""
    for gib, block in ((64, 64), (65, 128), (600, 1024)):
        assert chosen("dm-cache", "oltp", gib * GIB).spec.block == block * 1024
    asked = chosen("dm-cache", "oltp", 600 * GIB, 64 * 1024)
    assert asked.spec.block == 64 * 1024
    # As large as the flash may become, since metadata cannot grow later.
    assert asked.spec.metadata >= 1000 * GIB // (64 * 1024) * 28


@pytest.mark.parametrize(
    ("kind", "cache", "block", "named"),
    [
        ("bcache", GIB, 65536, "bcache has no cache blocks"),
        (
            "bcache",
            32 * MIB,
            None,
            "32 MiB is too small: bcache needs at least 64 MiB",
        ),
        ("dm-cache", GIB, 1000, "1000 bytes: dm-cache takes a multiple"),
        ("dm-cache", MIB, 2 * MIB, "a cache of 1 MiB is smaller than one block of 2 MiB"),
    ],
)
def test_sizes_that_cannot_be(kind: KernelKind, cache: int, block: int | None, named: str) -> None:
    with pytest.raises(ChoiceError, match=named):
        chosen(kind, "oltp", cache, block)


def test_the_flash_device_is_known_before_anything_is_cut() -> None:
    there, said = server(), list[str]()
    disk = creation.create(there, WANTED, False, said.append)
    assert str(disk.device) == "/dev/mapper/hotset-oltp"
    lines = made(there)
    saved = [at for at, line in enumerate(lines) if line.startswith("replace /etc/hotset/flash/")]
    cut = [at for at, line in enumerate(lines) if line.startswith("dmsetup create")]
    assert saved[0] < cut[0] < saved[1] < cut[-1], "the disk's own last"
    text = there.files["/etc/hotset/flash/main.json"][0]
    assert flash_devices.parse(text).disks == (disk,)
    assert "writeback (for oltp)" in said[0]
    assert "instead of /dev/disk/by-id/virtio-slow" in said[-1]
    writes = [line for line in lines if line.startswith(("dd", "wipefs", "make"))]
    assert len(writes) > 3
    assert all("virtio-flash" in line or line.endswith(" /dev/vdb") for line in writes), (
        "never the origin"
    )


def test_a_new_tier_is_on_record_as_active_before_its_first_write() -> None:
    """Another disk's record may be there still, which said that nothing was dirty."""
    there = server()
    disk = creation.create(there, WANTED, False, lambda _: None)
    flash = flash_devices.find(there, "oltp").flash
    assert state.read(flash_devices.AttachedDisk(there, flash, disk)) == "active"
    lines = made(there)
    written = next(at for at, line in enumerate(lines) if line.endswith(" oltp active"))
    assert written < next(at for at, line in enumerate(lines) if line.startswith("dmsetup create"))


def test_a_second_disk_takes_what_is_left() -> None:
    there = with_flash()
    wanted = replace(
        WANTED,
        disk="dwh",
        origin=PurePosixPath("/dev/disk/by-id/virtio-other"),
        database="warehouse",
        volume=None,
    )
    there.answers |= {
        "readlink -f /dev/disk/by-id/virtio-other": "/dev/sdc\n",
        "blockdev --getsize64 /dev/disk/by-id/virtio-other": str(GIB),
    }
    disk = creation.create(there, wanted, False, lambda _: None)
    first = flash_devices.parse(there.files["/etc/hotset/flash/main.json"][0]).disks[0]
    assert disk.metadata[0].start == first.cache[0].end
    third = replace(wanted, disk="third", origin=PurePosixPath("/dev/disk/by-id/virtio-third"))
    there.answers["readlink -f /dev/disk/by-id/virtio-third"] = "/dev/sdd\n"
    with pytest.raises(FlashError, match=r"a volume of 10 MiB is not possible: .* one of 64 MiB"):
        creation.create(there, replace(third, volume=Bytes(10 * MIB)), False, print)
    with pytest.raises(FlashError, match=r"does not fit: .* is free"):
        creation.create(there, replace(third, cache=Bytes(GIB)), False, print)


def test_a_tier_that_stands_as_asked_for_is_left_alone() -> None:
    there, said = with_flash(), list[str]()
    creation.create(there, WANTED, False, said.append)
    there.answers["dmsetup ls"] = "hotset-oltp\t(252:3)\n"
    creation.create(there, WANTED, False, said.append)
    assert made(there) == []
    assert "not active: activate it" in said[0]
    assert "is active as requested: nothing changed" in said[1]
    with pytest.raises(FlashError, match=r"there is a disk oltp already .*set up otherwise"):
        creation.create(there, replace(WANTED, kind="bcache"), False, print)
    with pytest.raises(FlashError, match="virtio-slow is accelerated already, as disk oltp"):
        creation.create(there, replace(WANTED, disk="other"), False, print)


def cut_short(**more: Any) -> Keeping:  # noqa: ANN401
    """A server on which a creation was killed."""
    there = with_flash(**more)
    (flash,) = flash_devices.list_all(there)
    flash_devices.save(there, flash.with_disk(replace(flash.disks[0], phase="creating")))
    return there


def test_a_creation_that_was_cut_short_starts_over() -> None:
    there = cut_short()
    there.answers["dmsetup ls"] = "hotset-oltp-meta\t(252:0)\nhotset-volume\t(252:2)\n"
    there.calls.clear()
    creation.create(there, WANTED, False, lambda _: None)
    lines = made(there)
    first = lines.index("dmsetup remove --retry hotset-oltp-meta")
    assert first < next(at for at, line in enumerate(lines) if line.startswith("replace "))
    assert flash_devices.find(there, "oltp").disk.phase == "ready"


def test_a_device_that_a_killed_creation_made_is_not_thrown_away_with_what_was_written_to_it() -> (
    None
):
    """The kill came after the last device and before the last word about it: it may be mounted."""
    there = cut_short(**{"dmsetup ls": "hotset-oltp\t(252:3)\n"})
    there.calls.clear()
    creation.create(there, WANTED, False, lambda _: None)
    assert not [line for line in made(there) if "dmsetup remove" in line]
    assert flash_devices.find(there, "oltp").disk.phase == "ready"


def test_a_disk_is_on_record_as_ready_before_anybody_can_write_to_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Used in spite of a creation that had ended with an error, or was killed, and down since a
    crash, the next creation started over, and a detach wrote nothing back."""
    there, create, phases = server(), DeviceMapperTier.create, list[str]()

    def noting(tier: DeviceMapperTier) -> PurePosixPath:
        phases.append(flash_devices.find(there, "oltp").disk.phase)
        return create(tier)

    monkeypatch.setattr(DeviceMapperTier, "create", noting)
    creation.create(there, WANTED, False, lambda _: None)
    assert phases == ["ready"]


@pytest.mark.parametrize("phase", ["creating", "ready"])
def test_a_creation_that_was_cut_short_before_its_last_step_still_changes_fstab(
    phase: Literal["creating", "ready"],
) -> None:
    """Else the next boot mounts the origin, whose data are old, past the tier."""
    active = {
        "dmsetup ls": "hotset-oltp\t(252:3)\n",
        "blkid --probe --output export": "UUID=1234-abcd\nTYPE=ext4\n",
    }
    there = cut_short(**active) if phase == "creating" else with_flash(**active)
    there.files["/etc/fstab"] = (FSTAB, 0o644)
    seen(there, "/dev/sdz1", {"maj:min": "65:145", "wwn": "0x5000c500ffffffff"})
    with pytest.raises(FlashError, match="line 2"):
        creation.create(there, WANTED, False, lambda _: None)
    creation.create(there, WANTED, True, lambda _: None)
    assert "/dev/mapper/hotset-oltp /srv/db ext4" in there.files["/etc/fstab"][0]
    assert "/etc/systemd/system/hotset-tier-oltp.service" in there.files


@pytest.mark.parametrize(("carried_by", "remote"), [("pcie\n", False), ("tcp\nrdma\n", True)])
def test_an_nvme_disk_is_remote_if_the_network_carries_it(carried_by: str, remote: bool) -> None:
    """lsblk calls them all nvme."""
    there = server(**{"sh -c": carried_by})
    seen(there, str(ORIGIN), {"name": "nvme1n1", "maj:min": "259:1", "tran": "nvme"})
    assert origin.is_remote(there, ORIGIN) is remote


def test_a_creation_that_was_killed_before_etc_knew_of_it_starts_over() -> None:
    """Found by the kill campaign: the label was written, and its copy was not."""
    there = cut_short()
    there.files.clear()
    creation.create(there, WANTED, False, lambda _: None)
    assert flash_devices.find(there, "oltp").disk.phase == "ready"


def test_a_flash_with_a_label_is_never_empty() -> None:
    """The root disk was lost, and with it all that /etc said."""
    there = with_flash()
    there.files.clear()
    for yes in (False, True):
        with pytest.raises(DeviceRefusedError, match=r"flash device main of .*disks: oltp"):
            creation.create(there, WANTED, yes, print)
    there.answers["cat /etc/machine-id"] = "another\n"
    with pytest.raises(FlashError, match=r"belongs to vm by its label; used by two"):
        adopt.adopt(there, FLASH, False, print)
    said: list[str] = []
    flash = adopt.adopt(there, FLASH, True, said.append)
    assert [disk.name for disk in flash.disks] == ["oltp"]
    assert "never connect it there again" in said[0]
    assert flash_devices.find(there, "oltp").disk.origin == ORIGIN
    assert "is set up as requested" in _said(there)


def _said(there: Keeping) -> str:
    said: list[str] = []
    creation.create(there, WANTED, False, said.append)
    return " ".join(said)


LATER = ("HOTSET-LABEL 1 ", "HOTSET-LABEL 2 ")
EARLIER = ("HOTSET-LABEL 1 ", "HOTSET-FLASH-LABEL 1 ")
OF_CARDS = ("HOTSET-LABEL 1 ", "HOTSET-CARD-LABEL 1 ")


@pytest.mark.parametrize(
    ("change", "copies", "how"),
    [
        (LATER, 1, "of version 2"),
        (LATER, 2, "of version 2"),
        (EARLIER, 1, "by a hotset of before its first release"),
        (EARLIER, 2, "by a hotset of before its first release"),
        (OF_CARDS, 1, "by a hotset of before its first release"),
        (OF_CARDS, 2, "by a hotset of before its first release"),
        (('"disks"', '"discs"'), 2, "damaged"),
    ],
)
def test_a_label_that_cannot_be_read_is_no_empty_flash(
    change: tuple[str, str], copies: int, how: str
) -> None:
    there = with_flash()
    at = sorted(place for place, text in there.sectors.items() if "HOTSET-LABEL" in text)
    for place in at[-copies:]:
        there.sectors[place] = there.sectors[place].replace(*change)
    there.files = {path: kept for path, kept in there.files.items() if "/flash/" not in path}
    before = dict(there.sectors)
    with pytest.raises(FlashError, match=rf"its label .*{how}"):
        creation.create(there, replace(WANTED, disk="other"), True, lambda _: None)
    assert there.sectors == before
    assert devices.inspect(there, FLASH).signatures == ("hotset",)


def test_one_disk_under_two_names_gets_no_second_tier() -> None:
    there = with_flash()
    other = PurePosixPath("/dev/disk/by-id/wwn-0x5000")
    there.answers["readlink -f /dev/disk/by-id/wwn-0x5000"] = "/dev/sda\n"
    with pytest.raises(FlashError, match=r"wwn-0x5000 is accelerated already, as disk oltp over"):
        creation.create(there, replace(WANTED, disk="second", origin=other), True, print)


@pytest.mark.parametrize(
    "other",
    [
        # A partition of the disk.
        {"name": "sda1", "maj:min": "8:1", "children": [{"name": "sda", "maj:min": "8:0"}]},
        # A multipath device with the disk as one of its paths.
        {
            "name": "mpatha",
            "type": "mpath",
            "maj:min": "252:9",
            "children": [{"name": "sdb", "maj:min": "8:16"}, {"name": "sda", "maj:min": "8:0"}],
        },
        # A second path, which the multipath daemon has not taken yet.
        {"name": "sdb", "maj:min": "8:16", "wwn": "0x5000c500a1b2c3d4"},
    ],
    ids=["partition", "multipath", "second path"],
)
def test_one_disk_in_two_guises_gets_no_second_tier(other: dict[str, Any]) -> None:
    name = PurePosixPath("/dev/disk/by-id/another")
    mine = {"name": "sda", "maj:min": "8:0", "wwn": "0x5000c500a1b2c3d4", "size": 2 * GIB}
    mine |= {"type": "disk", "mountpoints": []}
    plain = with_flash()
    looked = plain.answers["lsblk"]

    def lsblk() -> str:
        line = plain.calls[-1].line
        if str(name) in line:
            return json.dumps({"blockdevices": [{"size": 2 * GIB, "mountpoints": [], **other}]})
        if str(ORIGIN) in line:
            return json.dumps({"blockdevices": [mine]})
        assert callable(looked)
        return looked()

    plain.answers |= {"lsblk": lsblk, f"readlink -f {name}": "/dev/other\n"}
    plain.calls.clear()
    with pytest.raises(FlashError, match="another is accelerated already, as disk oltp"):
        creation.create(plain, replace(WANTED, disk="second", origin=name), True, print)
    assert made(plain) == []


def seen(there: Keeping, name: str, device: dict[str, Any]) -> None:
    """Another device of the machine, as lsblk describes it."""
    others = there.answers["lsblk"]

    def lsblk() -> str:
        if there.calls[-1].line.endswith(f" {name}"):
            return json.dumps({"blockdevices": [device]})
        return others() if callable(others) else str(others)

    there.answers["lsblk"] = lsblk


@pytest.mark.parametrize(
    ("entry", "device"),
    [
        ("/dev/sdb", {"maj:min": "8:16", "wwn": "0x5000c500a1b2c3d4"}),
        (
            "/dev/mapper/mpatha",
            {"type": "mpath", "maj:min": "252:9", "children": [{"maj:min": "8:0"}]},
        ),
        (
            "/dev/mapper/mpathb",
            {
                "type": "mpath",
                "maj:min": "252:9",
                "children": [{"maj:min": "8:16", "wwn": "0x5000c500a1b2c3d4"}],
            },
        ),
    ],
    ids=["second path", "multipath over it", "multipath over another path"],
)
def test_an_entry_that_names_a_path_to_the_origin_is_found(
    entry: str, device: dict[str, Any]
) -> None:
    there = server()
    there.files["/etc/fstab"] = (f"{entry} /srv/db ext4 noatime 0 2\n", 0o644)
    seen(there, str(ORIGIN), {"maj:min": "8:0", "wwn": "0x5000c500a1b2c3d4"})
    seen(there, entry, device)
    assert [one.spec for one in mounts.find_mounts(there, ORIGIN).entries] == [entry]


def test_the_origin_is_looked_at_once_for_all_entries() -> None:
    there = server()
    entries = "".join(f"/dev/sd{one} /srv/{one} ext4 noauto 0 2\n" for one in "def")
    there.files["/etc/fstab"] = (entries, 0o644)
    there.calls.clear()
    mounts.find_mounts(there, ORIGIN)
    assert len([line for line in there.commands if line.startswith("lsblk")]) == 2 + 3


def test_an_entry_of_another_partition_of_the_disk_is_left_alone() -> None:
    there = server()
    there.files["/etc/fstab"] = ("/dev/sda2 /home ext4 defaults 0 2\n", 0o644)
    disk = {"wwn": "0x5000c500a1b2c3d4", "children": [{"maj:min": "8:0"}]}
    seen(there, str(ORIGIN), disk | {"maj:min": "8:1", "partuuid": "77-01"})
    seen(there, "/dev/sda2", disk | {"maj:min": "8:2", "partuuid": "77-02"})
    assert mounts.find_mounts(there, ORIGIN) == mounts.Mounting()


FSTAB = "# /etc/fstab\nUUID=1234-abcd /srv/db ext4 noatime 0 2\n/dev/sdz1 /home ext4 defaults 0 2\n"


@pytest.mark.parametrize("tran", [None, "fc", "iscsi"])
def test_what_would_mount_the_origin_at_boot_is_shown_and_with_yes_changed(
    tran: str | None,
) -> None:
    there = server(**{"blkid --probe --output export": "UUID=1234-abcd\nTYPE=ext4\n"})
    seen(there, "/dev/sdz1", {"maj:min": "65:145", "wwn": "0x5000c500ffffffff"})
    there.files["/etc/fstab"] = (FSTAB, 0o644)
    seen(there, str(ORIGIN), {"maj:min": "253:32", "tran": tran})
    line = (
        "/dev/mapper/hotset-oltp /srv/db ext4"
        " noatime,x-systemd.requires=hotset-tier-oltp.service"
        f"{',_netdev' if tran == 'iscsi' else ''} 0 2"
    )
    with pytest.raises(FlashError, match=rf"line 2, `UUID=1234-abcd .*should read `{line}`"):
        creation.create(there, WANTED, False, print)
    assert made(there) == []
    creation.create(there, WANTED, True, lambda _: None)
    text = there.files["/etc/fstab"][0]
    assert line in text.splitlines()
    assert "/dev/sdz1 /home ext4 defaults 0 2" in text
    assert not [one for one in text.splitlines() if one.startswith("UUID=")]
    unit = there.files["/etc/systemd/system/hotset-tier-oltp.service"][0]
    # Else systemd finds a circle, and leaves something out: the network is up after local mounts.
    assert ("network-online.target" in unit) is (tran == "iscsi")
    fstab.restore(flash_devices.find(there, "oltp"))
    assert there.files["/etc/fstab"][0] == FSTAB


def test_what_is_overwritten_is_shown_and_asked_for() -> None:
    there = server(**{"wipefs --json /dev/vdb": '{"signatures": [{"type": "xfs"}]}'})
    asked: list[tuple[str, str]] = []
    creation.create(there, WANTED, True, lambda _: None, lambda *words: asked.append(words))
    assert asked == [("virtio-flash", f"{FLASH} (ACME SSD 9, serial S-vdb, 1 GiB): xfs")]

    def refuse(*_: str) -> None:
        raise KeyboardInterrupt

    there = server(**{"wipefs --json /dev/vdb": '{"signatures": [{"type": "xfs"}]}'})
    with pytest.raises(KeyboardInterrupt):
        creation.create(there, WANTED, True, lambda _: None, refuse)
    assert made(there) == []


def test_whoever_took_the_flash_meanwhile_keeps_it() -> None:
    """Somebody else makes a file system between the first look and the first write."""
    looks: list[int] = []
    there = server()

    def signatures() -> str:
        looks.append(1)
        return "" if len(looks) == 1 else '{"signatures": [{"type": "xfs"}]}'

    there.answers["wipefs --json /dev/vdb"] = signatures
    with pytest.raises(DeviceRefusedError, match="not empty: xfs"):
        creation.create(there, WANTED, False, lambda _: None)
    assert made(there) == []
    # In the last moment the kernel refuses (O_EXCL), unless it is told not to look.
    there = server()
    creation.create(there, WANTED, False, lambda _: None)
    (wiped,) = (line for line in made(there) if line.startswith("wipefs"))
    assert wiped == "wipefs --all /dev/vdb"
    there = server(**{"wipefs --all": 1})
    firmware = "4c4c4544-0044-4a10-8054-b7c04f4d3732"
    there.answers["cat /sys/class/dmi/id/product_uuid"] = firmware
    reserved = "sg_persist --in --read-reservation"
    there.answers[reserved] = f"    Key={reservation.key(there)}\n"
    with pytest.raises(CommandError):
        creation.create(there, WANTED, False, lambda _: None)
    changes = [line.partition("/dev/")[0] for line in made(there)]
    first = changes.index("wipefs --all ")
    # Nothing is written, and other hosts may use the origin as before.
    assert all(line.startswith("sg_persist --out") for line in changes[:first])
    assert ["--release" in changes[first + 1], len(changes) - first] == [True, 3]


def test_what_fails_half_way_is_taken_back() -> None:
    there = server(**{"dmsetup create hotset-oltp-cache": 1})
    with pytest.raises(CommandError):
        creation.create(there, WANTED, False, print)
    changes = [line for line in made(there) if not line.startswith("sg_persist")]
    assert changes[-1] == "rm -f /etc/hotset/flash/main.json"


@pytest.mark.parametrize(
    ("wanted", "error", "named"),
    [
        (replace(WANTED, origin=FLASH), DeviceRefusedError, "same device"),
        (replace(WANTED, disk="volume"), FlashError, "'volume' is not a disk name"),
        (replace(WANTED, disk="a-meta"), FlashError, "'a-meta' is not a disk name"),
        (replace(WANTED, disk="Big One"), FlashError, "'Big One' is not a disk name"),
        (replace(WANTED, cache=Bytes(2 * GIB)), FlashError, "a cache of 2 GiB does not fit"),
    ],
)
def test_refusals_change_nothing(wanted: CreateRequest, error: type[Exception], named: str) -> None:
    there = server()
    with pytest.raises(error, match=named):
        creation.create(there, wanted, True, lambda _: None)
    assert made(there) == []


def test_root_is_needed() -> None:
    with pytest.raises(PrerequisiteMissingError, match="root"):
        creation.create(server(**{"id -u": "1000\n"}), WANTED, False, print)


def test_a_kernel_without_dm_cache() -> None:
    there = server(modprobe=1)
    with pytest.raises(PrerequisiteMissingError, match="has no dm-cache or dm-cache-smq"):
        creation.create(there, WANTED, False, lambda _: None)


def test_what_a_boot_or_a_repair_will_need_is_asked_for_before_anything_is_written() -> None:
    lacking = {"sh -c 'for one; do command -v": "cache_check\ncache_dump\nflock\n", "modprobe": 1}
    there = server(**lacking)
    with pytest.raises(PrerequisiteMissingError) as refused:
        creation.create(there, WANTED, True, lambda _: None)
    said = str(refused.value)
    assert "cache_check, cache_dump (apt-get install thin-provisioning-tools)" in said
    assert "flock (apt-get install util-linux)" in said
    assert "has no dm-cache or dm-cache-smq" in said, "all of it at once"
    assert [dict(one.parameters) for one in refused.value.remedies] == [{"kind": "userspace"}]
    assert there.files == {}
    assert there.sectors == {}


@pytest.mark.parametrize("kind", ["dm-cache", "bcache"])
def test_larger_sectors_of_the_flash_are_refused_with_both_figures(kind: KernelKind) -> None:
    there = server()
    there.answers = {"blockdev --getss /dev/vdb": "4096\n", **there.answers}
    wanted = replace(WANTED, kind=kind)
    with pytest.raises(DeviceRefusedError, match=r"4096 bytes, .* of 512: ") as refused:
        creation.create(there, wanted, False, lambda _: None)
    assert (refused.value.field, made(there)) == ("flash", [])
    remedies = [dict(one.parameters) for one in refused.value.remedies]
    assert remedies == [{"kind": "userspace"}, {"yes": True}]
    there.answers["blockdev --getss /dev/vdb"] = "512\n"
    creation.create(there, wanted, False, lambda _: None)


def test_flash_that_only_promises_room_is_refused() -> None:
    tables = "vg-pool: 0 9 thin-pool 253:1\nvg-flash: 0 9 thin 253:2 1\nvg-x: 0 9 linear 8:0 0\n"
    below = {"lsblk --inverse": "vg-flash\nvg-pool\nsda\n", "dmsetup table": tables}
    there = server(**{"readlink -f /dev/disk/by-id/virtio-flash": "/dev/dm-3\n"})
    there.answers = {**below, **there.answers}
    with pytest.raises(DeviceRefusedError, match="lies on vg-flash, a thin volume"):
        creation.create(there, WANTED, False, lambda _: None)
    assert made(there) == []
    there.answers["lsblk --inverse"] = "vg-x\nsda\n"
    room.check(there, "dm-cache", *_inspected(there), False, print)


def _inspected(there: FakeMachine) -> tuple[Device, Device]:
    return devices.inspect(there, FLASH), devices.inspect(there, ORIGIN)


def test_a_cache_larger_than_its_origin_is_said_to_be() -> None:
    said: list[str] = []
    there = server()
    there.answers["wipefs --json /dev/vdb"] = ""
    wanted = replace(WANTED, cache=Bytes(700 * MIB))
    small = devices.inspect(there, ORIGIN)
    creation._explain(
        sizing.choose("dm-cache", "oltp", wanted.cache, Bytes(0), Bytes(GIB), None, None),
        wanted,
        replace(small, size=Bytes(8 * MIB)),
        said.append,
    )
    assert "the cache (700 MiB) is larger than" in said[-1]


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("bcache", "`kpartx -a /dev/mapper/hotset-oltp` shows them"),
        ("userspace", "the kernel shows them (`lsblk /dev/hotset/oltp`)"),
    ],
)
def test_where_the_partitions_of_a_whole_disk_are_is_said(kind: TierKind, shown: str) -> None:
    there, said = server(), list[str]()
    origin = replace(devices.inspect(there, ORIGIN), parts=("vdb1",))
    chosen = sizing.choose("dm-cache", "oltp", WANTED.cache, Bytes(0), Bytes(GIB), None, None)
    creation._explain(chosen, replace(WANTED, kind=kind), origin, said.append)
    assert shown in said[-1]


@pytest.mark.parametrize("kind", ["dm-cache", "bcache"])
def test_a_rehearsal_prints_all_that_would_change_and_changes_nothing(kind: KernelKind) -> None:
    real = server(**{"blockdev --getss": "512\n"})
    # What would only stand afterwards cannot be asked.
    real.answers |= {"dmsetup info": 1, "readlink -f /sys": 1, "test -e": 1}
    shown: list[str] = []
    wanted = replace(WANTED, kind=kind)
    creation.create(DryRun(real, shown.append), wanted, False, lambda _: None)
    assert made(real) == []
    assert real.files == {}
    text = "\n".join(shown)
    wants = ("dmsetup create hotset-oltp ", "write /etc/hotset/flash/main.json")
    if kind == "bcache":
        wants = (*wants, "make-bcache -B", "/sys/fs/bcache/register_quiet")
    for words in wants:
        assert words in text


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("dmsetup ls", True),
        ("dmsetup status x", True),
        ("dmsetup remove x", False),
        ("dmsetup suspend x", False),
        ("dd if=/dev/x of=/dev/null", True),
        ("dd if=/dev/zero of=/dev/x", False),
        ("wipefs --json /dev/x", True),
        ("wipefs --all /dev/x", False),
        ("cache_check /dev/x", False),
        ("tee /sys/x", False),
        ("blockdev --getsize64 /dev/x", True),
        ("blockdev --flushbufs /dev/x", False),
        ("dmsetup", False),
        ("cat /proc/mounts", True),
        ("sh -c true", False),
        ("sh /etc/hotset/engine/x.sh attached", True),
        ("sh /etc/hotset/engine/x.sh start", False),
        ("losetup --noheadings --output NAME", False),
        ("hotset-boot users --who loops /srv/file", True),
        ("losetup --detach /dev/loop0", False),
        ("stat --format=%s /srv/x", True),
    ],
)
def test_what_only_reads(line: str, reads: bool) -> None:
    assert only_reads(line.split()) is reads


def test_what_keeps_others_off_the_origin_is_there_before_the_disk_is_on_record_as_ready() -> None:
    there = server(**{"test -e": 1, "test -d /etc/udev": 0, "blkid --probe --output udev": FOUND})
    creation.create(there, replace(WANTED, reserve=False), False, lambda _: None)
    lines = there.commands
    ready = [number for number, one in enumerate(lines) if one.startswith("replace /etc/hotset")]
    assert lines.index("replace /etc/udev/rules.d/65-hotset-oltp.rules") < ready[-1]


FOUND = "ID_FS_TYPE=ext4\nID_FS_UUID=7a\nID_FS_UUID_ENC=7a\n"


def test_an_origin_by_the_kernels_name_alone_is_hidden_as_long_as_it_is_the_same() -> None:
    there = server(**{"test -d /etc/udev": 0, "blkid --probe --output udev": FOUND})
    creation.create(there, replace(WANTED, reserve=False), False, lambda _: None)
    rules = there.files["/etc/udev/rules.d/65-hotset-oltp.rules"][0]
    assert f'ENV{{DEVNAME}}=="{ORIGIN}", ENV{{ID_FS_UUID_ENC}}=="7a", SYMLINK-=' in rules


def test_an_origin_by_the_kernels_name_alone_is_seen_to_go_whatever_lies_on_it() -> None:
    """Nothing by which udev knows what lies on it: it came back with its count of writes at 0."""
    there = server(**{"test -d /etc/udev": 0})
    creation.create(there, replace(WANTED, reserve=False), False, lambda _: None)
    rules = there.files["/etc/udev/rules.d/65-hotset-oltp.rules"][0].splitlines()
    gone = [line for line in rules if line.startswith('ACTION=="remove"')]
    assert any(f', ENV{{DEVNAME}}=="{ORIGIN}", RUN+=' in line for line in gone), gone


def test_a_tier_that_stands_keeps_its_reservation_whatever_fails_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = list[object]()
    monkeypatch.setattr(reservation, "give_back", lambda *words: given.append(words))
    there = server(**{"test -d /etc/udev": 0})
    up = "hotset-oltp\t(252:3)\nhotset-oltp-meta\t(252:0)\nhotset-oltp-cache\t(252:1)\n"

    def interrupted() -> str:
        there.answers["dmsetup ls"] = up
        raise KeyboardInterrupt

    there.answers = {"udevadm control": interrupted, **there.answers}
    with pytest.raises(KeyboardInterrupt):
        creation.create(there, WANTED, False, lambda _: None)
    assert given == [], "its writes may be on the flash alone"
    there.answers["dmsetup ls"] = "No devices found\n"
    there.answers["wipefs --all"] = 1
    with pytest.raises(CommandError):
        creation.create(there, WANTED, False, lambda _: None)
    assert given


def nameless(content: str) -> Keeping:
    """A server whose slow disk has no number of its own."""
    there = server(**{"hotset-boot content": content})

    def lsblk() -> str:
        size = GIB if "vdb" in there.calls[-1].line else 2 * GIB
        return json.dumps({"blockdevices": [{"name": "sda", "size": size, "mountpoints": []}]})

    there.answers["lsblk"] = lsblk
    return there


def test_writes_are_not_held_back_from_a_disk_that_no_boot_would_know() -> None:
    """Another one may have its name then."""
    there = nameless("\n")
    with pytest.raises(
        DeviceRefusedError, match=r"virtio-slow has no World.* write-back"
    ) as refused:
        creation.create(there, WANTED, False, lambda _: None)
    assert refused.value.field == "origin"
    assert refused.value.remedies[0].parameters == {"mode": "writethrough"}
    assert not [line for line in made(there) if "dmsetup" in line or "of=/dev/disk" in line]
    creation.create(there, replace(WANTED, mode="writethrough"), False, lambda _: None)
    creation.create(nameless("5f3c\n"), WANTED, False, lambda _: None)


def test_a_rehearsal_on_a_machine_without_an_id_knows_the_one_that_it_would_get() -> None:
    """Each step took another for the machine's: the flash belonged to somebody else."""
    real, shown = server(**{"cat /etc/machine-id": 1}), list[str]()
    creation.create(DryRun(real, shown.append), WANTED, False, lambda _: None)
    assert sum(line.startswith("write /etc/hotset/host-id ") for line in shown) == 1
    assert real.files == {}


def test_who_looks_gives_a_machine_no_id() -> None:
    """The one that a creation gives it meanwhile would be overwritten, and its flash another's."""
    labelled = with_flash()
    there = server(**{"cat /etc/machine-id": 1})
    there.sectors = labelled.sectors
    flash = flash_devices.read_flash(there, FLASH)
    assert flash is not None
    assert not flash_devices.is_ours(there, flash)
    assert there.files == {}
    creation.create(fresh := server(**{"cat /etc/machine-id": 1}), WANTED, False, lambda _: None)
    assert "/etc/hotset/host-id" in fresh.files


def test_a_dry_run_says_what_it_cannot_check_before_the_program_is_there() -> None:
    """It took its own words for the UUID of what lies on the disk."""

    def is_missing() -> str:
        raise PrerequisiteMissingError("hotset-boot is not there")

    for answer in (127, is_missing):
        there, said = nameless(""), list[str]()
        there.answers |= {"hotset-boot content": answer, "test -x /usr/local/lib/hotset": 1}
        creation.create(DryRun(there, lambda _: None), WANTED, False, said.append)
        [unchecked] = [one for one in said if one.startswith("not checked")]
        assert "whether a boot will know /dev/disk/by-id/virtio-slow" in unchecked
        assert made(there) == []


def test_a_rehearsal_on_files_makes_nothing(tmp_path: Path) -> None:
    """It took a file for a device, and the disk for one that is active already."""
    files = [tmp_path / "flash", tmp_path / "origin"]
    for one in files:
        Local().run(["truncate", "--size=200M", str(one)])
    flash, origin = map(PurePosixPath, files)
    wanted = CreateRequest("dry", flash, origin, "userspace", "oltp", Bytes(64 * MIB))
    shown, said = list[str](), list[str]()
    creation.create(DryRun(Local(), shown.append), wanted, True, said.append)
    assert "sh /etc/hotset/engine/dry.sh start" in shown
    has_systemd = Path("/run/systemd/system").is_dir()
    assert ("systemctl daemon-reload" in shown) is has_systemd, "what is there is asked"
    assert not any(one.read_bytes().strip(b"\0") for one in files)
    assert not Path("/etc/hotset/engine/dry.sh").exists()


def test_a_unit_is_not_written_for_a_disk_that_no_boot_would_know() -> None:
    for unit in (True, False):
        startup.check(nameless("5f3c\n"), "oltp", "dm-cache", ORIGIN, True, print, unit)
    startup.check(nameless("\n"), "oltp", "dm-cache", ORIGIN, True, print)
    with pytest.raises(DeviceRefusedError, match="cannot have a unit"):
        startup.check(nameless("\n"), "oltp", "dm-cache", ORIGIN, True, print, unit=True)


def test_a_rehearsal_makes_up_no_name_of_a_device() -> None:
    """`create --yes --dry-run` on an empty loop device advised: use `<find>`."""
    shown = DryRun(server(**{"find -L": 1, "test -e": 1}), lambda _: None)
    shown.run(["dmsetup", "create", "hotset-x"])
    names = shown.run(["find", "-L", "/dev/disk/by-id", "-samefile", "/dev/x"], check=False)
    assert names.stdout == ""
