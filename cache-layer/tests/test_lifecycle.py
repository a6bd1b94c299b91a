"""What the verbs refuse, say and keep, without a kernel."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from hotset.cachelayer import bootunit, lifecycle, resizing
from hotset.cachelayer import card as cards
from hotset.cachelayer.card import Card, Disk
from hotset.cachelayer.lifecycle import TierRefusedError
from hotset.cachelayer.tier import MetadataDamagedError, WriteMode
from hotset.cachelayer.units import Bytes
from tests.fake_machine import FakeMachine
from tests.test_card import CARD, disk, part
from tests.test_dmcache import LINE

MIB = 2**20
UP = "hotset-data\t(252:3)\nhotset-data-meta\t(252:0)\nhotset-data-cache\t(252:1)\n"
MOUNTED = json.dumps({"blockdevices": [{"name": "dm-3", "type": "dm", "mountpoints": ["/srv"]}]})
FREE = json.dumps({"blockdevices": [{"name": "dm-3", "type": "dm", "mountpoints": []}]})


def server(up: bool = True, **more: str | int | Callable[[], str]) -> FakeMachine:
    return FakeMachine({
        **more,
        "dmsetup ls": UP if up else "No devices found\n",
        "dmsetup status": LINE,
        "lsblk": FREE,
        "test -e /etc/systemd": 1,
        "blockdev --getsize64": str(1536 * MIB),
        **more,
    })  # fmt: skip


def saved(there: FakeMachine) -> Card:
    return cards.parse(there.files["/etc/hotset/cards/main.new"][0])


def nothing(_: object) -> None:
    pass


def with_mode(mode: WriteMode, **more: bool) -> tuple[Card, Disk]:
    one = replace(disk(), spec=replace(disk().spec, mode=mode), **more)
    return CARD.with_disk(one), one


@pytest.mark.parametrize("verb", ["deactivate", "detach", "destroy"])
def test_what_is_mounted_stays(verb: str) -> None:
    there = server(lsblk=MOUNTED)
    verbs: dict[str, Callable[[], object]] = {
        "deactivate": lambda: lifecycle.deactivate(there, CARD, disk(), nothing),
        "detach": lambda: lifecycle.detach(there, CARD, disk(), False, True, nothing, nothing),
        "destroy": lambda: lifecycle.destroy(there, CARD, True, lambda _: nothing, nothing),
    }
    with pytest.raises(TierRefusedError, match="is mounted on /srv: unmount it first"):
        verbs[verb]()
    assert not [line for line in there.commands if "remove" in line or "reload" in line]


@pytest.mark.parametrize(
    ("up", "says"),
    [
        (UP, "hotset-volume does not stand, so nobody sees what is on it"),
        (UP + "hotset-volume\t(252:9)\n", "hotset-volume is not empty: ext4 on it"),
    ],
)
def test_a_volume_is_not_given_up_unasked(up: str, says: str) -> None:
    ext4 = json.dumps({"signatures": [{"type": "ext4"}]})
    volume = {"name": "dm-9", "type": "dm", "size": 16 * MIB, "mountpoints": []}
    there = server(**{"dmsetup ls": up, "wipefs --json": ext4,
                      "lsblk": json.dumps({"blockdevices": [volume]})})  # fmt: skip
    bare = CARD.without("data")
    with pytest.raises(TierRefusedError, match=says):
        lifecycle.destroy(there, bare, False, lambda _: nothing, nothing)
    assert not [line for line in there.commands if "remove" in line or "wipefs --all" in line]
    lifecycle.destroy(there, bare, True, lambda _: nothing, nothing)
    assert "rm -f /etc/hotset/cards/main.json" in there.commands


def test_a_clean_deactivation_is_remembered_and_an_activation_forgets_it_first() -> None:
    there, said = server(), list[str]()
    lifecycle.deactivate(there, CARD, disk(), said.append)
    assert not saved(there).disks[0].clean, "33 blocks are dirty"
    assert "OLD data" in said[-1]
    clean = server(**{"dmsetup status": LINE.replace(" 12 33 ", " 12 0 ")})
    lifecycle.deactivate(clean, CARD, disk(), nothing)
    assert saved(clean).disks[0].clean
    again = server(up=False)
    lifecycle.activate(again, saved(clean), saved(clean).disks[0], nothing)
    assert not saved(again).disks[0].clean
    lines = again.commands
    first = next(at for at, line in enumerate(lines) if line.startswith("mv -f"))
    assert first < lines.index("dmsetup create hotset-data")


@pytest.mark.parametrize(
    ("mode", "clean", "old"),
    [("writeback", False, True), ("writeback", True, False), ("writethrough", False, False)],
)
def test_an_inactive_tier_says_when_its_origin_may_be_old(
    mode: WriteMode, clean: bool, old: bool
) -> None:
    seen = lifecycle.look(server(up=False), *with_mode(mode, clean=clean))
    assert seen.report.state == "inactive"
    assert any("may hold OLD data" in note for note in seen.report.notes) is old


def test_a_flash_that_is_gone_is_a_state_and_no_traceback() -> None:
    seen = lifecycle.look(server(dd=1), CARD, disk())
    assert seen.report.state == "failed"
    assert not seen.flash_answers
    assert "tier detach data --flash-is-dead" in seen.report.notes[-1]


def test_damage_is_shown_with_the_way_out() -> None:
    there = server(up=False, cache_check=1)
    with pytest.raises(MetadataDamagedError, match=r"OLD data.*`hotset tier repair data`"):
        lifecycle.activate(there, CARD, disk(), nothing)


@pytest.mark.parametrize("mode", ["writeback", "writethrough"])
def test_what_cannot_be_repaired_begins_empty_only_if_nothing_is_lost(mode: WriteMode) -> None:
    there, said = server(up=False, cache_check=1, cache_repair=1), list[str]()
    if mode == "writeback":
        with pytest.raises(TierRefusedError, match=r"how many is not known.*--flash-is-dead"):
            lifecycle.repair(there, *with_mode(mode), nothing)
        assert not [line for line in there.commands if line.startswith("dd if=/dev/zero")]
        return
    lifecycle.repair(there, *with_mode(mode), said.append)
    assert "nothing is lost" in said[-1]
    assert "dmsetup create hotset-data" in there.commands


def test_a_dead_flash_is_believed_only_if_it_does_not_answer() -> None:
    with pytest.raises(TierRefusedError, match=r"the flash answers.*--yes"):
        lifecycle.detach(server(), CARD, disk(), True, False, nothing, nothing)
    with pytest.raises(TierRefusedError, match="--flash-is-dead detaches without"):
        lifecycle.detach(server(dd=1), CARD, disk(), False, False, nothing, nothing)
    said: list[str] = []
    lifecycle.detach(server(dd=1), CARD, disk(), True, False, nothing, said.append)
    assert said[0].startswith("LOST: 33 blocks (2.1 MiB)")
    failed = server(dd=1, **{"dmsetup status": "0 8 cache Fail\n"})
    lifecycle.detach(failed, CARD, disk(), True, False, nothing, said.append)
    assert "LOST: an unknown number of blocks" in said[2]
    lifecycle.detach(server(dd=1), *with_mode("writethrough"), True, False, nothing, said.append)
    assert said[4].startswith("nothing is lost")


def test_a_detached_disk_leaves_nothing_that_could_be_found_again() -> None:
    there = server(**{"dmsetup status": LINE.replace(" 12 33 ", " 12 0 ")})
    card = lifecycle.detach(there, CARD, disk(), False, False, nothing, nothing)
    assert card.disks == saved(there).disks == ()
    blanked = [line for line in there.commands if line.startswith("dd if=/dev/zero")]
    assert [f"seek={at}" in line for line, at in zip(blanked, (17, 22), strict=True)] == [True] * 2
    assert "rmdir /sys/kernel/tracing/instances/hotset-data" in there.commands, "its heat"


def test_a_resize_that_would_drop_dirty_blocks_is_refused() -> None:
    there = server()
    with pytest.raises(TierRefusedError, match=r"33 dirty blocks \(2.1 MiB\).*--flush"):
        resizing.resize(there, CARD, disk(), Bytes(32 * MIB), False, nothing, nothing)
    assert there.files == {}
    sizes = {"blockdev --getsize64 /dev/mapper/hotset-data": str(1537 * MIB)}
    with pytest.raises(TierRefusedError, match="has shrunk from 1,611,661,312 to 1,610,612,736"):
        resizing.resize(server(**sizes), CARD, disk(), None, True, nothing, nothing)
    said: list[str] = []
    resizing.resize(there, CARD, disk(), Bytes(64 * MIB), False, nothing, said.append)
    assert "nothing changed" in said[0]


def test_a_cache_grows_into_what_is_free() -> None:
    there = server()
    resizing.resize(there, CARD, disk(), Bytes(80 * MIB), False, nothing, nothing)
    # Behind it, next to what it has: one part.
    assert saved(there).disks[0].cache == (part(22, 80),)
    taken = CARD.with_disk(disk("other", 91))
    resizing.resize(there, taken, disk(), Bytes(80 * MIB), False, nothing, nothing)
    assert saved(there).disks[0].cache == (part(22, 69), part(160, 11))


def test_the_unit_names_its_devices_and_carries_the_commands() -> None:
    there = server(**{"lsblk": '{"blockdevices": [{"name": "sda", "tran": "iscsi"}]}'})
    path = bootunit.install(there, CARD, disk())
    text = there.files[str(path)][0]
    assert str(path) == "/etc/systemd/system/hotset-tier-data.service"
    assert "Requires=dev-disk-by\\x2did-flash.device dev-disk-by\\x2did-data.device\n" in text
    assert "Before=remote-fs-pre.target shutdown.target\n" in text
    starts = [line for line in text.splitlines() if line.startswith("ExecStart=")]
    assert starts[-1] == (
        "ExecStart=dmsetup create --concise 'hotset-data,,,rw,0 3145728 cache"
        " /dev/mapper/hotset-data-meta /dev/mapper/hotset-data-cache /dev/disk/by-id/data 128"
        " 2 metadata2 writeback smq 0'"
    )
    assert starts[-2].startswith("ExecStart=cache_check ")
    # Also a second disk's unit makes the volume, and may fail at that.
    assert starts[1].startswith("ExecStart=-dmsetup create --concise 'hotset-volume,,,rw,0 ")
    assert text.count("hotset-volume") == 1
    assert "\nExecStop=-dmsetup remove --retry hotset-data\n" in text
    assert f"systemctl enable {path.name}" in there.commands
    plain = bootunit.text(disk(), CARD, [], remote=False)
    assert "Before=local-fs-pre.target shutdown.target\n" in plain


def test_a_unit_follows_a_resize_and_goes_with_the_disk() -> None:
    there = server(**{"test -e /etc/systemd": 0, "lsblk": FREE})
    path = str(bootunit.path_of(disk()))
    resizing.resize(there, CARD, disk(), Bytes(80 * MIB), False, nothing, nothing)
    assert f"hotset-data-cache,,,rw,0 {80 * 2048} linear" in there.files[path][0]
    clean = LINE.replace(" 12 33 ", " 12 0 ")
    there = server(**{"test -e /etc/systemd": 0, "dmsetup status": clean})
    lifecycle.deactivate(there, CARD, disk(), nothing)
    assert not saved(there).disks[0].clean, "a boot may make it dirty unseen"
    lifecycle.detach(there, CARD, disk(), False, False, nothing, nothing)
    ended = ["systemctl disable --now hotset-tier-data.service", f"rm -f {path}",
             "systemctl daemon-reload"]  # fmt: skip
    assert [line for line in there.commands if line in ended] == ended


def test_device_units_are_escaped_as_systemd_does() -> None:
    name = bootunit.device_unit(PurePosixPath("/dev/disk/by-id/scsi-3a b"))
    assert name == "dev-disk-by\\x2did-scsi\\x2d3a\\x20b.device"
