"""The label of a flash device: cut without overlap, kept on the machine, found by a disk's name."""

from __future__ import annotations

import itertools
import os
import re
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.block import label as labels
from hotset.block.devicemapper import RESERVED, total
from hotset.block.label import Label
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.disk import flash_devices
from hotset.disk.flash_devices import FlashDevice, FlashError, Inventory, take
from hotset.disk.identity.origin import OriginId
from tests.fake_machine import FakeMachine
from tests.support.flash_devices import FLASH, MIB, SECOND, SPEC, Keeping, disk

DATA = Path(__file__).parents[1] / "data"
FLASHES = {name: PurePosixPath(f"/dev/disk/by-id/{name}") for name in ("flash", "second", "third")}


def kept(*some: FlashDevice) -> Keeping:
    machine = Keeping()
    for flash in some:
        machine.keep(flash)
    return machine


def plain(flash: FlashDevice) -> FlashDevice:
    """Without what the label adds."""
    return replace(flash, uuid="", host="", host_name="", generation=0)


def test_a_flash_device_comes_back_as_it_was_saved() -> None:
    second = replace(SECOND, volume=())
    assert [plain(one) for one in flash_devices.list_all(kept(FLASH, second))] == [second, FLASH]


def test_a_flash_device_is_written_whole_or_not_at_all() -> None:
    machine = kept(FLASH)
    assert machine.commands[-1] == "replace /etc/hotset/flash/main.json"
    assert machine.files["/etc/hotset/flash/main.json"][1] == 0o600


def test_a_flash_device_with_nothing_on_it_has_neither_label_nor_file() -> None:
    machine = kept(FLASH)
    (flash,) = flash_devices.list_all(machine)
    flash_devices.save(machine, replace(flash, disks=(), volume=()))
    assert flash_devices.read_flash(machine, FLASH.path) is None
    assert flash_devices.list_all(machine) == []


def test_no_flash_devices_at_all() -> None:
    machine = FakeMachine({"test -d": 1})
    assert flash_devices.list_all(machine) == []
    with pytest.raises(FlashError, match=r"no disk is accelerated on this machine \(vm\)"):
        flash_devices.find(machine, None)


def test_an_attached_disk_has_another_record_of_it_with_its_flash() -> None:
    """One that only one of them had would put the other back with the next change."""
    machine = kept(FLASH.with_disk(disk("dwh", 100)))
    found = flash_devices.find(machine, "dwh")
    changed = found.with_disk(replace(found.disk, phase="detaching"))
    assert changed.flash.disks == (disk(), changed.disk)
    assert flash_devices.find(machine, "dwh").disk.phase == "ready", "nothing is written yet"
    written = changed.save()
    assert written == flash_devices.find(machine, "dwh")
    assert written.flash.generation > found.flash.generation
    assert written.tier.place == found.flash.place(found.disk)


def test_a_disk_is_found_by_its_name_or_as_the_only_one() -> None:
    machine = kept(FLASH)
    found = flash_devices.find(machine, None)
    assert found == flash_devices.find(machine, "data")
    assert (found.machine, plain(found.flash), found.disk) == (machine, FLASH, disk())
    with pytest.raises(FlashError, match="'dwh' is not accelerated here; accelerated: data"):
        flash_devices.find(machine, "dwh")
    two = kept(FLASH.with_disk(disk("dwh", 100)))
    assert flash_devices.find(two, "dwh").disk.name == "dwh"
    with pytest.raises(FlashError, match="several disks are accelerated: data, dwh"):
        flash_devices.find(two, None)
    tier = flash_devices.find(two, "dwh").tier
    assert (str(tier.path), str(tier.volume)) == (
        "/dev/mapper/hotset-dwh",
        "/dev/mapper/hotset-volume",
    )


