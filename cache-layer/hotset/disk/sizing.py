"""What the kind of database picks for a tier, and why: said by ``hotset tier create``.

OLTP reads and writes single pages all over its hot set: small blocks, writes held back on flash,
nothing bypassed. A warehouse scans: larger blocks, writes that reach the origin at once (they are
few, and nothing is lost with the flash), long scans past the cache where the kernel can do so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hotset.core.errors import Remedy, RequestError
from hotset.core.units import Bytes
from hotset.tier.base import TierKind, TierSpec, WriteMode
from hotset.tier.bcache import tier as bcache
from hotset.tier.disk_tier import metadata_bytes
from hotset.tier.dmcache import tier as dmcache
from hotset.tier.engine import tier as userspace
from hotset.tier.policies import POLICIES

KernelKind = Literal["dm-cache", "bcache"]
DatabaseKind = Literal["oltp", "warehouse"]
_BLOCKS: dict[DatabaseKind, Bytes] = {"oltp": Bytes(64 * 1024), "warehouse": Bytes(256 * 1024)}
_MODES: dict[DatabaseKind, WriteMode] = {"oltp": "writeback", "warehouse": "writethrough"}
_BLOCKS_MAX = 1024**2
"""The kernel warns of wasted memory above (dm-cache-target.c), and LVM keeps below it."""
_CUTOFF = Bytes(4 * 1024**2)


class ChoiceError(RequestError):
    """A size that the kind of tier cannot have; the message names option, value and remedy."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How a tier is to behave, and a line for each thing that was chosen."""

    spec: TierSpec
    reasons: tuple[str, ...]


def choose(
    kind: TierKind,
    database: DatabaseKind,
    cache: Bytes,
    volume: Bytes,
    flash: Bytes,
    mode: WriteMode | None,
    block: Bytes | None,
    policy: str | None = None,
) -> Choice:
    """:param flash: size of the whole flash: dm-cache's metadata is made large enough for a cache
        that grows to it (its size cannot be changed later). So with the cache in user space.
    :param mode: what was asked for; None picks. So with ``block``.
    :raises ChoiceError: sizes that the kind cannot have.
    """
    written = mode or _MODES[database]
    if written == "writeback":
        cost = "writes are done when the flash has them; what is dirty is lost with the flash"
    else:
        cost = "writes are done when the origin has them; nothing is lost with the flash"
    reasons = [f"mode {written} ({'asked for' if mode else f'for {database}'}): {cost}"]
    if policy is not None and kind != "userspace":
        raise ChoiceError(
            f"{kind} has no choice of policies: leave the policy out",
            Remedy("choose among policies", parameters={"kind": "userspace"}),
            field="policy",
        )
    if kind == "bcache":
        return _bcache(database, written, cache, volume, block, reasons)
    check = userspace.check_block if kind == "userspace" else dmcache.check_block
    size = _checked(check, block) if block else _block(database, cache)
    if cache < size:
        raise ChoiceError(
            f"a cache of {cache} is smaller than one block of {size}: ask for more", field="cache"
        )
    why = "asked for" if block else f"for {database}"
    reasons.append(f"block {size} ({why}): {cache // size:,} cache blocks, each cached whole")
    if kind == "userspace":
        return _userspace(database, written, cache, volume, flash, size, policy, reasons)
    reasons.append("policy smq: the kernel's own; it promotes by heat, of reads and writes alike")
    scans = "a scan that is larger than the cache may push hot blocks out"
    remedy = {
        "oltp": "keep reports and backups short, or warm up again after them",
        "warehouse": "bcache sends long scans past the cache",
    }[database]
    reasons.append(f"bypass none: dm-cache has no sequential bypass; {scans}: {remedy}")
    metadata = metadata_bytes(flash, size)
    return Choice(TierSpec(written, "smq", size, metadata, cache, volume), tuple(reasons))


def _userspace(
    database: DatabaseKind,
    written: WriteMode,
    cache: Bytes,
    volume: Bytes,
    flash: Bytes,
    size: Bytes,
    policy: str | None,
    reasons: list[str],
) -> Choice:
    del database
    chosen = policy or POLICIES[0]
    if chosen not in POLICIES:
        raise ChoiceError(
            f"policy {chosen!r} is unknown: give one of {', '.join(POLICIES)}",
            field="policy",
        )
    why = "asked for" if policy else "it keeps what is used again, and no scan pushes that out"
    reasons.append(f"policy {chosen} ({why}): it can be changed while the disk is in use")
    metadata = metadata_bytes(flash, size)
    return Choice(TierSpec(written, chosen, size, metadata, cache, volume), tuple(reasons))


def _bcache(
    database: DatabaseKind,
    written: WriteMode,
    cache: Bytes,
    volume: Bytes,
    block: Bytes | None,
    reasons: list[str],
) -> Choice:
    if block is not None:
        raise ChoiceError(
            "bcache has no cache blocks, it caches what was requested: leave the block out",
            Remedy("have cache blocks", parameters={"kind": "dm-cache"}),
            field="block",
        )
    if cache < bcache.CACHE_MIN:
        raise ChoiceError(
            f"a cache of {cache} is too small: bcache needs at least {bcache.CACHE_MIN}",
            field="cache",
        )
    bucket = bcache.bucket_bytes(cache)
    reasons.append(f"buckets of {bucket}: what is replaced at a time; least recently used first")
    if database == "oltp":
        reasons.append("bypass none (sequential_cutoff 0): warm-ups and all reads are cached")
    else:
        reasons.append(
            f"bypass {_CUTOFF} (sequential_cutoff): longer scans and backups go past the cache and"
            " leave the hot set alone"
        )
    reasons.append("congestion thresholds 0: a busy flash is no reason to bypass it")
    bypass = _CUTOFF if database == "warehouse" else Bytes(0)
    spec = TierSpec(written, "lru", bcache.BLOCK, bcache.HEADER, cache, volume, bypass)
    return Choice(spec, tuple(reasons))


def _checked(check: Callable[[Bytes], Bytes], block: Bytes) -> Bytes:
    try:
        return check(block)
    except ValueError as error:
        raise ChoiceError(str(error), field="block") from None


def _block(database: DatabaseKind, cache: Bytes) -> Bytes:
    """The database's block size, doubled until the kernel need not keep too many of them."""
    block = int(_BLOCKS[database])
    while cache // block > _BLOCKS_MAX:
        block *= 2
    return Bytes(min(block, dmcache.BLOCK_MAX))
