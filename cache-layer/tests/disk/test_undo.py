"""What fails or is cut short leaves what was there before, and needs nothing of what is gone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from hotset.block import programs
from hotset.block.devices import DeviceRefusedError
from hotset.block.programs import InUseError
from hotset.core.machines.base import CommandError, PrerequisiteMissingError, Result
from hotset.core.machines.local import Local
from hotset.core.units import Bytes
from hotset.disk import abandoned, adopt, flash_devices, lifecycle
from hotset.disk import create as creation
from hotset.disk import settings as rename
from hotset.disk.flash_devices import AttachedDisk, Disk, FlashDevice, FlashError
from hotset.disk.identity import reservation
from hotset.disk.identity.origin import OriginId
from hotset.disk.lifecycle import TierRefusedError
from hotset.disk.settings import retune
from hotset.disk.state import Word
from hotset.tier.base import MetadataDamagedError
from hotset.tier.engine.tier import Userspace
from tests.disk import test_lifecycle as tl
from tests.disk.test_create import made
from tests.fake_machine import Answer, FakeMachine, record_of
from tests.support.flash_devices import FLASH, Keeping
from tests.support.new_disk import WANTED, server, with_flash

MIB = 2**20
NEXT = replace(WANTED, disk="next", volume=None)
VOLUME_UP = "hotset-volume\t(252:9)\n"
IN_USE = "hotset-volume is in use: dm-9 is mounted on /srv/log: unmount it first"


def nothing(_: object) -> None:
    pass


def with_volume_alone(there: Keeping | None = None) -> Keeping:
    """A flash device whose last disk was detached: it keeps its volume, on which a log may lie."""
    there = there or with_flash()
    flash = flash_devices.inventory(there).flash_devices[0]
    flash_devices.save(there, flash.without("oltp"))
    there.calls.clear()
    return there


def layout(machine: FakeMachine) -> FlashDevice:
    """What the label says, but for how often it was written."""
    return replace(flash_devices.inventory(machine).flash_devices[0], generation=0)


@pytest.mark.parametrize(
    "fails", ["modprobe", "dmsetup create hotset-next-meta", "dmsetup create hotset-next "]
)
@pytest.mark.parametrize("volume_is_up", [True, False])
def test_a_creation_that_fails_leaves_the_volume_that_was_there(
    fails: str, volume_is_up: bool
) -> None:
    there = with_volume_alone()
    before = layout(there)
    volume = VOLUME_UP if volume_is_up else ""
    there.answers = {fails: 1, **there.answers, "dmsetup ls": volume or "No devices found\n"}
    with pytest.raises((CommandError, PrerequisiteMissingError)):
        creation.create(there, NEXT, False, nothing)
    assert layout(there) == before
    assert "dmsetup remove --retry hotset-volume" not in there.commands
    assert "rm -f /etc/hotset/flash/main.json" not in there.commands


def test_a_volume_that_a_failed_creation_set_up_goes_down_again() -> None:
    there = with_volume_alone()

    def failed() -> str:
        there.answers["dmsetup ls"] = VOLUME_UP
        raise CommandError("vm", there.run(["test", "-f", "x"], check=False))

    there.answers = {"dmsetup create hotset-next ": failed, **there.answers}
    with pytest.raises(CommandError):
        creation.create(there, NEXT, False, nothing)
    assert "dmsetup remove --retry hotset-volume" in there.commands
    assert layout(there).volume


def killed_at(there: Keeping, wanted: creation.CreateRequest, at: str) -> None:
    """A creation that has no time for any undo."""

    class Killed(BaseException):
        pass

    def killed() -> str:
        there.dead = True  # type: ignore[attr-defined]
        raise Killed

    there.answers = {at: killed, **there.answers}
    execute = there.execute

    def run(command):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        if getattr(there, "dead", False):
            raise Killed
        return execute(command)

    there.execute = run  # type: ignore[method-assign]
    with pytest.raises(Killed):
        creation.create(there, wanted, False, nothing)
    there.execute = execute  # type: ignore[method-assign]
    del there.answers[at]


def test_a_creation_that_was_killed_leaves_the_volume_that_was_there() -> None:
    there = with_volume_alone()
    before = layout(there)
    killed_at(there, NEXT, "dmsetup create hotset-next-cache")
    assert layout(there).disks[0].phase == "creating"
    there.answers["modprobe"] = 1
    with pytest.raises(PrerequisiteMissingError):
        creation.create(there, NEXT, False, nothing)
    assert layout(there) == before
    del there.answers["modprobe"]
    creation.create(there, NEXT, False, nothing)
    assert layout(there).volume == before.volume


def test_a_first_creation_that_was_killed_leaves_a_flash_that_is_nobodys() -> None:
    """Another volume may be asked for then."""
    there = server()
    killed_at(there, WANTED, "dmsetup create hotset-oltp-cache")
    assert layout(there).volume
    larger = replace(WANTED, volume=Bytes(128 * MIB))
    creation.create(there, larger, False, nothing)
    (part,) = layout(there).volume
    assert part.size == 128 * MIB


def test_a_second_creation_that_fails_leaves_the_first_disk() -> None:
    there = with_flash()
    before = layout(there)
    slow = PurePosixPath("/dev/disk/by-id/virtio-other")
    there.answers = {
        "modprobe": 1,
        f"readlink -f {slow}": "/dev/sdc\n",
        f"blockdev --getsize64 {slow}": str(2**30),
        **there.answers,
    }
    with pytest.raises(PrerequisiteMissingError):
        creation.create(there, replace(NEXT, origin=slow), False, nothing)
    assert layout(there) == before


@pytest.mark.parametrize("devices", ["mapper", "loop"])
def test_a_volume_in_use_is_never_taken_down(devices: str) -> None:
    """A loop device would let itself be detached, and its file system go on without it."""
    there = server(**{"hotset-boot users": IN_USE, "dmsetup ls": VOLUME_UP})
    flash = replace(flash_devices.inventory(with_flash()).flash_devices[0], devices=devices)
    there.calls.clear()
    with pytest.raises(InUseError, match="is mounted on /srv/log: unmount it first"):
        flash_devices.remove_volume(there, flash)
    assert made(there) == []


ORIGIN_GONE = {
    "test -b /dev/disk/by-id/data": 1,
    "lsblk --json --bytes --nodeps --output NAME,MAJ:MIN": 32,
    "lsblk --json --bytes --inverse": 32,
    "sync /dev/disk/by-id/data": 1,
    "dd if=/dev/disk/by-id/data": 1,
    "blockdev --getsize64 /dev/disk/by-id/data": 1,
}


def without_origin(up: bool, **more: str | int) -> FakeMachine:
    """A server that has lost a disk's origin for good: the LUN was deleted on the array."""
    there = tl.server(up, **more)
    flash_devices.save(there, FLASH)
    there.answers = {**ORIGIN_GONE, **there.answers}
    there.calls.clear()
    return there


