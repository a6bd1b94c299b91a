"""Parts of a measurement alone: its operation, its label, and its server's state as it was. It sets
nothing up, so its tier is observed, and what could not be observed is reported."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveInt

from hotset.core.words import LABEL_PATTERN

from .base import Record, Share

Measured = Literal["tpcc run", "tpch run", "sql run", "disk bench"]
Label = Annotated[str, Field(pattern=LABEL_PATTERN, max_length=64)]


class TierMoment(Record):
    """Contents of a cache at one moment; None: not reported."""

    used_bytes: NonNegativeInt | None = None
    dirty_bytes: NonNegativeInt | None = None


class Resident(Record):
    """A table or index, and how much of it was in the cache."""

    name: str
    bytes: NonNegativeInt
    cached: Share


class ObservedTier(Record):
    """The accelerated disk on which the database lay."""

    disk: str
    kind: str
    mode: str
    policy: str
    block_bytes: PositiveInt
    cache_bytes: NonNegativeInt
    before: TierMoment | None = None
    """None: it was not active, or did not answer."""
    after: TierMoment | None = None
    residents: tuple[Resident, ...] = ()
    """The largest first, when the measurement had ended."""
    residents_unknown: str = ""
    """Why there are none."""


class Measurement(Record):
    """
    :ivar of: the operation that measured.
    :ivar label: the user's name for it, to find it again: such as ``before``.
    :ivar kept: True if the archive has it, by the run's id.
    :ivar tier: None: the database lay on no accelerated disk, or that is not known.
    :ivar tier_unknown: why it is not known; empty where it is.
    """

    of: Measured
    label: Label | None = None
    kept: bool = True
    tier: ObservedTier | None = None
    tier_unknown: str = ""

    @property
    def where(self) -> str:
        """The tier in words."""
        if self.tier is not None:
            tier = self.tier
            return f"{tier.kind} {tier.mode}, {tier.policy}"
        return f"not known: {self.tier_unknown}" if self.tier_unknown else "none"
