"""bcache, before there is a disk of it.

What it does next with blocks: ``check_should_bypass`` and ``cached_dev_cache_miss`` in
drivers/md/bcache/request.c, ``invalidate_buckets`` in alloc.c.
"""

from __future__ import annotations

from fractions import Fraction

from hotset.block import devicemapper
from hotset.core.errors import Remedy
from hotset.core.machines.base import Machine
from hotset.core.units import Bytes

from ..base import TierSpec
from ..choice import Choice, ChoiceError, Sizes, Wanted
from ..kind import Kind
from ..policies import ALL, NONE
from .tier import BLOCK, CACHE_MIN, COUNTING, HEADER, Bcache, bucket_bytes

_POLICY = "lru"
_CUTOFF = Bytes(4 * 1024**2)


def _choose(wanted: Wanted) -> Choice:
    if wanted.block is not None:
        raise ChoiceError(
            "bcache has no cache blocks, it caches what was requested: leave the block out",
            Remedy("have cache blocks", parameters={"kind": "dm-cache"}),
            field="block",
        )
    if wanted.cache < CACHE_MIN:
        raise ChoiceError(
            f"a cache of {wanted.cache} is too small: bcache needs at least {CACHE_MIN}",
            field="cache",
        )
    bucket = bucket_bytes(wanted.cache)
    reasons = [f"buckets of {bucket}: what is replaced at a time; least recently used first"]
    if wanted.database == "oltp":
        reasons.append("bypass none (sequential_cutoff 0): warm-ups and all reads are cached")
    else:
        reasons.append(
            f"bypass {_CUTOFF} (sequential_cutoff): longer scans and backups go past the cache and"
            " leave the hot set alone"
        )
    reasons.append("congestion thresholds 0: a busy flash is no reason to bypass it")
    bypass = _CUTOFF if wanted.database == "warehouse" else Bytes(0)
    spec = TierSpec(wanted.mode, _POLICY, BLOCK, HEADER, wanted.cache, wanted.volume, bypass)
    return Choice(spec, tuple(reasons))


def _spec(sizes: Sizes) -> TierSpec:
    return sizes.without_blocks(_POLICY, BLOCK, HEADER)


def _check_policy(policy: str) -> None:
    # smq: of a file that was written for the other cache of the kernel's.
    if policy not in ("smq", _POLICY):
        raise ValueError(f"bcache has only {_POLICY!r}; leave it out")


def _modules(machine: Machine) -> None:
    devicemapper.load(machine, "bcache")


def _next(spec: TierSpec, full: bool, resident: float) -> list[str]:
    """Implement `policies.by_policy`; a full bcache does the same as one with room."""
    del full
    words: list[str] = []
    if resident < ALL:
        words.append(
            "A read that misses is cached by the reading itself, unless it is bypassed or comes as"
            " one request of more than 1 MiB."
        )
    bypass = spec.bypass
    words.append(
        "Nothing is bypassed for being sequential (sequential_cutoff is 0)."
        if not bypass
        else f"A process that reads or writes more than {bypass} in sequence is bypassed from there"
        " on: a scan or a backup goes to the origin and displaces nothing."
    )
    words.append(
        "A write goes to the flash alone and is dirty until it is written back."
        if spec.mode == "writeback"
        else "A write goes to the origin and to the flash before it is answered."
    )
    if resident > NONE:
        words.append("When room is needed, the clean bucket that was read longest ago goes first.")
    return words


BCACHE = Kind(
    name="bcache",
    in_kernel=True,
    made_by="mapper",
    takes_files=False,
    keeps_sectors=False,
    programs=("bcache-super-show", "make-bcache", "flock"),
    looks=(devicemapper.require, _modules),
    tier=Bcache,
    choose=_choose,
    spec=_spec,
    check_policy=_check_policy,
    cache_min=CACHE_MIN,
    divides=False,
    pauses=True,
    is_told_to_count=True,
    # It holds some buckets free at all times and gives up those filled first for them
    # (``bch_allocator_thread``, drivers/md/bcache/alloc.c): of 80 MiB it kept all when filled to
    # 95 %, and half when filled to 100 %.
    fillable=Fraction(15, 16),
    # It caches every write.
    grown=Fraction(0),
    counting=COUNTING,
    counted_by="kernel",
    counted_since="reads since bcache started it",
    what_next=_next,
)
