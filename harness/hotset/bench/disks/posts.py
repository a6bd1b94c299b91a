"""Forum posts and what is searched in them, generated: the same ones for the same seed.

Words are drawn as people use them, the second half as often as the first, the third a third (Zipf).
Posts are of some sixty words, few of them long. What is searched is one to three words that are
neither in every post nor in none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_WORDS = 30_000
_SYLLABLES = [first + second for first in "bcdfghjklmnprstvwz" for second in "aeiou"]
_TITLE_WORDS = (3, 9)
_BODY_WORDS, _BODY_SPREAD = 60.0, 0.8
_BODY_MOST = 600
_SEARCHED_RANKS = (100, 20_000)
_SEARCHED_WORDS_MOST = 3


@dataclass(frozen=True, slots=True)
class Post:
    """The indexed text of a post."""

    title: str
    body: str


def vocabulary(size: int = _WORDS) -> list[str]:
    """Words that one could say, the most used first.

    >>> vocabulary(3), len(set(vocabulary(20_000)))
    (['beba', 'bebe', 'bebi'], 20000)
    """
    base = len(_SYLLABLES)

    def word(number: int) -> str:
        text = ""
        while number:
            number, syllable = divmod(number, base)
            text = _SYLLABLES[syllable] + text
        return text

    return [word(base + number) for number in range(size)]


class Forum:
    """Posts and searches, one after the other."""

    def __init__(self, seed: int) -> None:
        self._dice = np.random.default_rng(seed)
        self._words = np.array(vocabulary(), dtype=object)
        shares = 1.0 / np.arange(1, _WORDS + 1)
        self._reached = np.cumsum(shares / shares.sum())

    def posts(self, count: int) -> Iterator[Post]:
        """The next ones."""
        titles = self._dice.integers(*_TITLE_WORDS, count)
        bodies = self._dice.lognormal(np.log(_BODY_WORDS), _BODY_SPREAD, count)
        lengths = np.clip(bodies, 5, _BODY_MOST).astype(int)
        words = self._draw(int(titles.sum() + lengths.sum()))
        at = 0
        for title, body in zip(titles.tolist(), lengths.tolist(), strict=True):
            middle, end = at + title, at + title + body
            yield Post(" ".join(words[at:middle]), " ".join(words[middle:end]))
            at = end

    def search(self) -> list[str]:
        """The words of the next one."""
        count = int(self._dice.integers(1, _SEARCHED_WORDS_MOST + 1))
        low, high = np.log(_SEARCHED_RANKS)
        ranks = np.exp(self._dice.uniform(low, high, count)).astype(int)
        return [str(word) for word in self._words[ranks]]

    def _draw(self, count: int) -> NDArray[np.object_]:
        ranks = np.searchsorted(self._reached, self._dice.random(count))
        drawn: NDArray[np.object_] = self._words[np.minimum(ranks, _WORDS - 1)]
        return drawn
