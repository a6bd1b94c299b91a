"""From files to the cache blocks that hold them."""

from __future__ import annotations

import os
import random
import tracemalloc
from itertools import pairwise
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotset.block import extents
from hotset.block.extents import (
    Extent,
    Run,
    count,
    difference,
    first,
    intersection,
    join_within,
    nth_blocks,
    parse_filefrag,
    runs_of,
    to_runs,
    union,
)
from hotset.core.machines.base import CommandError
from hotset.core.machines.local import Local
from hotset.core.units import Blocks, Bytes
from hotset.tier.base import sample
from tests.blocks import origin_blocks
from tests.fake_machine import FakeMachine

BLOCK = Bytes(64 * 1024)
HEAD = " ext:     logical_offset:        physical_offset: length:   expected: flags:\n"
PINNED = f"""\
Filesystem type is: ef53
File size of /data/base/1 is 2097152 (512 blocks of 4096 bytes)
{HEAD}\
   0:        0..     255:      34816..     35071:    256:
   1:      256..     511:      40960..     41215:    256:      35072: last,eof
/data/base/1: 2 extents found
File size of /data/base/2 is 5 (1 block of 4096 bytes)
{HEAD}\
   0:        0..       0:        777..       777:      1:             last,eof
/data/base/2: 1 extent found
File size of /data/base/3 is 0 (0 blocks of 4096 bytes)
/data/base/3: 0 extents found
"""


def pages(first: int, number: int, size: int = 4096) -> Extent:
    return Extent(Bytes(first * size), Bytes(number * size))


def test_several_files_in_one_output() -> None:
    assert parse_filefrag(PINNED) == [pages(34816, 256), pages(40960, 256), pages(777, 1)]


def test_each_file_has_a_block_size_of_its_own() -> None:
    text = PINNED.replace("(1 block of 4096", "(1 block of 1024")
    assert parse_filefrag(text)[2] == pages(777, 1, 1024)


@pytest.mark.parametrize(
    ("flags", "on_disk"),
    [
        ("", True),
        ("last,eof", True),
        ("shared", True),
        ("merged,last,eof", True),
        ("unwritten", False),
        ("last,unwritten,eof", False),
        ("last,unknown_loc,delalloc,eof", False),
        ("last,not_aligned,inline,eof", False),
    ],
)
def test_extents_without_data_on_the_disk_are_left_out(flags: str, on_disk: bool) -> None:
    text = (
        "File size of /data/1 is 40960 (10 blocks of 4096 bytes)\n"
        f"{HEAD}   0:        0..       9:    5000..    5009:     10:             {flags}\n"
    )
    assert parse_filefrag(text) == ([pages(5000, 10)] if on_disk else [])


@pytest.mark.parametrize(
    "line",
    [
        "   0:        0..       9:    5000..    5009:     10:             last,0x2000",
        "   0:        0..       9:    5000..    5009",
        "   0: nonsense",
        "   0:        0..       9:   -5000..    5009:     10:             last",
    ],
)
def test_an_extent_nobody_understands_is_named(line: str) -> None:
    with pytest.raises(ValueError, match="not an extent") as refused:
        parse_filefrag(f"File size of /data/1 is 40960 (10 blocks of 4096 bytes)\n{line}\n")
    assert repr(line) in str(refused.value)


def test_an_extent_before_its_files_block_size_is_refused() -> None:
    with pytest.raises(ValueError, match="not an extent"):
        parse_filefrag(
            "   0:        0..       9:    5000..    5009:     10:             last,eof\n"
        )


def written(path: Path, size: int) -> Path:
    with path.open("wb") as file:
        file.write(os.urandom(size))
        file.flush()
        os.fsync(file.fileno())
    return path


def real_extents(*files: Path) -> list[Extent]:
    """What the real filefrag says here; skips where the file system has no FIEMAP."""
    local = Local()
    if local.which("filefrag") is None:
        pytest.skip("filefrag (e2fsprogs) is not installed")
    try:
        return extents.of_files(local, [str(file) for file in files])
    except CommandError as error:
        pytest.skip(f"no FIEMAP on the file system of the temporary folder: {error}")


