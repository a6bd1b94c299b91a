"""The card's record: cut without overlap, kept on the machine, found by a disk's name."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.cachelayer import card as cards
from hotset.cachelayer.card import Card, CardError, Disk, take
from hotset.cachelayer.flash import RESERVED, Part, total
from hotset.cachelayer.tier import TierSpec
from hotset.cachelayer.units import Bytes
from tests.fake_machine import FakeMachine

MIB = 2**20
SPEC = TierSpec("writeback", "smq", Bytes(65536), *(Bytes(n * MIB) for n in (5, 64, 16)))


def part(start: int, size: int) -> Part:
    return Part(Bytes(start * MIB), Bytes(size * MIB))


def disk(name: str = "data", at: int = 17) -> Disk:
    return Disk(name, "dm-cache", "oltp", PurePosixPath(f"/dev/disk/by-id/{name}"), SPEC,
                (part(at, 5),), (part(at + 5, 64),))  # fmt: skip


CARD = Card("main", PurePosixPath("/dev/disk/by-id/flash"), Bytes(256 * MIB), (part(1, 16),),
            (disk(),))  # fmt: skip


class Keeping(FakeMachine):
    """A machine that keeps the card files that are written to it."""

    def keep(self, card: Card) -> None:
        cards.save(self, card)
        text = self.files[str(cards.path_of(card.name).with_suffix(".new"))][0]
        self.answers[f"cat /etc/hotset/cards/{card.name}.json"] = text
        names = self.answers.get("ls /etc/hotset/cards", "")
        self.answers["ls /etc/hotset/cards"] = f"{names}{card.name}.json\n"


def kept(*some: Card) -> Keeping:
    machine = Keeping()
    for card in some:
        machine.keep(card)
    return machine


def test_a_card_comes_back_as_it_was_saved() -> None:
    second = replace(CARD, name="card2", disks=(disk("dwh", 100),), volume=())
    assert cards.standing(kept(CARD, second)) == [second, CARD]


def test_a_card_is_written_whole_or_not_at_all() -> None:
    machine = kept(CARD)
    assert machine.commands[-2].startswith("mv -f /etc/hotset/cards/main.new /etc/hotset/cards/")
    assert machine.files["/etc/hotset/cards/main.new"][1] == 0o600


def test_a_card_with_nothing_on_it_has_no_file() -> None:
    machine = FakeMachine()
    cards.save(machine, replace(CARD, disks=(), volume=()))
    assert machine.commands == ["rm -f /etc/hotset/cards/main.json"]


def test_no_cards_at_all() -> None:
    machine = FakeMachine({"test -d": 1})
    assert cards.standing(machine) == []
    with pytest.raises(CardError, match=r"no disk is accelerated on vm.*tier create"):
        cards.find(machine, None)


def test_a_disk_is_found_by_its_name_or_as_the_only_one() -> None:
    machine = kept(CARD)
    assert cards.find(machine, None) == cards.find(machine, "data") == (CARD, disk())
    with pytest.raises(CardError, match="'dwh' is not accelerated here; there is: data"):
        cards.find(machine, "dwh")
    two = kept(CARD.with_disk(disk("dwh", 100)))
    assert cards.find(two, "dwh")[1].name == "dwh"
    with pytest.raises(CardError, match="name one of them: data, dwh"):
        cards.find(two, None)
    tier = cards.tier_of(two, "dwh")
    assert (str(tier.path), str(tier.volume)) == ("/dev/mapper/hotset-dwh",
                                                  "/dev/mapper/hotset-volume")  # fmt: skip


def test_a_card_is_found_by_its_name_and_by_a_disk_on_it() -> None:
    with pytest.raises(CardError, match=r"there is no card on vm.*tier create"):
        cards.find_card(kept(), None)
    second = replace(CARD, name="card2", disks=(disk("dwh", 100),))
    bare = replace(CARD, name="card3", disks=())
    one, three = kept(bare), kept(CARD, second, bare)
    assert cards.find_card(one, None) == bare, "also one that has no disk any more"
    assert cards.find_card(three, "card2") == cards.find_card(three, "dwh") == second
    with pytest.raises(CardError, match="several cards, name one of them: card2, card3, main"):
        cards.find_card(three, None)
    with pytest.raises(CardError, match=r"'erp' is neither .*; there is: card2, card3, main"):
        cards.find_card(three, "erp")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"schema_version": 1', '"schema_version": 2', "schema_version is 2: this hotset reads 1"),
        ('"kind": "dm-cache"', '"kind": "flashcache"', "disks.0.kind: .*'flashcache'"),
        ('"size": 268435456', '"size": "much"', "size: .*'much'"),
        ('{"schema_version"', '["schema_version"', "not the description of a card"),
    ],
)
def test_a_file_that_is_no_card_is_named_with_its_field(old: str, new: str, named: str) -> None:
    machine = kept(CARD)
    text = machine.answers["cat /etc/hotset/cards/main.json"]
    assert isinstance(text, str)
    assert old in text
    machine.answers["cat /etc/hotset/cards/main.json"] = text.replace(old, new)
    with pytest.raises(CardError, match=rf"/etc/hotset/cards/main.json on vm: {named}"):
        cards.standing(machine)


def test_the_volume_of_a_second_card_has_its_name() -> None:
    assert CARD.volume_slice.name == "hotset-volume"
    assert replace(CARD, name="card2").volume_slice.name == "hotset-volume-card2"


@given(st.lists(st.integers(1, 40), max_size=6))
def test_parts_never_overlap_and_never_touch_the_first_mebibyte(sizes: list[int]) -> None:
    card = replace(CARD, volume=(), disks=())
    room = int(total(card.free()))
    for number, size in enumerate(sizes):
        wanted = Bytes(size * MIB)
        if wanted > room:
            with pytest.raises(CardError, match="does not fit"):
                take(card.free(), wanted, "CACHE")
            continue
        room -= wanted
        parts = take(card.free(), wanted, "CACHE")
        assert total(parts) == wanted
        card = card.with_disk(replace(disk(f"d{number}"), metadata=(), cache=parts))
        # Holes, so that later ones are put together from several parts.
        if number % 2:
            room += total(card.disks[0].cache)
            card = card.without(card.disks[0].name)
    used = sorted((one for disk in card.disks for one in disk.cache), key=lambda one: one.start)
    assert all(one.start >= RESERVED and one.end <= card.size for one in used)
    assert all(one.end <= two.start for one, two in itertools.pairwise(used))
    assert total(card.free()) == room == card.size - RESERVED - total(used)
