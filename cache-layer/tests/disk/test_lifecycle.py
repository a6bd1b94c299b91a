"""What the verbs refuse, say and keep, without a kernel."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from hotset.block.devices import DeviceRefusedError
from hotset.block.programs import InUseError
from hotset.core.machines.base import Command, CommandError, CommandTimeoutError, Machine, Result
from hotset.core.machines.dry_run import DryRun
from hotset.core.units import Bytes
from hotset.disk import adopt, flash_devices, lifecycle, state
from hotset.disk import repair as repairing
from hotset.disk import resize as resizing
from hotset.disk.boot import startup, systemd_unit, udev
from hotset.disk.flash_devices import AttachedDisk, Disk, FlashDevice, FlashError, Inventory, Phase
from hotset.disk.identity.origin import OriginId
from hotset.disk.identity.reservation import OriginReservedError
from hotset.disk.lifecycle import TierRefusedError
from hotset.disk.settings import retune
from hotset.disk.state import Word
from hotset.tier import pins
from hotset.tier.base import MetadataDamagedError, Report, State, WriteMode
from hotset.tier.dmcache.tier import DmCache
from hotset.tier.pins import Preferences
from tests.disk.test_create import LATER
from tests.fake_machine import FakeMachine, decided, record_of
from tests.support.active_disk import FREE, MIB, UP, server
from tests.support.dm_cache_lines import LINE
from tests.support.flash_devices import FLASH, SECOND, disk, part
from tests.support.new_disk import with_flash

MOUNTED = "/dev/mapper/hotset-data is in use: dm-3 is mounted on /srv: unmount it first"
DECIDED = "hotset-boot decide"
CONFLICT = decided("refuse", "conflict", "changed", "it was written to while the tier was down")


DIRTY = '<mapping cache_block="3" origin_block="9" dirty="true"/>'


def left(there: FakeMachine, one: Disk | None = None) -> Word | None:
    return state.read(AttachedDisk(there, FLASH, one or disk()))


def leave(there: FakeMachine, word: Word) -> None:
    record_of(there, FLASH.path, 0, f'data {word} {{"sequence":1,"seen":{{}}}}')


ACTIVATED = "dmsetup create hotset-data --uuid HOTSET-hotset-data"


def saved(there: FakeMachine) -> FlashDevice:
    return flash_devices.parse(there.files["/etc/hotset/flash/main.json"][0])


def nothing(_: object) -> None:
    pass


def attached(there: Machine) -> AttachedDisk:
    return AttachedDisk(there, FLASH, disk())


def with_mode(there: Machine, mode: WriteMode) -> AttachedDisk:
    one = replace(disk(), spec=replace(disk().spec, mode=mode))
    return attached(there).with_disk(one)


def test_a_flash_is_asked_once_however_many_disks_it_has() -> None:
    """50 disks on one flash device asked it, and whose it is, 50 times."""
    there = server()
    seen = lifecycle.inspect_each([attached(there)] * 3, lifecycle.inspect)
    assert [state.flash_answers for state in seen] == [True] * 3
    asked = [line for line in there.commands if "of=/dev/null" in line or "machine-id" in line]
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("verb", ["deactivate", "detach", "destroy"])
def test_what_is_mounted_stays(verb: str) -> None:
    there = server(**{"hotset-boot users": MOUNTED})
    verbs: dict[str, Callable[[], object]] = {
        "deactivate": lambda: lifecycle.deactivate(attached(there), nothing),
        "detach": lambda: lifecycle.detach(attached(there), False, True, nothing, nothing),
        "destroy": lambda: lifecycle.destroy(there, FLASH, True, lambda _: nothing, nothing),
    }
    with pytest.raises(InUseError, match="is mounted on /srv: unmount it first"):
        verbs[verb]()
    assert not [line for line in there.commands if "remove" in line or "reload" in line]


@pytest.mark.parametrize("verb", ["resize", "set", "flush"])
def test_what_wants_an_active_disk_names_the_version_of_a_later_label(verb: str) -> None:
    """It said that the disk is not active and to activate it, which was refused then."""
    there = with_flash()
    found = flash_devices.find(there, "oltp")
    for place, text in there.sectors.items():
        there.sectors[place] = text.replace(*LATER)
    verbs: dict[str, Callable[[], object]] = {
        "resize": lambda: resizing.resize(found, None, False, print, print),
        "set": lambda: retune(found, "smq", None, print, print),
        "flush": lambda: lifecycle.flush(found, print),
    }
    with pytest.raises(FlashError, match="its label is of version 2, and this hotset reads"):
        verbs[verb]()


@pytest.mark.parametrize(
    ("up", "says"),
    [
        (UP, "hotset-volume is not active, so nobody sees what is on it"),
        (UP + "hotset-volume\t(252:9)\n", "hotset-volume is not empty: ext4 on it"),
    ],
)
def test_a_volume_is_not_given_up_unasked(up: str, says: str) -> None:
    ext4 = json.dumps({"signatures": [{"type": "ext4"}]})
    volume = {"name": "dm-9", "type": "dm", "size": 16 * MIB, "mountpoints": []}
    there = server(
        **{"dmsetup ls": up, "wipefs --json": ext4, "lsblk": json.dumps({"blockdevices": [volume]})}
    )
    bare = FLASH.without("data")
    with pytest.raises(TierRefusedError, match=says):
        lifecycle.destroy(there, bare, False, lambda _: nothing, nothing)
    assert not [line for line in there.commands if "remove" in line or "wipefs --all" in line]
    lifecycle.destroy(there, bare, True, lambda _: nothing, nothing)
    assert "rm -f /etc/hotset/flash/main.json" in there.commands


def test_how_a_tier_was_left_is_known_from_its_own_metadata() -> None:
    there, said = server(cache_dump=DIRTY), list[str]()
    lifecycle.deactivate(attached(there), said.append)
    assert left(there) == "dirty"
    assert "OLD data" in said[-1]
    crashed = server(
        cache_dump=DIRTY.replace("true", "false"),
        **{"sh -c 'dd if=/dev/disk/by-id/flash": f"1234567 0{' 0' * 8} 1\n"},
    )
    lifecycle.deactivate(attached(crashed), nothing)
    assert left(crashed) == "dirty", "the kernel had not closed them"
    clean = server()
    lifecycle.deactivate(attached(clean), nothing)
    assert left(clean) == "clean"


@pytest.mark.parametrize("verb", ["activate", "repair"])
def test_whatever_activates_a_tier_says_so_before_its_first_write(verb: str) -> None:
    """``repair`` of what was not damaged once left it on record as clean: a power cut then, and
    `detach` wiped what was dirty."""
    there = server(up=False)
    leave(there, "clean")
    {"activate": lifecycle.activate, "repair": repairing.repair}[verb](attached(there), nothing)
    assert left(there) == "active"
    lines = there.commands
    written = next(at for at, line in enumerate(lines) if line.endswith(" data active"))
    assert written < lines.index(ACTIVATED)
    seen = lifecycle.inspect(attached(there))
    assert any("may hold OLD data" in note for note in seen.report.notes)


@pytest.mark.parametrize(
    ("mode", "word", "old"),
    [
        ("writeback", "active", True),
        ("writeback", "dirty", True),
        ("writeback", "clean", False),
        ("writethrough", "active", False),
    ],
)
def test_an_inactive_tier_says_when_its_origin_may_be_old(
    mode: WriteMode, word: Word, old: bool
) -> None:
    there = server(up=False)
    leave(there, word)
    seen = lifecycle.inspect(with_mode(there, mode))
    assert seen.report.state == "inactive"
    assert any("may hold OLD data" in note for note in seen.report.notes) is old


def test_writes_on_both_sides_are_not_mixed() -> None:
    there = server(up=False, cache_dump=DIRTY, **{DECIDED: CONFLICT})
    slice_, none = "hotset-data-meta", there.answers["dmsetup ls"]

    def listed() -> str:
        made = any("dmsetup create" in one and slice_ in one for one in there.commands)
        return f"{slice_}\t(253:0)\n" if made else str(none)

    there.answers["dmsetup ls"] = listed
    leave(there, "dirty")
    with pytest.raises(
        lifecycle.OriginChangedError, match=r"was written to while .*Both cannot"
    ) as refused:
        lifecycle.activate(attached(there), nothing)
    assert [one.operation for one in refused.value.remedies] == [
        "tier detach",
        "tier activate",
        "tier repair",
    ]
    assert ACTIVATED not in there.commands
    assert left(there) == "dirty"
    removed = [one for one in there.commands if "dmsetup remove" in one and slice_ in one]
    assert removed, "nothing that was made to look stays"
    lifecycle.keep_flash(attached(there))
    assert left(there) == "active"
    del there.answers[DECIDED]
    lifecycle.activate(attached(there), nothing)
    assert ACTIVATED in there.commands


def reserved_by_another(there: FakeMachine, one: Disk) -> tuple[FlashDevice, Disk]:
    """A disk on a LUN that another host has reserved."""
    listed = {"name": "sdb", "maj:min": "8:16", "type": "disk", "size": 2**31, "mountpoints": []}
    there.answers["lsblk"] = json.dumps({"blockdevices": [listed]})
    there.answers["sg_persist --in --read-reservation"] = "  Key=0xabc\n"
    one = replace(one, reserve=True)
    return FLASH.with_disk(one), one


@pytest.mark.parametrize("state_", ["inactive", "restarting"])
def test_the_flash_does_not_count_over_an_origin_that_another_host_has(
    monkeypatch: pytest.MonkeyPatch, state_: State
) -> None:
    """That host may write. Once it had gone, its writes were taken for those of before, and the old
    flash was laid over them."""
    there = server(up=False)
    flash, one = reserved_by_another(there, disk())
    if state_ == "restarting":
        monkeypatch.setattr(DmCache, "report", lambda _: Report("restarting", None))
    leave(there, "dirty")
    with pytest.raises(OriginReservedError):
        lifecycle.activate(
            AttachedDisk(there, flash, one), nothing, flash_counts=state_ == "inactive"
        )
    assert left(there) == "dirty"
    assert not [line for line in there.commands if "hotset-boot mark" in line]


def test_the_flash_counts_once_the_origin_is_the_tiers_alone() -> None:
    there = server(up=False, cache_dump=DIRTY)
    leave(there, "dirty")
    there.answers[DECIDED] = lambda: decided("start") if left(there) == "active" else CONFLICT
    lifecycle.activate(attached(there), nothing, flash_counts=True)
    lines = there.commands
    marked = next(at for at, line in enumerate(lines) if line.endswith(" data active"))
    assert any("udevadm" in line or "replace /etc/udev" in line for line in lines[:marked])
    assert ACTIVATED in lines[marked:]


@pytest.mark.parametrize(
    ("verb", "verdict", "fails"),
    [
        ("activate", decided("start"), "hotset-boot mark"),
        ("activate", decided("empty"), "cache_restore"),
        ("activate", decided("start"), "cache_check"),
        ("activate", decided("start"), ACTIVATED),
        ("repair", decided("start"), "cache_repair"),
    ],
    ids=["marked", "emptied", "checked", "made", "mended"],
)
@pytest.mark.parametrize("kind", [CommandTimeoutError, KeyboardInterrupt])
def test_what_was_made_for_a_tier_that_does_not_come_up_is_removed(
    verb: str, verdict: str, fails: str, kind: type[BaseException]
) -> None:
    """Whatever ends it: devices that stay hold the flash, and the next one finds it busy."""
    there = server(up=False, **{DECIDED: verdict})
    leave(there, "dirty")
    slice_, none = "hotset-data-meta", there.answers["dmsetup ls"]

    def listed() -> str:
        made = any("dmsetup create" in one and slice_ in one for one in there.commands)
        gone = any("dmsetup remove" in one and slice_ in one for one in there.commands)
        return f"{slice_}\t(253:0)\n" if made and not gone else str(none)

    def ended() -> str:
        if kind is KeyboardInterrupt:
            raise KeyboardInterrupt
        raise CommandTimeoutError("vm", ("x",), 1.0)

    there.answers = {fails: ended, **there.answers, "dmsetup ls": listed}
    if verb == "repair":
        there.answers["cache_check"] = 1
    run = {"activate": lifecycle.activate, "repair": repairing.repair}[verb]
    with pytest.raises(kind):
        run(attached(there), nothing)
    assert [one for one in there.commands if "dmsetup create" in one and slice_ in one]
    assert listed() == none


def test_what_the_flash_may_hold_is_not_said_to_be_known() -> None:
    """Its metadata cannot be read: a repair ended in the same refusal, and named no way to one."""
    there = server(up=False, cache_dump=1, **{DECIDED: CONFLICT})
    leave(there, "dirty")
    for verb in (lifecycle.activate, repairing.repair):
        with pytest.raises(lifecycle.OriginChangedError, match="may hold writes") as refused:
            verb(attached(there), nothing)
        assert "holds writes" not in str(refused.value)
        keep, mend = refused.value.remedies[1:]
        assert keep.parameters == {"disk": "data", "keep_flash": True}
        assert mend.operation == "tier repair"


@pytest.mark.parametrize(
    ("phase", "wwn", "verdict", "says"),
    [
        ("ready", "0x6000", CONFLICT, "another disk than .*World Wide Name is 0x5000"),
        ("ready", "", decided("refuse", "identity", "changed", "is another disk"), "is another"),
        ("detaching", "", CONFLICT, "detach it again"),
    ],
)
def test_the_flash_counts_only_over_an_origin_that_is_not_proved_to_be_another_disk(
    phase: Phase, wwn: str, verdict: str, says: str
) -> None:
    """Its record would say from then on that the other disk is the accelerated one."""
    listed = {"name": "sdb", "maj:min": "8:16", "size": 2**31, "wwn": "0x5000", "mountpoints": []}
    there = server(up=False, lsblk=json.dumps({"blockdevices": [listed]}), **{DECIDED: verdict})
    leave(there, "dirty")
    one = replace(disk(), phase=phase, origin_id=OriginId(Bytes(2**31), wwn))
    with pytest.raises((DeviceRefusedError, TierRefusedError, FlashError), match=says):
        lifecycle.keep_flash(attached(there).with_disk(one))
    assert left(there) == "dirty"


def test_a_cache_that_may_be_older_than_its_origin_begins_empty() -> None:
    """Where the program says so; and where it refuses, but the metadata prove that nothing in them
    is dirty."""
    told = decided("empty", "none", "unknown", "the tier ended by a crash")
    for verdict, dump, empty in (
        (decided("start"), DIRTY, False),
        (told, DIRTY, True),
        (CONFLICT, DIRTY.replace("true", "false"), True),
    ):
        there, said = server(up=False, cache_dump=dump, **{DECIDED: verdict}), list[str]()
        lifecycle.activate(attached(there), said.append)
        assert any("the cache begins empty" in one for one in said) is empty
        assert any("a warm-up fills it" in one for one in said) is empty
        restored = [line for line in there.commands if line.startswith("cache_restore")]
        assert bool(restored) is empty
        assert ACTIVATED in there.commands
        assert left(there) == "active"


def test_an_activation_is_rehearsed() -> None:
    there, said = server(up=False, **{"test -x /usr/local/lib/hotset": 0}), list[str]()
    leave(there, "clean")
    shown = list[str]()
    lifecycle.activate(attached(DryRun(there, shown.append)), said.append)
    assert any(line.startswith("dmsetup create hotset-data ") for line in shown)
    assert not [line for line in there.commands if "create" in line or "mark" in line]
    there.answers |= {"hotset-boot decide": 127, "test -x /usr/local/lib/hotset": 1}
    lifecycle.activate(attached(DryRun(there, shown.append)), said.append)
    assert any(line.startswith("not checked: whether /dev/disk/by-id/data") for line in said)


@pytest.mark.parametrize("reason", ["unfinished", "identity"])
def test_a_disk_that_the_boot_would_keep_down_is_not_activated_either(reason: str) -> None:
    there = server(up=False, **{DECIDED: decided("refuse", reason, "unknown", "is odd")})
    with pytest.raises(TierRefusedError, match="is odd"):
        lifecycle.activate(attached(there), nothing)
    assert ACTIVATED not in there.commands


def test_another_disk_under_the_origins_name_is_refused() -> None:
    listed = {"name": "sdb", "maj:min": "8:16", "size": 2**31, "wwn": "0x5000", "mountpoints": []}
    there = server(up=False, lsblk=json.dumps({"blockdevices": [listed]}))
    known = OriginId(Bytes(2**31), "0x6000")
    one = replace(disk(), origin_id=known)
    with pytest.raises(DeviceRefusedError, match=r"another disk than .*World Wide Name is 0x5000"):
        lifecycle.activate(attached(there).with_disk(one), nothing)
    small = replace(disk(), origin_id=OriginId(Bytes(2**32), "0x5000"))
    with pytest.raises(DeviceRefusedError, match="fewer than 4,294,967,296"):
        lifecycle.activate(attached(there).with_disk(small), nothing)
    assert not [line for line in there.commands if line.startswith("dmsetup create")]


def test_a_flash_that_is_gone_is_a_state_and_no_traceback() -> None:
    seen = lifecycle.inspect(attached(server(dd=1)))
    assert seen.report.state == "failed"
    assert not seen.flash_answers
    assert "detach the disk as one whose flash is dead" in seen.report.notes[-1]


def test_damage_is_shown_with_the_way_out() -> None:
    there = server(up=False, cache_check=1)
    with pytest.raises(MetadataDamagedError, match="OLD data") as damaged:
        lifecycle.activate(attached(there), nothing)
    assert damaged.value.remedies[0].operation == "tier repair"


@pytest.mark.parametrize("mode", ["writeback", "writethrough"])
def test_what_cannot_be_repaired_begins_empty_only_if_nothing_is_lost(mode: WriteMode) -> None:
    there, said = server(up=False, cache_check=1, cache_repair=1), list[str]()
    if mode == "writeback":
        with pytest.raises(TierRefusedError, match="how many is not known"):
            repairing.repair(with_mode(there, mode), nothing)
        assert not [line for line in there.commands if line.startswith("dd if=/dev/zero")]
        return
    repairing.repair(with_mode(there, mode), said.append)
    assert "nothing is lost" in said[-1]
    assert ACTIVATED in there.commands
    # What is written from now on is not on the origin alone.
    assert left(there) == "active"


def test_an_activation_killed_at_its_check_leaves_what_was_known() -> None:
    """It once said "active" before it had looked: the repair after that believed that writes were
    lost with metadata which nobody had ever used."""
    there, said = server(up=False), list[str]()
    leave(there, "clean")

    def killed() -> str:
        raise KeyboardInterrupt

    there.answers["cache_check"] = killed
    with pytest.raises(KeyboardInterrupt):
        lifecycle.activate(attached(there), nothing)
    assert left(there) == "clean"
    there.answers["cache_check"] = there.answers["cache_repair"] = 1
    repairing.repair(attached(there), said.append)
    assert "nothing is lost" in said[-1]


def test_a_tier_that_was_mended_is_on_record_as_active() -> None:
    """It once stayed "dirty" with what its origin looked like before: after a power cut its own
    write-back was taken for somebody else's, and the tier refused."""
    there = server(up=False, cache_check=1)
    leave(there, "dirty")
    metadata = "cache_check /run/"
    there.answers = {metadata: "", **there.answers, "cache_dump": DIRTY}

    def mended() -> str:
        there.answers["cache_check"] = ""
        return ""

    there.answers["cache_repair"] = mended
    with pytest.raises(TierRefusedError, match=r"cache_repair reads .*not known") as asked:
        repairing.repair(attached(there), nothing)
    assert [one.operation for one in asked.value.remedies] == ["tier repair", "tier detach"]
    assert left(there) == "dirty"
    assert not [line for line in there.commands if "cache_restore" in line]
    there.answers["cache_check"] = 1
    repairing.repair(attached(there), nothing, yes=True)
    assert left(there) == "active"


