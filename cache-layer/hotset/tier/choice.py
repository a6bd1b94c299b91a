"""Requested properties of a tier, and the choices of a kind of tier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hotset.core.errors import RequestError
from hotset.core.units import Bytes

from .base import TierSpec, WriteMode
from .disk_tier import metadata_bytes

DatabaseKind = Literal["oltp", "warehouse"]
_BLOCKS: dict[DatabaseKind, Bytes] = {"oltp": Bytes(64 * 1024), "warehouse": Bytes(256 * 1024)}
_BLOCKS_MAX = 1024**2
"""The kernel warns of wasted memory above (dm-cache-target.c), and LVM keeps below it."""
_STEP = 1024**2
"""Unit of the sizes of an experiment's tier."""


class ChoiceError(RequestError):
    """A size that the kind of tier cannot have; the message names option, value and remedy."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a tier is to behave, and a line for each thing that was chosen."""

    spec: TierSpec
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Requested properties of a disk's tier. ``block`` and ``policy``: None lets the kind pick, by
    the kind of database.

    :ivar flash: size of the whole flash: a cache that grows to it needs metadata as large, which
        some kinds cannot enlarge later.
    :ivar database_size: how large the database is; None if nobody has said.
    """

    database: DatabaseKind
    mode: WriteMode
    cache: Bytes
    volume: Bytes
    flash: Bytes
    block: Bytes | None
    policy: str | None
    database_size: Bytes | None = None


@dataclass(frozen=True, slots=True)
class Sizes:
    """An experiment's tier. None: ``policy`` is the kind's own, ``metadata`` as much as the cache
    needs."""

    mode: WriteMode
    policy: str | None
    block: Bytes
    metadata: Bytes | None
    cache: Bytes
    volume: Bytes

    def in_blocks(self, policy: str) -> TierSpec:
        """Build the specification of a kind whose cache is of whole blocks.

        :param policy: the kind's own.
        """
        cache = self.cache.align_down(self.block)
        metadata = metadata_bytes(cache, self.block) if self.metadata is None else self.metadata
        volume = self.volume.align_down(_STEP)
        return TierSpec(self.mode, self.policy or policy, self.block, metadata, cache, volume)

    def without_blocks(self, policy: str, block: Bytes, metadata: Bytes) -> TierSpec:
        """Build the specification of a kind that caches any length of request.

        :param block: the unit of plans and counters.
        """
        cache, volume = self.cache.align_down(_STEP), self.volume.align_down(_STEP)
        return TierSpec(self.mode, policy, block, metadata, cache, volume, Bytes(0))


def block_of(
    wanted: Wanted,
    check: Callable[[Bytes], Bytes],
    block_max: Bytes,
    suits: tuple[Bytes, str] | None = None,
) -> tuple[Bytes, str]:
    """The size of a cache's blocks, and why: the one that is asked for, or the database's.

    :param check: raises a ``ValueError`` for what the kind does not take.
    :param suits: choice of the kind in place of the database's, and why.
    :raises ChoiceError: the kind does not take it, or the cache is smaller than one.
    """
    size, why = suits or (_usual(wanted, block_max), f"for {wanted.database}")
    if wanted.block:
        size, why = _check_size(check, wanted.block), "asked for"
    if wanted.cache < size:
        raise ChoiceError(
            f"a cache of {wanted.cache} is smaller than one block of {size}: ask for more",
            field="cache",
        )
    return size, f"block {size} ({why}): {wanted.cache // size:,} cache blocks, each cached whole"


def _check_size(check: Callable[[Bytes], Bytes], block: Bytes) -> Bytes:
    try:
        return check(block)
    except ValueError as error:
        raise ChoiceError(str(error), field="block") from None


def _usual(wanted: Wanted, block_max: Bytes) -> Bytes:
    """The database's block size, doubled until the kernel need not keep too many of them."""
    block = int(_BLOCKS[wanted.database])
    while wanted.cache // block > _BLOCKS_MAX:
        block *= 2
    return Bytes(min(block, block_max))
