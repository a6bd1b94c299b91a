"""Mappings of a dm-cache's metadata: which origin block lies in which cache block (a *slot*).

Read from ``cache_dump`` and written for ``cache_restore`` (thin-provisioning-tools), changed in
between: room is made for what is wanted, and that is given places. Arrays, since a cache has up to
a million slots; what is copied stays runs.
"""

from __future__ import annotations

import re
from array import array
from base64 import b64decode, b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from hotset.block.extents import Run, count, runs_of
from hotset.core.units import Blocks, Bytes

from ..disk_tier import HOTTEST

_FREE = -1
_HINT_BYTES = 4
_ENTRY = re.compile(
    r'<mapping cache_block="(\d+)" origin_block="(\d+)" dirty="(true|false)"'
    r'|<hint cache_block="(\d+)" data="([^"]*)"'
)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of the origin and the first of the consecutive slots it goes to."""

    run: Run
    slot: Blocks

    @property
    def slots(self) -> Run:
        return Run(self.slot, self.run.count)


class Slots:
    """The slots of a cache: the origin block and the level of each, or nothing."""

    def __init__(self, capacity: Blocks) -> None:
        self._dirty = bytearray(capacity)
        self._origin = array("q", [_FREE]) * capacity
        self._level = bytearray(capacity)

    @classmethod
    def parse(cls, dump: str, capacity: Blocks) -> Slots:
        """Read what ``cache_dump`` prints; a block without a hint is at level 1, as smq has it."""
        slots = cls(capacity)
        for entry in _ENTRY.finditer(dump):
            slot, origin, state, hinted, hint = entry.groups()
            if slot is not None:
                slots._origin[int(slot)] = int(origin)
                slots._level[int(slot)] = 1
                slots._dirty[int(slot)] = state == "true"
            else:
                slots._level[int(hinted)] = _level(hint)
        return slots

    @property
    def dirty(self) -> int:
        """How many blocks count as dirty."""
        return sum(self._dirty)

    def all_dirty(self) -> None:
        """Take every block that is cached for dirty."""
        self._dirty = bytearray(origin != _FREE for origin in self._origin)

    def levels_of(self, earlier: Slots) -> None:
        """Take the levels from an earlier reading, where a slot still holds the same block."""
        same = map(int.__eq__, self._origin, earlier._origin)
        for slot, is_same in enumerate(same):
            if is_same:
                self._level[slot] = earlier._level[slot]

    def runs(self) -> list[Run]:
        """List the cached runs, in origin order."""
        return runs_of(origin for origin in self._origin if origin != _FREE)

    def by_level(self) -> dict[int, list[Run]]:
        """Group the cached runs by level."""
        levels: dict[int, list[int]] = {}
        for origin, level in zip(self._origin, self._level, strict=True):
            if origin != _FREE:
                levels.setdefault(level, []).append(origin)
        return {level: runs_of(blocks) for level, blocks in levels.items()}

    def clear(self) -> None:
        """Forget everything."""
        self._origin = array("q", [_FREE]) * len(self._origin)
        self._level = bytearray(len(self._level))
        self._dirty = bytearray(len(self._dirty))

    def make_room(self, wanted: Sequence[Run]) -> int:
        """Forget as much as the wanted blocks need: what is not wanted, the coldest first.

        Wanted blocks that are there become as hot as can be. Returns how many were forgotten.

        :raises ValueError: more is wanted than the cache has slots.
        """
        if count(wanted) > len(self._origin):
            raise ValueError(
                f"{count(wanted)} blocks do not fit a cache of {len(self._origin)} blocks"
            )
        held = _membership(wanted)
        free, kept, others = 0, 0, list[int]()
        for slot, origin in enumerate(self._origin):
            if origin == _FREE:
                free += 1
            elif held(origin):
                kept += 1
                self._level[slot] = HOTTEST
            else:
                others.append(slot)
        leaving = max(0, count(wanted) - kept - free)
        for slot in sorted(others, key=self._level.__getitem__)[:leaving]:
            self._origin[slot] = _FREE
            self._dirty[slot] = False
        return leaving

    def places(self, new: Iterable[Run]) -> list[Piece]:
        """Free slots for blocks that are not cached yet, both in ascending order."""
        free = iter(runs_of(slot for slot, at in enumerate(self._origin) if at == _FREE))
        pieces: list[Piece] = []
        room = Run(Blocks(0), Blocks(0))
        for run in new:
            start, left = int(run.start), int(run.count)
            while left:
                if room.count == 0:
                    room = next(free)
                taken = min(left, room.count)
                pieces.append(Piece(Run(Blocks(start), Blocks(taken)), room.start))
                room = Run(Blocks(room.start + taken), Blocks(room.count - taken))
                start, left = start + taken, left - taken
        return pieces

    def fill(self, pieces: Iterable[Piece]) -> None:
        """The pieces' slots hold their blocks, as hot as can be."""
        for piece in pieces:
            slots = slice(piece.slot, piece.slot + piece.run.count)
            self._origin[slots] = array(
                "q", range(piece.run.start, piece.run.start + piece.run.count)
            )
            self._level[slots] = bytes([HOTTEST]) * piece.run.count
            self._dirty[slots] = bytes(piece.run.count)

    def xml(self, block: Bytes, policy: str) -> Iterator[str]:
        """Generate the input of ``cache_restore``, line by line, each block's level as its hint."""
        yield (
            f'<superblock uuid="" block_size="{int(block.sectors)}"'
            f' nr_cache_blocks="{len(self._origin)}" policy="{policy}"'
            f' hint_width="{_HINT_BYTES}">\n'
        )
        yield "<mappings>\n"
        for slot, origin in enumerate(self._origin):
            if origin != _FREE:
                dirty = "true" if self._dirty[slot] else "false"
                yield f'<mapping cache_block="{slot}" origin_block="{origin}" dirty="{dirty}"/>\n'
        yield "</mappings>\n<hints>\n"
        for slot, origin in enumerate(self._origin):
            if origin != _FREE:
                yield f'<hint cache_block="{slot}" data="{_hint(self._level[slot])}"/>\n'
        yield "</hints>\n</superblock>\n"


def parts(pieces: Iterable[Piece], blocks: int) -> Iterator[list[Piece]]:
    """The pieces in parts of so many blocks (the last has what is left)."""
    part, room = list[Piece](), blocks
    for piece in pieces:
        start, slot, left = int(piece.run.start), int(piece.slot), int(piece.run.count)
        while left:
            taken = min(left, room)
            part.append(Piece(Run(Blocks(start), Blocks(taken)), Blocks(slot)))
            start, slot, left, room = start + taken, slot + taken, left - taken, room - taken
            if room == 0:
                yield part
                part, room = [], blocks
    if part:
        yield part


def _membership(runs: Sequence[Run]) -> Callable[[int], bool]:
    starts = [int(run.start) for run in runs]
    ends = [run.start + run.count for run in runs]

    def holds(block: int) -> bool:
        at = bisect_right(starts, block) - 1
        return at >= 0 and block < ends[at]

    return holds


@cache
def _level(hint: str) -> int:
    """smq's hint is its level, little-endian; whatever is above is the highest, as smq reads it."""
    return min(int.from_bytes(b64decode(hint), "little"), HOTTEST)


@cache
def _hint(level: int) -> str:
    return b64encode(level.to_bytes(_HINT_BYTES, "little")).decode()
