"""Policies of caches: those of hotset's own engine, and the next actions of a policy on blocks, in
words that are true of that policy.

smq: drivers/md/dm-cache-policy-smq.c (``update_promote_levels``, ``should_promote``,
``queue_demotion``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from .base import TierSpec

Policy = Literal["hotset", "smq", "lru", "sieve", "s3-fifo", "arc"]
"""Policies of ``hotset-engine tier --policy``; the first is the default."""
POLICIES: tuple[Policy, ...] = get_args(Policy)

ALL, NONE = 0.999, 0.001
"""Shares of the blocks that are in the cache, from which on all and none of them count as so."""


def by_policy(spec: TierSpec, full: bool, resident: float) -> list[str]:
    """Whole sentences, of a kind that has the policy of its specification.

    :param full: no block of the cache is free.
    :param resident: the share of the blocks that is in the cache, 0 to 1.
    """
    if spec.policy == "smq":
        return _smq(spec, full, resident)
    if spec.policy == "cleaner":
        return ["Policy cleaner promotes nothing and writes back what is dirty."]
    return [f"Policy {spec.policy} decides what is promoted."]


def _smq(spec: TierSpec, full: bool, resident: float) -> list[str]:
    words: list[str] = []
    if resident < ALL:
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
    if resident > NONE:
        words.append(
            "A cached block climbs one level at its first hit in a minute; when room is needed, the"
            " lowest clean level goes first, so what rests longest."
            if full
            else "What is cached stays: blocks are free, so nothing has to go."
        )
    return words