def test_real_files(tmp_path: Path) -> None:
    one = written(tmp_path / "one 1: 2..3: 4..5: 6:", 300_000)
    two = written(tmp_path / "two", 4096)
    page = os.statvfs(tmp_path).f_bsize
    found = real_extents(one, two)
    if not found:
        pytest.skip("the file system of the temporary folder keeps files inline or compressed")
    assert (
        sum(extent.length for extent in found)
        == -(-300_000 // page) * page + -(-4096 // page) * page
    )
    assert count(to_runs(found, Bytes(page), Bytes(2**60))) == -(-300_000 // page) + -(
        -4096 // page
    )


def test_a_real_hole_and_real_unwritten_room_are_left_out(tmp_path: Path) -> None:
    file, page = tmp_path / "sparse", os.statvfs(tmp_path).f_bsize
    with file.open("wb") as out:
        os.posix_fallocate(out.fileno(), 0, 256 * page)  # room without data
        out.seek(1024 * page)  # a hole before it
        out.write(os.urandom(2 * page))
        out.flush()
        os.fsync(out.fileno())
    found = real_extents(file)
    if not found:
        pytest.skip("the file system of the temporary folder keeps files inline or compressed")
    assert sum(extent.length for extent in found) == 2 * page


def test_files_are_asked_for_in_calls_of_bounded_length() -> None:
    machine = FakeMachine({"filefrag": PINNED})
    names = [f"/data/{number}" for number in range(401)]
    assert len(extents.of_files(machine, names)) == 3 * 3
    assert [word for call in machine.calls for word in call.argv[3:]] == names
    assert {call.argv[:3] for call in machine.calls} == {("filefrag", "-v", "-s")}


def test_files_under_a_folder(tmp_path: Path) -> None:
    (tmp_path / "base" / "1").mkdir(parents=True)
    (tmp_path / "base" / "1" / "a\nb").write_text("x")
    (tmp_path / "base" / "two words").write_text("x")
    (tmp_path / "base" / "empty").touch()
    (tmp_path / "base" / "link").symlink_to("two words")
    found = extents.files_under(Local(), PurePosixPath(tmp_path / "base"))
    assert sorted(found) == [f"{tmp_path}/base/1/a\nb", f"{tmp_path}/base/two words"]


# In quarters of a block, so that extents often meet, overlap or share a block.
EXTENTS = st.lists(
    st.builds(
        Extent,
        st.integers(0, 160).map(lambda quarter: Bytes(quarter * BLOCK // 4)),
        st.integers(1, 12).map(lambda quarter: Bytes(quarter * BLOCK // 4)),
    ),
    max_size=12,
)
ORIGINS = st.integers(0, 50 * BLOCK).map(Bytes)


def blocks_of(runs: list[Run]) -> list[int]:
    return [block for run in runs for block in range(run.start, run.start + run.count)]


@given(EXTENTS, ORIGINS)
def test_runs_hold_exactly_the_blocks_of_the_extents(found: list[Extent], origin: Bytes) -> None:
    runs = to_runs(found, BLOCK, origin)
    touched = {
        block
        for extent in found
        for block in range(extent.start // BLOCK, (extent.start + extent.length - 1) // BLOCK + 1)
        if (block + 1) * BLOCK <= origin
    }
    assert blocks_of(runs) == sorted(touched)
    assert count(runs) == len(touched)


@given(EXTENTS, EXTENTS, st.integers(0, 40))
def test_what_is_left_of_the_cache_takes_free_blocks(
    used: list[Extent], free: list[Extent], more: int
) -> None:
    runs = to_runs(used, BLOCK, Bytes(99 * BLOCK))
    capacity = Blocks(count(runs) + more)
    both = blocks_of(extents.with_room(runs, sorted(free), BLOCK, capacity))
    added = set(both) - set(blocks_of(runs))
    quarter = BLOCK // 4
    free_quarters = {
        at
        for extent in free
        for at in range(extent.start // quarter, (extent.start + extent.length) // quarter)
    }
    whole = {at for at in range(99) if {4 * at + part for part in range(4)} <= free_quarters}
    whole -= set(blocks_of(runs))
    assert both == sorted(set(both))
    assert set(blocks_of(runs)) <= set(both)
    assert added <= whole
    assert len(added) == min(more, len(whole))


@given(EXTENTS, ORIGINS)
def test_runs_are_sorted_and_apart(found: list[Extent], origin: Bytes) -> None:
    runs = to_runs(found, BLOCK, origin)
    assert all(run.count > 0 for run in runs)
    assert all(one.start + one.count < two.start for one, two in pairwise(runs))
    assert all(type(run.start) is type(run.count) is Blocks for run in runs)


@given(EXTENTS, st.randoms(use_true_random=False))
def test_the_order_of_the_files_does_not_matter(found: list[Extent], random: object) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    origin = Bytes(50 * BLOCK)
    assert to_runs(shuffled, BLOCK, origin) == to_runs(found, BLOCK, origin)


@given(EXTENTS, EXTENTS, st.integers(0, 60).map(Blocks))
def test_what_is_joined_keeps_the_first_and_never_grows_too_large(
    found: list[Extent], more: list[Extent], capacity: Blocks
) -> None:
    runs = join_within([], to_runs(found, BLOCK, Bytes(50 * BLOCK)), capacity)
    others = to_runs(more, BLOCK, Bytes(50 * BLOCK))
    both = join_within(runs, others, capacity)
    kept, added = set(blocks_of(runs)), set(blocks_of(both)) - set(blocks_of(runs))
    assert kept <= set(blocks_of(both))
    new = [block for block in blocks_of(others) if block not in kept]
    assert sorted(added) == new[: max(0, capacity - len(kept))]
    assert count(both) <= max(capacity, count(runs))
    assert all(run.count > 0 for run in both)


def test_neighbours_become_one_run() -> None:
    found = [Extent(Bytes(at * BLOCK), BLOCK) for at in (5, 3, 4)]
    assert to_runs(found, BLOCK, Bytes(50 * BLOCK)) == [Run(Blocks(3), Blocks(3))]


def test_the_last_part_of_a_block_is_not_cached() -> None:
    origin = Bytes(3 * BLOCK + 4096)
    assert to_runs([Extent(Bytes(0), origin)], BLOCK, origin) == [Run(Blocks(0), Blocks(3))]
    assert to_runs([Extent(Bytes(3 * BLOCK), Bytes(4096))], BLOCK, origin) == []


# Arithmetic on runs, beside the same on sets of single blocks.
RUN_LISTS = st.sets(st.integers(0, 60)).map(runs_of)


@given(RUN_LISTS, RUN_LISTS)
def test_runs_behave_as_sets_of_blocks(one: list[Run], two: list[Run]) -> None:
    these, those = set(blocks_of(one)), set(blocks_of(two))
    assert union(one, two) == runs_of(these | those)
    assert difference(one, two) == runs_of(these - those)
    assert intersection(one, two) == runs_of(these & those)


@given(st.lists(st.builds(Run, st.integers(0, 60).map(Blocks), st.integers(0, 9).map(Blocks))))
def test_a_union_brings_any_runs_into_order(runs: list[Run]) -> None:
    assert union(runs) == runs_of(set(origin_blocks(runs)))


@given(st.permutations([Run(Blocks(at), Blocks(3)) for at in (40, 0, 20)]), st.integers(-1, 12))
def test_the_first_blocks_come_in_the_order_of_the_runs(runs: list[Run], blocks: int) -> None:
    assert list(origin_blocks(first(runs, blocks))) == list(origin_blocks(runs))[: max(0, blocks)]


@given(RUN_LISTS.filter(bool), st.data())
def test_blocks_are_found_by_their_place(runs: list[Run], data: st.DataObject) -> None:
    blocks = list(origin_blocks(runs))
    places = data.draw(st.lists(st.integers(0, len(blocks) - 1)))
    assert nth_blocks(runs, places) == [blocks[place] for place in places]


def test_a_terabyte_in_ten_thousand_extents_takes_no_memory() -> None:
    draw, size = random.Random(5), 2**40
    starts = sorted(draw.sample(range(0, 2 * size, 4096), 10_000))
    found = [
        Extent(Bytes(at), Bytes(min(size // 10_000, end - at) // 4096 * 4096))
        for at, end in pairwise([*starts, 2 * size])
    ]
    free = [Extent(Bytes(one.start + one.length), Bytes(65536 * 40)) for one in found]
    origin, capacity = Bytes(2 * size), Blocks(size // BLOCK // 2)
    tracemalloc.start()
    runs = join_within([], to_runs(found, BLOCK, origin), capacity)
    both = extents.with_room(runs, free, BLOCK, Blocks(capacity + 10_000))
    chosen = sample(both, 200)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count(runs) == capacity
    assert count(both) == capacity + 10_000
    assert len(chosen) >= 200
    assert peak < 30 * 2**20, "bytes"
