"""Targets of warm-ups and pins: what of a database can be one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hotset.core.errors import RequestError

Kind = Literal["path", "table", "index", "database", "region", "heat", "snapshot"]


@dataclass(frozen=True, slots=True)
class Target:
    """Target as a user named it: its kind, and the name behind the colon (or the path)."""

    text: str
    kind: Kind
    name: str

    @property
    def of_database(self) -> bool:
        """Only a database server knows where it lies."""
        return self.kind in ("table", "index", "database")


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