def test_a_dead_flash_is_believed_only_if_it_does_not_answer() -> None:
    with pytest.raises(TierRefusedError, match="the flash is not dead"):
        lifecycle.detach(attached(server()), True, False, nothing, nothing)
    with pytest.raises(TierRefusedError, match="so nothing can be written back"):
        lifecycle.detach(attached(server(dd=1)), False, False, nothing, nothing)
    said: list[str] = []
    lifecycle.detach(attached(server(dd=1)), True, False, nothing, said.append)
    assert said[0].startswith("LOST: 33 blocks (2.1 MiB)")
    failed = server(dd=1, **{"dmsetup status": "0 8 cache Fail\n"})
    lifecycle.detach(attached(failed), True, False, nothing, said.append)
    assert "LOST: an unknown number of blocks" in said[2]
    lifecycle.detach(with_mode(server(dd=1), "writethrough"), True, False, nothing, said.append)
    assert said[4].startswith("nothing is lost")


def test_a_detached_disk_leaves_nothing_that_could_be_found_again() -> None:
    there = server(**{"dmsetup status": LINE.replace(" 12 33 ", " 12 0 ")})
    pins.save(there, "data", Preferences(("table:stock",)))
    pins.save(there, "data2", Preferences(("table:item",)))
    flash = lifecycle.detach(attached(there), False, False, nothing, nothing)
    assert flash.disks == saved(there).disks == ()
    assert "rm -f /etc/hotset/warmup/data.json" in there.commands, (
        "the next of its name has no pins"
    )
    assert "rm -f /etc/hotset/warmup/data2.json" not in there.commands
    found = flash_devices.read_flash(there, FLASH.path)
    assert found is not None
    assert found.disks == ()
    blanked = [line for line in there.commands if line.startswith("dd if=/dev/zero")]
    assert [f"seek={at}" in line for line, at in zip(blanked, (17, 22), strict=True)] == [True] * 2
    assert "rmdir /sys/kernel/tracing/instances/hotset-data" in there.commands, "its heat"


