"""The card's record: cut without overlap, kept on the machine, found by a disk's name."""

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
from hotset.disk import cache_device as cards
from hotset.disk.cache_device import Card, CardError, Inventory, take
from hotset.disk.identity.origin import OriginId
from tests.fake_machine import FakeMachine
from tests.support.cards import CARD, MIB, SECOND, SPEC, Keeping, disk

DATA = Path(__file__).parents[1] / "data"
FLASHES = {name: PurePosixPath(f"/dev/disk/by-id/{name}") for name in ("flash", "second", "third")}


def kept(*some: Card) -> Keeping:
    machine = Keeping()
    for card in some:
        machine.keep(card)
    return machine


def plain(card: Card) -> Card:
    """Without what the label adds."""
    return replace(card, uuid="", host="", host_name="", generation=0)


def test_a_card_comes_back_as_it_was_saved() -> None:
    second = replace(SECOND, volume=())
    assert [plain(one) for one in cards.list_cards(kept(CARD, second))] == [second, CARD]


def test_a_card_is_written_whole_or_not_at_all() -> None:
    machine = kept(CARD)
    assert machine.commands[-1] == "replace /etc/hotset/cards/main.json"
    assert machine.files["/etc/hotset/cards/main.json"][1] == 0o600


def test_a_card_with_nothing_on_it_has_neither_label_nor_file() -> None:
    machine = kept(CARD)
    (card,) = cards.list_cards(machine)
    cards.save(machine, replace(card, disks=(), volume=()))
    assert cards.read_card(machine, CARD.flash) is None
    assert cards.list_cards(machine) == []


def test_no_cards_at_all() -> None:
    machine = FakeMachine({"test -d": 1})
    assert cards.list_cards(machine) == []
    with pytest.raises(CardError, match=r"no disk is accelerated on this machine \(vm\)"):
        cards.find(machine, None)


def test_an_attached_disk_has_another_record_of_it_with_its_card() -> None:
    """One that only the card or only the disk had would put the other back with the next change."""
    machine = kept(CARD.with_disk(disk("dwh", 100)))
    found = cards.find(machine, "dwh")
    changed = found.with_disk(replace(found.disk, phase="detaching"))
    assert changed.card.disks == (disk(), changed.disk)
    assert cards.find(machine, "dwh").disk.phase == "ready", "nothing is written yet"
    written = changed.save()
    assert written == cards.find(machine, "dwh")
    assert written.card.generation > found.card.generation
    assert written.tier.place == found.card.place(found.disk)


def test_a_disk_is_found_by_its_name_or_as_the_only_one() -> None:
    machine = kept(CARD)
    found = cards.find(machine, None)
    assert found == cards.find(machine, "data")
    assert (found.machine, plain(found.card), found.disk) == (machine, CARD, disk())
    with pytest.raises(CardError, match="'dwh' is not accelerated here; accelerated: data"):
        cards.find(machine, "dwh")
    two = kept(CARD.with_disk(disk("dwh", 100)))
    assert cards.find(two, "dwh").disk.name == "dwh"
    with pytest.raises(CardError, match="several disks are accelerated: data, dwh"):
        cards.find(two, None)
    tier = cards.find(two, "dwh").tier
    assert (str(tier.path), str(tier.volume)) == (
        "/dev/mapper/hotset-dwh",
        "/dev/mapper/hotset-volume",
    )