@pytest.mark.parametrize("up", [True, False])
def test_an_origin_that_is_gone_for_good_can_be_detached(up: bool) -> None:
    """Its flash was taken for ever, and the status failed for ever."""
    there, said = without_origin(up), list[str]()
    found = flash_devices.find(there, "data")
    seen = lifecycle.inspect(found)
    assert any("is not there: connect it" in note for note in seen.report.notes)
    assert up or seen.report.state == "failed"
    lost = r"33 blocks \(2.1 MiB\)" if up else "an unknown number of blocks"
    with pytest.raises(TierRefusedError, match=f"so {lost} that are only on the flash"):
        lifecycle.detach(found, False, False, nothing, said.append)
    assert flash_devices.find(there, "data").disk.phase == "ready"
    lifecycle.detach(found, False, True, nothing, said.append)
    assert re.match(f"LOST: {lost} that were only on the flash", said[0])
    assert said[-1].startswith("disk data is given up")
    assert flash_devices.list_disks(there) == []
    assert flash_devices.inventory(there).flash_devices[0].volume, "the volume is another's data"


def test_with_nothing_to_lose_an_origin_that_is_gone_is_detached_unasked() -> None:
    there, said = without_origin(up=False), list[str]()
    tl.leave(there, "clean")
    lifecycle.detach(flash_devices.find(there, "data"), False, False, nothing, said.append)
    assert "nothing that it lacks" in said[0]
    assert flash_devices.list_disks(there) == []


