"""TPC-C's own distributions (clauses 2.1.6, 4.3.2)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hotset.load.streams import stream

_SYLLABLES = ("BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING")

LAST_NAMES: tuple[str, ...] = tuple(
    _SYLLABLES[n // 100] + _SYLLABLES[n // 10 % 10] + _SYLLABLES[n % 10] for n in range(1000)
)
"""The 1,000 last names, by number (clause 4.3.2.3)."""

C_LAST_LOAD = 157
"""The constant C of NURand(255, 0, 999) while loading: fixed, so that any later run,
knowing nothing of the load, can keep the distance clause 2.1.6.1 asks for."""

C_LAST_RUN: tuple[int, ...] = tuple(
    c
    for c in range(256)
    if 65 <= abs(c - C_LAST_LOAD) <= 119 and abs(c - C_LAST_LOAD) not in (96, 112)
    for c in range(256)
    if 65 <= abs(c - C_LAST_LOAD) <= 119 and abs(c - C_LAST_LOAD) not in (96, 112)
)
"""The constants a run may use for last names (clause 2.1.6.1), each 86 times: all are as likely,
and what a seed draws depends on how many there are, so recorded seeds would give other rows if they
were in it once."""


@dataclass(frozen=True, slots=True)
class Constants:
    """The run-time constants C of clause 2.1.6, one per use.

    They decide WHICH customers and items are popular, so two runs that are to be
    compared share a seed: then they heat the same rows.
    """

    last_name: int
    customer: int
    item: int

    @classmethod
    def for_run(cls, seed: int) -> "Constants":
        """Draw the constants of one run, for all its users alike."""
        random = stream(seed, "constants")
        return cls(random.choice(C_LAST_RUN), random.randrange(1024), random.randrange(8192))


def nurand(random: Callable[[], float], a: int, c: int, low: int, high: int) -> int:
    """NURand(A, x, y) of clause 2.1.6; `random` gives floats in [0, 1).

    >>> nurand(lambda: 0.0, 1023, 5, 1, 3000)
    7
    """
    span = high - low + 1
    either = int(random() * (a + 1)) | (low + int(random() * span))
    return (either + c) % span + low


def nurand_vector(
    random: np.random.Generator, a: int, c: int, low: int, high: int, count: int
) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """`count` independent values of NURand(A, x, y)."""
    either = random.integers(0, a, count, endpoint=True) | random.integers(
        low, high, count, endpoint=True
    )
    return np.asarray((either + c) % (high - low + 1) + low, dtype=np.int64)


def shares(a: int, low: int, high: int) -> np.ndarray:
    """The probability of each outcome of NURand(a, low, high) with C = 0; C only turns them round.

    Exact: of all pairs of draws, an OR-convolution over the low bits of what is drawn.
    """
    span, bits = high - low + 1, a.bit_length()
    drawn, counts = np.arange(low, high + 1), np.zeros(span)
    for upper in np.unique(drawn >> bits):
        lower = drawn[drawn >> bits == upper] & a
        pairs = _subset_sums(np.ones(a + 1)) * _subset_sums(np.bincount(lower, minlength=a + 1))
        for bit in range(bits):
            view = pairs.reshape(-1, 2, 1 << bit)
            view[:, 1] -= view[:, 0]
        np.add.at(counts, ((upper << bits) + np.arange(a + 1)) % span, pairs)
    return counts / ((a + 1) * span)


def _subset_sums(counts: np.ndarray) -> np.ndarray:
    """At each number the sum over all numbers whose bits it has."""
    sums = counts.astype(float)
    for bit in range(len(sums).bit_length() - 1):
        view = sums.reshape(-1, 2, 1 << bit)
        view[:, 1] += view[:, 0]
    return sums
