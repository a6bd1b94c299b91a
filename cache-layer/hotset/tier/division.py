"""A cache that keeps by itself to pins, exclusions and shares: whose it is to be, and how it is
divided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from hotset.block.extents import Run
from hotset.core.units import Blocks, Bytes


@dataclass(frozen=True, slots=True)
class Owner:
    """Blocks of the origin that are pinned or excluded together; ``name`` is what the user called
    them."""

    name: str
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class SharedOwner(Owner):
    """Blocks that have a share: others leave it ``guaranteed`` blocks of the cache, and it gets no
    more than ``most``."""

    guaranteed: Blocks
    most: Blocks


@dataclass(frozen=True, slots=True)
class Owners:
    """Whose the cache is to be. What is excluded wins over what is pinned, and that over shares. A
    share inside another, such as a table's in its database's, counts for both; so does what is
    pinned in it. The order means nothing."""

    pinned: tuple[Owner, ...] = ()
    excluded: tuple[Owner, ...] = ()
    shares: tuple[SharedOwner, ...] = ()

    @property
    def every(self) -> tuple[Owner, ...]:
        return (*self.pinned, *self.excluded, *self.shares)

    def runs_of(self, name: str) -> tuple[Run, ...] | None:
        """Return the runs of an owner; None if there is none of that name."""
        return next((share.runs for share in self.every if share.name == name), None)


@dataclass(frozen=True, slots=True)
class Part:
    """Cache use of an owner and those inside it: their own blocks, those of them that are cached,
    what others leave them and what they may have."""

    name: str
    blocks: Blocks
    resident: Blocks
    guaranteed: Blocks
    most: Blocks


@dataclass(frozen=True, slots=True)
class Division:
    """How a cache of ``total`` blocks is divided, of which ``available`` can be promised; so many
    have still ``to_leave`` before it is so."""

    block: Bytes
    total: Blocks
    available: Blocks
    pinned: Part
    excluded: Part
    shares: tuple[Part, ...]
    to_leave: Blocks


class Divisible(Protocol):
    """Cache that can be divided among owners; its disk is active."""

    def owners(self) -> Owners:
        """Return the owners of the last :meth:`divide`."""

    def division(self) -> Division:
        """How the cache is divided."""

    def divide(self, owners: Owners, on_left: Callable[[Blocks], None] = ...) -> None:
        """Divide it, while the disk is in use, and wait until what has no place any more has left.

        :param on_left: called now and then with how many blocks have still to leave.
        :raises RequestError: more is pinned or guaranteed than fits; all is as it was.
        :raises TierFailedError: it cannot be kept, and all is as it was; or blocks do not leave.
        """