def test_rules_of_udev_go_with_the_last_flash_that_needs_them() -> None:
    there = server(**{"dmsetup status": LINE.replace(" 12 33 ", " 12 0 "), "test -e /etc/udev": 0})
    loops = replace(SECOND, devices="loop", disks=(replace(disk("dwh", 100), kind="userspace"),))
    flash_devices.save(there, FLASH)
    for one in (*FLASH.disks, *loops.disks):
        udev.prepare(AttachedDisk(there, FLASH, one))

    def rules() -> list[str]:
        return sorted(path for path in there.files if path.startswith("/etc/udev/rules.d/"))

    folder = "/etc/udev/rules.d"
    inner = [f"{folder}/11-dm-hotset.rules", f"{folder}/56-dm-hotset.rules"]
    of_loops = f"{folder}/99-hotset.rules"
    assert rules() == [*inner, of_loops]
    udev.forget(there, Inventory((FLASH, replace(loops, disks=())), ()))
    assert rules() == [*inner, of_loops], "a volume is a loop device, too"
    udev.forget(there, Inventory((FLASH,), ("flash2 cannot be read",)))
    assert rules() == [*inner, of_loops]
    udev.forget(there, Inventory((FLASH,)))
    assert rules() == inner
    found = flash_devices.find(there, "data")
    one = found.disk
    lifecycle.detach(found, False, False, nothing, nothing)
    assert rules() == []
    assert "udevadm control --reload" in there.commands


