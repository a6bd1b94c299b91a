"""A warm-up's plan against the room there is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hotset.block.extents import Run, count, runs_of
from hotset.core.units import Blocks, Bytes
from hotset.warmup import plan as planner
from hotset.warmup.targets import PlanTarget
from tests.blocks import origin_blocks

BLOCK = Bytes(64 * 1024)
BLOCKS = st.sets(st.integers(0, 60), max_size=30)
WISHES = st.lists(st.tuples(st.lists(BLOCKS, min_size=1, max_size=3), st.booleans()), max_size=4)


def run(start: int, number: int) -> Run:
    return Run(Blocks(start), Blocks(number))


@given(WISHES, BLOCKS, BLOCKS, st.integers(0, 60))
def test_a_plan_is_what_naive_sets_come_to(
    given_: list[tuple[list[set[int]], bool]],
    excluded: set[int],
    resident: set[int],
    capacity: int,
) -> None:
    wishes = [
        PlanTarget(str(number), 1, tuple(map(runs_of, layers)), pinned)
        for number, (layers, pinned) in enumerate(given_)
    ]
    plan = planner.build_plan(wishes, runs_of(excluded), runs_of(resident), BLOCK, Blocks(capacity))
    taken: set[int] = set()
    order = sorted(range(len(given_)), key=lambda number: not given_[number][1])
    assert [row.name for row in plan.rows] == [str(number) for number in order]
    for number, row in zip(order, plan.rows, strict=True):
        own: list[int] = []
        for layer in given_[number][0]:
            own += [at for at in sorted(layer) if at not in excluded | taken and at not in own]
        mine = own[: capacity - len(taken)]
        assert (row.blocks, row.taken) == (len(own), len(mine))
        assert row.resident == len(resident & set(mine))
        assert (row.left_out, row.missing) == (len(own) - len(mine), len(set(mine) - resident))
        taken |= set(mine)
    assert set(origin_blocks(plan.runs)) == taken
    assert set(origin_blocks(plan.missing)) == taken - resident
    assert plan.bytes == len(taken - resident) * BLOCK


def test_seconds_are_bytes_over_the_origins_rate() -> None:
    plan = planner.build_plan(
        [PlanTarget("a", 1, ([run(0, 100)],))], [], [run(0, 20)], BLOCK, Blocks(90)
    )
    assert plan.seconds(100.0) == 70 * BLOCK / 1e8
    assert count(plan.runs) == 90


def test_what_comes_along_by_itself_was_not_asked_for() -> None:
    """A file system's journal that has no room is no part of a target that did not fit."""
    file = PlanTarget("a", 1, ([run(0, 60)],))
    own = PlanTarget("file system", 1, ([run(60, 80)],), is_asked=False)
    plan = planner.build_plan([file, own], [], [], BLOCK, Blocks(90))
    assert [row.left_out for row in plan.rows] == [0, 50]
    assert plan.left_out == 0
    assert planner.build_plan([file], [], [], BLOCK, Blocks(50)).left_out == 10 * BLOCK