def test_a_card_is_found_by_its_name_and_by_a_disk_on_it() -> None:
    with pytest.raises(CardError, match=r"no cache device is set up on this machine \(vm\)"):
        cards.find_card(kept(), "main")
    bare = replace(CARD, name="card3", flash=FLASHES["third"], disks=())
    one, three = kept(bare), kept(CARD, SECOND, bare)
    assert plain(cards.find_card(one, "card3")) == bare, "also one that has no disk any more"
    assert cards.find_card(three, "card2") == cards.find_card(three, "dwh")
    assert plain(cards.find_card(three, "dwh")) == SECOND
    with pytest.raises(CardError, match=r"'erp' is neither .*; cards: card2, card3, main"):
        cards.find_card(three, "erp")


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('"schema_version": 1', '"schema_version": 2', "schema_version is 2: this hotset reads 1"),
        ('"schema_version": 1', '"schema_version": 0', "schema_version is 0: this hotset reads 1"),
        ('"hardware":', '"hereafter":1,"hardware":', "hereafter is not known .*use the version"),
        ('"mode":', '"hereafter":1,"mode":', r"disks\.0\.spec\.hereafter is not known"),
        ('"kind":"dm-cache"', '"kind":"flashcache"', "disks.0.kind: .*'flashcache'"),
        ('"size":268435456', '"size":"much"', "size: .*'much'"),
        ('{"schema_version"', '["schema_version"', "not the description of a card"),
    ],
)
def test_a_card_that_cannot_be_read_is_named_and_hinders_no_other(
    old: str, new: str, named: str
) -> None:
    machine = kept(CARD, SECOND)
    assert old in machine.file()
    machine.files["/etc/hotset/cards/main.json"] = (machine.file().replace(old, new), 0o600)
    known = cards.inventory(machine)
    assert [card.name for card in known.cards] == ["card2"]
    assert re.search(rf"/etc/hotset/cards/main.json on vm: {named}", known.problems[0])
    assert cards.find(machine, "dwh").card.name == "card2"
    with pytest.raises(CardError, match=rf"'data' is not accelerated here.*main.json.*{named}"):
        cards.find(machine, "data")
    assert cards.new_name(machine) == "card3", "its name is not given away"


def test_the_label_is_the_truth_and_etc_a_copy() -> None:
    machine = kept(CARD)
    old = machine.files["/etc/hotset/cards/main.json"]
    (card,) = cards.list_cards(machine)
    cards.save(machine, card.with_disk(disk("dwh", 100)))
    machine.files["/etc/hotset/cards/main.json"] = old
    assert [one.name for one in cards.list_cards(machine)[0].disks] == ["data", "dwh"]


@pytest.mark.parametrize("torn", [64, 80])
def test_a_label_is_there_whatever_a_write_leaves_of_one_copy(torn: int) -> None:
    """The two copies begin at 256 and 320 KiB."""
    machine = kept(CARD)
    at = (str(CARD.flash), torn)
    machine.sectors[at] = machine.sectors[at].replace("dm-cache", "dm-crash")
    found = cards.read_card(machine, CARD.flash)
    assert found is not None
    assert plain(found) == CARD
    again = cards.save(machine, cards.list_cards(machine)[0])
    assert again.generation == found.generation + 1
    assert "dm-crash" not in machine.sectors[at]


def test_the_older_copy_is_written_first() -> None:
    """A write that was cut short left one copy behind; the next one must not tear the good one."""
    machine = kept(CARD)
    older = {at: machine.sectors[str(CARD.flash), at] for at in (64, 80)}
    card = cards.save(machine, cards.list_cards(machine)[0])
    for stale, expected in ((80, "seek=80"), (64, "seek=64")):
        newest = dict(machine.sectors)
        machine.sectors[str(CARD.flash), stale] = older[stale]
        machine.calls.clear()
        card = cards.save(machine, card)
        flash = [line for line in machine.commands if line.startswith(f"dd of={CARD.flash}")]
        assert expected in flash[0], (stale, flash)
        reads = [line for line in machine.commands if line.startswith(f"dd if={CARD.flash}")]
        assert len(reads) == 2, "whose it is, and which copy is older"
        assert card.generation > 1
        assert newest


def test_a_flash_that_lost_its_label_or_has_anothers_is_not_changed() -> None:
    machine = kept(CARD, SECOND)
    mine = {key: text for key, text in machine.sectors.items() if key[0] == str(CARD.flash)}
    for key in mine:
        del machine.sectors[key]
    (card,) = [one for one in cards.list_cards(machine) if one.name == "main"]
    with pytest.raises(CardError, match=r"by-id/flash has lost its label.*scan for labels"):
        cards.save(machine, card)
    for (_, at), text in list(machine.sectors.items()):
        machine.sectors[str(CARD.flash), at] = text
    with pytest.raises(CardError, match="is another flash device now"):
        cards.save(machine, card)


