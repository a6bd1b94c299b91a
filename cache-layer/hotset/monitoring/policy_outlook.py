"""Next actions of a tier on blocks, in words that are true of its kind and policy."""

from __future__ import annotations

from hotset.core.words import percent
from hotset.tier import kinds
from hotset.tier.base import Counters, TierKind, TierSpec
from hotset.tier.outlook import ALL, NONE


def describe_outlook(
    kind: TierKind, spec: TierSpec, counters: Counters, resident: float
) -> tuple[str, ...]:
    """Whole sentences.

    :param resident: the share of the blocks that is in the cache, 0 to 1.
    """
    words: list[str] = []
    if resident >= ALL:
        words.append("All of it is in the cache: the next read of any block is a hit.")
    elif resident <= NONE:
        words.append("Nothing of it is in the cache: the next read of a block goes to the origin.")
    else:
        words.append(
            f"Of reads spread evenly over it {percent(resident)} would hit now; the others go to"
            " the origin."
        )
    full = counters.used >= counters.total
    return (*words, *kinds.kind_of_name(kind).what_next(spec, full, resident))
