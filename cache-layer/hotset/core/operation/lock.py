"""What a job needs for itself while it runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Lock:
    """Something of a place; ``name`` is None for all of it."""

    place: str
    name: str | None = None

    def __str__(self) -> str:
        return self.place if self.name is None else f"{self.place}: {self.name}"


def conflict(one: Lock | None, other: Lock | None) -> bool:
    """Whether two jobs need the same. A disk that is not named may be any of its machine's."""
    if one is None or other is None or one.place != other.place:
        return False
    return one.name is None or other.name is None or one.name == other.name
