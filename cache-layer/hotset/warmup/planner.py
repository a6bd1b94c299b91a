"""A warm-up's plan: what is wanted, in the order of importance, against the room there is.

Pinned comes first, excluded never; then the targets as they were named. Each takes what is not
taken yet, until the cache is full. Nothing here asks a machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hotset.block.extents import Run, count, difference, first, intersection, union
from hotset.core.units import Blocks, Bytes


@dataclass(frozen=True, slots=True)
class PlanTarget:
    """A target and the blocks it stands for: ``layers``, the most important first, each runs in
    origin order (a file has one; a snapshot one per level).

    :ivar is_asked: somebody named it; the file system's own blocks come along by themselves.
    """

    name: str
    extents: int
    layers: tuple[list[Run], ...]
    pinned: bool = False
    is_asked: bool = True


@dataclass(frozen=True, slots=True)
class Row:
    """What a plan does with a target, in cache blocks.

    ``blocks`` are its own: neither excluded nor another target's before it. Of those, ``taken``
    will be cached, ``resident`` of the taken are so already, ``left_out`` have no room.
    """

    name: str
    pinned: bool
    extents: int
    blocks: Blocks
    taken: Blocks
    resident: Blocks
    is_asked: bool

    @property
    def left_out(self) -> Blocks:
        return Blocks(self.blocks - self.taken)

    @property
    def missing(self) -> Blocks:
        return Blocks(self.taken - self.resident)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to have cached: ``runs``, in origin order; and where they come from."""

    rows: tuple[Row, ...]
    runs: list[Run]
    missing: list[Run]
    block: Bytes
    capacity: Blocks

    @property
    def bytes(self) -> Bytes:
        """What has to be fetched."""
        return count(self.missing).bytes(self.block)

    @property
    def left_out(self) -> Bytes:
        """What was asked for and has no room."""
        asked = (row for row in self.rows if row.is_asked)
        return Blocks(sum(row.left_out for row in asked)).bytes(self.block)

    def seconds(self, origin_mb_per_s: float) -> float:
        """What fetching takes at the origin's sequential rate, in 10^6 bytes a second."""
        return self.bytes / 1e6 / origin_mb_per_s


def build_plan(
    wishes: Iterable[PlanTarget],
    excluded: Sequence[Run],
    resident: Sequence[Run],
    block: Bytes,
    capacity: Blocks,
) -> Plan:
    """The plan for wishes in the order of importance; pinned ones come before the others.

    :param excluded: never taken, whoever wishes for it.
    :param resident: what is cached now.
    """
    taken: list[Run] = []
    rows = []
    for wish in sorted(wishes, key=lambda one: not one.pinned):
        own, mine = list[Run](), list[Run]()
        for layer in wish.layers:
            new = difference(layer, union(excluded, taken, own))
            room = capacity - count(taken) - count(mine)
            own, mine = union(own, new), union(mine, first(new, room))
        taken = union(taken, mine)
        rows.append(
            Row(
                wish.name,
                wish.pinned,
                wish.extents,
                count(own),
                count(mine),
                count(intersection(mine, resident)),
                wish.is_asked,
            )
        )
    return Plan(tuple(rows), taken, difference(taken, resident), block, capacity)
