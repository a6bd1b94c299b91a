"""Tables, indexes and databases as targets of warm-ups and pins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hotset.core.errors import RequestError


class Target(Protocol):
    """A target as a user named it.

    :ivar kind: one of a database's: table, index, database.
    :ivar name: behind the colon.
    """

    @property
    def text(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Offer:
    """A target that there is. ``bytes``: of its files, None where the server does not tell at
    once."""

    target: str
    bytes: int | None


class TargetError(RequestError):
    """A target that cannot be warmed; the message names it and what would do."""


class TargetGoneError(TargetError):
    """Where it was looked for, there is no such thing (any more)."""


def no_database(target: Target, databases: list[str]) -> TargetGoneError:
    """Build the error for a database that the server does not have."""
    return TargetGoneError(
        f"{target.text}: the server has no such database; it has: {', '.join(databases)}",
        field="targets",
    )