def test_a_volume_that_no_boot_makes_any_more_is_named_where_fstab_mounts_it() -> None:
    there = server(**{"dmsetup status": LINE.replace(" 12 33 ", " 12 0 ")})
    lines = "/dev/sda1 / ext4 rw 0 1\n/dev/mapper/hotset-volume /srv/log ext4 rw 0 2\n"
    there.files["/etc/fstab"] = (lines, 0o644)
    both = replace(FLASH, disks=(*FLASH.disks, disk("dwh", 100)))
    said: list[str] = []
    rest = lifecycle.detach(
        AttachedDisk(there, both, both.disks[1]), False, False, nothing, said.append
    )
    assert not [line for line in said if "fstab" in line], "the other disk's unit makes it"
    lifecycle.detach(AttachedDisk(there, rest, rest.disks[0]), False, False, nothing, said.append)
    (line,) = [line for line in said if "fstab" in line]
    assert "mounts /dev/mapper/hotset-volume on /srv/log" in line
    assert there.files["/etc/fstab"][0] == lines, "it is the user's"


def known() -> Disk:
    """A disk whose origin is known by what the fake machine says of it."""
    return replace(disk(), origin_id=OriginId(Bytes(0)))


def test_a_resize_that_would_drop_dirty_blocks_is_refused() -> None:
    there = server()
    with pytest.raises(TierRefusedError, match=r"33 dirty blocks \(2.1 MiB\)"):
        resizing.resize(
            AttachedDisk(there, FLASH, known()), Bytes(32 * MIB), False, nothing, nothing
        )
    assert there.sectors == {}
    sizes = {"blockdev --getsize64 /dev/mapper/hotset-data": str(1537 * MIB)}
    with pytest.raises(TierRefusedError, match="has shrunk from 1,611,661,312 to 1,610,612,736"):
        resizing.resize(attached(server(**sizes)), None, True, nothing, nothing)
    said: list[str] = []
    resizing.resize(attached(there), Bytes(64 * MIB), False, nothing, said.append)
    assert "nothing changed" in said[0]