@pytest.mark.parametrize("dead", [True, False])
def test_a_flash_that_is_gone_too_hinders_nobody(dead: bool) -> None:
    there, said = without_origin(up=False), list[str]()
    there.answers["dd"] = 1
    found = flash_devices.find(there, "data")
    flash = found.flash
    if dead:
        lifecycle.detach(found, True, True, nothing, said.append)
    else:
        with pytest.raises(TierRefusedError, match="nothing can be written back"):
            lifecycle.destroy(there, flash, False, lambda _: nothing, said.append)
        assert said == []
        lifecycle.destroy(there, flash, True, lambda _: nothing, said.append)
        assert said[-1].startswith("flash device main is removed")
    assert said[0].startswith("LOST: an unknown number of blocks")
    assert flash_devices.list_disks(there) == []


def test_a_flash_device_whose_origin_is_gone_is_destroyed_with_its_loss_named() -> None:
    there, said = without_origin(up=False), list[str]()
    flash = flash_devices.inventory(there).flash_devices[0]
    there.answers |= {"dmsetup ls": VOLUME_UP, "lsblk": tl.FREE.replace('"dm"', '"dm", "size": 1')}
    with pytest.raises(TierRefusedError, match="an unknown number of blocks"):
        lifecycle.destroy(there, flash, False, lambda _: nothing, said.append)
    lifecycle.destroy(there, flash, True, lambda _: nothing, said.append)
    assert said[0].startswith("LOST: an unknown number of blocks")
    assert flash_devices.list_all(there) == []


def test_a_tier_whose_origin_went_is_deactivated_and_not_called_clean() -> None:
    there, said = without_origin(up=True), list[str]()
    lifecycle.deactivate(flash_devices.find(there, "data"), said.append)
    assert tl.left(there) == "dirty"
    assert "OLD data" in said[-1]


SYNC = "sync /dev/disk/by-id/data"
NOTHING_DIRTY = {"dmsetup status": tl.CLEAN}


def label_writes(there: FakeMachine, words: str) -> list[int]:
    """Which of the commands write these words to the flash."""
    return [
        at
        for at, call in enumerate(there.calls)
        if call.argv[0] == "dd" and call.stdin and words in call.stdin
    ]


def test_the_copy_on_the_flash_goes_only_after_the_origins_is_durable() -> None:
    """An origin with a volatile write cache lost what had just been written back to it."""
    there = tl.server(**NOTHING_DIRTY)
    flash_devices.save(there, FLASH)
    lifecycle.deactivate(flash_devices.find(there, "data"), nothing)
    clean = next(at for at, line in enumerate(there.commands) if line.endswith(" data flushed"))
    assert SYNC in there.commands[:clean]
    there = tl.server(**NOTHING_DIRTY)
    flash_devices.save(there, FLASH)
    lifecycle.detach(flash_devices.find(there, "data"), False, False, nothing, nothing)
    assert there.commands.index(SYNC) < label_writes(there, '"phase":"detaching"')[0]
    there = tl.server(**NOTHING_DIRTY)
    flash_devices.save(there, FLASH)
    retune(flash_devices.find(there, "data"), None, "writethrough", nothing, nothing)
    assert there.commands.index(SYNC) < label_writes(there, '"mode":"writethrough"')[0]


@pytest.mark.parametrize("verb", ["detach", "set"])
def test_an_origin_that_takes_no_flush_keeps_its_copy_on_the_flash(verb: str) -> None:
    there = tl.server(**NOTHING_DIRTY, **{SYNC: 1})
    flash_devices.save(there, FLASH)
    found = flash_devices.find(there, "data")
    one = found.disk
    verbs: dict[str, Callable[[], object]] = {
        "detach": lambda: lifecycle.detach(found, False, False, nothing, nothing),
        "set": lambda: retune(found, None, "writethrough", nothing, nothing),
    }
    with pytest.raises(CommandError, match="sync"):
        verbs[verb]()
    assert flash_devices.find(there, "data").disk == one
    assert not [line for line in there.commands if line.startswith("dd if=/dev/zero")]


