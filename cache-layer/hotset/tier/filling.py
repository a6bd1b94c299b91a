"""Contents and method of a tier's warm-up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from hotset.block.extents import Run
from hotset.block.transfer import Progress
from hotset.core.units import Bytes

Way = Literal["auto", "offline", "online"]
"""``offline``: while the accelerated device is down; ``online``: while it is used. ``auto`` is off
line while nobody uses it, else on line. A kind that has one way only takes that."""


class Records(Protocol):
    """Keeps how a tier was left, so that a fill that is cut short is known as such."""

    def down(self) -> None:
        """The tier has been taken down and nothing is dirty."""

    def up(self) -> None:
        """The tier is about to become active."""


@dataclass(frozen=True, slots=True)
class Filling:
    """Blocks to have cached.

    :ivar runs: in origin order, no more than the cache holds.
    :ivar samples: how many blocks to compare with the origin, where they are copied past the tier.
    :ivar rate: copy at most so many bytes a second.
    :ivar share: of the blocks, 0 to 1, that are enough on line, where the policy decides.
    :ivar records: told before and after the accelerated device is down.
    :ivar say: told what was chosen.
    """

    runs: Sequence[Run]
    samples: int
    on_progress: Callable[[Progress], None]
    rate: Bytes | None = None
    way: Way = "auto"
    share: float = 1.0
    records: Records | None = None
    say: Callable[[str], None] = lambda _: None
