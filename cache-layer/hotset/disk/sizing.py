"""Defaults of a tier by the kind of database, and why: shown by ``hotset tier create``.

OLTP reads and writes single pages all over its hot set: small blocks, writes held back on flash,
nothing bypassed. A warehouse scans: larger blocks, writes that reach the origin at once (they are
few, and nothing is lost with the flash), long scans past the cache where the kernel can do so.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from hotset.core.errors import Remedy
from hotset.core.units import Bytes
from hotset.tier import kinds
from hotset.tier.base import TierKind, WriteMode
from hotset.tier.choice import Choice, ChoiceError, DatabaseKind, Wanted

KernelKind = Literal["dm-cache", "bcache"]
_MODES: dict[DatabaseKind, WriteMode] = {"oltp": "writeback", "warehouse": "writethrough"}


def choose(
    kind: TierKind,
    database: DatabaseKind,
    cache: Bytes,
    volume: Bytes,
    flash: Bytes,
    mode: WriteMode | None,
    block: Bytes | None,
    policy: str | None = None,
    database_size: Bytes | None = None,
) -> Choice:
    """:param flash: size of the whole flash: dm-cache's metadata is made large enough for a cache
        that grows to it (its size cannot be changed later). So with the cache in user space.
    :param mode: requested mode; None picks. So with ``block``.
    :param database_size: None if nobody has said; the user-space engine picks its blocks by it.
    :raises ChoiceError: sizes that the kind cannot have.
    """
    written = mode or _MODES[database]
    if written == "writeback":
        cost = "writes are done when the flash has them; what is dirty is lost with the flash"
    else:
        cost = "writes are done when the origin has them; nothing is lost with the flash"
    first = f"mode {written} ({'asked for' if mode else f'for {database}'}): {cost}"
    known = kinds.kind_of_name(kind)
    if policy is not None and not known.policies:
        raise ChoiceError(
            f"{kind} has no choice of policies: leave the policy out",
            Remedy("choose among policies", parameters={"kind": "userspace"}),
            field="policy",
        )
    if database_size is not None and not known.policies:
        raise ChoiceError(
            f"{kind} has the same blocks for a database of every size: leave that out",
            Remedy("have it pick by the database's size", parameters={"kind": "userspace"}),
            field="database_size",
        )
    wanted = Wanted(database, written, cache, volume, flash, block, policy, database_size)
    chosen = known.choose(wanted)
    return replace(chosen, reasons=(first, *chosen.reasons))
