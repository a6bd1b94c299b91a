"""What a policy will do next with blocks, in words that are true of that policy.

smq: drivers/md/dm-cache-policy-smq.c (``update_promote_levels``, ``should_promote``,
``queue_demotion``). bcache: ``check_should_bypass`` and ``cached_dev_cache_miss`` in
drivers/md/bcache/request.c, ``invalidate_buckets`` in alloc.c.
"""

from __future__ import annotations

from hotset.tier.base import Counters, TierKind, TierSpec

_ALL, _NONE = 0.999, 0.001


def of(kind: TierKind, spec: TierSpec, counters: Counters, resident: float) -> tuple[str, ...]:
    """Whole sentences.

    :param resident: the share of the blocks that is in the cache, 0 to 1.
    """
    words: list[str] = []
    if resident >= _ALL:
        words.append("All of it is in the cache: the next read of any block is a hit.")
    elif resident <= _NONE:
        words.append("Nothing of it is in the cache: the next read of a block goes to the origin.")
    else:
        words.append(
            f"Of reads spread evenly over it {100 * resident:.1f} % would hit now; the others go to"
            " the origin."
        )
    full = counters.used >= counters.total
    if kind == "bcache":
        return (*words, *_bcache(spec, resident))
    if spec.policy == "smq":
        return (*words, *_smq(spec, full, resident))
    if spec.policy == "cleaner":
        return (*words, "Policy cleaner promotes nothing and writes back what is dirty.")
    return (*words, f"Policy {spec.policy} decides what is promoted.")


def _smq(spec: TierSpec, full: bool, resident: float) -> list[str]:
    words: list[str] = []
    if resident < _ALL:
        words.append(
            "A block that misses is promoted once its neighbourhood (16 blocks) has missed often"
            " enough, at the earliest at the first miss while promotions pay off and after many"
            " while they do not; reading it once in sequence promotes little."
        )
        if full:
            words.append(
                "The cache is full: the attempt that finds no free block only asks for room and is"
                " refused; the block has to miss again."
            )
        elif spec.mode == "writeback":
            words.append("A write that covers a whole block is promoted at once: blocks are free.")
    if resident > _NONE:
        words.append(
            "A cached block climbs one level at its first hit in a minute; when room is needed, the"
            " lowest clean level goes first, so what rests longest."
            if full
            else "What is cached stays: blocks are free, so nothing has to go."
        )
    return words


def _bcache(spec: TierSpec, resident: float) -> list[str]:
    words: list[str] = []
    if resident < _ALL:
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
    if resident > _NONE:
        words.append("When room is needed, the clean bucket that was read longest ago goes first.")
    return words