def test_a_fsync_of_a_device_reaches_it_as_a_flush(tmp_path: Path) -> None:
    """Counted by the kernel (Documentation/block/stat.rst: flush I/Os)."""
    image, here = tmp_path / "disk", Local()
    with image.open("wb") as file:
        file.truncate(2**20)
    attached = here.run(["losetup", "--find", "--show", str(image)], check=False)
    if attached.rc:
        pytest.skip("no loop devices here")
    loop = PurePosixPath(attached.stdout.strip())
    try:
        flushes = Path(f"/sys/block/{loop.name}/stat")
        before = int(flushes.read_text().split()[15])
        place = replace(FLASH.place(FLASH.disks[0]), origin=loop)
        Userspace(here, FLASH.disks[0].spec, place, "").make_durable()
        assert int(flushes.read_text().split()[15]) > before
    finally:
        here.run(["losetup", "--detach", str(loop)])


def test_giving_up_a_flash_that_answers_waits_for_no_unit_that_waits_for_its_lock() -> None:
    """The unit's stop wants the lock of the very command that stops it."""
    there = tl.server(**{"test -e /etc/systemd": 0, "test -d /run/systemd": 0})
    flash_devices.save(there, FLASH)
    lifecycle.detach(flash_devices.find(there, "data"), True, True, nothing, nothing)
    (stop,) = [line for line in there.commands if line.startswith("systemctl stop")]
    assert "--no-block" in stop


@pytest.mark.parametrize(("up", "word"), [(True, "active"), (False, "active"), (False, "dirty")])
def test_a_disk_that_came_up_in_its_detach_is_written_back_by_the_next(
    up: bool, word: Word
) -> None:
    """An old boot script had made it again, and the database had worked on it for days; or it had
    taken it down since, too."""
    there, said = tl.server(up), list[str]()
    flash_devices.save(there, FLASH)
    found = flash_devices.find(there, "data")
    flash, one = found.flash, found.disk
    flash = flash_devices.save(there, flash.with_disk(replace(one, phase="detaching")))
    tl.leave(there, word)
    flushed = list[object]()

    def status() -> str:
        there.answers["dmsetup status"] = tl.CLEAN
        return tl.LINE

    there.answers["dmsetup status"] = status
    if not up:

        def made_again() -> str:
            there.answers["dmsetup ls"] = tl.UP
            return ""

        there.answers = {tl.ACTIVATED: made_again, **there.answers}
    lifecycle.detach(flash_devices.find(there, "data"), False, False, flushed.append, said.append)
    assert flushed, "33 blocks were dirty"
    assert flash_devices.list_disks(there) == []


def test_of_a_detach_cut_short_nothing_is_thrown_away_that_may_be_needed() -> None:
    """Its record cannot be read: nobody knows whether it came up again."""
    there = tl.server(False, cache_dump=tl.DIRTY, **{tl.DECIDED: tl.CONFLICT})
    flash_devices.save(there, FLASH)
    found = flash_devices.find(there, "data")
    flash, one = found.flash, found.disk
    flash_devices.save(there, flash.with_disk(replace(one, phase="detaching")))
    with pytest.raises(lifecycle.OriginChangedError, match="Both cannot be kept"):
        lifecycle.detach(flash_devices.find(there, "data"), False, False, nothing, nothing)
    assert flash_devices.find(there, "data").disk.phase == "ready"


CLONE = PurePosixPath("/dev/disk/by-id/new-flash")


def with_a_copy_of_the_flash(up: bool, **more: str | int) -> FakeMachine:
    """A server, and a second flash device with the same bytes: a mirror, or made by dd."""
    there = tl.server(up, **more)
    flash_devices.save(there, FLASH)
    for (_, at), text in list(there.sectors.items()):
        there.sectors[str(CLONE), at] = text
    listed = tl.FREE.replace('"dm"', '"disk", "size": 268435456')
    there.answers = {
        f"readlink -f {CLONE}": f"{CLONE}\n",
        f"readlink -f {FLASH.path}": f"{FLASH.path}\n",
        "find -L": f"{CLONE}\n",
        "lsblk": listed,
        **{name: answer for name, answer in there.answers.items() if name != "lsblk"},
    }
    there.calls.clear()
    return there


def test_a_copy_of_the_flash_is_not_imported_beside_the_original() -> None:
    """The kernel wrote to the one, and hotset believed the other's old metadata."""
    there = with_a_copy_of_the_flash(up=True)
    for take_over in (False, True):
        with pytest.raises(FlashError, match="data is active, on another flash device"):
            adopt.adopt(there, CLONE, take_over, nothing)
    there = with_a_copy_of_the_flash(up=False)
    with pytest.raises(FlashError, match="flash answers with the same label"):
        adopt.adopt(there, CLONE, True, nothing)
    assert flash_devices.find(there, "data").flash.path == FLASH.path
    there.answers = {f"dd if={FLASH.path}": 1, **there.answers}
    assert adopt.adopt(there, CLONE, False, nothing).path == CLONE, "the original is gone"