def test_a_cache_grows_into_what_is_free() -> None:
    there = server()
    resizing.resize(attached(there), Bytes(80 * MIB), False, nothing, nothing)
    # Behind it, next to what it has: one part.
    assert saved(there).disks[0].cache == (part(22, 80),)
    taken = FLASH.with_disk(disk("other", 91))
    resizing.resize(AttachedDisk(there, taken, disk()), Bytes(80 * MIB), False, nothing, nothing)
    assert saved(there).disks[0].cache == (part(22, 69), part(160, 11))


@pytest.mark.parametrize("verb", ["activate", "activate a disk that is up", "resize"])
@pytest.mark.parametrize(
    ("mode", "unit", "content", "said"),
    [
        ("writeback", 1, "\n", True),
        ("writeback", 1, "5f3c\n", False),
        ("writethrough", 1, "\n", False),
        ("writethrough", 0, "\n", True),
    ],
)
def test_a_disk_that_no_boot_would_know_says_so_whoever_made_it(
    verb: str, mode: WriteMode, unit: int, content: str, said: bool
) -> None:
    """An earlier hotset, or another server, which saw a number of it."""
    answers = {"hotset-boot content": content, "test -e /etc/systemd": unit}
    there, heard = server(up=verb != "activate", **answers), list[str]()
    found = with_mode(there, mode)
    if verb == "resize":
        resizing.resize(found, Bytes(80 * MIB), False, nothing, heard.append)
    else:
        leave(there, "clean")
        lifecycle.activate(found, heard.append)
    told = [one for one in heard if "tells it from another disk; disk data then stays down" in one]
    assert bool(told) is said


