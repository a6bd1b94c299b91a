"""hotset's own engine, before there is a disk of it."""

from __future__ import annotations

import platform

from hotset.core.machines.base import Machine, PrerequisiteMissingError
from hotset.core.units import Bytes

from ..base import TierSpec
from ..choice import Choice, ChoiceError, Sizes, Wanted, block_of
from ..disk_tier import metadata_bytes
from ..kind import Kind
from ..policies import POLICIES
from .control import COUNTING
from .tier import BLOCK_MAX, Userspace, check_block, require

_SMALL_BLOCK = Bytes(16 * 1024)
"""Block of a cache for less than a third of an OLTP database: its pages are wanted one by one,
and large blocks bring in neighbours in place of what else is wanted
(``reports/published/20261122-small-caches``)."""


def _suits(wanted: Wanted) -> tuple[Bytes, str] | None:
    size = wanted.database_size
    if wanted.database != "oltp" or size is None or wanted.cache * 3 >= size:
        return None
    return _SMALL_BLOCK, f"for a cache of less than a third of an oltp database of {size}"


def _choose(wanted: Wanted) -> Choice:
    size, block = block_of(wanted, check_block, BLOCK_MAX, _suits(wanted))
    chosen = wanted.policy or POLICIES[0]
    if chosen not in POLICIES:
        raise ChoiceError(
            f"policy {chosen!r} is unknown: give one of {', '.join(POLICIES)}",
            field="policy",
        )
    kept = "it keeps what is used again, and no scan pushes that out"
    why = "asked for" if wanted.policy else kept
    reasons = (block, f"policy {chosen} ({why}): it can be changed while the disk is in use")
    metadata = metadata_bytes(wanted.flash, size)
    spec = TierSpec(wanted.mode, chosen, size, metadata, wanted.cache, wanted.volume)
    return Choice(spec, reasons)


def _spec(sizes: Sizes) -> TierSpec:
    return sizes.in_blocks(POLICIES[0])


def _any_policy(policy: str) -> None:
    """An experiment's file names none but its policies."""


def _runs_the_engine(machine: Machine) -> None:
    processor, here = machine.run(["uname", "-m"]).stdout.strip(), platform.machine()
    if processor != here:
        raise PrerequisiteMissingError(
            f"its processor is {processor}, and the engine was built here for {here}: run hotset"
            " there"
        )


_MEMORY, _MEMORY_OF_SLOT = Bytes(35 * 10**6), 54
"""Memory of the process without a cache, and for each block that the cache has room for, with
the policy that takes most (measured: ``crates/README.md``)."""
_BY_BLOCK, _SPARSE_FROM, _SPARSE = 4, 16, 80
"""And by block of the origin, as ``ByBlock`` keeps it (``cache-core/src/policy/by_block.rs``)."""


def _memory(spec: TierSpec, origin: Bytes) -> Bytes:
    slots, blocks = int(spec.cache // spec.block), int(-(-origin // spec.block))
    by_block = blocks * _BY_BLOCK if blocks <= slots * _SPARSE_FROM else slots * _SPARSE
    return Bytes(_MEMORY + slots * _MEMORY_OF_SLOT + by_block)


USERSPACE = Kind(
    name="userspace",
    in_kernel=False,
    made_by="loop",
    takes_files=True,
    keeps_sectors=True,
    programs=("losetup", "mount", "umount", "findmnt", "flock", "setsid"),
    looks=(require, _runs_the_engine),
    tier=Userspace,
    choose=_choose,
    spec=_spec,
    check_block=check_block,
    check_policy=_any_policy,
    memory=_memory,
    policies=POLICIES,
    divides=True,
    pauses=False,
    is_told_to_count=False,
    counting=COUNTING,
    counted_by="engine",
    counted_since="since the engine started it",
)
