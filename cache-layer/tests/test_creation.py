"""Creation: what is chosen, what is refused, what is done in which order, and its rehearsal."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

import pytest

from hotset.cachelayer import card as cards
from hotset.cachelayer import choice, creation
from hotset.cachelayer.card import CardError
from hotset.cachelayer.choice import Choice, ChoiceError, DatabaseKind, KernelKind
from hotset.cachelayer.creation import Wanted
from hotset.cachelayer.devices import DeviceRefusedError
from hotset.cachelayer.machine import CommandError, EnvironmentLacksError
from hotset.cachelayer.rehearsal import Rehearsal, only_reads
from hotset.cachelayer.units import Bytes
from tests.fake_machine import FakeMachine
from tests.test_card import Keeping

MIB, GIB = 2**20, 2**30
FLASH, ORIGIN = (PurePosixPath(f"/dev/disk/by-id/virtio-{name}") for name in ("flash", "slow"))
WANTED = Wanted("oltp", FLASH, ORIGIN, "dm-cache", "oltp", Bytes(100 * MIB), Bytes(64 * MIB))


def server(**more: Any) -> Keeping:  # noqa: ANN401
    """A server with an empty flash disk of 1 GiB and a slow one with a file system."""
    there = Keeping()

    def lsblk() -> str:
        name = "vdb" if "vdb" in there.calls[-1].line else "sda"
        size = GIB if name == "vdb" else 2 * GIB
        return json.dumps({"blockdevices": [{"name": name, "type": "disk", "size": size,
                                             "mountpoints": []}]})  # fmt: skip

    there.answers = {
        "id -u": "0\n",
        "test -d /etc/hotset/cards": 1,
        "test -e": 1,
        "readlink -f /dev/disk/by-id/virtio-flash": "/dev/vdb\n",
        "readlink -f /dev/disk/by-id/virtio-slow": "/dev/sda\n",
        "lsblk": lsblk,
        "find -L": "/dev/disk/by-id/x\n",
        "wipefs --json /dev/sda": '{"signatures": [{"type": "ext4"}]}',
        "wipefs --json /dev/vdb": "",
        "dmsetup ls": "No devices found\n",
        "blockdev --getsize64 /dev/disk/by-id/virtio-slow": str(2 * GIB),
        **more,
    }
    return there


def with_card(**more: Any) -> Keeping:  # noqa: ANN401
    """The same after a first disk was created."""
    first = server()
    creation.create(first, WANTED, False, lambda _: None)
    there = server(**more)
    there.answers["test -d /etc/hotset/cards"] = ""
    there.answers["ls /etc/hotset/cards"] = "main.json\n"
    there.answers["cat /etc/hotset/cards/main.json"] = first.files["/etc/hotset/cards/main.new"][0]
    return there


def made(there: FakeMachine) -> list[str]:
    return [line for line in there.commands if not only_reads(line.split())]


def chosen(kind: KernelKind, database: DatabaseKind, cache: int = 10 * GIB,
           block: int | None = None) -> Choice:  # fmt: skip
    return choice.choose(kind, database, Bytes(cache), Bytes(0), Bytes(1000 * GIB), None,
                         Bytes(block) if block else None)  # fmt: skip


def test_the_kind_of_database_picks_and_says_so() -> None:
    oltp, warehouse = chosen("dm-cache", "oltp"), chosen("dm-cache", "warehouse")
    assert (oltp.spec.mode, oltp.spec.block) == ("writeback", 64 * 1024)
    assert (warehouse.spec.mode, warehouse.spec.block) == ("writethrough", 256 * 1024)
    assert "no sequential bypass" in oltp.reasons[-1]
    assert "--kind bcache" in warehouse.reasons[-1]
    assert oltp.spec.bypass is None
    assert chosen("bcache", "oltp").spec.bypass == 0
    assert chosen("bcache", "warehouse").spec.bypass == 4 * MIB
    assert any("lost with the flash" in one for one in oltp.reasons)


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
        ("bcache", GIB, 65536, "--block 64.0 KiB: bcache has no cache blocks"),
        ("bcache", 32 * MIB, None, "--cache 32.0 MiB: bcache needs at least 64.0 MiB"),
        ("dm-cache", GIB, 1000, "--block 1000 bytes: dm-cache takes a multiple"),
        ("dm-cache", MIB, 2 * MIB, "--cache 1.0 MiB is smaller than one block of 2.0 MiB"),
    ],
)
def test_sizes_that_cannot_be(kind: KernelKind, cache: int, block: int | None, named: str) -> None:
    with pytest.raises(ChoiceError, match=named):
        chosen(kind, "oltp", cache, block)


def test_the_card_is_known_before_anything_is_cut() -> None:
    there, said = server(), list[str]()
    disk = creation.create(there, WANTED, False, said.append)
    assert str(disk.device) == "/dev/mapper/hotset-oltp"
    lines = made(there)
    saved = [at for at, line in enumerate(lines) if line.startswith("mv -f")]
    cut = [at for at, line in enumerate(lines) if line.startswith("dmsetup create")]
    assert saved[0] < cut[0] < cut[-1] < saved[1]
    text = there.files["/etc/hotset/cards/main.new"][0]
    assert cards.parse(text).disks == (disk,)
    assert "writeback (for oltp)" in said[0]
    assert "/etc/fstab" in said[-1]
    writes = [line for line in lines if line.startswith(("dd", "wipefs", "make"))]
    assert all("/dev/disk/by-id/virtio-flash" in line for line in writes), "never the origin"


def test_a_second_disk_takes_what_is_left() -> None:
    there = with_card()
    wanted = replace(WANTED, disk="dwh", origin=PurePosixPath("/dev/disk/by-id/virtio-slow2"),
                     database="warehouse", volume=None)  # fmt: skip
    there.answers |= {
        "readlink -f /dev/disk/by-id/virtio-slow2": "/dev/sda\n",
        "blockdev --getsize64 /dev/disk/by-id/virtio-slow2": str(GIB),
    }
    disk = creation.create(there, wanted, False, lambda _: None)
    first = cards.parse(there.files["/etc/hotset/cards/main.new"][0]).disks[0]
    assert disk.metadata[0].start == first.cache[0].end
    with pytest.raises(CardError, match=r"--volume 10.0 MiB: the card's volume stands with 64.0"):
        creation.create(there, replace(wanted, volume=Bytes(10 * MIB)), False, print)
    with pytest.raises(CardError, match=r"does not fit: .* are free"):
        creation.create(there, replace(wanted, cache=Bytes(GIB)), False, print)


def test_a_tier_that_stands_as_asked_for_is_left_alone() -> None:
    there, said = with_card(), list[str]()
    creation.create(there, WANTED, False, said.append)
    there.answers["dmsetup ls"] = "hotset-oltp\t(252:3)\n"
    creation.create(there, WANTED, False, said.append)
    assert made(there) == []
    assert "but down: `hotset tier activate oltp`" in said[0]
    assert "stands as asked for: nothing changed" in said[1]
    with pytest.raises(CardError, match=r"there is one already .*tier detach oltp"):
        creation.create(there, replace(WANTED, kind="bcache"), False, print)
    with pytest.raises(CardError, match="virtio-slow is accelerated already: DISK oltp"):
        creation.create(there, replace(WANTED, disk="other"), False, print)


def test_a_creation_that_was_cut_short_starts_over() -> None:
    there = with_card()
    text = there.answers["cat /etc/hotset/cards/main.json"]
    assert isinstance(text, str)
    there.answers["cat /etc/hotset/cards/main.json"] = text.replace('"made": true', '"made": false')
    there.answers["dmsetup ls"] = "hotset-oltp-meta\t(252:0)\nhotset-volume\t(252:2)\n"
    creation.create(there, WANTED, False, lambda _: None)
    lines = made(there)
    first = lines.index("dmsetup remove --retry hotset-oltp-meta")
    assert first < next(at for at, line in enumerate(lines) if line.startswith("mv -f"))


def test_what_fails_half_way_is_taken_back() -> None:
    there = server(**{"dmsetup create hotset-oltp-cache": 1})
    with pytest.raises(CommandError):
        creation.create(there, WANTED, False, print)
    assert made(there)[-1] == "rm -f /etc/hotset/cards/main.json"


@pytest.mark.parametrize(
    ("wanted", "error", "named"),
    [
        (replace(WANTED, origin=FLASH), DeviceRefusedError, "same device"),
        (replace(WANTED, disk="volume"), CardError, "DISK 'volume'"),
        (replace(WANTED, disk="a-meta"), CardError, "DISK 'a-meta'"),
        (replace(WANTED, disk="Big One"), CardError, "DISK 'Big One'"),
        (replace(WANTED, cache=Bytes(2 * GIB)), CardError, "CACHE of 2.0 GiB does not fit"),
    ],
)
def test_refusals_change_nothing(wanted: Wanted, error: type[Exception], named: str) -> None:
    there = server()
    with pytest.raises(error, match=named):
        creation.create(there, wanted, True, lambda _: None)
    assert made(there) == []


def test_root_is_needed() -> None:
    with pytest.raises(EnvironmentLacksError, match="root"):
        creation.create(server(**{"id -u": "1000\n"}), WANTED, False, print)


def test_a_kernel_without_dm_cache() -> None:
    there = server(modprobe=1)
    with pytest.raises(EnvironmentLacksError, match="has no dm-cache or dm-cache-smq"):
        creation.create(there, WANTED, False, lambda _: None)


@pytest.mark.parametrize("kind", ["dm-cache", "bcache"])
def test_a_rehearsal_prints_all_that_would_change_and_changes_nothing(kind: KernelKind) -> None:
    real = server(**{"blockdev --getss": "512\n"})
    # What would only stand afterwards cannot be asked.
    real.answers |= {"dmsetup info": 1, "readlink -f /sys": 1, "test -e": 1}
    shown: list[str] = []
    wanted = replace(WANTED, kind=kind)
    creation.create(Rehearsal(real, shown.append), wanted, False, lambda _: None)
    assert made(real) == []
    assert real.files == {}
    text = "\n".join(shown)
    wants = ("dmsetup create hotset-oltp\n", "write /etc/hotset/cards/main.new")
    if kind == "bcache":
        wants = (*wants, "make-bcache -B", "/sys/fs/bcache/register_quiet")
    for words in wants:
        assert words in text


@pytest.mark.parametrize(
    ("line", "reads"),
    [
        ("dmsetup ls", True), ("dmsetup status x", True), ("dmsetup remove x", False),
        ("dmsetup suspend x", False), ("dd if=/dev/x of=/dev/null", True),
        ("dd if=/dev/zero of=/dev/x", False), ("wipefs --json /dev/x", True),
        ("wipefs --all /dev/x", False), ("cache_check /dev/x", False), ("tee /sys/x", False),
        ("blockdev --getsize64 /dev/x", True), ("blockdev --flushbufs /dev/x", False),
        ("dmsetup", False), ("cat /proc/mounts", True), ("sh -c true", False),
    ],
)  # fmt: skip
def test_what_only_reads(line: str, reads: bool) -> None:
    assert only_reads(line.split()) is reads