def test_the_same_flash_is_imported_again_by_another_name() -> None:
    there = with_a_copy_of_the_flash(up=True)
    there.answers[f"readlink -f {FLASH.path}"] = f"{CLONE}\n"
    assert adopt.adopt(there, CLONE, False, nothing).path == CLONE


def test_an_import_says_what_its_disks_lack_here() -> None:
    """A boot would not know the origin, or cannot check the cache: said, and not refused, since
    what the flash holds has to come back."""
    there, said = with_a_copy_of_the_flash(up=False), list[str]()
    there.answers[f"readlink -f {FLASH.path}"] = f"{CLONE}\n"
    found = flash_devices.find(there, "data")
    flash, one = found.flash, found.disk
    flash_devices.save(there, flash.with_disk(replace(one, origin_id=OriginId(Bytes(0)))))
    there.answers |= {"hotset-boot content": "\n", "sh -c 'for one": "cache_check\n"}
    adopt.adopt(there, CLONE, False, said.append)
    assert any("disk data then stays down" in line for line in said)
    assert any("lacks what a cache of kind dm-cache needs: cache_check" in line for line in said)


def test_a_disk_in_use_is_not_dropped_as_one_that_was_given_up() -> None:
    flash = f"{FLASH.path}\n"
    there = tl.server(**{"find -L": flash, f"readlink -f {FLASH.path}": flash})
    flash_devices.save(there, FLASH)
    found = flash_devices.find(there, "data")
    one = found.disk
    abandoned.add(found)
    there.answers["lsblk"] = tl.FREE.replace('"dm"', '"dm", "size": 1')
    with pytest.raises(FlashError, match="is active, although it was about to be given up"):
        adopt.adopt(there, FLASH.path, False, nothing)
    assert flash_devices.find(there, "data").disk == one


NEW_NAME = PurePosixPath("/dev/disk/by-id/renamed")
LUN = OriginId(Bytes(2**31), wwn="0x5000", serial="S1")


def renamed(
    found: OriginId, known: OriginId | None = LUN, up: bool = False, users: Answer = ""
) -> Disk:
    """What becomes of a disk whose origin has another name now, with what it shows there."""
    listed = {"name": "sdb", "maj:min": "8:16", "type": "disk", "mountpoints": []}
    listed |= {"size": int(found.size), "wwn": found.wwn, "serial": found.serial}
    listed |= {"partuuid": found.partition}
    there = tl.server(up, lsblk=json.dumps({"blockdevices": [listed]}), **{"find -L": ""})
    there.answers["cat /sys/dev/block/8:16/dm/uuid"] = found.mapper or 1
    there.answers["hotset-boot users --who writers"] = users
    flash_devices.save(there, FLASH.with_disk(replace(FLASH.disks[0], origin_id=known)))
    rename.rename_origin(flash_devices.find(there, "data"), NEW_NAME, nothing)
    return flash_devices.find(there, "data").disk


def test_an_origin_that_has_another_name_is_taken_as_the_same_disk() -> None:
    assert renamed(LUN).origin == NEW_NAME
    assert renamed(replace(LUN, serial=""), replace(LUN, serial="")).origin == NEW_NAME
    volume = OriginId(Bytes(2**31), mapper="LVM-7")
    assert renamed(volume, volume).origin == NEW_NAME


