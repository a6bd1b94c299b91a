"""Facts of a kind of tier before there is a disk of it. What such a disk does is asked of
its `DiskTier`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Literal, assert_never

from hotset.block import loop
from hotset.block.devicemapper import IN_USER_SPACE, PREFIX, Place, mapper_path
from hotset.core.errors import Remedy
from hotset.core.machines.base import Machine
from hotset.core.units import Bytes

from .base import Counting, TierKind, TierSpec
from .choice import Choice, Sizes, Wanted
from .disk_tier import DiskTier
from .policies import by_policy

_ANY = Bytes(0)
MadeBy = Literal["mapper", "loop"]
"""Maker of the devices on a flash device: the kernel's device mapper, or loop devices."""


def any_size(block: Bytes) -> Bytes:
    """A kind without blocks takes every size of them."""
    return block


def no_memory(_spec: TierSpec, _origin: Bytes) -> Bytes:
    """The kernel's caches take the kernel's."""
    return Bytes(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of tier: each keeps its own in its folder, and :mod:`.kinds` lists them.

    :ivar in_kernel: the kernel has the cache, so a machine has the kind or has it not.
    :ivar made_by: what makes its devices; a flash device has tiers of one make only.
    :ivar takes_files: origin and flash may be files.
    :ivar keeps_sectors: the accelerated device has the origin's sectors, whatever the flash's are.
    :ivar programs: programs it needs, beside what `looks` look at.
    :ivar looks: each raises a `PrerequisiteMissingError` where a machine cannot have it; the first
        that does is told.
    :ivar tier: the tier of a disk, by its specification, its place and its UUID.
    :ivar choose: turns a request into a choice; raises a `ChoiceError`.
    :ivar spec: turns an experiment's sizes into a specification.
    :ivar check_block: raises a ``ValueError`` for a size that its blocks cannot have.
    :ivar check_policy: raises a ``ValueError`` for a policy that an experiment's file cannot have
        with it.
    :ivar memory: most memory of its own process, by the origin's size.
    :ivar cache_min: a smaller cache cannot be had.
    :ivar policies: among which there is a choice, the default first; none: it has one of its own.
    :ivar divides: its cache itself keeps to pins, exclusions and shares; else only warm-ups do.
    :ivar pauses: its requests wait while somebody reads what is cached.
    :ivar is_told_to_count: regions are counted once that is asked for; else always, if at all, so
        that nobody pays for it.
    :ivar fillable: of a cache, what can be filled so that all of it stays.
    :ivar grown: of a cache smaller than the origin, how full of files and free space it may be
        made; 0: growth hits anyhow, so that free space would only use up its room.
    :ivar counting: how it counts.
    :ivar counted_by: whose word its figures are.
    :ivar counted_since: since when, and what of it.
    :ivar what_next: what it will do next with blocks, as `policies.by_policy`.
    """

    name: TierKind
    in_kernel: bool
    made_by: MadeBy
    takes_files: bool
    keeps_sectors: bool
    programs: tuple[str, ...]
    looks: tuple[Callable[[Machine], None], ...]
    tier: Callable[[Machine, TierSpec, Place, str], DiskTier]
    choose: Callable[[Wanted], Choice]
    spec: Callable[[Sizes], TierSpec]
    check_policy: Callable[[str], None]
    divides: bool
    pauses: bool
    is_told_to_count: bool
    counting: Counting
    counted_by: str
    counted_since: str
    check_block: Callable[[Bytes], Bytes] = any_size
    memory: Callable[[TierSpec, Bytes], Bytes] = no_memory
    cache_min: Bytes = _ANY
    policies: tuple[str, ...] = ()
    fillable: Fraction = Fraction(1)
    grown: Fraction = Fraction(3, 4)
    what_next: Callable[[TierSpec, bool, float], list[str]] = by_policy

    @property
    def instead(self) -> tuple[Remedy, ...]:
        """Remedies where a machine cannot have it."""
        return (IN_USER_SPACE,) if self.in_kernel else ()

    def device(self, disk: str) -> PurePosixPath:
        """The accelerated device of a disk's name."""
        match self.made_by:
            case "mapper":
                return mapper_path(f"{PREFIX}{disk}")
            case "loop":
                return loop.FOLDER / disk
            case other:
                assert_never(other)