def test_a_flash_device_is_found_by_its_name_and_by_a_disk_on_it() -> None:
    with pytest.raises(FlashError, match=r"no flash device is set up on this machine \(vm\)"):
        flash_devices.find_flash(kept(), "main")
    bare = replace(FLASH, name="flash3", path=FLASHES["third"], disks=())
    one, three = kept(bare), kept(FLASH, SECOND, bare)
    assert plain(flash_devices.find_flash(one, "flash3")) == bare, (
        "also one that has no disk any more"
    )
    assert flash_devices.find_flash(three, "flash2") == flash_devices.find_flash(three, "dwh")
    assert plain(flash_devices.find_flash(three, "dwh")) == SECOND
    with pytest.raises(FlashError, match=r"'erp' is neither .*; there are: flash2, flash3, main"):
        flash_devices.find_flash(three, "erp")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"schema_version": 1', '"schema_version": 2', "schema_version is 2: this hotset reads 1"),
        ('"schema_version": 1', '"schema_version": 0', "schema_version is 0: this hotset reads 1"),
        ('"hardware":', '"hereafter":1,"hardware":', "hereafter is not known .*use the version"),
        ('"mode":', '"hereafter":1,"mode":', r"disks\.0\.spec\.hereafter is not known"),
        ('"kind":"dm-cache"', '"kind":"flashcache"', "disks.0.kind: .*'flashcache'"),
        ('"size":268435456', '"size":"much"', "size: .*'much'"),
        ('{"schema_version"', '["schema_version"', "it does not describe a flash device"),
    ],
)
def test_a_flash_device_that_cannot_be_read_is_named_and_hinders_no_other(
    old: str, new: str, named: str
) -> None:
    machine = kept(FLASH, SECOND)
    assert old in machine.file()
    machine.files["/etc/hotset/flash/main.json"] = (machine.file().replace(old, new), 0o600)
    known = flash_devices.inventory(machine)
    assert [flash.name for flash in known.flash_devices] == ["flash2"]
    assert re.search(rf"/etc/hotset/flash/main.json on vm: {named}", known.problems[0])
    assert flash_devices.find(machine, "dwh").flash.name == "flash2"
    with pytest.raises(FlashError, match=rf"'data' is not accelerated here.*main.json.*{named}"):
        flash_devices.find(machine, "data")
    assert flash_devices.new_name(machine) == "flash3", "its name is not given away"


def test_the_label_is_the_truth_and_etc_a_copy() -> None:
    machine = kept(FLASH)
    old = machine.files["/etc/hotset/flash/main.json"]
    (flash,) = flash_devices.list_all(machine)
    flash_devices.save(machine, flash.with_disk(disk("dwh", 100)))
    machine.files["/etc/hotset/flash/main.json"] = old
    assert [one.name for one in flash_devices.list_all(machine)[0].disks] == ["data", "dwh"]


@pytest.mark.parametrize("torn", [64, 80])
def test_a_label_is_there_whatever_a_write_leaves_of_one_copy(torn: int) -> None:
    """The two copies begin at 256 and 320 KiB."""
    machine = kept(FLASH)
    at = (str(FLASH.path), torn)
    machine.sectors[at] = machine.sectors[at].replace("dm-cache", "dm-crash")
    found = flash_devices.read_flash(machine, FLASH.path)
    assert found is not None
    assert plain(found) == FLASH
    again = flash_devices.save(machine, flash_devices.list_all(machine)[0])
    assert again.generation == found.generation + 1
    assert "dm-crash" not in machine.sectors[at]


def test_the_older_copy_is_written_first() -> None:
    """A write that was cut short left one copy behind; the next one must not tear the good one."""
    machine = kept(FLASH)
    older = {at: machine.sectors[str(FLASH.path), at] for at in (64, 80)}
    flash = flash_devices.save(machine, flash_devices.list_all(machine)[0])
    for stale, expected in ((80, "seek=80"), (64, "seek=64")):
        newest = dict(machine.sectors)
        machine.sectors[str(FLASH.path), stale] = older[stale]
        machine.calls.clear()
        flash = flash_devices.save(machine, flash)
        writes = [line for line in machine.commands if line.startswith(f"dd of={FLASH.path}")]
        assert expected in writes[0], (stale, writes)
        reads = [line for line in machine.commands if line.startswith(f"dd if={FLASH.path}")]
        assert len(reads) == 2, "whose it is, and which copy is older"
        assert flash.generation > 1
        assert newest


def test_a_flash_that_lost_its_label_or_has_anothers_is_not_changed() -> None:
    machine = kept(FLASH, SECOND)
    mine = {key: text for key, text in machine.sectors.items() if key[0] == str(FLASH.path)}
    for key in mine:
        del machine.sectors[key]
    (flash,) = [one for one in flash_devices.list_all(machine) if one.name == "main"]
    with pytest.raises(FlashError, match=r"by-id/flash has lost its label.*scan for labels"):
        flash_devices.save(machine, flash)
    for (_, at), text in list(machine.sectors.items()):
        machine.sectors[str(FLASH.path), at] = text
    with pytest.raises(FlashError, match="is another flash device now"):
        flash_devices.save(machine, flash)


def test_a_flash_of_another_machine_is_refused_with_the_way_to_take_it_over() -> None:
    machine = kept(FLASH)
    (flash,) = flash_devices.list_all(machine)
    machine.answers["cat /etc/machine-id"] = "another\n"
    with pytest.raises(FlashError, match=r"belongs to vm by its label") as refused:
        flash_devices.save(machine, flash)
    (remedy,) = refused.value.remedies
    assert remedy.operation == "tier import"
    assert remedy.parameters == {"flash": str(FLASH.path), "take_over": True}
    assert plain(flash_devices.save(machine, flash, take_over=True)) == FLASH
    flash_devices.save(machine, flash_devices.list_all(machine)[0])