@pytest.mark.parametrize(
    ("had", "has", "refused"),
    [
        ("5f3c", "5f3c", None),
        ("5f3c", "7777", "is not the origin of disk data: what lies on it had the UUID 5f3c"),
        ("5f3c", "", "and has none"),
        ("", "5f3c", "nothing proves"),
    ],
)
def test_an_origin_without_numbers_is_the_same_by_what_lies_on_it(
    had: str, has: str, refused: str | None
) -> None:
    listed = {"name": "sdb", "maj:min": "8:16", "type": "disk", "mountpoints": [], "size": 2**31}
    answers = {"find -L": "", "hotset-boot content": f"{has}\n"}
    answers |= {f"readlink -f {name}": "/dev/sdb\n" for name in (NEW_NAME, OLD_NAME)}
    answers["lsblk --json --bytes --list"] = json.dumps({"blockdevices": []})
    there = tl.server(False, **answers, lsblk=json.dumps({"blockdevices": [listed]}))
    there.answers["cat /sys/dev/block/8:16/dm/uuid"] = 1
    flash_devices.save(
        there, FLASH.with_disk(replace(FLASH.disks[0], origin_id=OriginId(Bytes(2**31))))
    )
    tail = json.dumps({"sequence": 1, "seen": {"content": had}})
    record_of(there, FLASH.path, 0, f"data dirty {tail}")
    found = flash_devices.find(there, "data")
    if refused is None:
        assert rename.rename_origin(found, NEW_NAME, nothing).origin == NEW_NAME
        return
    with pytest.raises(DeviceRefusedError, match=refused):
        rename.rename_origin(found, NEW_NAME, nothing)


OLD_NAME = FLASH.disks[0].origin


def beside_another(size: int, content: str | int, is_old: bool) -> FakeMachine:
    """A disk without numbers, the new name of its origin, which shows a number by now, and another
    LUN, which may be under the origin's old name."""
    listed = {"maj:min": "8:16", "name": "sdb", "type": "disk", "mountpoints": [], "size": 2**31}
    other = {**listed, "name": "sdc", "maj:min": "8:32", "size": size, "path": "/dev/sdc"}
    new = {**listed, "wwn": "0x5000", "path": "/dev/sdb"}
    there = tl.server(False)
    alone = json.dumps({"blockdevices": [other]})
    there.answers = {
        "lsblk --json --bytes --list": json.dumps({"blockdevices": [new, other]}),
        **dict.fromkeys(
            (
                f"lsblk --json --bytes {how} {columns} {name}"
                for name in ("/dev/sdc", str(OLD_NAME))
                for how in ("--nodeps --output", "--inverse --output", "--output")
                for columns in (
                    "NAME,MAJ:MIN,TYPE,SIZE,TRAN,WWN,SERIAL,PARTUUID",
                    "NAME,TYPE,SIZE,RO,MOUNTPOINTS,VENDOR,MODEL,SERIAL",
                )
            ),
            alone,
        ),
        **there.answers,
        "lsblk": json.dumps({"blockdevices": [new]}),
        "find -L": "",
        f"readlink -f {NEW_NAME}": "/dev/sdb\n",
        "readlink -f /dev/sdb": "/dev/sdb\n",
        "readlink -f /dev/sdc": "/dev/sdc\n",
        f"readlink -f {OLD_NAME}": "/dev/sdc\n" if is_old else f"{OLD_NAME}\n",
        f"test -b {OLD_NAME}": "" if is_old else 1,
        "cat /sys/dev/block/": 1,
        "hotset-boot content /dev/sdc": content,
        f"hotset-boot content {OLD_NAME}": content,
        f"hotset-boot content {NEW_NAME}": "5f3c\n",
    }
    flash_devices.save(
        there, FLASH.with_disk(replace(FLASH.disks[0], origin_id=OriginId(Bytes(2**31))))
    )
    tail = json.dumps({"sequence": 1, "seen": {"content": "5f3c"}})
    record_of(there, FLASH.path, 0, f"data dirty {tail}")
    return there


@pytest.mark.parametrize(
    ("size", "content", "is_old", "refused"),
    [
        (2**31, "5f3c\n", False, "/dev/sdc has the UUID 5f3c, too"),
        (2**32, "5f3c\n", False, "/dev/sdc has the UUID 5f3c, too"),
        (2**31, 1, False, "whether /dev/sdc has the UUID 5f3c, too, is not known"),
        (2**30, "5f3c\n", True, "its old name, .*, has the UUID 5f3c, too"),
        (2**31, 1, True, "whether its old name, .*, has the UUID"),
        (2**31, "7777\n", True, None),
        (2**31, "7777\n", False, None),
        (2**30, 1, False, None),
    ],
)
def test_a_copy_of_an_origin_without_numbers_is_not_taken_for_it(
    size: int, content: str | int, is_old: bool, refused: str | None
) -> None:
    """A snapshot has the UUID of its original, and what was dirty went to the wrong LUN. Its
    numbers were put on record as proof, too."""
    there = beside_another(size, content, is_old)
    found = flash_devices.find(there, "data")
    one = found.disk
    if refused:
        with pytest.raises(DeviceRefusedError, match=refused):
            rename.rename_origin(found, NEW_NAME, nothing)
        assert flash_devices.find(there, "data").disk == one
        return
    rename.rename_origin(found, NEW_NAME, nothing)
    now = flash_devices.find(there, "data").disk
    assert (now.origin, now.origin_id) == (NEW_NAME, OriginId(Bytes(2**31)))


