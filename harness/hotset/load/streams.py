"""Seeded random streams, picked by naming them.

One seed gives a whole workload: warehouse 7 or user 3 draws the same numbers however many processes
share the work.
"""

from hashlib import sha256
from random import Random

import numpy as np


def _entropy(seed: int, name: tuple[str | int, ...]) -> int:
    """A number of 256 bits from a seed and a name: neighbouring names share nothing."""
    return int.from_bytes(sha256("/".join(map(str, (seed, *name))).encode()).digest())


def stream(seed: int, *name: str | int) -> Random:
    """An independent, reproducible stream of scalars."""
    return Random(_entropy(seed, name))


def stream_words(seed: int, *name: str | int) -> list[int]:
    """Return the seed for another Mersenne Twister to draw as `stream`: 32-bit words, lowest first.

    >>> Random(sum(word << 32 * at for at, word in enumerate(stream_words(1, "user", 3)))
    ...        ).random() == stream(1, "user", 3).random()
    True
    """
    entropy = _entropy(seed, name)
    return [entropy >> shift & 0xFFFFFFFF for shift in range(0, max(entropy.bit_length(), 1), 32)]


def vector_stream(seed: int, *name: str | int) -> np.random.Generator:
    """An independent, reproducible stream of numpy vectors."""
    return np.random.default_rng(_entropy(seed, name))