@pytest.mark.parametrize("verb", ["activate", "resize"])
@pytest.mark.parametrize("has", ["", "0x5000"])
def test_a_number_that_is_not_on_record_does_not_end_the_warning(verb: str, has: str) -> None:
    """Somebody gave the disk a serial number, as was advised: no warning any more, and the next
    boot refused it all the same."""
    listed = {"name": "sdb", "maj:min": "8:16", "size": 2**31, "wwn": has, "mountpoints": []}
    there = server(up=verb != "activate", lsblk=json.dumps({"blockdevices": [listed]}))
    there.answers = {"hotset-boot content": "\n", **there.answers}
    one, heard = known(), list[str]()
    if verb == "resize":
        resizing.resize(
            AttachedDisk(there, FLASH, one), Bytes(80 * MIB), False, nothing, heard.append
        )
    else:
        leave(there, "clean")
        lifecycle.activate(attached(there).with_disk(one), heard.append)
    told = [line for line in heard if "disk data then stays down" in line]
    with pytest.raises(DeviceRefusedError, match=r"on record, .*cannot have a unit"):
        startup.check(
            there, "data", one.kind, one.origin, False, nothing, unit=True, recorded=one.origin_id
        )
    through = replace(one, spec=replace(one.spec, mode="writethrough"))
    there.answers["dmsetup ls"] = UP
    with pytest.raises(DeviceRefusedError, match=r"on record, .*cannot have write-back"):
        retune(
            attached(there).with_disk(through),
            None,
            "writeback",
            nothing,
            nothing,
        )
    assert len(told) == 1
    assert "create it again, which records that" in told[0]


@pytest.mark.parametrize("verb", ["activate", "resize"])
@pytest.mark.parametrize("fails", ["exits", "hangs"])
def test_a_warning_that_cannot_be_given_fails_nothing(verb: str, fails: str) -> None:
    """The origin could not be read for a moment, and a tier that works was not activated."""

    def hung() -> str:
        raise CommandTimeoutError("vm", ("hotset-boot", "content"), 60.0)

    answer = 1 if fails == "exits" else hung
    there, heard = server(up=verb != "activate", **{"hotset-boot content": answer}), list[str]()
    if verb == "resize":
        resizing.resize(
            AttachedDisk(there, FLASH, known()), Bytes(80 * MIB), False, nothing, heard.append
        )
        assert saved(there).disks[0].spec.cache == Bytes(80 * MIB)
    else:
        leave(there, "clean")
        lifecycle.activate(attached(there), heard.append)
        assert ACTIVATED in there.commands
    assert any("not known: whether a boot will know /dev/disk/by-id/data" in one for one in heard)


def test_a_resize_takes_no_numbers_for_its_own_that_nothing_proves() -> None:
    listed = {"name": "sdb", "maj:min": "8:16", "size": 2**31, "wwn": "0x5000", "mountpoints": []}
    there = server(lsblk=json.dumps({"blockdevices": [listed]}))
    resizing.resize(AttachedDisk(there, FLASH, known()), Bytes(80 * MIB), False, nothing, nothing)
    assert saved(there).disks[0].origin_id == OriginId(Bytes(2**31))


def test_the_unit_names_its_devices_and_calls_the_program() -> None:
    # A multipath device on a partition's disk: what comes over the network lies below.
    below = {"name": "sda", "tran": "iscsi"}
    lsblk = {"name": "sda1", "tran": None, "children": [below]}
    there = server(lsblk=json.dumps({"blockdevices": [lsblk]}))
    path = systemd_unit.install(attached(there))
    text = there.files[str(path)][0]
    assert str(path) == "/etc/systemd/system/hotset-tier-data.service"
    assert "Requires=dev-disk-by\\x2did-flash.device dev-disk-by\\x2did-data.device\n" in text
    assert "Before=remote-fs-pre.target shutdown.target\n" in text
    called = r"/usr/local/lib/hotset/[0-9a-f]+/hotset-boot"
    words = r'--flash "/dev/disk/by-id/flash" data'
    assert re.search(rf"\nExecStart={called} start {words}\nExecStop={called} stop {words}\n", text)
    plain = systemd_unit.text(disk(), FLASH, remote=False, called="/x")
    # systemd's own for a oneshot is none: a flash that hangs would hold the boot for ever.
    assert "\nTimeoutStartSec=900\n" in plain
    assert "Before=local-fs-pre.target shutdown.target\nWants=local-fs-pre.target\n" in plain
    # A file lies on a mount, which is after that target: systemd would find a circle.
    on_files = systemd_unit.text(
        replace(disk(), origin=PurePosixPath("/data/origin.img")), FLASH, remote=False, called="/x"
    )
    assert "Before=local-fs.target shutdown.target\nConflicts=" in on_files