@pytest.mark.parametrize(
    ("found", "known"),
    [
        (replace(LUN, wwn="0x6000"), LUN),
        (replace(LUN, size=Bytes(2**30)), LUN),
        (OriginId(Bytes(2**31)), OriginId(Bytes(2**31))),
        (OriginId(Bytes(2**31)), LUN),
        (LUN, OriginId(Bytes(2**31))),
        (LUN, None),
        (replace(LUN, partition="77-02"), replace(LUN, partition="77-01")),
        (replace(LUN, partition="77-02"), LUN),
        (replace(LUN, serial=""), LUN),
        (LUN, replace(LUN, partition="77-01")),
    ],
)
def test_what_nothing_proves_to_be_the_same_disk_is_refused(
    found: OriginId, known: OriginId | None
) -> None:
    with pytest.raises(DeviceRefusedError, match=r"is not the origin of|nothing proves"):
        renamed(found, known)


def test_an_origin_of_which_nobody_can_tell_who_uses_it_keeps_its_name() -> None:
    """It was asked of loop devices alone, and one that does not tell was taken for none."""
    with pytest.raises(programs.InUseError, match="is not known") as refused:
        renamed(LUN, users=UNKNOWN_USERS)
    assert refused.value.field == "origin"


def test_an_active_disks_origin_keeps_its_name() -> None:
    with pytest.raises(
        FlashError, match="is active: its origin's name is changed while it is down"
    ):
        renamed(LUN, up=True)


NOT_KNOWN = "whether it is in use is not known: nothing tells which file is behind /dev/loop3"
UNKNOWN_USERS = Result(("hotset-boot",), 9, "", f"hotset: {NOT_KNOWN}\n", 0.0)


@pytest.mark.parametrize(
    ("users", "state_", "text", "doubt"),
    [
        (
            "/srv/origin.img is in use: origin.img is behind /dev/loop7",
            "failed",
            "behind /dev/loop7. It is used past its cache: what is read there may be old",
            "",
        ),
        (UNKNOWN_USERS, "inactive", NOT_KNOWN, NOT_KNOWN),
    ],
)
def test_a_file_that_is_mounted_beside_its_tier_is_seen(
    users: Answer, state_: str, text: str, doubt: str
) -> None:
    """No lock of the engine's hinders whoever makes a loop device of it."""
    one = replace(FLASH.disks[0], origin=PurePosixPath("/srv/origin.img"))
    there = tl.server(
        up=False,
        **{"test -b /srv/": 1, "test -f /srv/": 0, "hotset-boot users --who loops": users},
    )
    flash = flash_devices.save(there, FLASH.with_disk(one))
    seen = lifecycle.inspect(AttachedDisk(there, flash, one))
    assert (seen.report.state, seen.doubt) == (state_, doubt)
    assert text in seen.report.notes[-1]


FIRMWARE = "cat /sys/class/dmi/id/product_uuid"
HERE = "4C4C4544-0042-3510-8051-B7C04F4B4831\n"
THERE = "4c4c4544-0042-3510-8051-b7c04f4b4832\n"


