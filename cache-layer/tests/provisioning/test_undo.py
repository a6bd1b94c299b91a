"""What fails or is cut short leaves what was there before, and needs nothing of what is gone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from hotset.cachelayer.common.units import Bytes
from hotset.cachelayer.hosts.base import CommandError, PrerequisiteMissingError
from hotset.cachelayer.provisioning import cache_device as cards
from hotset.cachelayer.provisioning import create as creation
from hotset.cachelayer.provisioning.cache_device import Card, CardError
from tests.fake_machine import FakeMachine
from tests.provisioning.test_cache_device import Keeping
from tests.provisioning.test_create import WANTED, made, server, with_card

MIB = 2**20
NEXT = replace(WANTED, disk="next", volume=None)
VOLUME_UP = "hotset-volume\t(252:9)\n"
IN_USE = (
    '{"blockdevices": [{"name": "loop7", "type": "loop", "size": 1, "mountpoints": ["/srv/log"]}]}'
)


def nothing(_: object) -> None:
    pass


def with_volume_alone(there: Keeping | None = None) -> Keeping:
    """A card whose last disk was detached: it keeps its volume, on which a log may lie."""
    there = there or with_card()
    card = cards.find_card(there, None)
    cards.save(there, card.without("oltp"))
    there.calls.clear()
    return there


def layout(machine: FakeMachine) -> Card:
    """What the label says, but for how often it was written."""
    return replace(cards.find_card(machine, None), generation=0)


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
    assert "rm -f /etc/hotset/cards/main.json" not in there.commands


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
    killed_at(there, NEXT, "dmsetup create hotset-next ")
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
    killed_at(there, WANTED, "dmsetup create hotset-oltp ")
    assert layout(there).volume
    larger = replace(WANTED, volume=Bytes(128 * MIB))
    creation.create(there, larger, False, nothing)
    (part,) = layout(there).volume
    assert part.size == 128 * MIB


def test_a_second_creation_that_fails_leaves_the_first_disk() -> None:
    there = with_card()
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
    there = server(lsblk=IN_USE, **{"dmsetup ls": VOLUME_UP})
    card = replace(cards.find_card(with_card(), None), devices=devices)
    there.calls.clear()
    with pytest.raises(CardError, match="is mounted on /srv/log: unmount it first"):
        cards.remove_volume(there, card)
    assert made(there) == []