def test_a_boot_waits_for_the_file_system_that_its_program_lies_on() -> None:
    there = server(**{"findmnt --noheadings --output TARGET": "/usr/local\n"})
    path = systemd_unit.install(attached(there))
    text = there.files[str(path)][0]
    program = r'"/usr/local/lib/hotset/[0-9a-f]+/hotset-boot"'
    assert re.search(rf"\nRequiresMountsFor={program}\n", text)
    # After local-fs-pre.target, as that mount is: systemd would find a circle.
    assert "Before=local-fs.target shutdown.target\nConflicts=" in text
    systemd_unit.count_starts(there)
    assert str(systemd_unit.BOOTS) not in there.files, "no systemd"
    booted = server(**{"test -d /run/systemd": 0})
    systemd_unit.count_starts(booted)
    lines = booted.files[str(systemd_unit.BOOTS)][0].splitlines()
    waits, called = (
        next(one.partition("=")[2] for one in lines if one.startswith(key))
        for key in ("RequiresMountsFor=", "ExecStart=")
    )
    assert called == f"{waits} boot"


def test_a_unit_is_started_at_once_and_what_systemd_refuses_is_an_error() -> None:
    there = server(**{"test -d /run/systemd": 0})
    path = systemd_unit.install(attached(there))
    assert [line for line in there.commands if line.startswith("systemctl")] == [
        f"systemctl enable {path.name}",
        f"systemctl start {path.name}",
    ]
    refused = server(**{"test -d /run/systemd": 0, "systemctl enable": 1})
    with pytest.raises(CommandError):
        systemd_unit.install(attached(refused))


def test_a_unit_goes_with_the_disk() -> None:
    there = server(**{"test -e /etc/systemd": 0, "test -d /run/systemd": 0})
    path = str(systemd_unit.path_of(disk()))
    flash_devices.save(there, FLASH)
    clean = LINE.replace(" 12 33 ", " 12 0 ")
    there.answers["dmsetup status"] = clean
    lifecycle.detach(flash_devices.find(there, "data"), False, False, nothing, nothing)
    ended = [
        "systemctl disable hotset-tier-data.service",
        "systemctl stop hotset-tier-data.service",
        # Last of the files: by it a removal that was cut short is known.
        f"rm -f /etc/hotset/boot/data.sh {path}",
        "systemctl daemon-reload",
    ]
    assert [line for line in there.commands if line in ended][-4:] == ended
    files = [line for line in there.commands if line.startswith("rm -f /etc/") and path in line]
    assert files == [ended[2]]


def test_starts_are_counted_as_long_as_the_machine_has_a_disk() -> None:
    boots = "/etc/systemd/system/hotset-boots.service"
    there = server(**{"test -d /run/systemd": 0, "dmsetup status": CLEAN})
    flash = flash_devices.save(there, FLASH)
    lifecycle.activate(AttachedDisk(there, flash, disk()), nothing)
    text = there.files[boots][0]
    assert re.search(r"\nExecStart=/usr/local/lib/hotset/[0-9a-f]+/hotset-boot boot\n", text)
    assert ".device" not in text, "it waits for none"
    assert "systemctl enable --now hotset-boots.service" in there.commands
    there.answers = {f"test -e {boots}": 0, f"rm -f {boots}": 137, **there.answers}
    for _ in range(2):
        with pytest.raises(CommandError):
            lifecycle.detach(flash_devices.find(there, "data"), False, False, nothing, nothing)
    del there.answers[f"rm -f {boots}"]
    lifecycle.detach(flash_devices.find(there, "data"), False, False, nothing, nothing)
    assert boots not in there.files
    lines = there.commands
    gone = max(at for at, line in enumerate(lines) if line.startswith(f"rm -f {boots}"))
    assert lines.index("sync --file-system /etc") > gone, "else a power cut could bring it back"
    assert "systemctl disable --now hotset-boots.service" in there.commands


def test_what_an_earlier_hotset_installed_is_replaced() -> None:
    """Its script would have dropped dirty blocks as those of the mode that was baked into it."""
    there = server(**{"test -e /etc/systemd": 0, "test -d /run/systemd": 0})
    old, unit = "/etc/hotset/boot/data.sh", str(systemd_unit.path_of(disk()))
    there.files |= {old: ("#!/bin/sh\n", 0o700), unit: (f"ExecStart=/bin/sh {old} start\n", 0o644)}
    lifecycle.activate(attached(there), nothing)
    assert old not in there.files
    assert "hotset-boot start" in there.files[unit][0]
    assert "systemctl daemon-reload" in there.commands
    there.calls.clear()
    lifecycle.activate(attached(there), nothing)
    assert "systemctl daemon-reload" not in there.commands, "it fits"


