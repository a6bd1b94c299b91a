"""What a dm-cache's metadata says, read and changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.block.extents import Run, count, difference, intersection, runs_of, union
from hotset.core.units import Blocks, Bytes
from hotset.tier.disk_tier import HOTTEST
from hotset.tier.dmcache.metadata import Piece, Slots, parts

BLOCK = Bytes(64 * 1024)
CAPACITY = Blocks(20)
MAPPING = '<mapping cache_block="{}" origin_block="{}" dirty="{}"/>'
DUMP = "\n".join(
    (
        '<superblock uuid="" block_size="128" nr_cache_blocks="20" policy="smq" hint_width="4">',
        "<mappings>",
        MAPPING.format(0, 7, "false"),
        MAPPING.format(3, 8, "true"),
        MAPPING.format(4, 2, "false"),
        "</mappings><hints>",
        '<hint cache_block="0" data="PwAAAA=="/>',
        '<hint cache_block="4" data="BQAAAA=="/>',
        "</hints></superblock>",
    )
)
WANTED = st.sets(st.integers(0, 40), max_size=CAPACITY).map(runs_of)


@st.composite
def caches(draw: st.DrawFn) -> Slots:
    """A cache with blocks of any level in any slots."""
    slots = Slots(CAPACITY)
    at = draw(st.lists(st.integers(0, CAPACITY - 1), unique=True))
    blocks = draw(st.lists(st.integers(0, 40), unique=True, min_size=len(at), max_size=len(at)))
    for slot, block in zip(at, blocks, strict=True):
        slots._origin[slot] = block
        slots._level[slot] = draw(st.integers(0, HOTTEST))
    return slots


def test_a_dump_is_read() -> None:
    slots = Slots.parse(DUMP, CAPACITY)
    assert slots.runs() == [Run(Blocks(2), Blocks(1)), Run(Blocks(7), Blocks(2))]
    assert {level: [run.start for run in runs] for level, runs in slots.by_level().items()} == {
        63: [7],
        1: [8],  # smq takes a block without a hint for one of level 1
        5: [2],
    }
    assert slots.dirty == 1


@given(caches())
def test_what_is_written_reads_back(slots: Slots) -> None:
    again = Slots.parse("".join(slots.xml(BLOCK, "smq")), CAPACITY)
    assert again.by_level() == slots.by_level()
    assert list(again._origin) == list(slots._origin)
    assert again.dirty == 0


@given(caches(), WANTED)
def test_room_is_made_by_giving_up_the_coldest(slots: Slots, wanted: list[Run]) -> None:
    before, levels = slots.runs(), slots.by_level()
    gone = slots.make_room(wanted)
    after = slots.runs()
    left = difference(before, after)
    assert count(left) == gone == max(0, count(union(before, wanted)) - CAPACITY)
    assert not intersection(left, wanted)
    coldest_kept = [
        level for level, runs in levels.items() if intersection(difference(runs, wanted), after)
    ]
    given_up = [level for level, runs in levels.items() if intersection(runs, left)]
    assert not given_up or not coldest_kept or max(given_up) <= min(coldest_kept)
    held = intersection(wanted, after)
    assert not held or intersection(slots.by_level()[HOTTEST], held) == held


@given(caches(), WANTED)
def test_new_blocks_get_free_slots_and_nothing_else_moves(slots: Slots, wanted: list[Run]) -> None:
    slots.make_room(wanted)
    before = list(slots._origin)
    new = difference(wanted, slots.runs())
    pieces = slots.places(new)
    assert all(before[at] == -1 for piece in pieces for at in slot_numbers(piece))
    assert union(piece.run for piece in pieces) == new
    slots.fill(pieces)
    assert difference(wanted, slots.runs()) == []
    assert all(was in (-1, now) for was, now in zip(before, slots._origin, strict=True))
    for piece in pieces:
        held = [slots._origin[at] for at in slot_numbers(piece)]
        assert held == list(range(piece.run.start, piece.run.start + piece.run.count))


def slot_numbers(piece: Piece) -> range:
    return range(piece.slot, piece.slot + piece.run.count)


@given(st.lists(st.integers(1, 9)), st.integers(1, 12))
def test_parts_are_the_whole(lengths: list[int], size: int) -> None:
    pieces = [
        Piece(Run(Blocks(100 * at), Blocks(n)), Blocks(50 * at)) for at, n in enumerate(lengths)
    ]
    found = list(parts(pieces, size))
    sizes = [count(piece.run for piece in part) for part in found]
    assert all(one == size for one in sizes[:-1])
    assert sum(sizes) == sum(lengths)

    def pairs(some: list[Piece]) -> list[tuple[int, int]]:
        return [(one.run.start + at, one.slot + at) for one in some for at in range(one.run.count)]

    assert [pair for part in found for pair in pairs(part)] == pairs(pieces)


def test_levels_are_taken_over_only_where_the_block_is_the_same() -> None:
    slots, before = Slots.parse(DUMP, CAPACITY), Slots.parse(DUMP, CAPACITY)
    for level in range(CAPACITY):
        before._level[level] = 40 + level % 3
    before._origin[4] = 3
    slots.levels_of(before)
    assert set(slots.by_level()) == {40, 5}


def test_more_than_the_cache_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="21 blocks do not fit a cache of 20 blocks"):
        Slots(CAPACITY).make_room([Run(Blocks(0), Blocks(21))])