@pytest.mark.parametrize("seen", [THERE, ""])
def test_a_clone_of_a_machine_does_not_own_its_flash(seen: str) -> None:
    """It has the same machine-id."""
    there = tl.server(up=False, **{FIRMWARE: HERE})
    flash_devices.save(there, FLASH)
    tl.leave(there, "clean")
    there.answers[FIRMWARE] = HERE.lower()
    found = flash_devices.find(there, "data")
    flash = found.flash
    flash_devices.require_ours(there, flash)
    there.answers[FIRMWARE] = seen
    with pytest.raises(FlashError, match="on other hardware: this machine is a clone of it"):
        lifecycle.activate(found, nothing)
    assert lifecycle.inspect(found).report.state == "failed"
    there.answers[FIRMWARE] = THERE
    there.answers |= {"find -L": f"{FLASH.path}\n", f"readlink -f {FLASH.path}": f"{FLASH.path}\n"}
    there.answers["lsblk"] = tl.FREE.replace('"dm"', '"dm", "size": 1')
    with pytest.raises(FlashError, match="on other hardware"):
        adopt.adopt(there, FLASH.path, False, nothing)
    flash_devices.require_ours(there, adopt.adopt(there, FLASH.path, True, nothing))


@pytest.mark.parametrize("says_nothing", ["", "Not Settable", re.sub(r"\w", "0", HERE)])
def test_a_label_of_before_is_the_machines_until_it_says_whose(says_nothing: str) -> None:
    there = tl.server(up=False, **{FIRMWARE: says_nothing})
    flash_devices.save(there, FLASH.with_disk(tl.known()))
    tl.leave(there, "clean")
    assert flash_devices.find(there, "data").flash.hardware == ""
    there.answers[FIRMWARE] = HERE
    lifecycle.activate(flash_devices.find(there, "data"), nothing)
    assert flash_devices.find(there, "data").flash.hardware
    there.answers[FIRMWARE] = THERE
    with pytest.raises(FlashError, match="on other hardware"):
        flash_devices.require_ours(there, flash_devices.find(there, "data").flash)


def test_a_disk_that_is_down_gives_back_what_is_reserved() -> None:
    """A refused activation, or a crash, had left it so."""
    listed = json.dumps({"blockdevices": [{"name": "sdb", "type": "disk", "mountpoints": []}]})
    there, said = tl.server(up=False, lsblk=listed), list[str]()
    flash_devices.save(there, FLASH)
    there.answers["sg_persist --in --read-reservation"] = f"    Key={reservation.key(there)}\n"
    lifecycle.deactivate(flash_devices.find(there, "data"), said.append)
    assert "was still reserved, and is no longer" in said[-1]
    assert any("--release" in line for line in there.commands)
    there.answers["sg_persist --in --read-reservation"] = "    Key=0x77\n"
    lifecycle.deactivate(flash_devices.find(there, "data"), said.append)
    assert said[-1].endswith("is not active: nothing changed")


def test_an_fstab_that_became_read_only_does_not_hold_a_detach_back() -> None:
    there, said = tl.server(**NOTHING_DIRTY), list[str]()
    flash_devices.save(there, FLASH)
    lines = "# hotset data: UUID=7 /srv ext4\n/dev/mapper/hotset-data /srv ext4 rw\n"
    there.files["/etc/fstab"] = (lines, 0o644)
    write = there.replace

    def replace_(text: str, target: PurePosixPath, mode: int = 0o644) -> None:
        if target == PurePosixPath("/etc/fstab"):
            there.run(["sh", "-c", "read-only"])
        write(text, target, mode)

    there.replace = replace_  # type: ignore[method-assign]
    there.answers = {"sh -c read-only": 1, **there.answers}
    lifecycle.detach(flash_devices.find(there, "data"), False, False, nothing, said.append)
    assert "/etc/fstab cannot be changed" in said[0]
    assert flash_devices.list_disks(there) == []


@pytest.mark.parametrize("held", [True, False])
def test_a_refused_activation_keeps_no_reservation_but_one_of_before(held: bool) -> None:
    """Since a crash, it keeps others from an origin whose flash holds writes."""
    listed = json.dumps({"blockdevices": [{"name": "sdb", "type": "disk", "mountpoints": []}]})
    there = tl.server(up=False, lsblk=listed, cache_check=1)
    flash_devices.save(there, FLASH.with_disk(tl.known()))
    tl.leave(there, "clean")
    holder = f"    Key={reservation.key(there)}\n"
    there.answers["sg_persist --in --read-reservation"] = holder if held else ""

    def taken() -> str:
        there.answers["sg_persist --in --read-reservation"] = holder
        return ""

    there.answers["sg_persist --out --reserve"] = taken
    with pytest.raises(MetadataDamagedError):
        lifecycle.activate(flash_devices.find(there, "data"), nothing)
    assert any("--release" in line for line in there.commands) is not held