def test_a_flash_of_another_machine_is_refused_with_the_way_to_take_it_over() -> None:
    machine = kept(CARD)
    (card,) = cards.list_cards(machine)
    machine.answers["cat /etc/machine-id"] = "another\n"
    with pytest.raises(CardError, match=r"belongs to vm by its label") as refused:
        cards.save(machine, card)
    (remedy,) = refused.value.remedies
    assert remedy.operation == "tier import"
    assert remedy.parameters == {"flash": str(CARD.flash), "take_over": True}
    assert plain(cards.save(machine, card, take_over=True)) == CARD
    cards.save(machine, cards.list_cards(machine)[0])


def test_a_flash_that_another_machine_took_over_stays_its_own_whatever_the_copy_here_says() -> None:
    """The copy was changed while the flash did not answer, by more than the other has written: it
    counted as newer, and with it the flash as ours."""
    machine = kept(CARD.with_disk(disk("dwh", 100)))
    (card,) = cards.list_cards(machine)
    for _ in range(9):
        card = cards.save_without_flash(machine, card)
    copy = machine.files["/etc/hotset/cards/main.json"]
    machine.answers["cat /etc/machine-id"] = "another\n"
    taken = cards.read_card(machine, CARD.flash)
    assert taken is not None
    taken = cards.save(machine, taken, take_over=True)
    machine.answers["cat /etc/machine-id"] = "this\n"
    machine.files["/etc/hotset/cards/main.json"] = copy
    (known,) = cards.list_cards(machine)
    assert not cards.is_ours(machine, known)
    with pytest.raises(CardError, match=r"belongs to vm by its label"):
        cards.save(machine, card)
    assert cards.read_card(machine, CARD.flash) == taken


def test_a_card_is_written_byte_by_byte_as_its_version_says() -> None:
    """Another field, or another order, is another format: raise SCHEMA_VERSION, and add a file of
    it. Those of released versions stay, and are read for ever."""
    spec = replace(SPEC, policy="hotset", bypass=Bytes(4 * MIB))
    known = OriginId(Bytes(512 * MIB), "wwn", "serial", "partition", "mapper")
    one = replace(disk("shop"), kind="userspace", spec=spec, identity="0d5c", origin_id=known)
    two = replace(disk("dwh", 100), phase="detaching", record=1, reserve=False)
    card = replace(CARD.with_disk(one), uuid="77aa", host="this", host_name="db1", generation=7)
    card = replace(card.with_disk(two), devices="loop", hardware="board", disks=(one, two))
    golden = (DATA / f"card-{cards.SCHEMA_VERSION}.txt").read_text()
    written = Label(card.generation, cards.render(card)).render()
    assert written.rstrip(" ") == golden.rstrip(" ")
    for file in DATA.glob("card-*.txt"):
        label = labels.parse(file.read_text())
        assert label is not None
        assert cards.parse(label.body).disks[0].name == "shop"


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


def test_copies_are_read_in_one_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "FOLDER", PurePosixPath(tmp_path / "cards"))
    assert cards.inventory(Local()) == Inventory(()), "a folder that is not there has none"
    for name, text in (("b.json", f"{cards.render(CARD)}\n"), ("a.json", ""), ("c.json.new", "{")):
        Local().replace(text, cards.FOLDER / name)
    known = cards.inventory(Local())
    assert [plain(one) for one in known.cards] == [CARD]
    (empty,) = known.problems
    assert empty.startswith(f"{cards.FOLDER}/a.json on local: ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_copy_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards, "FOLDER", PurePosixPath(tmp_path))
    Local().replace(f"{cards.render(CARD)}\n", PurePosixPath(tmp_path / "a.json"), 0)
    (problem,) = cards.inventory(Local()).problems
    assert f"{tmp_path}/a.json" in problem
    assert "Permission denied on local" in problem