@pytest.mark.parametrize("mode", ["writeback", "writethrough"])
def test_a_change_of_mode_that_is_cut_short_leaves_no_boot_that_drops_dirty_blocks(
    mode: WriteMode,
) -> None:
    """Killed at any of its commands: where the kernel holds to write-back, so does the label, by
    which a boot goes."""
    before: WriteMode = "writethrough" if mode == "writeback" else "writeback"
    survived, lives = False, 0
    while not survived:
        there = Mortal(server(**{"dmsetup status": CLEAN}).answers)
        found = with_mode(there, before).save()
        begun, there.lives = len(there.calls), lives
        try:
            retune(found, None, mode, nothing, nothing)
        except Killed:
            lives += 1
        else:
            survived = True
        there.lives = None
        tables = "".join(map(repr, there.calls[begun:])).replace(before, "")
        kernel = mode if f" {mode} " in tables else before
        label_says = flash_devices.find(there, "data").disk.spec.mode
        if kernel == "writeback":
            assert label_says == "writeback", there.commands[-1]
        retune(flash_devices.find(there, "data"), None, mode, nothing, nothing)
        assert flash_devices.find(there, "data").disk.spec.mode == mode
    assert lives > 5


CLEAN = LINE.replace(" 12 33 ", " 12 0 ")


class Killed(Exception):
    """By somebody, before the next command."""


class Mortal(FakeMachine):
    """Whoever commands it is killed after so many commands; None: never."""

    lives: int | None = None

    def _live(self) -> None:
        if self.lives == 0:
            raise Killed
        if self.lives is not None:
            self.lives -= 1

    def execute(self, command: Command) -> Result:
        self._live()
        return super().execute(command)

    def replace(self, text: str, target: PurePosixPath, mode: int = 0o644) -> None:
        self._live()
        super().replace(text, target, mode)


def test_giving_up_a_flash_that_hangs_waits_for_no_unit_that_waits_for_it() -> None:
    there = server(dd=1, **{"test -e /etc/systemd": 0, "test -d /run/systemd": 0})
    lifecycle.detach(attached(there), True, False, nothing, nothing)
    unit = "hotset-tier-data.service"
    lines = there.commands
    assert f"systemctl stop {unit}" not in lines
    told = lines.index("replace /run/hotset/removing-data")
    assert told < lines.index(f"systemctl stop --no-block {unit}")


def test_a_unit_that_is_taken_away_waits_for_no_lock_of_whoever_takes_it() -> None:
    quiet = {"dmsetup status": LINE.replace(" 12 33 ", " 12 0 ")}
    there = server(**{"test -e /etc/systemd": 0, "test -d /run/systemd": 0, **quiet})
    flash_devices.save(there, FLASH)
    lifecycle.detach(flash_devices.find(there, "data"), False, False, nothing, nothing)
    lines = there.commands
    told = lines.index("replace /run/hotset/removing-data")
    assert told < lines.index("systemctl stop hotset-tier-data.service")


@pytest.mark.parametrize("killed_at", ["dd if=/dev/zero", "rm -f /etc/hotset/boot"])
def test_a_detach_that_was_cut_short_is_ended_by_the_next(killed_at: str) -> None:
    """All of it is on the origin by then: what is left of the flash is never used again."""
    there = server(
        **{"test -e /etc/systemd": 0, "dmsetup status": LINE.replace(" 12 33 ", " 12 0 ")}
    )
    flash_devices.save(there, FLASH)
    there.answers = {killed_at: 137, **there.answers}
    with pytest.raises(CommandError):
        lifecycle.detach(flash_devices.find(there, "data"), False, False, nothing, nothing)
    del there.answers[killed_at]
    there.answers["dmsetup ls"] = "No devices found\n"
    found = flash_devices.find(there, "data")
    one = found.disk
    assert one.phase == "detaching"
    with pytest.raises(FlashError, match="its detach was cut short"):
        lifecycle.activate(found, nothing)
    lifecycle.detach(found, False, False, nothing, nothing)
    assert flash_devices.list_disks(there) == []


def test_a_flash_that_was_given_up_is_not_believed_when_it_comes_back() -> None:
    flash = f"{FLASH.path}\n"
    there = server(**{"find -L": flash, f"readlink -f {FLASH.path}": flash})
    flash_devices.save(there, FLASH)
    found = flash_devices.find(there, "data")
    kept = dict(there.sectors)
    lifecycle.detach(found, True, True, nothing, nothing)
    there.sectors = kept
    there.answers["lsblk"] = FREE.replace('"dm"', '"dm", "size": 1')
    there.answers["dmsetup ls"] = "No devices found\n"
    said: list[str] = []
    assert adopt.adopt(there, FLASH.path, True, said.append).disks == ()
    assert "has gone on without what this flash holds" in said[0]


def test_device_units_are_escaped_as_systemd_does() -> None:
    name = systemd_unit.device_unit(PurePosixPath("/dev/disk/by-id/scsi-3a b"))
    assert name == "dev-disk-by\\x2did-scsi\\x2d3a\\x20b.device"


def test_a_disk_that_no_boot_would_know_stays_in_write_through() -> None:
    there = server(**{"hotset-boot content": "\n"})
    found = with_mode(there, "writethrough")
    with pytest.raises(DeviceRefusedError, match="cannot have write-back") as refused:
        retune(found, None, "writeback", nothing, nothing)
    assert refused.value.field == "mode"
    assert not [line for line in there.commands if "reload" in line]
    retune(with_mode(there, "writeback"), None, "writeback", nothing, nothing)