def test_a_flash_that_another_machine_took_over_stays_its_own_whatever_the_copy_here_says() -> None:
    """The copy was changed while the flash did not answer, by more than the other has written: it
    counted as newer, and with it the flash as ours."""
    machine = kept(FLASH.with_disk(disk("dwh", 100)))
    (flash,) = flash_devices.list_all(machine)
    for _ in range(9):
        flash = flash_devices.save_without_flash(machine, flash)
    copy = machine.files["/etc/hotset/flash/main.json"]
    machine.answers["cat /etc/machine-id"] = "another\n"
    taken = flash_devices.read_flash(machine, FLASH.path)
    assert taken is not None
    taken = flash_devices.save(machine, taken, take_over=True)
    machine.answers["cat /etc/machine-id"] = "this\n"
    machine.files["/etc/hotset/flash/main.json"] = copy
    (known,) = flash_devices.list_all(machine)
    assert not flash_devices.is_ours(machine, known)
    with pytest.raises(FlashError, match=r"belongs to vm by its label"):
        flash_devices.save(machine, flash)
    assert flash_devices.read_flash(machine, FLASH.path) == taken


def test_a_flash_device_is_written_byte_by_byte_as_its_version_says() -> None:
    """Another field, or another order, is another format: raise SCHEMA_VERSION, and add a file of
    it. Those of released versions stay, and are read for ever."""
    spec = replace(SPEC, policy="hotset", bypass=Bytes(4 * MIB))
    known = OriginId(Bytes(512 * MIB), "wwn", "serial", "partition", "mapper")
    one = replace(disk("shop"), kind="userspace", spec=spec, identity="0d5c", origin_id=known)
    two = replace(disk("dwh", 100), phase="detaching", record=1, reserve=False)
    flash = replace(FLASH.with_disk(one), uuid="77aa", host="this", host_name="db1", generation=7)
    flash = replace(flash.with_disk(two), devices="loop", hardware="board", disks=(one, two))
    golden = (DATA / f"flash-{flash_devices.SCHEMA_VERSION}.txt").read_text()
    written = Label(flash.generation, flash_devices.render(flash)).render()
    assert written.rstrip(" ") == golden.rstrip(" ")
    for file in DATA.glob("flash-*.txt"):
        label = labels.parse(file.read_text())
        assert label is not None
        assert flash_devices.parse(label.body).disks[0].name == "shop"


def test_the_volume_of_a_second_flash_has_its_name() -> None:
    assert FLASH.volume_slice.name == "hotset-volume"
    assert replace(FLASH, name="flash2").volume_slice.name == "hotset-volume-flash2"


@given(st.lists(st.integers(1, 40), max_size=6))
def test_parts_never_overlap_and_never_touch_the_first_mebibyte(sizes: list[int]) -> None:
    flash = replace(FLASH, volume=(), disks=())
    room = int(total(flash.free()))
    for number, size in enumerate(sizes):
        wanted = Bytes(size * MIB)
        if wanted > room:
            with pytest.raises(FlashError, match="does not fit"):
                take(flash.free(), wanted, "CACHE")
            continue
        room -= wanted
        parts = take(flash.free(), wanted, "CACHE")
        assert total(parts) == wanted
        flash = flash.with_disk(replace(disk(f"d{number}"), metadata=(), cache=parts))
        # Holes, so that later ones are put together from several parts.
        if number % 2:
            room += total(flash.disks[0].cache)
            flash = flash.without(flash.disks[0].name)
    used = sorted((one for disk in flash.disks for one in disk.cache), key=lambda one: one.start)
    assert all(one.start >= RESERVED and one.end <= flash.size for one in used)
    assert all(one.end <= two.start for one, two in itertools.pairwise(used))
    assert total(flash.free()) == room == flash.size - RESERVED - total(used)


def test_copies_are_read_in_one_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flash_devices, "FOLDER", PurePosixPath(tmp_path / "flash"))
    assert flash_devices.inventory(Local()) == Inventory(()), "a folder that is not there has none"
    for name, text in (
        ("b.json", f"{flash_devices.render(FLASH)}\n"),
        ("a.json", ""),
        ("c.json.new", "{"),
    ):
        Local().replace(text, flash_devices.FOLDER / name)
    known = flash_devices.inventory(Local())
    assert [plain(one) for one in known.flash_devices] == [FLASH]
    (empty,) = known.problems
    assert empty.startswith(f"{flash_devices.FOLDER}/a.json on local: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_copy_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flash_devices, "FOLDER", PurePosixPath(tmp_path))
    Local().replace(f"{flash_devices.render(FLASH)}\n", PurePosixPath(tmp_path / "a.json"), 0)
    (problem,) = flash_devices.inventory(Local()).problems
    assert f"{tmp_path}/a.json" in problem
    assert "Permission denied on local" in problem
